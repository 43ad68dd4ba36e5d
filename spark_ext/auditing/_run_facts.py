"""The facts of generators on Spark: runs, missing sequence numbers and clocks.

The IDs of a generator are first summarized by second. Its runs follow from the seconds at which the sequence goes back,
as `msgid.audit.definitions.split_pieces` says. Only generators with such seconds are read number by number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid import layout
from msgid.audit.definitions import COUNTED, MAX_PIECES, RUN_STEP
from msgid.ids.node import SHARED_NODES
from spark_ext.auditing._bits import WORD_BITS, bit_of, bits_in, exploded, highest, lowest, word_of
from spark_ext.auditing.summaries import OTHER, id_key
from spark_ext.columns._crc import word

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PART = ["node", "pid", "part"]
_RUN = [*_PART, "piece_run"]


class Generators(NamedTuple):
    """The generators of a table.

    Attributes:
        seconds: One row per generator and second.
        runs: One row per run, with the columns of `msgid.audit.facts.RunFact`.
        words: One row per run and word: ``mask``.
        clocks: One row per generator whose clock went back or jumped.
    """

    seconds: DataFrame
    runs: DataFrame
    words: DataFrame
    clocks: DataFrame


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


def counter_words(ids: DataFrame) -> DataFrame:
    """Return the words of the IDs that carry a counter."""
    return _version_1(ids).where(_origin_is(*COUNTED))


def position_words(ids: DataFrame) -> DataFrame:
    """Return the words of the logs that IDs of the origin ``position`` name, as a summary of logs."""
    words = _version_1(ids).where(_origin_is("position"))
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


def generator_name() -> Column:
    """Return the name of a generator: ``mac/pid``."""
    return F.concat(mac_text(F.col("node")), F.lit("/"), F.col("pid").cast("string"))


def generators_of(words: DataFrame, clock_jump: int) -> Generators:
    """Return the generators of the words that `counter_words` returned.

    Args:
        words: The words.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
    """
    words = _with_parts(words).localCheckpoint()
    seconds = words.groupBy(*_PART, "seconds").agg(
        F.min(lowest(F.col("word"), F.col("mask"))).alias("low"),
        F.max(highest(F.col("word"), F.col("mask"))).alias("high"),
        F.sum(bits_in(F.col("mask"))).alias("ids"),
    )
    by_time = Window.partitionBy(*_PART).orderBy("seconds")
    back = F.coalesce(F.col("low") <= F.lag("high").over(by_time), F.lit(False))
    step = F.col("seconds") - F.lag("seconds").over(by_time)
    marked = seconds.withColumns({"back": back, "step": step})
    marked = marked.withColumn("torn", F.max("back").over(Window.partitionBy(*_PART))).localCheckpoint()
    torn, simple = marked.where("torn"), marked.where(~F.col("torn"))
    jumps = simple.where(F.col("step") > clock_jump).select("node", "pid", F.col("low").alias("sequence"), "step")
    runs = simple.groupBy(*_PART).agg(*_run_columns("ids", "low", "high"))
    runs = runs.withColumn("piece_run", F.lit(0).cast("bigint"))
    kept = words.withColumn("piece_run", F.lit(0).cast("bigint"))
    if not torn.isEmpty():
        torn_runs, torn_words, torn_jumps = _torn(torn, words, clock_jump)
        runs, jumps = runs.unionByName(torn_runs), jumps.unionByName(torn_jumps)
        kept = kept.join(torn.select(*_PART).distinct(), _PART, "left_anti").select(*_RUN, "word", "mask")
        kept = kept.unionByName(torn_words)
    kept = kept.groupBy(*_RUN, "word").agg(F.bit_or("mask").alias("mask"))
    missing = F.col("last_sequence") - F.col("first_sequence") + 1 - F.col("ids")
    order = Window.partitionBy("node", "pid").orderBy("first_time", "first_sequence")
    runs = runs.withColumns({"missing": missing, "run": F.row_number().over(order)})
    at = F.struct("sequence", "step")
    clocks = jumps.groupBy("node", "pid").agg(
        F.count(F.when(F.col("step") < 0, 1)).alias("backwards"),
        F.count(F.when(F.col("step") > 0, 1)).alias("jumps"),
        F.min(F.when(F.col("step") < 0, at)).alias("backward"),
        F.min(F.when(F.col("step") > 0, at)).alias("jump"),
    )
    return Generators(marked, runs, kept, clocks)


def _run_columns(ids: str, low: str, high: str) -> list[Column]:
    return [
        F.sum(ids).alias("ids"), F.min("seconds").alias("first_time"), F.max("seconds").alias("last_time"),
        F.min(low).alias("first_sequence"), F.max(high).alias("last_sequence"),
    ]  # fmt: skip


def _with_parts(words: DataFrame) -> DataFrame:
    """Add the part of a generator in which no step between neighbours is above `RUN_STEP`."""
    block = F.shiftright("word", 11)
    low, high = lowest(F.col("word"), F.col("mask")), highest(F.col("word"), F.col("mask"))
    words = words.withColumn("block", block)
    blocks = words.groupBy("node", "pid", "block").agg(F.min(low).alias("low"), F.max(high).alias("high"))
    order = Window.partitionBy("node", "pid").orderBy("block")
    apart = (F.col("low") - F.lag("high").over(order) > RUN_STEP).cast("bigint")
    blocks = blocks.withColumn("apart", F.coalesce(apart, F.lit(0)))
    blocks = blocks.select("node", "pid", "block", F.sum("apart").over(order).alias("part"))
    return words.join(blocks, ["node", "pid", "block"]).drop("block")


def _torn(seconds: DataFrame, words: DataFrame, clock_jump: int) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return the runs, the words and the clock steps of generators whose sequence goes back somewhere."""
    by_time = Window.partitionBy(*_PART).orderBy("seconds")
    seconds = seconds.withColumn("piece", F.sum(F.col("back").cast("bigint")).over(by_time))
    points = exploded(words.join(seconds.select(*_PART).distinct(), _PART, "left_semi").drop("n"), "sequence")
    uses = Window.partitionBy(*_PART, "sequence").orderBy("seconds")
    used = points.withColumn("used", F.coalesce(F.lag("seconds").over(uses), F.lit(-1)))
    used = used.groupBy(*_PART, "seconds").agg(F.max("used").alias("used"))
    pieces = (
        seconds.join(used, [*_PART, "seconds"])
        .groupBy(*_PART, "piece")
        .agg(F.min("seconds").alias("start"), F.max("used").alias("used"))
    )
    numbered = _split(pieces)
    of_second = seconds.join(numbered, [*_PART, "piece"]).select(*_PART, "seconds", "piece_run")
    points = points.join(of_second, [*_PART, "seconds"])
    points = points.withColumn("block", F.shiftright("sequence", 16)).localCheckpoint()
    order = Window.partitionBy(*_RUN, "block").orderBy("sequence")
    ends = points.groupBy(*_RUN, "block").agg(F.max_by("seconds", "sequence").alias("last"))
    ends = ends.withColumn("before", F.lag("last").over(Window.partitionBy(*_RUN).orderBy("block")))
    stepped = points.join(ends, [*_RUN, "block"])
    step = F.col("seconds") - F.coalesce(F.lag("seconds").over(order), "before")
    steps = stepped.withColumn("step", step).where((F.col("step") < 0) | (F.col("step") > clock_jump))
    runs = points.withColumn("one", F.lit(1)).groupBy(*_RUN).agg(*_run_columns("one", "sequence", "sequence"))
    by_word = points.groupBy(*_RUN, word_of(F.col("sequence")).alias("word"))
    return (
        runs,
        by_word.agg(F.bit_or(bit_of(F.col("sequence"))).alias("mask")),
        steps.select("node", "pid", "sequence", "step"),
    )


