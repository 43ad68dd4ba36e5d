"""The logs of a table in NumPy: missing, repeated and late messages, and times that go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgid.audit._ids import repeats, starts_of
from msgid.audit.facts import NOTHING, Counted, Facts, GapFact, LogFact, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

Moments = tuple["NDArray[np.int64]", "NDArray[np.bool_]"]


class LogRows(NamedTuple):
    """The rows that stand in a log. Moments are microseconds since 1970, each with the rows that have one."""

    log: NDArray[np.int64]
    offset: NDArray[np.int64]
    content: NDArray[np.int64] | None
    timestamp: Moments | None
    landed: Moments | None
    shown: Moments | None
    """The times between which a log is shown: the timestamps, or those of the IDs."""

    def take(self, rows: Any) -> LogRows:
        """Return some of the rows, by their places or by a mask."""
        return LogRows(*(_taken(part, rows) for part in self))


class Holes(NamedTuple):
    """Ranges that are missing between neighbours of a scope; both ends included."""

    scope: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def holes(scope: NDArray[np.int64], number: NDArray[np.int64]) -> Holes:
    """Return the ranges between the numbers of each scope, which are sorted and each there once."""
    import numpy as np

    found = np.flatnonzero((scope[1:] == scope[:-1]) & (number[1:] - number[:-1] > 1))
    return Holes(scope[found], number[found] + 1, number[found + 1] - 1)


def per_scope(
    check: str,
    names: list[str],
    scope: NDArray[np.int64],
    count: NDArray[np.int64],
    rank: NDArray[np.int64],
    x: NDArray[np.int64],
    y: NDArray[np.int64] | None = None,
) -> Iterator[Counted]:
    """Yield the sum of the counts of each scope, with the example of the highest rank and then the lowest ``x``."""
    import numpy as np

    order = np.lexsort((x, -rank, scope))
    places = np.flatnonzero(starts_of(scope[order]))
    if not len(order):
        return
    sums = np.add.reduceat(count[order], places)
    for place, total in zip(order[places], sums, strict=True):
        second = None if y is None else int(y[place])
        yield Counted(check, names[scope[place]], int(total), int(x[place]), second)


def log_facts(rows: LogRows, names: list[str]) -> Facts:
    """Return the facts of logs: the logs, their missing ranges, and their findings."""
    import numpy as np

    if not len(rows.log):
        return NOTHING
    order = np.lexsort((rows.offset, rows.log))
    rows = rows.take(order)
    first = np.flatnonzero(starts_of(rows.log, rows.offset))
    log, offset = rows.log[first], rows.offset[first]
    found = repeats((rows.log, rows.offset), rows.content)
    missing = holes(log, offset)
    wide = missing.last - missing.first + 1
    late, lag = _late(log, offset, _least(rows.landed, first))
    back, by = _backwards(log, _least(rows.timestamp, first))
    where_log, where_offset = rows.log[found.row], rows.offset[found.row]
    counted = [*per_scope("missing_offsets", names, missing.scope, wide, wide, missing.first, missing.last)]
    for check, counts in (("duplicate_messages", found.duplicates), ("conflicting_messages", found.conflicts)):
        held = counts > 0
        counted += per_scope(check, names, where_log[held], counts[held], 0 * counts[held], where_offset[held])
    ones = np.ones(len(late), np.int64)
    counted += per_scope("late_messages", names, log[late], ones, lag, offset[late], lag)
    ones = np.ones(len(back), np.int64)
    counted += per_scope("time_backwards", names, log[back], ones, 0 * ones, offset[back], by)
    sums = {check: dict.fromkeys(range(len(names)), 0) for check in _COLUMNS}
    places = {name: place for place, name in enumerate(names)}
    for one in counted:
        if one.check in sums:
            sums[one.check][places[one.scope]] = one.count
    starts = np.flatnonzero(starts_of(log))
    ends = np.append(starts[1:], len(log))
    row_ends = np.append(first, len(rows.log))
    logs = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        code = int(log[start])
        begin, stop = int(row_ends[start]), int(row_ends[end])
        times = _between(rows.shown, begin, stop)
        logs.append(
            LogFact(
                names[code],
                stop - begin,
                int(offset[start]),
                int(offset[end - 1]),
                *times,
                *(sums[check][code] for check in _COLUMNS),
            )
        )
    gaps = [GapFact("offset", names[scope], int(low), int(high)) for scope, low, high in zip(*missing, strict=True)]
    return part_of(counted, logs=logs, gaps=gaps)


_COLUMNS = ("missing_offsets", "duplicate_messages", "conflicting_messages", "late_messages")
"""The checks whose counts are columns of a log, in their order."""


def _taken(part: Any, rows: Any) -> Any:
    if part is None:
        return None
    return tuple(one[rows] for one in part) if isinstance(part, tuple) else part[rows]


def _between(moments: Moments | None, start: int, stop: int) -> tuple[int | None, int | None]:
    if moments is None:
        return None, None
    held = moments[0][start:stop][moments[1][start:stop]]
    return (int(held.min()), int(held.max())) if len(held) else (None, None)


def _least(moments: Moments | None, first: NDArray[np.int64]) -> Moments | None:
    """Return the earliest moment of each message, and which messages have one."""
    import numpy as np

    if moments is None or not len(first):
        return None
    value, known = moments
    highest = np.iinfo(np.int64).max
    least = np.minimum.reduceat(np.where(known, value, highest), first)
    return least, np.logical_or.reduceat(known, first)


def _late(
    log: NDArray[np.int64], offset: NDArray[np.int64], landed: Moments | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the messages that landed after a higher offset of their log, and by how many microseconds."""
    import numpy as np

    if landed is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    value, known = landed
    highest = np.iinfo(np.int64).max
    after = np.full(len(log), highest)
    # The least landing of all higher offsets: from the end of each log to its start.
    for start, end in _spans(log):
        least = np.minimum.accumulate(np.where(known, value, highest)[start:end][::-1])[::-1]
        after[start : end - 1] = least[1:]
    late = np.flatnonzero(known & (after < value))
    return late, value[late] - after[late]


def _backwards(log: NDArray[np.int64], times: Moments | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the messages whose time is before that of the message before them, and by how many microseconds."""
    import numpy as np

    if times is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    known = np.flatnonzero(times[1])  # a message without a time is skipped
    value, of = times[0][known], log[known]
    back = np.flatnonzero((of[1:] == of[:-1]) & (value[1:] < value[:-1])) + 1
    return known[back], value[back - 1] - value[back]


def _spans(codes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    import numpy as np

    starts = np.flatnonzero(starts_of(codes))
    yield from zip(starts.tolist(), np.append(starts[1:], len(codes)).tolist(), strict=True)
