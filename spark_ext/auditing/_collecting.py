"""Collect the bounded facts of a summary on the driver."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from msgid import layout
from msgid.audit.definitions import COUNTED
from msgid.audit.facts import NOTHING, Facts, merged, part_of
from spark_ext.auditing._generators import generator_facts
from spark_ext.auditing._id_facts import id_facts, orphans
from spark_ext.auditing._log_blocks import log_facts
from spark_ext.auditing._values import keep
from spark_ext.auditing._words import counter_words, foreign_generators, position_words, with_fields
from spark_ext.auditing.summaries import id_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from msgid._known_tables import Columns
    from msgid.audit._options import Rules


class Summaries(NamedTuple):
    """The summaries of a table: of its IDs, logs, parents of derived IDs and times; None if it does not have them."""

    ids: DataFrame | None
    logs: DataFrame | None
    parents: DataFrame | None
    times: DataFrame | None


def facts_of(summaries: Summaries, columns: Columns, rules: Rules, df: DataFrame) -> Facts:
    """Return the facts of a table.

    Args:
        summaries: The summaries of its rows.
        columns: The columns of the rows.
        rules: The rules of the audit.
        df: The rows, in which examples are looked for.
    """

    def of_ids(ids: DataFrame) -> tuple[int, list[Facts]]:
        """Return the number of rows and the facts of the IDs, and of the logs if IDs give the positions."""
        ids = keep(with_fields(id_words(ids)))
        own = id_facts(ids, df, columns)
        parts = [own]
        origins = {origin for kind, origin, _ in own.kinds if kind == layout.KIND_V1}
        foreign = keep(foreign_generators(ids)) if origins & {"derived", "position"} else None
        foreign = None if foreign is None or foreign.isEmpty() else foreign
        if summaries.parents is not None:
            parts.append(part_of(orphans(ids, summaries.parents, foreign)))
        if origins & set(COUNTED) or foreign is not None:
            parts.append(generator_facts(counter_words(ids, foreign), rules))
        if columns.offset is None and "position" in origins:
            parts.append(log_facts(position_words(ids, foreign), columns, rules, df))
        return sum(n for _, _, n in own.kinds), parts

    def of_logs(logs: DataFrame) -> tuple[int, int, Facts]:
        """Return the number of rows, of those in no log, and the facts of the logs."""
        placed = keep(logs)
        total = placed.agg(F.sum("n").alias("n"), F.sum(F.when(F.col("source").isNull(), F.col("n"))).alias("no"))
        (held,) = total.collect()
        return held["n"] or 0, held["no"] or 0, log_facts(placed, columns, rules, df)

    # Kept rows end the plan: with the plans of the rows in each, planning would take longer than the work.
    parts: list[Facts] = []
    rows = unplaced = untimed = unlanded = 0
    # The two read the table each by itself. Side by side, one uses the cores while the other one is planned.
    with ThreadPoolExecutor(1) as pool:
        logs = None
        if summaries.logs is not None:
            logs = pool.submit(inheritable_thread_target(summaries.logs.sparkSession)(of_logs), summaries.logs)
        if summaries.ids is not None:
            rows, parts = of_ids(summaries.ids)
    if logs is not None:
        rows, unplaced, of_positions = logs.result()
        parts.append(of_positions)
    if summaries.times is not None:
        (lacking,) = summaries.times.agg(F.sum("untimed"), F.sum("unlanded")).collect()
        untimed, unlanded = lacking[0] or 0, lacking[1] or 0
    own = NOTHING._replace(rows=rows, unplaced=unplaced, untimed=untimed, unlanded=unlanded, columns=columns.given)
    return merged([*parts, own], rules.max_gaps)
