"""Facts of more logs and generators than the driver holds: Spark orders and counts them, and lists the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid.audit.definitions import MAX_ROWS, MAX_SCOPES, RATE_GENERATORS, rate_width
from msgid.audit.facts import Counted, Facts, GapFact, LogFact, NodeFact, RateFact, RunFact
from msgid.ids.node import shared_by
from msgid.layout import origin_of
from spark_ext.auditing._bits import holes
from spark_ext.auditing._log_facts import first_repeated, found_in_logs, largest_holes
from spark_ext.auditing._run_facts import generator_name, generators_of, mac_text, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from msgid.audit._columns import Columns
    from spark_ext.auditing._log_facts import Logs
    from spark_ext.auditing._run_facts import Generators


class _Found(NamedTuple):
    """The findings of a part of the facts: one row per scope and check, and the missing ranges."""

    found: DataFrame
    ranges: DataFrame | None


def spread_facts(
    facts: Facts,
    words: DataFrame | None,
    logs: Logs | None,
    columns: Columns,
    clock_jump: int,
    max_gaps: int,
    df: DataFrame | None,
) -> Facts:
    """Return the facts of a table with those of its generators and logs.

    Args:
        facts: The facts of single IDs.
        words: The words of the IDs that carry a counter, or None.
        logs: The logs, or None.
        columns: The columns of the rows.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
        df: The rows, in which examples are looked for; None if they are gone.
    """
    parts: list[_Found] = []
    generators = None
    if words is not None:
        generators = generators_of(words, clock_jump)
        generators = generators._replace(runs=generators.runs.localCheckpoint())
        parts.append(_of_generators(generators))
    if logs is not None:
        logs = logs._replace(logs=logs.logs.localCheckpoint())
        parts.append(_of_logs(logs, df, columns))
    found, totals = _listed(parts, facts.found)
    gaps, gap_total = _gaps(parts, max_gaps)
    facts = facts._replace(found=found, totals=totals, gaps=gaps, gap_total=gap_total)
    if logs is not None:
        facts = facts._replace(logs=_logs(logs), log_total=logs.logs.count())
    return facts if generators is None else _with_generators(facts, generators)


def _of_logs(logs: Logs, df: DataFrame | None, columns: Columns) -> _Found:
    found = found_in_logs(logs.logs)
    ranges = None
    if not logs.logs.where("missing > 0").isEmpty():
        holed = logs.logs.where("missing > 0").select("source")
        ranges = holes(logs.words.join(holed, "source", "left_semi"), ["source"]).localCheckpoint()
        found = _with_ranges(found, largest_holes(ranges, "missing_offsets", F.col("source")))
        ranges = ranges.select(F.lit("offset").alias("kind"), F.col("source").alias("scope"), "first", "last")
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


def _of_generators(generators: Generators) -> _Found:
    by_generator = generators.runs.groupBy("node", "pid").agg(F.sum("missing").alias("missing"))
    none = F.lit(None).cast("bigint")
    rows = [("missing_sequences", by_generator.where("missing > 0"), "missing", none, none)]
    clocks = generators.clocks
    back = (F.col("backward.sequence"), -F.col("backward.step"))
    rows.append(("clock_backwards", clocks.where("backwards > 0"), "backwards", *back))
    rows.append(("clock_jump", clocks.where("jumps > 0"), "jumps", F.col("jump.sequence"), F.col("jump.step")))
    found = _union(
        part.select(
            F.lit(check).alias("check"),
            generator_name().alias("scope"),
            F.col(count).alias("count"),
            x.alias("x"),
            y.alias("y"),
        )
        for check, part, count, x, y in rows
    )
    nodes = nodes_of(generators.runs)
    node_rows = [("shared_node", nodes.where("is_shared"), F.col("generators"))]
    node_rows.append(("synthetic_node", nodes.where("is_synthetic"), F.col("ids")))
    of_nodes = _union(
        part.select(
            F.lit(check).alias("check"),
            mac_text(F.col("node")).alias("scope"),
            count.cast("bigint").alias("count"),
            F.col("node").alias("x"),
            none.alias("y"),
        )
        for check, part, count in node_rows
    )
    ranges = None
    if not by_generator.where("missing > 0").isEmpty():
        scope = ["node", "pid", "part", "piece_run"]
        ranges = holes(generators.words, scope).withColumn("scope", generator_name()).localCheckpoint()
        found = _with_ranges(found, largest_holes(ranges, "missing_sequences", F.col("scope")))
        ranges = ranges.select(F.lit("sequence").alias("kind"), "scope", "first", "last")
    return _Found(found.unionByName(of_nodes), ranges)


def _union(parts: Iterable[DataFrame]) -> DataFrame:
    first, *others = parts
    for part in others:
        first = first.unionByName(part)
    return first


def _listed(parts: list[_Found], counted: list[Counted]) -> tuple[list[Counted], dict[str, tuple[int, int]]]:
    """Return the largest counts of each check, and the totals of all."""
    counted = [one for one in counted if one.count]
    totals = {one.check: (one.count, 1) for one in counted}
    if not parts:
        return counted, totals
    # Ranked among all checks of all scopes: a check has the rows of one part alone.
    found = _union(part.found for part in parts)
    order = Window.partitionBy("check").orderBy(F.col("count").desc(), "scope")
    every = Window.partitionBy("check")
    ranked = found.withColumns(
        {
            "place": F.row_number().over(order),
            "total": F.sum("count").over(every),
            "scopes": F.count(F.lit(1)).over(every),
        }
    )
    for row in ranked.where(F.col("place") <= MAX_SCOPES).orderBy("check", "place").collect():
        check = row["check"]
        totals[check] = (row["total"], row["scopes"])
        text, x = None, row["x"]
        if check in ("shared_node", "synthetic_node"):
            text, x = shared_by(x) if check == "shared_node" else origin_of(x), None
        counted.append(Counted(check, row["scope"], row["count"], x, row["y"], text))
    return counted, totals


def _gaps(parts: list[_Found], max_gaps: int) -> tuple[list[GapFact], int]:
    ranges = [part.ranges for part in parts if part.ranges is not None]
    if not ranges:
        return [], 0
    found = _union(ranges)
    largest: list[Column | str] = [(F.col("last") - F.col("first")).desc(), "kind", "scope", "first"]
    rows = found.orderBy(*largest).limit(max_gaps).collect()
    total = len(rows) if len(rows) < max_gaps else found.count()
    return [GapFact(row["kind"], row["scope"], row["first"], row["last"]) for row in rows], total


def _logs(logs: Logs) -> list[LogFact]:
    names = ("source", "n", "first_offset", "last_offset", "first_time", "last_time")
    faults = ("missing", "duplicates", "conflicts", "late")
    worst = sum((F.col(name) for name in faults), F.lit(0))
    rows = (
        logs.logs.orderBy(worst.desc(), F.col("n").desc(), "source").limit(MAX_ROWS).select(*names, *faults).collect()
    )
    return [LogFact(*row) for row in rows]


def _with_generators(facts: Facts, generators: Generators) -> Facts:
    runs, nodes = generators.runs, nodes_of(generators.runs)
    first = (F.col("missing").desc(), F.col("ids").desc(), "node", "pid", "run")
    shown = [RunFact(*row) for row in runs.orderBy(*first).limit(MAX_ROWS).select(*RunFact._fields).collect()]
    order = (F.col("generators").desc(), F.col("ids").desc(), "node")
    of_nodes = nodes.orderBy(*order).limit(MAX_ROWS).select(*NodeFact._fields).collect()
    run_total = len(shown) if len(shown) < MAX_ROWS else runs.count()
    node_total = len(of_nodes) if len(of_nodes) < MAX_ROWS else nodes.count()
    return facts._replace(
        runs=shown, run_total=run_total, nodes=[NodeFact(*row) for row in of_nodes], node_total=node_total,
        rates=_rates(generators),
    )  # fmt: skip


def _rates(generators: Generators) -> list[RateFact]:
    by_generator = generators.runs.groupBy("node", "pid").agg(
        F.sum("ids").alias("ids"), F.min("first_time").alias("first"), F.max("last_time").alias("last")
    )
    chosen = by_generator.orderBy(F.col("ids").desc(), "node", "pid").limit(RATE_GENERATORS).collect()
    width = rate_width(min(row["first"] for row in chosen), max(row["last"] for row in chosen))
    is_chosen = F.lit(False)
    for row in chosen:
        is_chosen = is_chosen | ((F.col("node") == row["node"]) & (F.col("pid") == row["pid"]))
    start = F.floor(F.col("seconds") / width).cast("bigint") * width
    bins = generators.seconds.where(is_chosen).groupBy("node", "pid", start.alias("start"))
    rows = bins.agg(F.sum("ids").alias("ids")).orderBy("node", "pid", "start").collect()
    return [RateFact(row["node"], row["pid"], row["start"], width, row["ids"]) for row in rows]
