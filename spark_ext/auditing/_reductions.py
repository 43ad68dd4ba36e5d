"""The facts of a large table: its rows are reduced to words, and these to blocks, of IDs, of generators and of logs.

`id_words` has one row per 32 version-1 IDs that differ in the last bits of their sequence, and one row per other ID.
`log_summary` has one row per 32 offsets, or one row per offset if times or content are compared.

The rules are those of `msgid.audit`. Few rows are read on the driver, and more in tasks, whose facts are bounded and
merge on the driver. If times or contents are compared, tasks of many blocks find the faults of messages, so a log does
not have to fit in a task.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from msgid import layout
from msgid.audit._columns import NEVER, sorted_places
from msgid.audit._ids import Values, other_of, value_facts
from msgid.audit._logs import Blocks, Messages, blocks_of, facts_of_blocks, gaps_in
from msgid.audit._runs import facts_of_spans, generators_of
from msgid.audit._spans import BLOCK_SHIFT, WORD_SHIFT, Gaps, Spans, merged_spans, spans_of_words
from msgid.audit.definitions import AHEAD_S, COUNTED, TABLE, is_generator
from msgid.audit.facts import NOTHING, Counted, Facts, KindRow, merged, part_of
from spark_ext._shipping import shipped
from spark_ext.auditing._values import facts_in, id_seconds, keep
from spark_ext.columns._crc import look_up, octet, word
from spark_ext.columns._expressions import hex_text, v1_bytes
from spark_ext.columns._identity import identity
from spark_ext.columns.reading import id_origin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns
    from msgid.audit._options import Rules
    from spark_ext.auditing._values import Sizes

WORD_BITS: Final = 1 << WORD_SHIFT
"""Words of 32 numbers: a number is the word ``number >> 5`` and a bit of its mask, which is a bigint below 2**32."""
OTHER: Final = 8
EMPTY: Final = 9
NULL: Final = 10
"""The parts of values that are not version-1 IDs; those of version-1 IDs are 0 to 7, the top bits of the last byte."""
_BYTE: Final = [str(value) for value in range(256)]


def facts_of(rows: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> Facts:
    """Return the facts of a large table.

    Args:
        rows: The rows, with one column per role.
        columns: The columns of the table.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """
    # Kept rows end the plan: with the plans of the rows in each, planning would take longer than the work.
    # The two read the table each by itself. Side by side, one uses the cores while the other one is planned.
    with ThreadPoolExecutor(1) as pool:
        target = inheritable_thread_target(rows.sparkSession)(_facts_of_logs)
        logs = None if columns.offset is None else pool.submit(target, rows, columns, rules, sizes)
        parts = [] if columns.id is None else _facts_of_ids(rows, columns, rules, sizes)
    number = sum(n for part in parts for _, _, n in part.kinds)
    placed = [] if logs is None else logs.result()
    untimed, unlanded = unread_times(rows, columns)
    own = NOTHING._replace(rows=0 if placed else number, untimed=untimed, unlanded=unlanded, columns=columns.given)
    return merged([*parts, *placed, own], rules.max_gaps)


def _facts_of_ids(rows: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the facts of the IDs, and of the logs if IDs give the positions."""
    ids = keep(with_fields(id_words(rows, columns, rules.earliest)))
    parts = id_facts(ids, rows, columns, rules, sizes)
    origins = {origin for part in parts for kind, origin, _ in part.kinds if kind == layout.KIND_V1}
    foreign = keep(foreign_generators(ids)) if origins & {"derived", "position"} else None
    foreign = None if foreign is None or foreign.isEmpty() else foreign
    if columns.parent is not None:
        parts.append(part_of(orphans(rows, foreign)))
    if origins & set(COUNTED) or foreign is not None:
        words = spans_and_words(counter_words(ids, foreign))
        parts += facts_in(words, "node", lambda table: _runs(table, rules), rules, sizes)
    if columns.offset is None and "position" in origins:
        parts += log_facts(position_words(ids, foreign), rows, columns, rules, sizes)
    return parts


