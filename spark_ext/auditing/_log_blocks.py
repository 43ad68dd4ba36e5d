"""The facts of logs on Spark: the blocks of a table, and the words of those in which offsets are missing.

`msgid.audit._logs` makes the facts of both. If times or contents are compared, it also finds the faults of the messages
of each block, in tasks of many blocks: a log does not have to fit in a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid.audit._columns import sorted_places
from msgid.audit._logs import NEVER, Blocks, Messages, blocks_of, facts_of_blocks, gaps_in
from msgid.audit._spans import Gaps, spans_of_words
from msgid.audit.facts import NOTHING
from spark_ext._shipping import shipped
from spark_ext.auditing._values import in_tasks, keep, placed_columns
from spark_ext.auditing.summaries import (
    bit_of,
    bits_in,
    block_of,
    highest,
    is_short,
    lowest,
    positions,
    word_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from msgid._known_tables import Columns
    from msgid.audit._options import Rules
    from msgid.audit.facts import Facts

MOST: Final = {"blocks": 200_000, "offsets": 5_000_000}
"""The number of blocks, and of offsets in short blocks, up to which a table is one task."""
TASK_ROWS: Final = {"blocks": 100_000, "messages": 500_000, "offsets": 5_000_000}
"""The number of blocks, messages or offsets of a task. The blocks of one log are in one task, its rows are not."""
_ROW: Final = ("source", *Blocks._fields[1:])
_BLOCKS: Final = ", ".join(["source string", *(f"{name} bigint" for name in _ROW[1:])])
_RANGES: Final = "source string, low bigint, high bigint, messages bigint"
_HOLES: Final = -1


def log_facts(summary: DataFrame, columns: Columns, rules: Rules, df: DataFrame) -> Facts:
    """Return the facts of logs.

    Args:
        summary: The summary that `spark_ext.auditing.summaries.log_summary` returned.
        columns: The columns of the rows.
        rules: The rules of the audit.
        df: The rows, in which examples are looked for.
    """
    placed = summary.where(F.col("source").isNotNull())
    if "word" in summary.columns:
        facts = _facts_of(keep(_blocks_of_words(placed)), placed, rules)
        return _with_offsets(facts, df, columns)
    messages = _messages(placed)
    offset = F.col("offset")
    words = messages.groupBy("source", word_of(offset).alias("word")).agg(F.bit_or(bit_of(offset)).alias("mask"))
    return _facts_of(keep(_blocks_of_messages(messages)), words, rules)


def _blocks_of_words(words: DataFrame) -> DataFrame:
    """Return the blocks of words; the example of a duplicate is the first word that repeats an offset."""
    word, mask = F.col("word"), F.col("mask")
    none = F.lit(0).cast("bigint")
    blocks = words.groupBy("source", block_of(F.col("word")).alias("block")).agg(
        F.sum("n").alias("rows"), F.sum(bits_in(mask)).alias("messages"),
        F.min(lowest(word, mask)).alias("low"), F.max(highest(word, mask)).alias("high"),
        F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"),
        F.min(F.when(F.col("n") > bits_in(mask), word)).alias("duplicate_at"),
    )  # fmt: skip
    rest = {name: none for name in _ROW if name not in blocks.columns}
    return blocks.withColumns({**rest, "duplicates": F.col("rows") - F.col("messages")}).select(*_ROW)


def _messages(summary: DataFrame) -> DataFrame:
    """Return one row per message, with the number of its rows and of its contents."""
    contents = F.count(F.lit(1)) if "content" in summary.columns else F.lit(1).cast("bigint")
    return summary.groupBy("source", "block", "offset").agg(
        F.sum("n").alias("rows"), contents.alias("contents"), F.min("timestamp").alias("timestamp"),
        F.min("landed").alias("landed"), F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )  # fmt: skip


def _blocks_of_messages(messages: DataFrame) -> DataFrame:
    """Return the blocks of messages with their faults."""
    dated = F.when(F.col("timestamp").isNotNull(), F.col("offset"))
    ends = messages.groupBy("source", "block").agg(
        F.max_by("timestamp", dated).alias("timestamp"), F.min("landed").alias("landed")
    )
    blocks = Window.partitionBy("source").orderBy("block")
    later = blocks.rowsBetween(1, Window.unboundedFollowing)
    earlier = blocks.rowsBetween(Window.unboundedPreceding, -1)
    ends = ends.select(
        "source", "block", F.min("landed").over(later).alias("landed_after"),
        F.last("timestamp", ignorenulls=True).over(earlier).alias("timestamp_before"),
    )  # fmt: skip
    task = F.pmod(F.hash("source", "block"), F.lit(messages.count() // TASK_ROWS["messages"] + 1))
    return messages.join(ends, ["source", "block"]).groupBy(task).applyInArrow(shipped(_blocks), _BLOCKS)


def _blocks(messages: pa.Table) -> pa.Table:

    log, names = sorted_places(messages["source"])
    columns = [log, *(_numbers(messages, name) for name in Messages._fields[1:])]
    order = np.lexsort((columns[1], log))
    found = blocks_of(Messages(*(column[order] for column in columns)))
    source = pa.array(names).take(pa.array(found.log))
    return pa.table({"source": source, **dict(zip(_ROW[1:], found[1:], strict=True))})


def _facts_of(blocks: DataFrame, words: DataFrame, rules: Rules) -> Facts:
    """Return the facts of logs: on the driver if they have few blocks, else in tasks of short blocks and whole logs."""
    short = is_short("messages")
    counts = (F.count(F.lit(1)).alias("all"), F.sum(F.when(short, F.col("messages"))).alias("offsets"))
    (held,) = blocks.agg(*counts).collect()
    offsets = held["offsets"] or 0
    words = words.withColumn("block", block_of(F.col("word")))
    read = words.join(blocks.where(short), ["source", "block"], "left_semi").select("source", "word", "mask")
    if held["all"] <= MOST["blocks"] and offsets <= MOST["offsets"]:
        ranges = [_ranges(read.toArrow(), rules)] if offsets else []
        return _facts(pa.concat_tables([blocks.toArrow(), *ranges], promote_options="default"), rules)

    def ranges_of(table: pa.Table) -> pa.Table:
        return _ranges(table, rules)

    rows = blocks
    if offsets:
        task = F.pmod(F.hash("source", block_of(F.col("word"))), F.lit(offsets // TASK_ROWS["offsets"] + 1))
        rows = rows.unionByName(read.groupBy(task).applyInArrow(shipped(ranges_of), _RANGES), allowMissingColumns=True)
    return in_tasks(rows, "source", held["all"] // TASK_ROWS["blocks"] + 1, lambda part: _facts(part, rules), rules)


def _ranges(words: pa.Table, rules: Rules) -> pa.Table:
    """Return the largest missing ranges in short blocks, and the holes of each log, which are too short to be listed.

    ``messages`` is the number of ranges that a row counts. A row of holes counts missing numbers, and its ``low`` is
    `_HOLES`.
    """
    log, names = sorted_places(words["source"])
    spans = spans_of_words(log, 0 * log, *(_numbers(words, name) for name in ("word", "mask")))
    gaps = gaps_in(spans, rules.max_gaps, rules.shortest)
    counts = np.ones(len(gaps.scope), np.int64)
    counts[:1] += gaps.total - len(counts)
    none = np.full(len(gaps.holes), _HOLES)
    columns = (gaps.scope, [*gaps.holes]), (gaps.first, none), (gaps.last, none), (counts, [*gaps.holes.values()])
    scope, low, high, messages = (np.concatenate(pair).astype(np.int64) for pair in columns)
    source = pa.array(names, pa.string()).take(pa.array(scope))
    return pa.table({"source": source, "low": low, "high": high, "messages": messages})


def _facts(rows: pa.Table, rules: Rules) -> Facts:
    """Return the facts of blocks, and of the missing ranges that `_ranges` returned: rows without a block."""
    log, names = sorted_places(rows["source"])
    blocks = Blocks(log, *(_numbers(rows, name) for name in _ROW[1:]))
    is_range = blocks.block == NEVER
    holes, ranges = blocks.take(is_range & (blocks.low == _HOLES)), blocks.take(is_range & (blocks.low != _HOLES))
    gaps = Gaps(rules.max_gaps, rules.shortest)
    gaps.add_holes(holes.log, holes.messages)
    gaps.add_ranges(ranges.log, ranges.low, ranges.high, int(ranges.messages.sum()))
    return facts_of_blocks(names, blocks.take(~is_range), gaps) if len(log) else NOTHING


def _numbers(rows: pa.Table, name: str) -> Any:
    """Return a column of integers; NULL is the moment that no message has, and its negative as the last of several."""
    return pc.fill_null(rows[name], -NEVER if name == "last_time" else NEVER).to_numpy()


def _with_offsets(facts: Facts, df: DataFrame, columns: Columns) -> Facts:
    """Set the examples of duplicates, which are words: the first offset of the word that several rows have."""
    words = [(one.scope, one.x) for one in facts.found if one.check == "duplicate_messages"]
    if not words:
        return facts
    asked = df.sparkSession.createDataFrame(words, "source string, word bigint")
    first = {row["source"]: row["first"] for row in _first_repeated(df, columns, asked).collect()}
    found = [one._replace(x=first.get(one.scope)) if one.check == "duplicate_messages" else one for one in facts.found]
    return facts._replace(found=found)


def _first_repeated(df: DataFrame, columns: Columns, words: DataFrame) -> DataFrame:
    """Return the lowest repeated offset in a word of each log: ``source`` and ``first``.

    Args:
        df: The rows of the table.
        columns: Their columns.
        words: One word per log: ``source`` and ``word``.
    """
    if columns.offset is not None:
        rows = df.select(*placed_columns(df, columns))
        by_offset = rows.withColumn("word", word_of(F.col("offset")))
    else:
        assert columns.id is not None
        by_offset = positions(df, columns.id)
    held = by_offset.join(F.broadcast(words), ["source", "word"], "left_semi").groupBy("source", "offset").count()
    return held.where("count > 1").groupBy("source").agg(F.min("offset").alias("first"))
