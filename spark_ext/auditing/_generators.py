"""The facts of generators on Spark: their IDs as spans of numbers.

`msgid.audit._runs` makes the facts. A table of few spans is one task, on the driver. A larger one is divided by nodes
into tasks, whose facts are bounded and are merged on the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid.audit._runs import facts_of_spans, named_by
from msgid.audit._spans import Spans, merged_spans, spans_of_words
from msgid.audit.facts import NOTHING
from spark_ext.auditing._values import in_tasks, keep
from spark_ext.auditing.summaries import bits_in, block_of, highest, is_short, lowest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from msgid.audit._options import Rules
    from msgid.audit.facts import Facts

MOST: Final = {"rows": 500_000}
"""The number of rows up to which a table is one task."""
TASK_ROWS: Final = {"rows": 250_000}
"""The number of rows of a task; a node with more is one task."""
_ROW: Final = ("node", "pid", "seconds", "low", "high", "mask")


def generator_facts(words: DataFrame, rules: Rules) -> Facts:
    """Return the facts of the generators of a table.

    Args:
        words: The words of the IDs that carry a counter: ``node``, ``pid``, ``seconds``, ``word`` and ``mask``.
        rules: The rules of the audit.
    """
    rows = _spans_and_words(words)
    table = rows.limit(MOST["rows"] + 1).toArrow()
    if table.num_rows <= MOST["rows"]:
        return _facts(table, rules)

    rows = keep(rows)
    return in_tasks(rows, "node", rows.count() // TASK_ROWS["rows"] + 1, lambda part: _facts(part, rules), rules)


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
    return spans.select(*_ROW).unionByName(read.withColumns({"low": word, "high": word}).select(*_ROW))


def _facts(rows: pa.Table, rules: Rules) -> Facts:

    if not rows.num_rows:
        return NOTHING
    node, pid, seconds, low, high, mask = (rows[name].to_numpy() for name in _ROW)
    named, generator = named_by(node, pid)
    is_word = mask != 0
    words = (column[is_word] for column in (generator, seconds, low, mask))
    spans = merged_spans(Spans(generator, seconds, low, high).take(~is_word), spans_of_words(*words))
    return facts_of_spans(named, spans, rules)
