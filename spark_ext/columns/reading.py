"""Read version-1 IDs: all fields or one of them, their other forms, and the IDs of Iggy messages."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.ids.checked_bytes import NOT_V1
from msgid.iggy.message import check_order
from spark_ext.columns.building import computed_below, struct_if
from spark_ext.columns.column_types import column
from spark_ext.columns.crc import WORD_WIDTH, look_up, octet, word
from spark_ext.columns.id_text import VERSION_1_DIGITS, has_v1_shape, is_id, is_uuid, is_v1, v1_bytes
from spark_ext.columns.identity import hex_text, uuid_of_digits
from spark_ext.columns.reasons import raise_invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from msgid.iggy.message import UuidOrder
    from spark_ext.columns.column_types import ColumnOrName

_NODE = layout.FIELDS["node"]
_OCTETS = [f"octet{index}" for index in range(_NODE.start, _NODE.stop)]
_NUMBERS = ("pid", "seconds", "sequence")
PARTS = {**dict.fromkeys(_OCTETS, "INT"), **dict.fromkeys(_NUMBERS, "BIGINT")}
"""The parts of an ID from which the fields are computed, and their types."""
_MAC = [f"{byte:02x}:" for byte in range(256)]
_MAC_END = [f"{byte:02x}" for byte in range(256)]
_ORIGINS = [layout.origin_of(byte << 40) for byte in range(256)]  # by the first byte of a node


def parse_id(col: ColumnOrName) -> Column:
    """Parse a version-1 ID.

    Parameters
    ----------
    col : Column or str
        IDs, as text (34 hex digits in either case) or binary(17).

    Returns
    -------
    Column
        a struct of ``version`` int, ``mac`` string, ``pid`` int, ``seconds`` bigint (since 2021-01-01T00:00:00Z),
        ``time`` timestamp, ``sequence`` bigint, ``origin`` string; NULL for NULL. A field taken from the result costs
        that field alone: ``p = parse_id("id")``, then ``p.time``. Fails the query on anything else with the error
        condition ``USER_RAISED_EXCEPTION``; `try_parse_id` returns NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(parse_id("id").alias("p")).select("p.mac", "p.pid", "p.seconds", "p.sequence", "p.origin").show()
    +-----------------+----+--------+--------+------+
    |              mac| pid| seconds|sequence|origin|
    +-----------------+----+--------+--------+------+
    |56:f7:e7:1c:36:1b|8636|38587838|       0|   mac|
    +-----------------+----+--------+--------+------+
    """
    text = hex_text(col)
    return _parsed(text, raise_invalid(text, f"{NOT_V1}, which parse_v0 reads")).alias("parse_id")


def try_parse_id(col: ColumnOrName) -> Column:
    """Parse a version-1 ID, as `parse_id` does; NULL for any other value.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        a struct as `parse_id` returns it, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",), ("no id",)], ["id"])
    >>> df.select(try_parse_id("id").pid.alias("pid")).show()
    +----+
    | pid|
    +----+
    |8636|
    |NULL|
    +----+
    """
    return _parsed(hex_text(col), None).alias("try_parse_id")


def is_valid_id(col: ColumnOrName) -> Column:
    """Return whether a value is an ID of any version, as `msgid.is_valid` does.

    Parameters
    ----------
    col : Column or str
        text or binary.

    Returns
    -------
    Column
        boolean; NULL for NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",), ("no id",)], ["id"])
    >>> df.select(is_valid_id("id")).show()
    +-----------+
    |is_valid_id|
    +-----------+
    |       true|
    |      false|
    +-----------+
    """
    text = hex_text(col)
    return is_id(text).alias("is_valid_id")


def id_time(col: ColumnOrName) -> Column:
    """Return the time of a version-1 ID.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        Timestamp, 2021-01-01 to 2157-02-07; NULL for any value that is not a version-1 ID.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(id_time("id").cast("bigint").alias("unix")).show()
    +----------+
    |      unix|
    +----------+
    |1648047038|
    +----------+
    """
    return fields_of(parts_of(v1_bytes(hex_text(col))))["time"].alias("id_time")


def id_origin(col: ColumnOrName) -> Column:
    """Return the origin that a version-1 ID declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        Text; NULL for any value that is not a version-1 ID.

    Examples
    --------
    >>> df = spark.createDataFrame([("013B0121EF30BE0000024CCDBE000004D2",)], ["id"])
    >>> df.select(id_origin("id")).show()
    +---------+
    |id_origin|
    +---------+
    | position|
    +---------+
    """
    return fields_of(parts_of(v1_bytes(hex_text(col))))["origin"].alias("id_origin")


def time_key(col: ColumnOrName) -> Column:
    """Return 16 bytes that sort version-1 IDs by (seconds, sequence, node, pid), as `msgid.MessageId.time_key` does.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        Binary; NULL for any value that is not a version-1 ID.

    Examples
    --------
    >>> from pyspark.sql.functions import hex
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000007",)], ["id"])
    >>> df.select(hex(time_key("id")).alias("key")).show(truncate=False)
    +--------------------------------+
    |key                             |
    +--------------------------------+
    |024CCDBE0000000756F7E71C361B21BC|
    +--------------------------------+
    """
    text = hex_text(col)
    node, pid, seconds, sequence = (_digits(text, name) for name in ("node", "pid", "seconds", "sequence"))
    return F.when(is_v1(text), F.unhex(F.concat(seconds, sequence, node, pid))).alias("time_key")


def id_to_binary(col: ColumnOrName) -> Column:
    """Return an ID's bytes: 17 for version 1, and for version 0 the bytes of its text.

    Parameters
    ----------
    col : Column or str
        IDs of any version, as text or binary.

    Returns
    -------
    Column
        Binary; NULL for any value that is not an ID.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(id_from_binary(id_to_binary("id"))).show(truncate=False)
    +----------------------------------+
    |id_from_binary                    |
    +----------------------------------+
    |0156F7E71C361B21BC024CCDBE00000000|
    +----------------------------------+
    """
    text = hex_text(col)
    return F.when(is_id(text), F.unhex(text)).alias("id_to_binary")


def id_from_binary(col: ColumnOrName) -> Column:
    """Return the text of an ID from its bytes.

    Parameters
    ----------
    col : Column or str
        IDs of any version, as binary; text is converted as by `id_to_binary`.

    Returns
    -------
    Column
        Text of upper-case hex digits; NULL for any value that is not an ID.

    Examples
    --------
    >>> df = spark.createDataFrame([(bytes.fromhex("0156F7E71C361B21BC024CCDBE00000000"),)], ["id"])
    >>> df.select(id_from_binary("id")).show(truncate=False)
    +----------------------------------+
    |id_from_binary                    |
    +----------------------------------+
    |0156F7E71C361B21BC024CCDBE00000000|
    +----------------------------------+
    """
    text = hex_text(col)
    return F.when(is_id(text), F.upper(text)).alias("id_from_binary")


def id_to_uuid(col: ColumnOrName) -> Column:
    """Return the 16 bytes after the version byte of a version-1 ID as a UUID, as `msgid.MessageId.uuid` does.

    Parameters
    ----------
    col : Column or str
        IDs as text or binary.

    Returns
    -------
    Column
        Text of 36 characters in lower case; NULL for any value that is not a version-1 ID.

    Examples
    --------
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000000",)], ["id"])
    >>> df.select(id_to_uuid("id")).show(truncate=False)
    +------------------------------------+
    |id_to_uuid                          |
    +------------------------------------+
    |56f7e71c-361b-21bc-024c-cdbe00000000|
    +------------------------------------+
    """
    text = hex_text(col)
    body = F.lower(F.substring(text, 3, 2 * layout.BODY_LENGTH))
    starts = (1, 9, 13, 17, 21, 33)
    groups = [F.substring(body, start, stop - start) for start, stop in itertools.pairwise(starts)]
    return F.when(is_v1(text), F.concat_ws("-", *groups)).alias("id_to_uuid")


def id_from_uuid(col: ColumnOrName) -> Column:
    """Return the version-1 ID of a UUID that `id_to_uuid` made.

    Parameters
    ----------
    col : Column or str
        UUIDs, as text of 36 characters in either case.

    Returns
    -------
    Column
        Text of 34 upper-case hex digits; NULL for any value that is not a UUID with dashes.

    Examples
    --------
    >>> df = spark.createDataFrame([("56f7e71c-361b-21bc-024c-cdbe00000000",)], ["uuid"])
    >>> df.select(id_from_uuid("uuid")).show(truncate=False)
    +----------------------------------+
    |id_from_uuid                      |
    +----------------------------------+
    |0156F7E71C361B21BC024CCDBE00000000|
    +----------------------------------+
    """
    text = hex_text(col)
    id = F.concat(F.lit(VERSION_1_DIGITS), F.upper(F.regexp_replace(text, "-", "")))
    return F.when(is_uuid(text), id).alias("id_from_uuid")


def parts_of(raw: Column) -> dict[str, Column]:
    """Read the bytes of the node, each as an index of `look_up`, and four bytes from the start of each number."""
    octets = (octet(F.substring(raw, index + 1, 1)) for index in range(_NODE.start, _NODE.stop))  # counted from 1
    numbers = (word(F.substring(raw, layout.FIELDS[name].start + 1, WORD_WIDTH)) for name in _NUMBERS)
    return dict(zip(PARTS, (*octets, *numbers), strict=True))


def fields_of(parts: Mapping[str, Column]) -> dict[str, Column]:
    """Return the fields of an ID by the parts that `parts_of` read."""
    octets, seconds = [parts[name] for name in _OCTETS], parts["seconds"]
    return {
        "version": F.lit(layout.VERSION_1),
        "mac": F.concat(*(look_up(one, _MAC) for one in octets[:-1]), look_up(octets[-1], _MAC_END)),
        "pid": F.shiftright(parts["pid"], 8 * (WORD_WIDTH - layout.FIELDS["pid"].width)).cast("int"),
        "seconds": seconds,
        "time": F.timestamp_seconds(seconds + layout.EPOCH_UNIX),
        "sequence": parts["sequence"],
        "origin": look_up(octets[0], _ORIGINS),
    }


def _digits(text: Column, name: str) -> Column:
    field = layout.FIELDS[name]
    return F.substring(text, 2 * field.start + 1, 2 * field.width)  # Spark counts from 1


def _parsed(text: Column, otherwise: Column | None) -> Column:
    shared = {name: computed_below(part) for name, part in parts_of(F.unhex(text)).items()}
    return struct_if(text, is_v1(text), otherwise, fields_of(shared))


def id_from_iggy_id(col: ColumnOrName, version_1: bool = False, uuid: UuidOrder = "bytes") -> Column:
    """Return the ID of an Iggy message as text, as `msgid.iggy.id_text` does.

    Parameters
    ----------
    col : Column or str
        The 16 bytes of the ID, as in the message and in the column ``id`` of ``format("iggy")``; or the 17 bytes of a
        version-1 ID.
    version_1 : bool
        Whether the 16 bytes are the body of a version-1 ID. The bytes do not tell that.
    uuid : str
        ``number`` if the producers pass a UUID as a number, as Java, Node.js and HTTP do: the message has its bytes
        from the last to the first. Default: ``bytes``, from the first to the last.

    Returns
    -------
    Column
        A UUID, or a version-1 ID of 34 hex digits; NULL for any other value.

    Raises
    ------
    ValueError
        If ``uuid`` is another text, or ``number`` together with ``version_1``.

    Examples
    --------
    >>> df = spark.createDataFrame([(bytes.fromhex("74b158caddb3498fb0a99eec1c6197ae"),)], ["id"])
    >>> df.select(id_from_iggy_id("id")).show(truncate=False)
    +------------------------------------+
    |id_from_iggy_id                     |
    +------------------------------------+
    |74b158ca-ddb3-498f-b0a9-9eec1c6197ae|
    +------------------------------------+
    """
    order, digits = check_order(uuid, version_1), F.hex(column(col).cast("binary"))
    text = F.concat(F.lit(VERSION_1_DIGITS), digits) if version_1 else uuid_of_digits(digits, order)
    of_16_bytes = F.when(F.length(digits) == 32, text)  # noqa: PLR2004
    return of_16_bytes.when(has_v1_shape(digits), digits).alias("id_from_iggy_id")
