"""The words of version-1 IDs on Spark: those that carry a counter, and those that are positions in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from msgid import layout
from msgid.audit.definitions import COUNTED, is_generator
from spark_ext.auditing.summaries import OTHER, WORD_BITS, highest, id_key, lowest
from spark_ext.columns._crc import word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_fields(ids: DataFrame) -> DataFrame:
    """Add the fields of version-1 words: node, pid, seconds since 1970 and the word of the sequence; else NULL."""
    raw = F.when(F.col("part") < OTHER, F.col("key"))
    high, low = word(F.substring(raw, 2, 4)), word(F.substring(raw, 6, 4))
    sequence = word(F.substring(raw, 13, 4)).bitwiseAND(0xFFFFFF)
    node = F.call_function("shiftleft", high, F.lit(16)).bitwiseOR(F.shiftright(low, 16))
    fields = {
        "node": node,
        "pid": low.bitwiseAND(layout.PID_MAX),
        "seconds": word(F.substring(raw, 10, 4)) + layout.EPOCH_UNIX,
        "word": sequence * OTHER + F.col("part"),
    }
    return ids.withColumns(fields)


def _version_1(ids: DataFrame) -> DataFrame:
    return ids.where(F.col("part") < OTHER).select("node", "pid", "seconds", "word", "mask", "n")


def _origin_is(*origins: str) -> Column:
    first = F.shiftright("node", 40).bitwiseAND(0b1111)
    return first.isin([bits for bits in range(16) if layout.origin_of(bits << 40) in origins])


def foreign_generators(ids: DataFrame) -> DataFrame:
    """Return ``node`` and ``pid`` of the generators whose random node declares the origin of a function."""
    numbers = _version_1(ids).where(_origin_is("derived", "position")).groupBy("node", "pid")
    ends = (lowest(F.col("word"), F.col("mask")), highest(F.col("word"), F.col("mask")))
    found = numbers.agg(F.min(ends[0]).alias("lowest"), F.max(ends[1]).alias("highest"))
    is_one = is_generator(_origin_is("derived"), F.col("pid"), F.col("lowest"), F.col("highest"))
    return found.where(is_one).select("node", "pid")


def counter_words(ids: DataFrame, foreign: DataFrame | None) -> DataFrame:
    """Return the words of the IDs that carry a counter, and of those of foreign generators."""
    words = _version_1(ids)
    counted = words.where(_origin_is(*COUNTED))
    return counted if foreign is None else counted.unionByName(words.join(foreign, ["node", "pid"], "left_semi"))


def position_words(ids: DataFrame, foreign: DataFrame | None) -> DataFrame:
    """Return the words of the logs that IDs of the origin ``position`` name, as a summary of logs."""
    words = _version_1(ids).where(_origin_is("position"))
    if foreign is not None:
        words = words.join(foreign, ["node", "pid"], "left_anti")
    return words.groupBy(mac_text(F.col("node")).alias("source"), _place().alias("word")).agg(
        F.sum("n").alias("n"),
        F.bit_or("mask").alias("mask"),
        (F.min("seconds") * 1_000_000).alias("first_time"),
        (F.max("seconds") * 1_000_000).alias("last_time"),
    )


def positions(df: DataFrame, id: str) -> DataFrame:
    """Return ``source``, ``word`` and ``offset`` of the rows whose ID in a column is a position."""
    key, part, bit = id_key(id)
    rows = with_fields(df.select(key.alias("key"), part.alias("part"), bit.cast("bigint").alias("bit")))
    rows = rows.where((F.col("part") < OTHER) & _origin_is("position"))
    rows = rows.select(mac_text(F.col("node")).alias("source"), _place().alias("word"), "bit")
    return rows.select("source", "word", (F.col("word") * WORD_BITS + F.col("bit")).alias("offset"))


def _place() -> Column:
    """Return the word of the offset of a position, which is the pid and the sequence: 48 bits."""
    return F.call_function("shiftleft", F.col("pid"), F.lit(32 - 5)).bitwiseOR(F.col("word"))


def mac_text(node: Column) -> Column:
    """Return a node written as a MAC address."""
    digits = F.lower(F.substring(F.hex(node.bitwiseOR(1 << 48)), 2, 12))
    return F.concat_ws(":", *(F.substring(digits, place, 2) for place in range(1, 13, 2)))
