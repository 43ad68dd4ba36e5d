"""Facts that follow from few summaries: the driver collects them, and NumPy does what Spark would need many jobs for.

Each collection has a limit. A table with more logs, ranges or generators is left to `spark_ext.auditing._spread`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from msgid.audit.definitions import MAX_SCOPES
from msgid.audit.facts import Counted, Facts, GapFact, LogFact, part_of
from spark_ext.auditing._bits import holes
from spark_ext.auditing._log_facts import first_repeated
from spark_ext.auditing._spread import spread_facts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from msgid.audit._columns import Columns
    from spark_ext.auditing._log_facts import Logs

MOST: Final = {"logs": 50_000, "ranges": 200_000}
"""The number of rows of each kind that the driver collects."""


def log_facts(logs: Logs, columns: Columns, max_gaps: int, df: DataFrame | None) -> Facts:
    """Return the facts of logs.

    Args:
        logs: The logs.
        columns: The columns of the rows.
        max_gaps: Number of ranges to list.
        df: The rows, in which examples are looked for; None if they are gone.
    """
    facts = _logs(logs, columns, df)
    return spread_facts(logs, columns, max_gaps, df) if facts is None else facts


def _arrow(df: DataFrame, kind: str) -> pa.Table | None:
    """Return the rows, or None if they are more than the driver collects of their kind."""
    table = df.limit(MOST[kind] + 1).toArrow()
    return table if table.num_rows <= MOST[kind] else None


def _logs(logs: Logs, columns: Columns, df: DataFrame | None) -> Facts | None:
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
    return part_of(counted, logs=listed, gaps=gaps)


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
    first, last = table["first"].to_numpy(), table["last"].to_numpy()
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