def _facts_of_logs(rows: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the facts of the logs, with the number of all rows and of those in no log."""
    placed, n = keep(log_summary(rows, columns)), F.col("rows")
    (held,) = placed.agg(F.sum(n), F.sum(F.when(F.col("source").isNull(), n))).collect()
    own = NOTHING._replace(rows=held[0] or 0, unplaced=held[1] or 0)
    return [own, *log_facts(placed, rows, columns, rules, sizes)]


# --- IDs ---


def id_facts(words: DataFrame, rows: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the kinds of the IDs of a table, and the findings about single IDs.

    Args:
        words: The summary that `id_words` returned.
        rows: The rows, in which examples of duplicates are looked for.
        columns: The columns of the table.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """
    key, part, mask = F.col("key"), F.col("part"), F.col("mask")
    faults = {"duplicate_ids": "duplicates", "conflicting_ids": "conflicts", "future_ids": "future"}
    node = F.when(part < OTHER, F.shiftright("node", 40).bitwiseAND(15)).alias("node")
    by_node = words.groupBy(node).agg(
        F.sum("n").alias("n"),
        *(F.sum(name).alias(check) for check, name in faults.items()),
        *(F.min(_text(key, part, F.col(f"{name}_bit"))).alias(f"{check}_text") for check, name in faults.items()),
        F.min(F.when((part < OTHER) & (F.col("n") > bits_in(mask)), _text(key, part, F.lit(0)))).alias("repeated"),
    ).collect()  # fmt: skip
    held = [row for row in by_node if row["node"] is not None]
    found = []
    for check in faults:
        text = min((row[f"{check}_text"] for row in held if row[f"{check}_text"]), default=None)
        found.append(Counted(check, TABLE, sum(row[check] for row in held), text=text))
    word = min((row["repeated"] for row in held if row["repeated"]), default=None)
    if not columns.content and word is not None:
        found[0] = found[0]._replace(text=_repeated(word, rows))
    kinds = [KindRow(layout.KIND_V1, layout.origin_of(row["node"] << 40), row["n"]) for row in held]
    v1 = part_of(found, kinds=kinds)
    if len(held) == len(by_node):
        return [v1]
    others = words.where(part >= OTHER).select("key", "part", "n", "duplicates", "conflicts", "near")
    return [v1, *facts_in(others, "key", _values, rules, sizes)]


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


def _repeated(word: str, rows: DataFrame) -> str:
    """Return the first version-1 ID that several rows have, by the first ID of the first word that repeats one."""
    key, part, bit = id_key()
    raw = bytes.fromhex(word)
    same = (key == F.lit(raw[:-1])) & (part == F.lit(raw[-1] // WORD_BITS))
    bits = rows.where(same).groupBy(bit.alias("bit")).count().where("count > 1").agg(F.min("bit").alias("bit"))
    return f"{word[:-2]}{raw[-1] + bits.collect()[0]['bit']:02X}"


def orphans(rows: DataFrame, foreign: DataFrame | None) -> list[Counted]:
    """Return the derived IDs whose parent is not the ID of any row.

    Args:
        rows: The rows, with IDs and parents.
        foreign: ``node`` and ``pid`` of generators whose node declares ``derived``, or None.
    """
    derived = rows.where(id_origin("id") == "derived").select(
        identity("id").alias("text"), identity("parent").alias("parent")
    )
    if foreign is not None:
        code = F.call_function("shiftleft", F.col("node"), F.lit(16)).bitwiseOR(F.col("pid"))
        made = foreign.select(F.lpad(F.hex(code), 16, "0").alias("generator"))
        derived = derived.withColumn("generator", F.substring("text", 3, 16)).join(made, "generator", "left_anti")
    lost = derived.where("parent IS NOT NULL").join(rows.select(identity("id").alias("parent")), "parent", "left_anti")
    (row,) = lost.agg(F.count(F.lit(1)).alias("count"), F.min("text").alias("text")).collect()
    return [Counted("orphan_ids", TABLE, row["count"], text=row["text"])]


# --- Generators ---

_SPAN: Final = ("node", "pid", "seconds", "low", "high", "mask")


def spans_and_words(words: DataFrame) -> DataFrame:
    """Return the spans of seconds that have all numbers of a block, and the words of others; a span has the mask 0.

    Args:
        words: The words of the IDs that carry a counter: ``node``, ``pid``, ``seconds``, ``word`` and ``mask``.
    """
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
_GAP_TYPES: Final = "source string, low bigint, high bigint, messages bigint"


def log_facts(summary: DataFrame, rows: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> list[Facts]:
    """Return the facts of logs.

    Args:
        summary: The summary that `log_summary` returned.
        rows: The rows, in which examples are looked for.
        columns: The columns of the table.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """
    placed = summary.where(F.col("source").isNotNull())
    if "word" in summary.columns:
        facts = _logs_of(keep(_blocks_of_words(placed)), placed, rules, sizes)
        return [_with_offsets(merged(facts, rules.max_gaps), rows, columns)]
    offset = F.col("offset")
    words = placed.groupBy("source", word_of(offset).alias("word")).agg(F.bit_or(bit_of(offset)).alias("mask"))
    return _logs_of(keep(_blocks_of_messages(placed, sizes)), words, rules, sizes)


def _blocks_of_words(words: DataFrame) -> DataFrame:
    """Return the blocks of words; the example of a duplicate is the first word that repeats an offset."""
    word, mask = F.col("word"), F.col("mask")
    blocks = words.groupBy("source", block_of(F.col("word")).alias("block")).agg(
        F.sum("rows").alias("rows"), F.sum(bits_in(mask)).alias("messages"),
        F.min(lowest(word, mask)).alias("low"), F.max(highest(word, mask)).alias("high"),
        F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"),
        F.min(F.when(F.col("rows") > bits_in(mask), word)).alias("duplicate_at"),
    )  # fmt: skip
    return blocks.withColumn("duplicates", F.col("rows") - F.col("messages"))


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
    short = blocks.where(is_short("messages"))
    (held,) = short.agg(F.sum("messages").alias("offsets")).collect()
    if held["offsets"]:
        words = words.withColumn("block", block_of(F.col("word"))).join(short, ["source", "block"], "left_semi")
        task = F.pmod(F.hash("source", "block"), F.lit(held["offsets"] // (WORD_BITS * sizes.task) + 1))
        tasks = words.select("source", "block", "word", "mask").groupBy(task)
        gaps = tasks.applyInArrow(shipped(lambda words: _gaps(words, rules)), _GAP_TYPES)
        blocks = keep(blocks.unionByName(gaps, allowMissingColumns=True))
    return facts_in(blocks, "source", lambda rows: _logs(rows, rules), rules, sizes)


def _gaps(words: pa.Table, rules: Rules) -> pa.Table:
    """Return the gaps in short blocks as rows of blocks: their ends, and their number as that of messages."""
    log, names = sorted_places(words["source"])
    spans = spans_of_words(log, 0 * log, *(_numbers(words, name) for name in ("word", "mask")))
    gaps = gaps_in(spans, rules)
    source = pa.array(names, pa.string()).take(pa.array(gaps.scope))
    return pa.table({"source": source, "low": gaps.first, "high": gaps.last, "messages": gaps.number})


def _logs(rows: pa.Table, rules: Rules) -> Facts:
    """Return the facts of blocks, and of the gaps that `_gaps` returned: rows without a block."""
    log, names = sorted_places(rows["source"])
    blocks = Blocks(log, *(_numbers(rows, name) for name in _BLOCK[1:]))
    is_gap = blocks.block == NEVER
    found = blocks.take(is_gap)
    gaps = Gaps(found.log, found.low, found.high, found.messages)
    return facts_of_blocks(names, blocks.take(~is_gap), gaps, rules) if len(log) else NOTHING


def _numbers(rows: pa.Table, name: str) -> Any:
    """Return a column of integers, 0 if the rows do not have it.

    NULL is the moment that no message has, and its negative as the last of several.
    """
    if name not in rows.column_names:
        return np.zeros(rows.num_rows, np.int64)
    return pc.fill_null(rows[name], -NEVER if name == "last_time" else NEVER).to_numpy()


def _with_offsets(facts: Facts, rows: DataFrame, columns: Columns) -> Facts:
    """Set the examples of duplicates, which are words: the first offset of the word that several rows have."""
    of_logs = (one for one in facts.found if one.scope is not None)
    words = [(one.scope, one.x) for one in of_logs if one.check == "duplicate_messages"]
    if not words:
        return facts
    asked = F.broadcast(rows.sparkSession.createDataFrame(words, "source string, word bigint"))
    placed = positions(rows) if columns.offset is None else rows.withColumn("word", word_of(F.col("offset")))
    held = placed.join(asked, ["source", "word"], "left_semi").groupBy("source", "offset").count()
    repeated = held.where("count > 1").groupBy("source").agg(F.min("offset").alias("first"))
    first = {row["source"]: row["first"] for row in repeated.collect()}
    found = [
        one._replace(x=first.get(one.scope, one.x)) if one.check == "duplicate_messages" else one for one in facts.found
    ]
    return facts._replace(found=found)


# --- Rows reduced to words ---


def id_key() -> tuple[Column, Column, Column]:
    """Return the key, the part and the bit of the IDs of rows; equal if and only if the IDs are.

    The key of a version-1 ID is its first 16 bytes. The last byte is the part (3 bits) and the bit (5 bits).
    """
    value = F.col("id")
    raw = v1_bytes(hex_text(value))
    # Below a condition, Spark would read the digits again for each part; it always evaluates the first of `coalesce`.
    last = look_up(octet(F.substring(raw, layout.ID_LENGTH, 1)), _BYTE).cast("int")
    same = identity(value)
    other = F.when(same.isNotNull(), F.lit(OTHER)).when(value.isNotNull(), F.lit(EMPTY)).otherwise(F.lit(NULL))
    key = F.coalesce(F.substring(raw, 1, layout.BODY_LENGTH), same.cast("binary"))
    part = F.coalesce(F.shiftright(last, 5), other)
    bit = F.coalesce(last.bitwiseAND(WORD_BITS - 1), F.lit(0))
    return key, part.cast("tinyint"), bit.cast("tinyint")


def id_words(rows: DataFrame, columns: Columns, not_before: int | None) -> DataFrame:
    """Return the summary of a table's IDs: one row per 32 version-1 IDs, and one per other value.

    Returns:
        ``key`` and ``part``. ``n`` counts rows, ``mask`` has the bits, ``near`` is the earliest landing or time in
        microseconds. ``duplicates``, ``conflicts`` and ``future`` count rows, contents and IDs, and ``future_bit`` is
        the first bit. So are ``duplicates_bit`` and ``conflicts_bit`` if contents are compared.
    """
    key, part, bit = id_key()
    seconds, no = id_seconds(F.col("id")), F.lit(False)
    early = no if not_before is None else F.coalesce(seconds < not_before, no)
    future = (early | F.coalesce((seconds - AHEAD_S) * 1_000_000 > F.col("landed"), no)).cast("bigint")
    near = F.col("landed" if columns.landed else "timestamp")
    values = (key.alias("key"), part.alias("part"), bit.alias("bit"), near.alias("near"), future.alias("future"))
    rows = rows.select(*values, "content")
    n, contents, bit, mask = (F.col(name) for name in ("n", "contents", "bit", "mask"))
    own, numbers, firsts = [], [F.count(F.lit(1)).alias("n")], {}
    if columns.landed or columns.timestamp:
        own.append(F.min("near").alias("near"))
    if columns.landed or not_before is not None:
        own.append(F.sum("future").alias("future"))
        firsts["future"] = F.col("future") > 0
    if columns.content:
        each = rows.groupBy("key", "part", "bit")
        rows = each.agg(*numbers, F.count_distinct("content").alias("contents"), *own)
        numbers = [F.sum("n").alias("n"), F.sum("contents").alias("contents")]
        firsts |= {"duplicates": n > contents, "conflicts": contents > 1}
    words = rows.groupBy("key", "part").agg(
        *numbers, F.bit_or(bit_of(bit.cast("bigint"))).alias("mask"), *own,
        *(F.min(F.when(is_one, bit)).alias(f"{name}_bit") for name, is_one in firsts.items()),
    )  # fmt: skip
    bits = bits_in(mask)
    contents = contents if columns.content else bits
    added = {"near": None, "future": 0, "future_bit": None, "duplicates_bit": None, "conflicts_bit": None}
    missing = {name: F.lit(value).cast("bigint") for name, value in added.items() if name not in words.columns}
    return words.withColumns({"duplicates": n - contents, "conflicts": contents - bits, **missing})


def unread_times(rows: DataFrame, columns: Columns) -> tuple[int, int]:
    """Return the numbers of rows without a valid timestamp and landing time; 0 without such columns."""
    given = {"timestamp": columns.timestamp, "landed": columns.landed}
    if not any(given.values()):
        return 0, 0
    lacking = (F.count_if(F.lit(name is not None) & F.col(role).isNull()) for role, name in given.items())
    (row,) = rows.agg(*lacking).collect()
    return row[0], row[1]


def log_summary(rows: DataFrame, columns: Columns) -> DataFrame:
    """Return the summary of a table's logs.

    Returns:
        ``source`` (NULL for rows in no log), ``rows``, ``first_time`` and ``last_time``. If times or content are
        compared, one row per message: ``block``, ``offset``, ``timestamp`` and ``landed`` in microseconds, and the
        number of ``contents``. Else one row per word: ``word`` and ``mask``.
    """
    place = F.col("offset")
    common = [F.count(F.lit(1)).alias("rows"), F.min("time").alias("first_time"), F.max("time").alias("last_time")]
    if not (columns.timestamp or columns.landed or columns.content):
        words = rows.select("source", "offset", "time").groupBy("source", word_of(place).alias("word"))
        return words.agg(F.bit_or(bit_of(place)).alias("mask"), *common)
    # One shuffle by blocks of offsets serves all that follows: each block is in one task, a log is not.
    # Rows in no log keep to the tasks that they came in.
    block = F.coalesce(F.shiftright("offset", BLOCK_SHIFT), -1 - F.spark_partition_id().cast("bigint"))
    roles = rows.select("source", "offset", "time", "timestamp", "landed", *(["content"] if columns.content else []))
    blocks = roles.withColumn("block", block).repartition("source", "block")
    contents = F.count_distinct("content") if columns.content else F.lit(1).cast("bigint")
    return blocks.groupBy("source", "block", "offset").agg(
        *common, contents.alias("contents"), F.min("timestamp").alias("timestamp"), F.min("landed").alias("landed")
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


def positions(rows: DataFrame) -> DataFrame:
    """Return ``source``, ``word`` and ``offset`` of the rows whose ID is a position."""
    key, part, bit = id_key()
    rows = with_fields(rows.select(key.alias("key"), part.alias("part"), bit.cast("bigint").alias("bit")))
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
