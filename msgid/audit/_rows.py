"""The facts of rows in memory: the audit of NumPy, which a small table on Spark has too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgid import layout
from msgid.audit._ids import id_facts
from msgid.audit._logs import LogRows, log_facts
from msgid.audit._runs import generator_facts
from msgid.audit.facts import NOTHING, Facts, merged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from msgid._known_tables import Columns
    from msgid.audit._ids import Ids
    from msgid.audit._logs import Moments
    from msgid.audit._options import Rules


class Places(NamedTuple):
    """The places of rows in their logs.

    Attributes:
        log: The place of the row's log in ``names``; -1 if the row does not have a log.
        names: The names of the logs, sorted.
        offset: The offset of each row.
        valid: Which rows have an offset.
    """

    log: NDArray[np.int64]
    names: list[str]
    offset: NDArray[np.int64]
    valid: NDArray[np.bool_]


class Rows(NamedTuple):
    """The rows of a table as arrays; None for a column that the table does not have."""

    number: int
    ids: Ids | None
    parents: Ids | None
    content: NDArray[np.int64] | None
    timestamp: Moments | None
    landed: Moments | None
    places: Places | None


def facts_of_rows(rows: Rows, columns: Columns, rules: Rules) -> Facts:
    """Return the facts of the rows of a table with some columns."""
    ids, timestamp, landed = rows.ids, rows.timestamp, rows.landed
    untimed, unlanded = (0 if times is None else int((~times[1]).sum()) for times in (timestamp, landed))
    parts = [NOTHING._replace(rows=rows.number, untimed=untimed, unlanded=unlanded, columns=columns.given)]
    if ids is not None:
        parts.append(id_facts(ids, rows.content, landed or timestamp, landed, rows.parents, rules.earliest))
        parts.append(generator_facts(ids, rules))
    of_id = None if ids is None else (ids.unix * 1_000_000, ids.is_v1)
    if rows.places is not None:
        log, names, offset, valid = rows.places
        placed = valid & (log >= 0)
        shown = timestamp if timestamp is not None else of_id
        in_logs = LogRows(log, offset, rows.content, timestamp, landed, shown).take(placed)
        parts.append(log_facts(in_logs, names, rules)._replace(unplaced=int((~placed).sum())))
    elif ids is not None:
        in_logs, names = _positions(ids)
        positions = in_logs._replace(shown=of_id).take(in_logs.log >= 0)
        parts.append(log_facts(positions, names, rules))
    return merged(parts, rules.max_gaps)


def _positions(ids: Ids) -> tuple[LogRows, list[str]]:
    """Return the rows whose IDs are positions in a log, in the places of all rows, and the names of the logs."""
    import numpy as np

    placed = (ids.origins() == "position") & ~ids.counted
    node = ids.v1.node.astype(np.int64)
    nodes, codes = np.unique(node[placed], return_inverse=True)
    log = np.full(len(ids), -1, np.int64)
    log[placed] = codes.reshape(-1)
    offset = ids.v1.pid.astype(np.int64) << 32 | ids.v1.sequence.astype(np.int64)
    return LogRows(log, offset, None, None, None, None), [layout.format_mac(int(one)) for one in nodes]
