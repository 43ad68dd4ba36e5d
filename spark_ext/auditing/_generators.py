"""The facts of generators on Spark: the cells of a table, and the words of the blocks that they mark.

`msgid.audit._runs` makes the facts of both. A table of few cells is one task, on the driver. A larger one is divided by
nodes into tasks, whose facts are bounded and are merged on the driver.
"""

from __future__ import annotations

import pickle
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid.audit.definitions import RATE_GENERATORS, rate_width
from msgid.audit.facts import RateFact, merged
from spark_ext._shipping import shipped
from spark_ext.auditing._values import keep
from spark_ext.auditing.summaries import bits_in, block_of, highest, lowest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from msgid.audit._digests import Cells, Words
    from msgid.audit._options import Rules
    from msgid.audit._runs import Named
    from msgid.audit.facts import Facts

MOST: Final = {"cells": 500_000, "points": 500_000, "blocks": 10_000}
"""The number of cells, of IDs and of marked blocks up to which a table is one task."""
TASK_CELLS: Final = 250_000
"""The number of cells of a task; a node with more is one task."""
_ROW: Final = ("node", "pid", "seconds", "low", "high", "ids")


def generator_facts(words: DataFrame, rules: Rules) -> Facts:
    """Return the facts of the generators of a table.

    Args:
        words: The words of the IDs that carry a counter: ``node``, ``pid``, ``seconds``, ``word`` and ``mask``.
        rules: The rules of the audit.
    """
    word, mask = F.col("word"), F.col("mask")
    words = words.withColumn("block", block_of(word))
    cells = words.groupBy("node", "pid", "block", "seconds").agg(
        F.min(lowest(word, mask)).alias("low"),
        F.max(highest(word, mask)).alias("high"),
        F.sum(bits_in(mask)).alias("ids"),
    )
    table = cells.select(*_ROW).limit(MOST["cells"] + 1).toArrow()
    if table.num_rows > MOST["cells"]:
        return _in_tasks(keep(cells), words, rules)
    blocks = _marked_blocks(table)
    if blocks.num_rows > MOST["blocks"] or sum(blocks["ids"].to_pylist()) > MOST["points"]:
        return _in_tasks(keep(cells), words, rules)
    return _on_driver(table, blocks, words, rules)


def _on_driver(table: pa.Table, blocks: pa.Table, words: DataFrame, rules: Rules) -> Facts:
    """Return the facts of generators, made on the driver of all cells and of the words of the marked blocks."""
    import pyarrow as pa

    from msgid.audit._runs import rates_of

    rows = table
    if blocks.num_rows:
        asked = F.broadcast(words.sparkSession.createDataFrame(blocks))
        rows = pa.concat_tables([table, _word_rows(words, asked).toArrow().cast(table.schema)])
    named, cells, _ = _digest(table)
    return _facts(rows, rules)._replace(
        rates=rates_of(named, cells.generator, cells.seconds, cells.ids) if table.num_rows else []
    )


def _in_tasks(cells: DataFrame, words: DataFrame, rules: Rules) -> Facts:
    """Return the facts of generators, made in tasks of whole nodes."""
    task = F.pmod(F.hash("node"), F.lit(cells.count() // TASK_CELLS + 1)).alias("task")
    blocks = cells.groupBy(task).applyInArrow(
        shipped(_marked_blocks), "node bigint, pid bigint, block bigint, ids bigint"
    )
    rows = cells.select(*_ROW).unionByName(_word_rows(words, blocks))

    def pickled(table: pa.Table) -> pa.Table:
        import pyarrow as pa

        return pa.table({"facts": [pickle.dumps(_facts(table, rules))]})

    parts = rows.groupBy(task).applyInArrow(shipped(pickled), "facts binary").collect()
    return merged([pickle.loads(part["facts"]) for part in parts], rules.max_gaps)._replace(rates=_rates(cells))


def _word_rows(words: DataFrame, blocks: DataFrame) -> DataFrame:
    """Return the words of some blocks in the columns of cells: ``low`` is the word, ``high`` the mask, ``ids`` is 0."""
    read = words.join(blocks, ["node", "pid", "block"], "left_semi")
    values = (F.col("word").alias("low"), F.col("mask").alias("high"), F.lit(0).cast("bigint").alias("ids"))
    return read.select("node", "pid", "seconds", *values)


def _digest(rows: pa.Table) -> tuple[Named, Cells, Words]:
    """Return the generators, the cells and the words of the rows that `_word_rows` explains."""
    from msgid.audit._digests import BLOCK_SHIFT, Cells, Words
    from msgid.audit._runs import named_by

    node, pid, seconds, low, high, ids = (rows[name].to_numpy() for name in _ROW)
    named, generator = named_by(node, pid)
    is_cell = ids > 0
    cells = Cells(generator, low >> BLOCK_SHIFT, seconds, low, high, ids).take(is_cell)
    return named, cells, Words(generator, seconds, low, high).take(~is_cell)


def _marked_blocks(cells: pa.Table) -> pa.Table:
    """Return the blocks that must be read, with the number of their IDs."""
    import pyarrow as pa

    from msgid.audit._digests import marked_blocks

    named, held, _ = _digest(cells)
    generator, block, ids = marked_blocks(held)
    return pa.table({"node": named.node[generator], "pid": named.pid[generator], "block": block, "ids": ids})


def _facts(rows: pa.Table, rules: Rules) -> Facts:
    from msgid.audit._runs import facts_of_digest

    return facts_of_digest(*_digest(rows), rules)


def _rates(cells: DataFrame) -> list[RateFact]:
    """Return the IDs of the largest generators in equal intervals, as `msgid.audit._runs.rates_of` does."""
    by_generator = cells.groupBy("node", "pid").agg(
        F.sum("ids").alias("ids"), F.min("seconds").alias("first"), F.max("seconds").alias("last")
    )
    chosen = by_generator.orderBy(F.col("ids").desc(), "node", "pid").limit(RATE_GENERATORS).collect()
    width = rate_width(min(row["first"] for row in chosen), max(row["last"] for row in chosen))
    is_chosen = reduce(or_, ((F.col("node") == row["node"]) & (F.col("pid") == row["pid"]) for row in chosen))
    start = F.floor(F.col("seconds") / width).cast("bigint") * width
    bins = cells.where(is_chosen).groupBy("node", "pid", start.alias("start")).agg(F.sum("ids").alias("ids"))
    rows = bins.orderBy("node", "pid", "start").collect()
    return [RateFact(row["node"], row["pid"], row["start"], width, row["ids"]) for row in rows]
