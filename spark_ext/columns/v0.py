"""Read version-0 IDs: kind, fields, time and canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.ids.checked_bytes import NOT_V0
from spark_ext.columns.building import computed_below, cut, null_text, struct_if
from spark_ext.columns.column_types import MOMENTS, column, of_types
from spark_ext.columns.crc import WORD_WIDTH, look_up, octet, word
from spark_ext.columns.id_text import is_canonical_v0, is_v0, is_v1
from spark_ext.columns.identity import hex_text
from spark_ext.columns.moment_columns import MICROSECONDS, is_within_years, micros_of, raise_outside_years
from spark_ext.columns.reasons import raise_invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from spark_ext.columns.column_types import ColumnOrName

_TAIL_DIGITS = 2 * layout.TAIL_LENGTH
_IPV6_DIGITS = 2 * layout.IPV6_LENGTH
_GROUPS = 8
_DAY = 24 * 3600 * MICROSECONDS
"""Microseconds."""
_DECIMAL = [str(byte) for byte in range(256)]
_WITH_DOT = [f"{byte}." for byte in range(256)]
_RUN = "^(?:" + "|".join(f"(.*?):(?:0:){{{count}}}(.*)" for count in range(_GROUPS, 1, -1)) + ")$"
"""The longest run of zero groups in an IPv6 address, the first of several; two groups before and after each length."""
_WITHOUT_RUN = "::".join("".join(f"${group}" for group in range(first, 2 * _GROUPS - 1, 2)) for first in (1, 2))
"""The address without that run: a group of another length is empty."""


def parse_v0(col: ColumnOrName) -> Column:
    """Parse a version-0 ID: a broker's offset, or a client's IP address, pid, time and counter.

    Parameters
    ----------
    col : Column or str
        IDs, as text (32 or 56 hex digits, or with ``00`` in front) or binary.

    Returns
    -------
    Column
        a struct of ``kind`` (``v0-broker-offset``, ``v0-client-unique`` or ``v0-ambiguous``: the rule of
        `msgid.layout.v0_kind`), ``host`` string (IPv6 in the form of RFC 5952), and by kind ``port`` int and ``offset``
        bigint, or ``pid`` int, ``loader_hash`` bigint, ``elapsed_ms`` bigint and ``counter`` int, the others NULL. NULL
        for NULL. Fails the query on anything else with the error condition ``USER_RAISED_EXCEPTION``; `try_parse_v0`
        returns NULL.

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
    """Parse a version-0 ID, as `parse_v0` does; NULL for any other value.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        a struct as `parse_v0` returns it, or NULL.

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
    """Return the canonical text of version-0 IDs, with ``00`` in front, as `msgid.translate_v0` does.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        text of 34 or 58 upper-case hex digits; NULL for NULL. Fails the query on anything else with the error
        condition ``USER_RAISED_EXCEPTION``; `try_translate_v0` returns NULL.

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
    """Return the canonical text of version-0 IDs, as `translate_v0` does; NULL for any other value.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

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
    """Return the kind of an ID.

    Parameters
    ----------
    col : Column or str
        text or binary.

    Returns
    -------
    Column
        ``v1``, ``v0-broker-offset``, ``v0-client-unique`` or ``v0-ambiguous``; NULL for any value that is not an ID.

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
    v0 = F.when(is_v0(text), _kind(text, *_shape(text)))
    return F.when(is_v1(text), F.lit(layout.KIND_V1)).otherwise(v0).alias("id_kind")


