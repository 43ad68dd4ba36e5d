"""The facts of the summaries of a table: of IDs, of generators and of logs.

The rules are those of `msgid.audit`. Few rows are read on the driver, and more in tasks, whose facts are bounded and
merge on the driver. If times or contents are compared, tasks of many blocks find the faults of messages, so a log does
not have to fit in a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid import layout
from msgid.audit._columns import sorted_places
from msgid.audit._ids import Values, other_of, value_facts
from msgid.audit._logs import NEVER, Blocks, Messages, blocks_of, facts_of_blocks, gaps_in
from msgid.audit._runs import facts_of_spans, generators_of
from msgid.audit._spans import Gaps, Spans, merged_spans, spans_of_words
from msgid.audit.definitions import TABLE
from msgid.audit.facts import NOTHING, Counted, Facts, merged, part_of
from spark_ext._shipping import shipped
from spark_ext.auditing._values import facts_in, keep, placed_columns
from spark_ext.auditing.summaries import (
    NULL,
    OTHER,
    WORD_BITS,
    bit_of,
    bits_in,
    block_of,
    highest,
    id_key,
    is_short,
    lowest,
    positions,
    word_of,
)  # fmt: skip
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity
from spark_ext.columns.reading import id_origin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns
    from msgid.audit._options import Rules
    from spark_ext.auditing._values import Sizes

# --- IDs ---


def id_facts(words: DataFrame, df: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the kinds of the IDs of a table, and the findings about single IDs.

    Args:
        words: The summary that `spark_ext.auditing.summaries.id_words` returned.
        df: The rows, in which examples of duplicates are looked for.
        columns: The columns of the rows.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """
    v1, count = _v1_facts(words, df, columns)
    others = words.where(F.col("part") >= OTHER).select("key", "part", "n", "duplicates", "conflicts", "near")
    return [v1, *(facts_in(others, "key", _values, rules, sizes) if count else ())]


def _v1_facts(words: DataFrame, df: DataFrame, columns: Columns) -> tuple[Facts, int]:
    """Return the facts of version-1 IDs, and the number of rows in the summary of other values."""
    key, part, mask = F.col("key"), F.col("part"), F.col("mask")
    faults = {"duplicate_ids": "duplicates", "conflicting_ids": "conflicts", "future_ids": "future"}
    node = F.when(part < OTHER, F.shiftright("node", 40).bitwiseAND(15)).alias("node")
    rows = words.groupBy(node).agg(
        F.count(F.lit(1)).alias("values"), F.sum("n").alias("n"),
        *(F.sum(name).alias(check) for check, name in faults.items()),
        *(F.min(_text(key, part, F.col(f"{name}_bit"))).alias(f"{check}_text") for check, name in faults.items()),
        F.min(F.when((part < OTHER) & (F.col("n") > bits_in(mask)), _text(key, part, F.lit(0)))).alias("repeated"),
    ).collect()  # fmt: skip
    held = [row for row in rows if row["node"] is not None]
    found = []
    for check in faults:
        text = min((row[f"{check}_text"] for row in held if row[f"{check}_text"]), default=None)
        found.append(Counted(check, TABLE, sum(row[check] for row in held), text=text))
    word = min((row["repeated"] for row in held if row["repeated"]), default=None)
    if not columns.content and word is not None:
        found[0] = found[0]._replace(text=_repeated(word, df, columns))
    kinds = [(layout.KIND_V1, layout.origin_of(row["node"] << 40), row["n"]) for row in held]
    return part_of(found, kinds=kinds), sum(row["values"] for row in rows if row["node"] is None)


def _values(rows: pa.Table) -> Facts:
    """Return the facts of rows of a summary whose keys are the identities of values."""

    def value(key: bytes | None, part: int) -> str | None:
        if key is None:
            return None if part == NULL else ""
        return key.decode("utf-8", "replace")

    others = [other_of(value(*row)) for row in zip(rows["key"].to_pylist(), rows["part"].to_pylist(), strict=True)]
    n, duplicates, conflicts = (rows[name].to_numpy() for name in ("n", "duplicates", "conflicts"))
    return value_facts(Values(others, n, duplicates, conflicts, pc.fill_null(rows["near"], NEVER).to_numpy()))


