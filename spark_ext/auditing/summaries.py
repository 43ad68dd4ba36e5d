"""Rows reduced to blocks: the summaries from which a report is made.

`id_summary` has one row per 32 version-1 IDs that differ in the last bits of their sequence, and one row per other ID.
`log_summary` has one row per 32 offsets, or one row per offset if times or content are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid import layout
from msgid.audit._spans import BLOCK_SHIFT, WORD_SHIFT
from msgid.audit.definitions import AHEAD_S, COUNTED, is_generator
from spark_ext.auditing._values import content_columns, placed_columns
from spark_ext.columns._crc import look_up, octet, word
from spark_ext.columns._expressions import hex_text, quoted_name, v1_bytes
from spark_ext.columns._identity import identity
from spark_ext.columns._moments import micros_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns


WORD_BITS: Final = 1 << WORD_SHIFT
"""Words of 32 numbers: a number is the word ``number >> 5`` and a bit of its mask, which is a bigint below 2**32."""
OTHER: Final = 8
EMPTY: Final = 9
NULL: Final = 10
"""The parts of values that are not version-1 IDs; those of version-1 IDs are 0 to 7, the top bits of the last byte."""
_BYTE: Final = [str(value) for value in range(256)]


def id_key(name: str) -> tuple[Column, Column, Column]:
    """Return the key, the part and the bit of the IDs of a column; equal if and only if the IDs are.

    The key of a version-1 ID is its first 16 bytes. The last byte is the part (3 bits) and the bit (5 bits).
    """
    value = F.col(quoted_name(name))
    raw = v1_bytes(hex_text(value))
    is_v1 = raw.isNotNull()
    last = look_up(octet(F.substring(raw, layout.ID_LENGTH, 1)), _BYTE).cast("int")
    same = identity(value)
    other = F.when(same.isNotNull(), F.lit(OTHER)).when(value.isNotNull(), F.lit(EMPTY)).otherwise(F.lit(NULL))
    key = F.when(is_v1, F.substring(raw, 1, layout.BODY_LENGTH)).otherwise(same.cast("binary"))
    part = F.when(is_v1, F.shiftright(last, 5)).otherwise(other)
    bit = F.when(is_v1, last.bitwiseAND(WORD_BITS - 1)).otherwise(F.lit(0))
    return key, part.cast("tinyint"), bit.cast("tinyint")


def id_seconds(name: str) -> Column:
    """Return the Unix seconds of version-1 IDs; NULL for any other value."""
    raw = v1_bytes(hex_text(F.col(quoted_name(name))))
    return word(F.substring(raw, layout.FIELDS["seconds"].start + 1, 4)) + layout.EPOCH_UNIX


def time_column(df: DataFrame, columns: Columns) -> Column:
    """Return the own time of each row in microseconds, or else that of its ID."""
    if columns.timestamp is None and columns.id is not None:
        return id_seconds(columns.id) * 1_000_000
    return micros_column(df, columns.timestamp)


def id_summary(df: DataFrame, columns: Columns, not_before: int | None) -> DataFrame:
    """Return the summary of a table's IDs.

    Returns:
        ``key`` and ``part``; with content, ``bit`` and ``content`` too. ``n`` counts rows, ``mask`` has the bits,
        ``near`` is the earliest landing or time in microseconds. ``future`` counts the IDs from the future, and
        ``future_bit`` is the first.
    """
    assert columns.id is not None
    key, part, bit = id_key(columns.id)
    landed, near = micros_column(df, columns.landed), micros_column(df, columns.landed or columns.timestamp)
    future = F.lit(False)
    if columns.landed or not_before is not None:
        seconds = id_seconds(columns.id)
        early = F.lit(False) if not_before is None else seconds < not_before
        future = F.coalesce(early, F.lit(False)) | F.coalesce((seconds - AHEAD_S) * 1_000_000 > landed, F.lit(False))
    rows = df.select(
        key.alias("key"), part.alias("part"), bit.alias("bit"), *content_columns(df, columns),
        near.alias("near"), future.alias("is_future"),
    )  # fmt: skip
    own = bit_of(F.col("bit").cast("bigint"))
    aggregates = [F.count(F.lit(1)).alias("n"), F.bit_or(own).alias("mask")]
    if columns.landed or columns.timestamp:
        aggregates.append(F.min("near").alias("near"))
    if columns.landed or not_before is not None:
        aggregates.append(F.sum(F.col("is_future").cast("bigint")).alias("future"))
        aggregates.append(F.min(F.when(F.col("is_future"), F.col("bit"))).alias("future_bit"))
    keys = ["key", "part", "bit", "content"] if columns.content else ["key", "part"]
    return rows.groupBy(*keys).agg(*aggregates)


def unread_times(df: DataFrame, columns: Columns) -> tuple[int, int]:
    """Return the numbers of rows without a valid timestamp and landing time; 0 without such columns."""
    names = (columns.timestamp, columns.landed)
    if not any(names):
        return 0, 0
    lacking = [F.count_if(F.lit(name is not None) & micros_column(df, name).isNull()) for name in names]
    (row,) = df.agg(*lacking).collect()
    return row[0], row[1]


_JOINED: Final = {"n": F.sum, "mask": F.bit_or, "near": F.min, "future": F.sum, "future_bit": F.min}
"""How the values of the contents of one ID, and of the IDs of one word, are joined."""


def id_words(summary: DataFrame) -> DataFrame:
    """Return one row per key and part, with ``duplicates`` and ``conflicts``, and their first bits if contents differ.

    Args:
        summary: The summary that `id_summary` returned.
    """
    if "content" not in summary.columns:
        more = F.col("n") - bits_in(F.col("mask"))
        return _completed(summary.withColumns({"duplicates": more, "conflicts": F.lit(0).cast("bigint")}))
    values = [name for name in summary.columns if name in _JOINED]
    each = summary.groupBy("key", "part", "bit").agg(
        *(_JOINED[name](name).alias(name) for name in values), F.count(F.lit(1)).alias("contents")
    )
    contents, n, bit = F.col("contents"), F.col("n"), F.col("bit")
    words = each.groupBy("key", "part").agg(
        F.sum(n - contents).alias("duplicates"),
        F.sum(contents - 1).alias("conflicts"),
        F.min(F.when(n > contents, bit)).alias("duplicates_bit"),
        F.min(F.when(contents > 1, bit)).alias("conflicts_bit"),
        *(_JOINED[name](name).alias(name) for name in values),
    )
    return _completed(words)


def _completed(words: DataFrame) -> DataFrame:
    missing = {"near": None, "future": 0, "future_bit": None, "duplicates_bit": None, "conflicts_bit": None}
    added = {name: F.lit(value).cast("bigint") for name, value in missing.items() if name not in words.columns}
    return words.withColumns(added) if added else words  # Spark Connect refuses an empty dict


def log_summary(df: DataFrame, columns: Columns) -> DataFrame:
    """Return the summary of a table's logs.

    Returns:
        ``source`` (NULL for rows in no log), ``rows``, ``first_time`` and ``last_time``. If times or content are
        compared, one row per message: ``block``, ``offset``, ``timestamp`` and ``landed`` in microseconds, and the
        number of ``contents``. Else one row per word: ``word`` and ``mask``.
    """
    place, time = F.col("offset"), time_column(df, columns).alias("time")
    common = [F.count(F.lit(1)).alias("rows"), F.min("time").alias("first_time"), F.max("time").alias("last_time")]
    if not (columns.timestamp or columns.landed or columns.content):
        words = df.select(*placed_columns(df, columns), time).groupBy("source", word_of(place).alias("word"))
        return words.agg(F.bit_or(bit_of(place)).alias("mask"), *common)
    times = {name: micros_column(df, getattr(columns, name)) for name in ("timestamp", "landed")}
    content = content_columns(df, columns)
    rows = df.select(*placed_columns(df, columns), time, *(one.alias(name) for name, one in times.items()), *content)
    # One shuffle by blocks of offsets serves all that follows: each block is in one task, a log is not.
    # Rows in no log keep to the tasks that they came in.
    block = F.coalesce(F.shiftright("offset", BLOCK_SHIFT), -1 - F.spark_partition_id().cast("bigint"))
    blocks = rows.withColumn("block", block).repartition("source", "block")
    contents = F.count_distinct("content") if content else F.lit(1).cast("bigint")
    return blocks.groupBy("source", "block", "offset").agg(
        *common, contents.alias("contents"), *(F.min(name).alias(name) for name in times)
    )


# --- Words of 32 numbers ---


def word_of(number: Column) -> Column:
    """Return the word of a number."""
    return F.shiftright(number, WORD_SHIFT)


def block_of(word: Column) -> Column:
    """Return the block of a word."""
    return F.shiftright(word, BLOCK_SHIFT - WORD_SHIFT)


def is_short(count: str) -> Column:
    """Return whether the numbers from ``low`` to ``high`` are more than the column ``count`` says."""
    return F.col("high") - F.col("low") + 1 > F.col(count)


def bit_of(number: Column) -> Column:
    """Return the mask of one number: a single bit."""
    place = number.bitwiseAND(WORD_BITS - 1).cast("int")
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), place)


def bits_in(mask: Column) -> Column:
    """Return how many numbers a mask has."""
    return F.bit_count(mask).cast("bigint")


def lowest(word: Column, mask: Column) -> Column:
    """Return the lowest number of a word."""
    return word * WORD_BITS + F.bit_count(mask.bitwiseAND(-mask) - 1)


def highest(word: Column, mask: Column) -> Column:
    """Return the highest number of a word."""
    return word * WORD_BITS + F.length(F.bin(mask)) - 1


# --- The words of version-1 IDs: those that carry a counter, and those that are positions in a log ---


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
        F.sum("n").alias("rows"),
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