def _split(pieces: DataFrame) -> DataFrame:
    """Return the run of each piece, as `msgid.audit.definitions.split_pieces` does."""
    listed = pieces.groupBy(*_PART).agg(F.sort_array(F.collect_list(F.struct("piece", "start", "used"))).alias("all"))
    first = F.struct(
        F.lit(None).cast("bigint").alias("start"),
        F.lit(0).cast("bigint").alias("run"),
        F.array().cast("array<bigint>").alias("runs"),
    )

    def add(held: Column, piece: Column) -> Column:
        is_new = piece.getField("used") >= held.getField("start")
        run = held.getField("run") + F.coalesce(is_new.cast("bigint"), F.lit(0))
        is_start = is_new | held.getField("start").isNull()
        start = F.when(is_start, piece.getField("start")).otherwise(held.getField("start"))
        return F.struct(
            start.alias("start"), run.alias("run"), F.concat(held.getField("runs"), F.array(run)).alias("runs")
        )

    split = F.aggregate("all", first, add).getField("runs")
    each = F.transform("all", lambda piece: piece.getField("piece"))
    runs = F.when(F.size("all") > MAX_PIECES, each).otherwise(split)
    return listed.select(*_PART, F.posexplode(runs).alias("piece", "piece_run"))


def nodes_of(runs: DataFrame) -> DataFrame:
    """Return one row per node: its IDs, its runs in one second at most, and whether runs of a pid overlap."""
    before = Window.partitionBy("node", "pid").orderBy("first_time", "last_time")
    before = before.rowsBetween(Window.unboundedPreceding, -1)
    overlap = F.coalesce(F.col("first_time") < F.max("last_time").over(before), F.lit(False))
    marked = runs.withColumn("overlap", overlap)
    begin = F.struct(F.col("first_time").alias("at"), F.lit(1).alias("change"), "ids", "overlap")
    end = F.struct(
        (F.col("last_time") + 1).alias("at"), F.lit(-1).alias("change"), F.lit(0).cast("bigint").alias("ids"),
        F.lit(False).alias("overlap"),
    )  # fmt: skip
    events = marked.select("node", F.explode(F.array(begin, end)).alias("event")).select("node", "event.*")
    by_time = Window.partitionBy("node").orderBy("at", "change").rowsBetween(Window.unboundedPreceding, 0)
    nodes = events.withColumn("now", F.sum("change").over(by_time)).groupBy("node")
    found = nodes.agg(
        F.sum("ids").alias("ids"), F.max("now").alias("generators"), F.max("overlap").alias("overlapping")
    )
    known = F.lit(False)
    for low, high, _ in SHARED_NODES:
        known = known | F.col("node").between(low, high)
    return found.withColumns({"is_shared": F.col("overlapping") | known, "is_synthetic": ~_origin_is("mac")})
