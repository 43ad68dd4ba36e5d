"""Facts of more logs than the driver holds: Spark orders and counts them, and lists the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid.audit.definitions import MAX_ROWS, MAX_SCOPES
from msgid.audit.facts import NOTHING, Counted, Facts, GapFact, LogFact
from spark_ext.auditing._bits import holes
from spark_ext.auditing._log_facts import first_repeated, found_in_logs, largest_holes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.audit._columns import Columns
    from spark_ext.auditing._log_facts import Logs


class _Found(NamedTuple):
    """The findings of a part of the facts: one row per scope and check, and the missing ranges."""

    found: DataFrame
    ranges: DataFrame | None


def spread_facts(logs: Logs, columns: Columns, max_gaps: int, df: DataFrame | None) -> Facts:
    """Return the facts of logs.

    Args:
        logs: The logs.
        columns: The columns of the rows.
        max_gaps: Number of ranges to list.
        df: The rows, in which examples are looked for; None if they are gone.
    """
    logs = logs._replace(logs=logs.logs.localCheckpoint())
    part = _of_logs(logs, df, columns)
    found, totals = _listed(part.found)
    gaps, gap_total = _gaps(part.ranges, max_gaps)
    return NOTHING._replace(
        found=found, totals=totals, gaps=gaps, gap_total=gap_total, logs=_logs(logs), log_total=logs.logs.count()
    )


def _of_logs(logs: Logs, df: DataFrame | None, columns: Columns) -> _Found:
    found = found_in_logs(logs.logs)
    ranges = None
    if not logs.logs.where("missing > 0").isEmpty():
        holed = logs.logs.where("missing > 0").select("source")
        ranges = holes(logs.words.join(holed, "source", "left_semi"), ["source"]).localCheckpoint()
        found = _with_ranges(found, largest_holes(ranges, "missing_offsets", F.col("source")))
        ranges = ranges.select(F.col("source").alias("scope"), "first", "last")
    if not logs.exact:
        found = _with_offsets(found, df, columns)
    return _Found(found, ranges)


def _with_ranges(found: DataFrame, largest: DataFrame) -> DataFrame:
    """Set the examples of missing numbers: the largest range of each scope."""
    joined = found.join(largest, ["check", "scope"], "left")
    x, y = F.coalesce("first", "x"), F.coalesce("last", "y")
    return joined.select("check", "scope", "count", x.alias("x"), y.alias("y"))


def _with_offsets(found: DataFrame, df: DataFrame | None, columns: Columns) -> DataFrame:
    """Set the examples of duplicates, which are words: the first offset of the word that several rows have."""
    is_duplicate = F.col("check") == "duplicate_messages"
    if found.where(is_duplicate).isEmpty():
        return found
    unknown = found.withColumn("x", F.when(~is_duplicate, F.col("x")))
    if df is None:
        return unknown
    words = found.where(is_duplicate).select(F.col("scope").alias("source"), F.col("x").alias("word"))
    first = first_repeated(df, columns, words)
    first = first.withColumns({"check": F.lit("duplicate_messages"), "last": F.lit(None).cast("bigint")})
    return _with_ranges(unknown, first)


def _listed(found: DataFrame) -> tuple[list[Counted], dict[str, tuple[int, int]]]:
    """Return the largest counts of each check, and the totals of all."""
    order = Window.partitionBy("check").orderBy(F.col("count").desc(), "scope")
    every = Window.partitionBy("check")
    ranked = found.withColumns(
        {
            "place": F.row_number().over(order),
            "total": F.sum("count").over(every),
            "scopes": F.count(F.lit(1)).over(every),
        }
    )
    rows = ranked.where(F.col("place") <= MAX_SCOPES).collect()
    counted = [Counted(row["check"], row["scope"], row["count"], row["x"], row["y"]) for row in rows]
    return counted, {row["check"]: (row["total"], row["scopes"]) for row in rows}


def _gaps(ranges: DataFrame | None, max_gaps: int) -> tuple[list[GapFact], int]:
    if ranges is None:
        return [], 0
    largest: list[Column | str] = [(F.col("last") - F.col("first")).desc(), "scope", "first"]
    rows = ranges.orderBy(*largest).limit(max_gaps).collect()
    total = len(rows) if len(rows) < max_gaps else ranges.count()
    return [GapFact("offset", row["scope"], row["first"], row["last"]) for row in rows], total


def _logs(logs: Logs) -> list[LogFact]:
    names = ("source", "n", "first_offset", "last_offset", "first_time", "last_time")
    faults = ("missing", "duplicates", "conflicts", "late")
    worst = sum((F.col(name) for name in faults), F.lit(0))
    rows = (
        logs.logs.orderBy(worst.desc(), F.col("n").desc(), "source").limit(MAX_ROWS).select(*names, *faults).collect()
    )
    return [LogFact(*row) for row in rows]
