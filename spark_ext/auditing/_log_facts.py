"""The facts of logs on Spark: missing, repeated and late messages, and times that go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from spark_ext.auditing._bits import bit_of, bits_in, highest, lowest, word_of
from spark_ext.auditing._words import positions
from spark_ext.auditing.summaries import log_summary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.audit._columns import Columns


class Logs(NamedTuple):
    """The logs of a table.

    Attributes:
        logs: One row per source, with the counts of its faults and an example of each.
        words: One row per source and word: ``mask``.
        exact: Whether the examples of duplicates are offsets; else they are words.
    """

    logs: DataFrame
    words: DataFrame
    exact: bool


def logs_of(summary: DataFrame) -> Logs:
    """Return the logs of a summary that `spark_ext.auditing.summaries.merged_logs` returned."""
    placed = summary.where(F.col("source").isNotNull())
    if "word" in summary.columns:
        word, mask = F.col("word"), F.col("mask")
        blocks = placed.select(
            "source", "n", bits_in(mask).alias("held"), lowest(word, mask).alias("low"),
            highest(word, mask).alias("high"), "first_time", "last_time",
            F.when(F.col("n") > bits_in(mask), word).alias("duplicate_at"),
        )  # fmt: skip
        nothing = {name: F.lit(0).cast("bigint") for name in ("conflicts", "late", "backwards")}
        none = {name: F.lit(None).cast("bigint") for name in ("conflict_at", "late_at", "lag", "backward_at", "back")}
        blocks = blocks.withColumns({"duplicates": F.col("n") - F.col("held"), **nothing, **none})
        return Logs(_by_source(blocks), placed.select("source", "word", "mask"), False)
    blocks, messages = _detailed(placed)
    words = messages.groupBy("source", word_of(F.col("offset")).alias("word")).agg(
        F.bit_or(bit_of(F.col("offset"))).alias("mask")
    )
    return Logs(_by_source(blocks), words, True)


def _by_source(blocks: DataFrame) -> DataFrame:
    sums = ("n", "duplicates", "conflicts", "late", "backwards")
    logs = blocks.groupBy("source").agg(
        *(F.sum(name).alias(name) for name in sums),
        F.sum("held").alias("held"),
        F.min("low").alias("first_offset"),
        F.max("high").alias("last_offset"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
        F.min("duplicate_at").alias("duplicate_at"),
        F.min("conflict_at").alias("conflict_at"),
        F.max(F.when(F.col("late") > 0, F.struct("lag", (-F.col("late_at")).alias("at")))).alias("latest"),
        F.min(F.when(F.col("backwards") > 0, F.struct("backward_at", "back"))).alias("backward"),
    )
    missing = F.col("last_offset") - F.col("first_offset") + 1 - F.col("held")
    return logs.withColumn("missing", missing)


def _detailed(summary: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return one row per block of offsets with its faults, and one row per message."""
    contents = F.count(F.lit(1)).alias("contents")
    own: list[Column] = [
        F.sum("n").alias("n"), contents, F.min("timestamp").alias("timestamp"), F.min("landed").alias("landed"),
        F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"),
    ]  # fmt: skip
    messages = summary.groupBy("source", "block", "offset").agg(*own)
    has_content = "content" in summary.columns
    if not has_content:
        messages = messages.withColumn("contents", F.lit(1).cast("bigint"))
    dated = F.col("timestamp").isNotNull()
    ends = messages.groupBy("source", "block").agg(
        F.max_by("timestamp", F.when(dated, F.col("offset"))).alias("last_timestamp"), F.min("landed").alias("landed")
    )
    earlier = Window.partitionBy("source").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    later = Window.partitionBy("source").orderBy(F.col("block").desc()).rowsBetween(Window.unboundedPreceding, -1)
    ends = ends.select(
        "source", "block",
        F.last("last_timestamp", ignorenulls=True).over(earlier).alias("timestamp_before"),
        F.min("landed").over(later).alias("landed_after"),
    )  # fmt: skip
    below = Window.partitionBy("source", "block").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    above = Window.partitionBy("source", "block").orderBy(F.col("offset").desc())
    above = above.rowsBetween(Window.unboundedPreceding, -1)
    marked = messages.join(ends, ["source", "block"]).select(
        "*",
        F.coalesce(F.last("timestamp", ignorenulls=True).over(below), "timestamp_before").alias("before"),
        F.least(F.min(F.col("landed")).over(above), "landed_after").alias("after"),
    )
    offset, n, contents = F.col("offset"), F.col("n"), F.col("contents")
    back, lag = F.col("before") - F.col("timestamp"), F.col("landed") - F.col("after")
    blocks = marked.groupBy("source", "block").agg(
        F.sum("n").alias("n"),
        F.count(F.lit(1)).alias("held"),
        F.min("offset").alias("low"),
        F.max("offset").alias("high"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
        F.sum(n - contents).alias("duplicates"),
        F.sum(contents - 1).alias("conflicts"),
        F.count(F.when(lag > 0, 1)).alias("late"),
        F.count(F.when(back > 0, 1)).alias("backwards"),
        F.min(F.when(n > contents, offset)).alias("duplicate_at"),
        F.min(F.when(contents > 1, offset)).alias("conflict_at"),
        F.max(F.when(lag > 0, F.struct(lag.alias("lag"), (-offset).alias("at")))).alias("latest"),
        F.min(F.when(back > 0, F.struct(offset.alias("at"), back.alias("back")))).alias("backward"),
    )
    latest = {"lag": F.col("latest.lag"), "late_at": -F.col("latest.at")}
    return blocks.withColumns({**latest, "backward_at": F.col("backward.at"), "back": F.col("backward.back")}), messages


def found_in_logs(logs: DataFrame) -> DataFrame:
    """Return one row per source and check that found something: ``check``, ``scope``, ``count``, ``x`` and ``y``.

    The example of missing offsets is not known yet.
    """
    none = F.lit(None).cast("bigint")
    checks = {
        "missing_offsets": ("missing", none, none),
        "duplicate_messages": ("duplicates", F.col("duplicate_at"), none),
        "conflicting_messages": ("conflicts", F.col("conflict_at"), none),
        "late_messages": ("late", -F.col("latest.at"), F.col("latest.lag")),
        "time_backwards": ("backwards", F.col("backward.backward_at"), F.col("backward.back")),
    }
    rows = [
        F.struct(F.lit(check).alias("check"), F.col(count).alias("count"), x.alias("x"), y.alias("y"))
        for check, (count, x, y) in checks.items()
    ]
    found = logs.select(F.col("source").alias("scope"), F.explode(F.array(*rows)).alias("found"))
    return found.where(F.col("found.count") > 0).select("found.check", "scope", "found.count", "found.x", "found.y")


def first_repeated(df: DataFrame, columns: Columns, words: DataFrame) -> DataFrame:
    """Return the lowest repeated offset in a word of each log: ``scope`` and ``first``.

    Args:
        df: The rows of the table.
        columns: Their columns.
        words: One word per log: ``source`` and ``word``.
    """
    if columns.offset is not None:
        by_offset = log_summary(df, columns._replace(timestamp=None, landed=None, content=()), whole=True)
    else:
        assert columns.id is not None
        by_offset = positions(df, columns.id)
    held = by_offset.join(F.broadcast(words), ["source", "word"], "left_semi").groupBy("source", "offset").count()
    return held.where("count > 1").groupBy(F.col("source").alias("scope")).agg(F.min("offset").alias("first"))


def largest_holes(ranges: DataFrame, check: str, scope: Column) -> DataFrame:
    """Return for each scope its largest range, the lowest of equal ones: ``check``, ``scope``, ``first``, ``last``."""
    size = F.col("last") - F.col("first") + 1
    largest = F.max(F.struct(size.alias("size"), (-F.col("first")).alias("first")))
    found = ranges.groupBy(scope.alias("scope")).agg(largest.alias("largest"))
    first = -F.col("largest.first")
    return found.select(
        F.lit(check).alias("check"), "scope", first.alias("first"), (first + F.col("largest.size") - 1).alias("last")
    )
