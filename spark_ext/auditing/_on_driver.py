"""Facts that follow from few summaries: the driver collects them, and NumPy does what Spark would need many jobs for.

Each collection has a limit. A table with more logs, ranges or generators is left to `spark_ext.auditing._spread`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from msgid.audit.definitions import MAX_SCOPES
from msgid.audit.facts import Counted, Facts, GapFact, LogFact
from spark_ext.auditing._bits import bits_in, highest, holes, lowest
from spark_ext.auditing._log_facts import first_repeated

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from msgid.audit._columns import Columns
    from msgid.audit._runs import GeneratorFacts, Named
    from spark_ext.auditing._cells import Simple, Words
    from spark_ext.auditing._log_facts import Logs

MOST: Final = {"cells": 500_000, "points": 500_000, "blocks": 10_000, "logs": 50_000, "ranges": 200_000}
"""The number of rows of each kind that the driver collects; of points, those that it makes of words."""
_BLOCK_SHIFT: Final = 11


class _OfLogs(NamedTuple):
    """The facts of all logs of a table."""

    logs: list[LogFact]
    gaps: list[GapFact]
    counted: list[Counted]


def facts_on_driver(
    facts: Facts,
    words: DataFrame | None,
    logs: Logs | None,
    columns: Columns,
    clock_jump: int,
    max_gaps: int,
    df: DataFrame | None,
) -> Facts | None:
    """Return the facts of a table with those of its generators and logs; None if they are too many for the driver.

    Args:
        facts: The facts of single IDs.
        words: The words of the IDs that carry a counter, or None.
        logs: The logs, or None.
        columns: The columns of the rows.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
        df: The rows, in which examples are looked for; None if they are gone.
    """
    try:
        from msgid.audit._rows import bounded
        from msgid.audit._runs import GeneratorFacts

        made = GeneratorFacts([], [], [], [], []) if words is None else _generators(words, clock_jump)
        of_logs = _OfLogs([], [], []) if logs is None else _logs(logs, columns, df)
    except ImportError:
        return None
    if made is None or of_logs is None:
        return None
    counted = [*facts.found, *of_logs.counted, *made.counted]
    gaps = [*of_logs.gaps, *made.gaps]
    return bounded(facts.rows, facts.kinds, counted, of_logs.logs, made, gaps, facts.unplaced, columns, max_gaps)


def _arrow(df: DataFrame, kind: str) -> pa.Table | None:
    """Return the rows, or None if they are more than the driver collects of their kind."""
    table = df.limit(MOST[kind] + 1).toArrow()
    return table if table.num_rows <= MOST[kind] else None


def _numbers(table: pa.Table, *names: str) -> list[NDArray[np.int64]]:
    return [table[name].to_numpy() for name in names]


def _generators(words: DataFrame, clock_jump: int) -> GeneratorFacts | None:
    import numpy as np

    from msgid.audit._runs import facts_of_generators, named_by, rates_of
    from spark_ext.auditing._cells import Cells, joined, shown_by_cells, shown_by_words

    block = F.shiftright("word", _BLOCK_SHIFT)
    word, mask = F.col("word"), F.col("mask")
    cells = words.groupBy("node", "pid", block.alias("block"), "seconds").agg(
        F.min(lowest(word, mask)).alias("low"),
        F.max(highest(word, mask)).alias("high"),
        F.sum(bits_in(mask)).alias("ids"),
    )
    table = _arrow(cells, "cells")
    if table is None:
        return None
    node, pid, *others = _numbers(table, "node", "pid", *Cells._fields[1:])
    named, generator = named_by(node.astype(np.uint64) << np.uint64(16) | pid.astype(np.uint64))
    held = Cells(generator, *others)
    simple = shown_by_cells(held, clock_jump)
    shown = simple.shown
    if simple.ids:
        read = _read(words.withColumn("block", block), named, simple)
        if read is None:
            return None
        shown = joined(shown, shown_by_words(*read, clock_jump))
    return facts_of_generators(named, shown, rates_of(named, held.generator, held.seconds, held.ids))


def _read(words: DataFrame, named: Named, simple: Simple) -> tuple[Words, Words] | None:
    """Return the words of the torn and of the short blocks."""
    import numpy as np

    from spark_ext.auditing._cells import Words

    blocks = np.concatenate([simple.torn, simple.short])
    if simple.ids > MOST["points"] or len(blocks) > MOST["blocks"]:
        return None
    rows = [
        (int(named.node[generator]), int(named.pid[generator]), int(block), place)
        for place, (generator, block) in enumerate(blocks.tolist())
    ]
    asked = words.sparkSession.createDataFrame(rows, "node bigint, pid bigint, block bigint, place bigint")
    found = words.join(F.broadcast(asked), ["node", "pid", "block"]).toArrow()
    place, *others = _numbers(found, "place", "seconds", "word", "mask")
    is_torn = place < len(simple.torn)
    held = Words(blocks[place, 0], *others)
    return Words(*(column[is_torn] for column in held)), Words(*(column[~is_torn] for column in held))


def _logs(logs: Logs, columns: Columns, df: DataFrame | None) -> _OfLogs | None:
    rows = logs.logs.limit(MOST["logs"] + 1).collect()
    if len(rows) > MOST["logs"]:
        return None
    ranges = _ranges(logs, [row["source"] for row in rows if row["missing"]])
    if ranges is None:
        return None
    gaps, counted = ranges
    repeated = _repeated(logs, rows, columns, df)
    listed = []
    for row in rows:
        source = row["source"]
        listed.append(
            LogFact(
                source, row["n"], row["first_offset"], row["last_offset"], row["first_time"], row["last_time"],
                row["missing"], row["duplicates"], row["conflicts"], row["late"],
            )
        )  # fmt: skip
        if row["duplicates"]:
            counted.append(Counted("duplicate_messages", source, row["duplicates"], repeated.get(source)))
        if row["conflicts"]:
            counted.append(Counted("conflicting_messages", source, row["conflicts"], row["conflict_at"]))
        if row["late"]:
            counted.append(Counted("late_messages", source, row["late"], -row["latest"]["at"], row["latest"]["lag"]))
        if row["backwards"]:
            back = row["backward"]
            counted.append(Counted("time_backwards", source, row["backwards"], back["backward_at"], back["back"]))
    return _OfLogs(listed, gaps, counted)


def _ranges(logs: Logs, sources: list[str]) -> tuple[list[GapFact], list[Counted]] | None:
    """Return the missing ranges of some logs, and their findings."""
    import numpy as np

    from msgid.audit._logs import per_scope

    if not sources:
        return [], []
    asked = logs.words.sparkSession.createDataFrame([(source,) for source in sources], "source string")
    table = _arrow(holes(logs.words.join(F.broadcast(asked), "source", "left_semi"), ["source"]), "ranges")
    if table is None:
        return None
    coded = table["source"].combine_chunks().dictionary_encode()
    names = coded.dictionary.to_pylist()
    scope = coded.indices.to_numpy().astype(np.int64)
    first, last = _numbers(table, "first", "last")
    wide = last - first + 1
    counted = [*per_scope("missing_offsets", names, scope, wide, wide, first, last)]
    return [
        GapFact("offset", names[s], a, b) for s, a, b in zip(scope, first.tolist(), last.tolist(), strict=True)
    ], counted


def _repeated(logs: Logs, rows: list[Any], columns: Columns, df: DataFrame | None) -> dict[str, int]:
    """Return the first repeated offset of the logs whose findings are listed; nothing if the rows are gone."""
    held = [(row["source"], row["duplicate_at"]) for row in rows if row["duplicates"]]
    if logs.exact:
        return dict(held)
    if df is None or not held:
        return {}
    most = sorted((row for row in rows if row["duplicates"]), key=lambda row: (-row["duplicates"], row["source"]))
    asked = [(row["source"], row["duplicate_at"]) for row in most[:MAX_SCOPES]]
    words = logs.words.sparkSession.createDataFrame(asked, "source string, word bigint")
    return {row["scope"]: row["first"] for row in first_repeated(df, columns, words).collect()}