def v0_time(col: ColumnOrName, near: ColumnOrName, timezone: ColumnOrName) -> Column:
    """Return the time at which a version-0 client ID was made, as `msgid.ClientUniqueId.time_near` does.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.
    near : Column or str
        timestamps at which the IDs were seen, each less than 27 days after the ID was made. An ID may be up to a day
        later, because clocks differ.
    timezone : Column or str
        names of the clients' time zones; for a single zone, ``lit("Asia/Shanghai")``.

    Returns
    -------
    Column
        Timestamp with milliseconds; NULL for any value that is not a client's ID, if ``near`` or ``timezone`` is NULL,
        and if the milliseconds of the ID are not part of a month up to ``near``. The session's time zone does not
        matter. The query fails with the error condition ``USER_RAISED_EXCEPTION`` if ``near`` is outside the years 1 to
        9999.

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
    text, zone = hex_text(col), column(timezone, "timezone")
    field = layout.CLIENT_FIELDS["elapsed_ms"]
    elapsed = _word(F.unhex(text), field.start)
    # Moments and wall clocks are microseconds since 1970, so the session's time zone does not matter.
    seen = F.when(is_within_years(column(near, "near")), micros_of(column(near, "near")))
    latest = seen + F.lit(layout.CLOCKS_DIFFER_S * 1_000_000)
    micros = time_of_month(elapsed, latest, zone)
    is_shaped, is_ambiguous = _shape(text)
    is_client = is_v0(text) & (~is_shaped | is_ambiguous)
    # Spark shares a value beside a condition, but not a value below it. A moment plus NULL is NULL.
    moment = F.timestamp_micros(micros + F.when(is_client, F.lit(0)))
    at = column(near, "near")
    moment = F.coalesce(moment, raise_outside_years("near", at).cast("timestamp_ltz"))
    with_zone = of_types(
        "v0_time", "near", column(near, "near"), "a timestamp or Unix seconds", MOMENTS, "timestamp_ltz"
    )
    return with_zone(moment).alias("v0_time")


def time_of_month(elapsed: Column, latest: Column, zone: Column) -> Column:
    """Return the last time that is ``elapsed`` milliseconds after the start of its month, up to ``latest``.

    Both times are microseconds since 1970.
    """
    wall = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(latest), zone))
    day = (wall - F.pmod(wall, F.lit(_DAY))) / F.lit(_DAY)  # a double holds the quotient exactly
    month = F.trunc(F.date_from_unix_date(day.cast("int")), "MM")

    def start(months: int) -> Column:
        midnight = F.timestamp_micros(F.unix_date(F.add_months(month, months)) * F.lit(_DAY))
        return F.unix_micros(F.to_utc_timestamp(midnight, zone))

    def time(months: int) -> Column:
        moment = start(months) + elapsed * F.lit(1000)
        return moment + F.when((moment <= latest) & (moment < start(months + 1)), F.lit(0))

    # The first time is the greatest. Spark shares the months' starts here, but not below the conditions of a coalesce.
    return F.greatest(*map(time, (0, -1, -2, -3)))


def _translated(text: Column, otherwise: Column) -> Column:
    bare = F.concat(F.lit(layout.CANONICAL_V0_PREFIX), F.upper(text))
    canonical = F.when(is_canonical_v0(text), F.upper(text)).otherwise(bare)
    return F.when(is_v0(text), canonical).when(text.isNotNull(), otherwise)


def parts_of(text: Column) -> tuple[Column, ...]:
    """Return the parts of an ID from which `fields_of` computes the fields."""
    is_shaped, is_ambiguous = _shape(text)
    return (_host(text), _kind(text, is_shaped, is_ambiguous), is_shaped & ~is_ambiguous, *_words(F.unhex(text)))


def _parsed(text: Column, otherwise: Column | None) -> Column:
    # Spark computes all fields in one projection, where they share these parts.
    fields = {name: computed_below(field, never) for name, (field, never) in fields_of(*parts_of(text)).items()}
    return struct_if(text, is_v0(text), otherwise, fields)


def _kind(text: Column, is_shaped: Column, is_ambiguous: Column) -> Column:
    kind = F.when(is_ambiguous, F.lit(layout.KIND_AMBIGUOUS)).when(is_shaped, F.lit(layout.KIND_BROKER_OFFSET))
    # A field that is never NULL is another type than the result of the SQL function, and Spark converts each field.
    return kind.when(text.isNotNull(), F.lit(layout.KIND_CLIENT_UNIQUE))


def _shape(text: Column) -> tuple[Column, Column]:
    """Return whether an ID has the shape of a broker's, and whether it is then ambiguous: `msgid.layout.v0_kind`.

    The limits of the rule are powers of 256, so zero digits decide, which is less code than the numbers.
    """
    port, offset = layout.BROKER_FIELDS.values()

    def is_zero(start: int, stop: int) -> Column:
        digits = 2 * (stop - start)
        return cut(text, 2 * start - _TAIL_DIGITS, digits) == F.lit("0" * digits).cast("binary")

    port_low = port.stop - layout.PORT_MAX.bit_length() // 8
    offset_low = offset.stop - layout.OFFSET_MAX.bit_length() // 8
    large = offset.stop - layout.AMBIGUOUS_OFFSET_MIN.bit_length() // 8
    shaped = is_zero(port.start, port_low) & ~is_zero(port_low, port.stop) & is_zero(offset.start, offset_low)
    is_ambiguous = shaped & ~is_zero(offset_low, large) & is_zero(offset.stop - 1, offset.stop)
    return shaped, is_ambiguous


def _words(raw: Column) -> tuple[Column, Column, Column]:
    """Read the last 12 bytes, which all fields but the host are made from, as three unsigned integers."""
    port, high, low = (_word(raw, start) for start in range(0, layout.TAIL_LENGTH, WORD_WIDTH))
    return port, high, low


def _word(raw: Column, start: int) -> Column:
    """Read four of the last 12 bytes as an unsigned integer."""
    return word(F.substring(raw, start - layout.TAIL_LENGTH, WORD_WIDTH))


def _unsigned(words: Sequence[Column], start: int, stop: int) -> Column:
    """Read the bytes from start to stop, at most four, of the bytes that the words hold."""
    first, last = start // WORD_WIDTH, (stop - 1) // WORD_WIDTH
    after = WORD_WIDTH * (last + 1) - stop
    value = F.shiftright(words[last], 8 * after) if after else words[last]
    if first < last:
        value = F.shiftleft(words[first], 8 * (WORD_WIDTH - after)).bitwiseOR(value)
    is_whole = start == WORD_WIDTH * last and stop == start + WORD_WIDTH
    return value if is_whole else value.bitwiseAND((1 << 8 * (stop - start)) - 1)


def fields_of(
    host: Column, kind: Column, is_broker: Column, port: Column, high: Column, low: Column
) -> dict[str, tuple[Column, int | str]]:
    """Return each field, and a value that it never has."""
    words = (port, high, low)
    client = {name: _unsigned(words, field.start, field.stop) for name, field in layout.CLIENT_FIELDS.items()}
    # Spark shares a value beside a condition, but not a value below it. A number combined with NULL is NULL.
    if_broker, if_client = F.when(is_broker, F.lit(0)), F.when(~is_broker, F.lit(0))
    numbers = {
        "port": port.bitwiseOR(if_broker).cast("int"),
        "offset": F.shiftleft(high, 8 * WORD_WIDTH).bitwiseOR(low).bitwiseOR(if_broker),
        "pid": client["pid"].bitwiseOR(if_client).cast("int"),
        "loader_hash": client["loader_hash"].bitwiseOR(if_client),
        "elapsed_ms": client["elapsed_ms"].bitwiseOR(if_client),
        "counter": client["counter"].bitwiseOR(if_client).cast("int"),
    }
    return {
        "kind": (kind, ""),
        "host": (host, ""),
        **{name: (number, -1) for name, number in numbers.items()},
    }


def _host(text: Column) -> Column:
    is_ipv6 = F.octet_length(text) >= _IPV6_DIGITS + _TAIL_DIGITS
    address = F.substring(text, -_IPV6_DIGITS - _TAIL_DIGITS, _IPV6_DIGITS)
    return F.when(is_ipv6, _ipv6(address)).otherwise(_ipv4(text))


def _ipv4(text: Column) -> Column:
    start, stop = -layout.IPV4_LENGTH - layout.TAIL_LENGTH, -layout.TAIL_LENGTH
    octets = [octet(F.substring(F.unhex(text), start_of_octet, 1)) for start_of_octet in range(start, stop)]
    return F.concat(*(look_up(one, _WITH_DOT) for one in octets[:-1]), look_up(octets[-1], _DECIMAL))


def _ipv6(address: Column) -> Column:
    """Write 32 digits as RFC 5952 asks: lower case, no leading zeros, the first longest run of zeros as ``::``."""
    # A colon at either end lets a run of zeros be looked for with the colons around it, wherever it stands.
    text = F.concat(F.regexp_replace(F.lower(address), "000(.)|00(..)|0(...)|(....)", ":$1$2$3$4"), F.lit(":"))
    text = F.regexp_replace(text, _RUN, _WITHOUT_RUN)
    return F.regexp_replace(text, "^:(?!:)|(?<!:):$", "")
