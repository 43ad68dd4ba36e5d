"""Version-0 ids: which kind, what they say, when a client made one, and the canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgid import layout
from msgid.ids._bytes import NOT_V0
from spark_ext.columns._dialect import F
from spark_ext.columns._expressions import (
    column,
    digits_to_bigint,
    hex_text,
    is_canonical_v0,
    is_v0,
    is_v1,
    null_text,
    raise_invalid,
    struct_if,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName

__all__ = ["id_kind", "parse_v0", "translate_v0", "try_parse_v0", "try_translate_v0", "v0_time"]

_TAIL_DIGITS = 2 * layout.TAIL_LENGTH
_IPV6_DIGITS = 2 * layout.IPV6_LENGTH
_GROUPS = 8


def parse_v0(col: ColumnOrName) -> Column:
    """Take a version-0 id apart: a broker's offset, or a client's ip, pid, time and counter.

    Parameters
    ----------
    col : Column or str
        ids, as text (32 or 56 hex digits, or with ``00`` in front) or binary.

    Returns
    -------
    Column
        a struct of ``kind`` (``v0-broker-offset``, ``v0-client-unique`` or ``v0-ambiguous``: the rule of
        `msgid.layout.v0_kind`), ``host`` string (IPv6 in the form of RFC 5952), and by kind ``port`` int and ``offset``
        bigint, or ``pid`` int, ``loader_hash`` bigint, ``elapsed_ms`` bigint and ``counter`` int, the others NULL. NULL
        for NULL. Fails the query on anything else with the error condition ``USER_RAISED_EXCEPTION``; `try_parse_v0`
        gives NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("7F0000010000238F000000000001E240",)], ["id"])
    >>> df.select(parse_v0("id").alias("p")).select("p.kind", "p.host", "p.port", "p.offset").show()
    +----------------+---------+----+------+
    |            kind|     host|port|offset|
    +----------------+---------+----+------+
    |v0-broker-offset|127.0.0.1|9103|123456|
    +----------------+---------+----+------+
    """
    text = hex_text(col)
    return _parsed(text, raise_invalid(text, NOT_V0)).alias("parse_v0")


def try_parse_v0(col: ColumnOrName) -> Column:
    """Take a version-0 id apart, as `parse_v0` does, or give NULL where it is none.

    Parameters
    ----------
    col : Column or str
        ids, as text or binary.

    Returns
    -------
    Column
        a struct as `parse_v0` gives it, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("C0A8F001103E214D29547ACFD6E30000",), ("no id",)], ["id"])
    >>> df.select(try_parse_v0("id").elapsed_ms.alias("elapsed_ms")).show()
    +----------+
    |elapsed_ms|
    +----------+
    |2060441315|
    |      NULL|
    +----------+
    """
    return _parsed(hex_text(col), None).alias("try_parse_v0")


def translate_v0(col: ColumnOrName) -> Column:
    """Give the canonical text of version-0 ids, as `msgid.translate_v0` does: ``00`` in front.

    Parameters
    ----------
    col : Column or str
        ids, as text or binary.

    Returns
    -------
    Column
        text of 34 or 58 upper-case hex digits; NULL for NULL. Fails the query on anything else with the error
        condition ``USER_RAISED_EXCEPTION``; `try_translate_v0` gives NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("7F0000010000238F000000000001E240",)], ["id"])
    >>> df.select(translate_v0("id")).show(truncate=False)
    +----------------------------------+
    |translate_v0                      |
    +----------------------------------+
    |007F0000010000238F000000000001E240|
    +----------------------------------+
    """
    text = hex_text(col)
    return _translated(text, raise_invalid(text, NOT_V0)).alias("translate_v0")


def try_translate_v0(col: ColumnOrName) -> Column:
    """Give the canonical text of version-0 ids, as `translate_v0` does, or NULL where it is none.

    Parameters
    ----------
    col : Column or str
        ids, as text or binary.

    Returns
    -------
    Column
        text, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("no id",)], ["id"])
    >>> df.select(try_translate_v0("id")).show()
    +----------------+
    |try_translate_v0|
    +----------------+
    |            NULL|
    +----------------+
    """
    return _translated(hex_text(col), null_text()).alias("try_translate_v0")


def id_kind(col: ColumnOrName) -> Column:
    """Say which kind of id a value is.

    Parameters
    ----------
    col : Column or str
        text or binary.

    Returns
    -------
    Column
        ``v1``, ``v0-broker-offset``, ``v0-client-unique`` or ``v0-ambiguous``; NULL where there is no id.

    Examples
    --------
    >>> df = spark.createDataFrame([("7F0000010000238F000000000001E240",), ("no id",)], ["id"])
    >>> df.select(id_kind("id")).show()
    +----------------+
    |         id_kind|
    +----------------+
    |v0-broker-offset|
    |            NULL|
    +----------------+
    """
    text = hex_text(col)
    v0 = F.when(is_v0(text), _fields(text)["kind"])
    return F.when(is_v1(text), F.lit(layout.KIND_V1)).otherwise(v0).alias("id_kind")


def v0_time(col: ColumnOrName, near: ColumnOrName, timezone: ColumnOrName) -> Column:
    """Rebuild when a version-0 client id was made, as `msgid.ClientUniqueId.time` does.

    Parameters
    ----------
    col : Column or str
        ids, as text or binary.
    near : Column or str
        timestamps: when each id was seen, less than a month after it was made.
    timezone : Column or str
        the names of the clients' time zones; of one zone, ``lit("Asia/Shanghai")``.

    Returns
    -------
    Column
        timestamp, with milliseconds; NULL where there is no client id, and where ``near`` or ``timezone`` is NULL. The
        session's time zone plays no part.

    Examples
    --------
    >>> from pyspark.sql.functions import lit, timestamp_seconds
    >>> df = spark.createDataFrame([("C0A8F001103E214D29547ACFD6E30000",)], ["id"])
    >>> made = v0_time("id", timestamp_seconds(lit(1633240802)), lit("Asia/Shanghai"))
    >>> df.select(made.cast("decimal(20, 3)").alias("unix")).show()
    +--------------+
    |          unix|
    +--------------+
    |1632486041.315|
    +--------------+
    """
    text, seen, zone = hex_text(col), column(near).cast("timestamp"), column(timezone)
    fields = _fields(text)
    # Wall clocks as timestamps without a zone, so that the session's has no say: micros since 1970 in UTC.
    start, utc = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz"), F.lit("UTC")
    near_utc = F.timestamp_add("MICROSECOND", F.unix_micros(seen), start)
    month = F.trunc(F.convert_timezone(utc, zone, near_utc), "MM")

    def made(first_day: Column) -> Column:
        month_utc = F.convert_timezone(zone, utc, first_day.cast("timestamp_ntz"))
        return F.timestamp_add("MILLISECOND", fields["elapsed_ms"], month_utc)

    this_month, last_month = made(month), made(F.add_months(month, -1))
    found = F.when(this_month < near_utc, this_month).otherwise(last_month)
    is_client = is_v0(text) & (fields["kind"].isin(layout.KIND_CLIENT_UNIQUE, layout.KIND_AMBIGUOUS))
    moment = F.timestamp_micros(F.timestamp_diff("MICROSECOND", start, found))
    return F.when(is_client, moment).alias("v0_time")


def _translated(text: Column, otherwise: Column) -> Column:
    bare = F.concat(F.lit(layout.CANONICAL_V0_PREFIX), F.upper(text))
    canonical = F.when(is_canonical_v0(text), F.upper(text)).otherwise(bare)
    return F.when(is_v0(text), canonical).when(text.isNotNull(), otherwise)


def _parsed(text: Column, otherwise: Column | None) -> Column:
    return struct_if(text, is_v0(text), otherwise, _fields(text))


def _fields(text: Column) -> dict[str, Column]:
    tail = F.right(text, F.lit(_TAIL_DIGITS))
    # Without the version byte, what stands before the last 24 digits is the address.
    bare = F.when(is_canonical_v0(text), F.substring(text, 3, _IPV6_DIGITS + _TAIL_DIGITS)).otherwise(text)
    address = F.left(bare, F.length(bare) - _TAIL_DIGITS)

    def number(start: int, stop: int) -> Column:
        return digits_to_bigint(F.substring(tail, 2 * start + 1, 2 * (stop - start)))

    port_field, offset_field = layout.BROKER_FIELDS.values()
    client = {name: number(field.start, field.stop) for name, field in layout.CLIENT_FIELDS.items()}
    port = number(port_field.start, port_field.stop)
    # 16 digits are too many for a signed number. Of an offset of 2**48 or more, all that matters is that it is one.
    split = offset_field.stop - layout.OFFSET_MAX.bit_length() // 8
    high, offset = number(offset_field.start, split), number(split, offset_field.stop)
    is_broker_shaped = port.between(1, layout.PORT_MAX) & (high == 0)
    ends_in_zero = number(offset_field.stop - 1, offset_field.stop) == 0
    is_ambiguous = is_broker_shaped & (offset >= layout.AMBIGUOUS_OFFSET_MIN) & ends_in_zero
    is_broker = is_broker_shaped & ~is_ambiguous
    return {
        "kind": F.when(is_ambiguous, F.lit(layout.KIND_AMBIGUOUS))
        .when(is_broker, F.lit(layout.KIND_BROKER_OFFSET))
        .otherwise(F.lit(layout.KIND_CLIENT_UNIQUE)),
        "host": F.when(F.length(address) == _IPV6_DIGITS, _ipv6(address)).otherwise(_ipv4(address)),
        "port": F.when(is_broker, port.cast("int")),
        "offset": F.when(is_broker, offset),
        "pid": F.when(~is_broker, client["pid"].cast("int")),
        "loader_hash": F.when(~is_broker, client["loader_hash"]),
        "elapsed_ms": F.when(~is_broker, client["elapsed_ms"]),
        "counter": F.when(~is_broker, client["counter"].cast("int")),
    }


def _ipv4(address: Column) -> Column:
    return F.concat_ws(".", *(F.conv(F.substring(address, place, 2), 16, 10) for place in range(1, 9, 2)))


def _ipv6(address: Column) -> Column:
    """Write 32 digits as RFC 5952 asks: lower case, no leading zeros, the first longest run of zeros as ``::``."""
    # A colon at either end lets a run of zeros be looked for with the colons around it, wherever it stands.
    text = F.concat(F.regexp_replace(F.lower(address), "(.{4})", ":$1"), F.lit(":"))
    text = F.regexp_replace(text, ":0{1,3}(?=[0-9a-f])", ":")
    # One after the other, each only if no longer run has been found: the text is in the plan once, not once a length.
    for count in range(_GROUPS, 1, -1):
        text = F.regexp_replace(text, f"^(?!.*::)(.*?):(?:0:){{{count}}}(.*)$", "$1::$2")
    return F.regexp_replace(text, "^:(?!:)|(?<!:):$", "")
