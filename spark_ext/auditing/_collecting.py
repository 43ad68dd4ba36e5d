"""Collect the bounded facts of a summary on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from msgid.audit.definitions import COUNTED, MAX_ROWS
from msgid.audit.facts import Counted, Facts
from spark_ext.auditing._id_facts import id_facts, orphans
from spark_ext.auditing._log_facts import logs_of
from spark_ext.auditing._on_driver import facts_on_driver
from spark_ext.auditing._run_facts import counter_words, position_words, with_fields
from spark_ext.auditing._spread import spread_facts
from spark_ext.auditing.summaries import merged_ids, merged_logs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from msgid.audit._columns import Columns


class Summaries(NamedTuple):
    """The summaries of a table: of its IDs, its logs and the parents of derived IDs; None if it does not have them."""

    ids: DataFrame | None
    logs: DataFrame | None
    parents: DataFrame | None
    is_binary: bool
    """Whether the IDs are binary."""


def facts_of(
    summaries: Summaries, columns: Columns, clock_jump: int, max_gaps: int, df: DataFrame | None, *, merge: bool = False
) -> Facts:
    """Return the facts of a table.

    Args:
        summaries: The summaries of its rows.
        columns: The columns of the rows.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
        df: The rows, in which examples are looked for; None if they are gone.
        merge: Whether the summaries are several that must be merged.
    """
    # A checkpoint ends the plan: with the plans of the rows in each, planning would take longer than the work.
    kinds: list[tuple[str, str | None, int]] = []
    counted: list[Counted] = []
    words = placed = None
    if summaries.ids is not None:
        ids = with_fields(merged_ids(summaries.ids, merge=merge)).localCheckpoint()
        kinds, counted = id_facts(ids, df, columns, is_binary=summaries.is_binary)
        if summaries.parents is not None:
            counted += orphans(ids, summaries.parents)
        origins = {origin for kind, origin, _ in kinds if kind == "v1"}
        if origins & set(COUNTED):
            words = counter_words(ids)
        if columns.offset is None and "position" in origins:
            placed = position_words(ids)
    rows = sum(n for _, _, n in kinds)
    unplaced = 0
    if summaries.logs is not None:
        placed = merged_logs(summaries.logs, merge=merge).localCheckpoint()
        total = placed.agg(F.sum("n").alias("n"), F.sum(F.when(F.col("source").isNull(), F.col("n"))).alias("no"))
        (held,) = total.collect()
        rows, unplaced = held["n"] or 0, held["no"] or 0
    logs = None if placed is None else logs_of(placed)
    facts = Facts(rows, kinds[:MAX_ROWS], counted, {}, [], 0, [], 0, [], 0, [], 0, [], unplaced, columns.given)
    bounded = facts_on_driver(facts, words, logs, columns, clock_jump, max_gaps, df)
    return bounded if bounded is not None else spread_facts(facts, words, logs, columns, clock_jump, max_gaps, df)