def _text(key: Column, part: Column, bit: Column) -> Column:
    """Return the version-1 ID of a key, part and bit."""
    last = F.hex((part * 32 + bit).bitwiseOR(256))
    return F.when(part < OTHER, F.concat(F.hex(key), F.substring(last, 2, 2)))


def _repeated(word: str, df: DataFrame, columns: Columns) -> str:
    """Return the first version-1 ID that several rows have, by the first ID of the first word that repeats one."""
    assert columns.id is not None
    key, part, bit = id_key(columns.id)
    raw = bytes.fromhex(word)
    same = (key == F.lit(raw[:-1])) & (part == F.lit(raw[-1] // WORD_BITS))
    bits = df.where(same).groupBy(bit.alias("bit")).count().where("count > 1").agg(F.min("bit").alias("bit"))
    return f"{word[:-2]}{raw[-1] + bits.collect()[0]['bit']:02X}"


def orphans(df: DataFrame, columns: Columns, foreign: DataFrame | None) -> list[Counted]:
    """Return the derived IDs whose parent is not the ID of any row.

    Args:
        df: The rows.
        columns: The columns of the rows, with IDs and parents.
        foreign: ``node`` and ``pid`` of generators whose node declares ``derived``, or None.
    """
    id, parent = (F.col(quoted_name(str(name))) for name in (columns.id, columns.parent))
    rows = df.where(id_origin(id) == "derived").select(identity(id).alias("text"), identity(parent).alias("parent"))
    if foreign is not None:
        code = F.call_function("shiftleft", F.col("node"), F.lit(16)).bitwiseOR(F.col("pid"))
        made = foreign.select(F.lpad(F.hex(code), 16, "0").alias("generator"))
        rows = rows.withColumn("generator", F.substring("text", 3, 16)).join(made, "generator", "left_anti")
    lost = rows.where("parent IS NOT NULL").join(df.select(identity(id).alias("parent")), "parent", "left_anti")
    (row,) = lost.agg(F.count(F.lit(1)).alias("count"), F.min("text").alias("text")).collect()
    return [Counted("orphan_ids", TABLE, row["count"], text=row["text"])] if row["count"] else []


# --- Generators ---

_SPAN: Final = ("node", "pid", "seconds", "low", "high", "mask")


def generator_facts(words: DataFrame, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the facts of the generators of a table.

    Args:
        words: The words of the IDs that carry a counter: ``node``, ``pid``, ``seconds``, ``word`` and ``mask``.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """
    return facts_in(_spans_and_words(words), "node", lambda rows: _runs(rows, rules), rules, sizes)


def _spans_and_words(words: DataFrame) -> DataFrame:
    """Return the spans of seconds that have all numbers of a block, and the words of others; a span has the mask 0."""
    word, mask = F.col("word"), F.col("mask")
    keys = ["node", "pid", "block", "seconds"]
    words = words.withColumn("block", block_of(word))
    blocks = words.groupBy(*keys).agg(
        F.min(lowest(word, mask)).alias("low"),
        F.max(highest(word, mask)).alias("high"),
        F.sum(bits_in(mask)).alias("ids"),
    )
    blocks = keep(blocks.withColumn("is_short", is_short("ids")))
    spans = blocks.where("NOT is_short").withColumn("mask", F.lit(0).cast("bigint"))
    read = words.join(blocks.where("is_short").select(*keys), keys, "left_semi")
    return spans.select(*_SPAN).unionByName(read.withColumns({"low": word, "high": word}).select(*_SPAN))


def _runs(rows: pa.Table, rules: Rules) -> Facts:
    if not rows.num_rows:
        return NOTHING
    node, pid, seconds, low, high, mask = (rows[name].to_numpy() for name in _SPAN)
    pairs, generator = generators_of(node, pid)
    is_word = mask != 0
    words = (column[is_word] for column in (generator, seconds, low, mask))
    spans = merged_spans(Spans(generator, seconds, low, high).take(~is_word), spans_of_words(*words))
    return facts_of_spans(pairs, spans, rules)


# --- Logs ---

_BLOCK: Final = ("source", *Blocks._fields[1:])
_BLOCK_TYPES: Final = ", ".join(["source string", *(f"{name} bigint" for name in _BLOCK[1:])])
_RANGE_TYPES: Final = "source string, low bigint, high bigint, messages bigint"
_HOLES: Final = -1


def log_facts(summary: DataFrame, columns: Columns, rules: Rules, df: DataFrame, sizes: Sizes) -> list[Facts]:
    """Return the facts of logs.

    Args:
        summary: The summary that `spark_ext.auditing.summaries.log_summary` returned.
        columns: The columns of the rows.
        rules: The rules of the audit.
        df: The rows, in which examples are looked for.
        sizes: The sizes of the driver and of a task.
    """
    placed = summary.where(F.col("source").isNotNull())
    if "word" in summary.columns:
        facts = _logs_of(keep(_blocks_of_words(placed)), placed, rules, sizes)
        return [_with_offsets(merged(facts, rules.max_gaps), df, columns)]
    offset = F.col("offset")
    words = placed.groupBy("source", word_of(offset).alias("word")).agg(F.bit_or(bit_of(offset)).alias("mask"))
    return _logs_of(keep(_blocks_of_messages(placed, sizes)), words, rules, sizes)


def _blocks_of_words(words: DataFrame) -> DataFrame:
    """Return the blocks of words; the example of a duplicate is the first word that repeats an offset."""
    word, mask = F.col("word"), F.col("mask")
    none = F.lit(0).cast("bigint")
    blocks = words.groupBy("source", block_of(F.col("word")).alias("block")).agg(
        F.sum("rows").alias("rows"), F.sum(bits_in(mask)).alias("messages"),
        F.min(lowest(word, mask)).alias("low"), F.max(highest(word, mask)).alias("high"),
        F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"),
        F.min(F.when(F.col("rows") > bits_in(mask), word)).alias("duplicate_at"),
    )  # fmt: skip
    rest = {name: none for name in _BLOCK if name not in blocks.columns}
    return blocks.withColumns({**rest, "duplicates": F.col("rows") - F.col("messages")}).select(*_BLOCK)


def _blocks_of_messages(messages: DataFrame, sizes: Sizes) -> DataFrame:
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
    task = F.pmod(F.hash("source", "block"), F.lit(messages.count() // sizes.task + 1))
    return messages.join(ends, ["source", "block"]).groupBy(task).applyInArrow(shipped(_blocks), _BLOCK_TYPES)


def _blocks(messages: pa.Table) -> pa.Table:
    log, names = sorted_places(messages["source"])
    columns = [log, *(_numbers(messages, name) for name in Messages._fields[1:])]
    order = np.lexsort((columns[1], log))
    found = blocks_of(Messages(*(column[order] for column in columns)))
    source = pa.array(names).take(pa.array(found.log))
    return pa.table({"source": source, **dict(zip(_BLOCK[1:], found[1:], strict=True))})


def _logs_of(blocks: DataFrame, words: DataFrame, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the facts of logs, by their blocks and the missing ranges in short blocks, which tasks find."""

    def ranges_of(table: pa.Table) -> pa.Table:
        return _ranges(table, rules)

    short = blocks.where(is_short("messages"))
    (held,) = short.agg(F.sum("messages").alias("offsets")).collect()
    if held["offsets"]:
        words = words.withColumn("block", block_of(F.col("word"))).join(short, ["source", "block"], "left_semi")
        task = F.pmod(F.hash("source", "block"), F.lit(held["offsets"] // (WORD_BITS * sizes.task) + 1))
        tasks = words.select("source", "block", "word", "mask").groupBy(task)
        ranges = tasks.applyInArrow(shipped(ranges_of), _RANGE_TYPES)
        blocks = keep(blocks.unionByName(ranges, allowMissingColumns=True))
    return facts_in(blocks, "source", lambda rows: _logs(rows, rules), rules, sizes)


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


def _logs(rows: pa.Table, rules: Rules) -> Facts:
    """Return the facts of blocks, and of the missing ranges that `_ranges` returned: rows without a block."""
    log, names = sorted_places(rows["source"])
    blocks = Blocks(log, *(_numbers(rows, name) for name in _BLOCK[1:]))
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
