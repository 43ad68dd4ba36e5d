"""Reading version-1 ids: `parse_id`, `try_parse_id`, `is_valid_id`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.errors import NOT_V1
from spark_ext.expressions import digits_to_bigint, hex_text, is_id, is_v1, raise_invalid, struct_if

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.expressions import ColumnOrName

__all__ = ["is_valid_id", "parse_id", "try_parse_id"]


def parse_id(col: ColumnOrName) -> Column:
    """Take a version-1 id apart.

    Parameters
    ----------
    col : Column or str
        ids, as text (34 hex digits in either case) or binary(17).

    Returns
    -------
    Column
        a struct of ``version`` int, ``mac`` string, ``pid`` int, ``seconds`` bigint (since 2021-01-01T00:00:00Z),
        ``time`` timestamp, ``sequence`` bigint, ``origin`` string; NULL for NULL. A field asked for alone costs only
        that field. Fails the query on anything else with the error condition ``USER_RAISED_EXCEPTION``; `try_parse_id`
        gives NULL.

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
    return _parsed(text, raise_invalid(text, NOT_V1)).alias("parse_id")


def try_parse_id(col: ColumnOrName) -> Column:
    """Take a version-1 id apart, as `parse_id` does, or give NULL where it is none.

    Parameters
    ----------
    col : Column or str
        ids, as text or binary.

    Returns
    -------
    Column
        a struct as `parse_id` gives it, or NULL.

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
    """Say whether a value is an id of any version, as `msgid.is_valid` does.

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
    return F.when(text.isNotNull(), is_id(text)).alias("is_valid_id")


def _parsed(text: Column, otherwise: Column | None) -> Column:
    digits = {
        name: F.substring(text, 2 * field.start + 1, 2 * field.width)  # Spark counts from 1
        for name, field in layout.FIELDS.items()
    }
    seconds = digits_to_bigint(digits["seconds"])
    node = F.lower(digits["node"])
    octets = [F.substring(node, place, 2) for place in range(1, 13, 2)]
    fields = {
        "version": digits_to_bigint(digits["version"]).cast("int"),
        "mac": F.concat_ws(":", *octets),
        "pid": digits_to_bigint(digits["pid"]).cast("int"),
        "seconds": seconds,
        "time": F.timestamp_seconds(seconds + layout.EPOCH_UNIX),
        "sequence": digits_to_bigint(digits["sequence"]),
        "origin": _origin(F.upper(F.substring(digits["node"], 2, 1))),
    }
    return struct_if(text, is_v1(text), otherwise, fields)


def _origin(low_digit: Column) -> Column:
    """Name the origin that the second digit of a node declares: its low four bits are all there is to it."""
    by_origin: dict[str, list[str]] = {}
    for bits, digit in enumerate(layout.HEX_DIGITS):
        by_origin.setdefault(layout.origin_of(bits << 40), []).append(digit)
    (first, *others) = by_origin
    result = F.when(low_digit.isin(*by_origin[first]), F.lit(first))
    for origin in others:
        result = result.when(low_digit.isin(*by_origin[origin]), F.lit(origin))
    return result
