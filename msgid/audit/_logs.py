"""The logs of a table in NumPy: missing, repeated and late messages, and times that go back.

A log is divided into blocks of offsets. `blocks_of` finds the faults of each block, and `facts_of_blocks` makes the
facts of all logs of the blocks. Only blocks in which offsets are missing are read offset by offset.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from msgid._moments import UNIX_EPOCH
from msgid.audit._columns import NEVER
from msgid.audit._spans import BLOCK_SHIFT, Gaps, Spans, gaps_between, grouped, merged_gaps, starts_of
from msgid.audit.definitions import MAX_ROWS
from msgid.audit.facts import NOTHING, Counted, Facts, LogRow, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from msgid.audit._options import Rules


class LogRows(NamedTuple):
    """The rows that stand in a log. Moments are microseconds since 1970, or `NEVER`."""

    log: NDArray[np.int64]
    offset: NDArray[np.int64]
    content: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    landed: NDArray[np.int64]
    shown: NDArray[np.int64]
    """The times between which a log is shown: the timestamps, or those of the IDs."""

    def take(self, rows: Any) -> LogRows:
        """Return some of the rows, by their places or by a mask."""
        return LogRows(*(column[rows] for column in self))


class Messages(NamedTuple):
    """Messages of logs, one row per log and offset, in this order.

    ``rows`` counts their rows and ``contents`` their different contents. If the messages are not those of whole logs,
    ``landed_after`` is the least landing in later blocks, and ``timestamp_before`` the last timestamp in earlier ones.
    """

    log: NDArray[np.int64]
    offset: NDArray[np.int64]
    rows: NDArray[np.int64]
    contents: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    landed: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    landed_after: NDArray[np.int64] | None = None
    timestamp_before: NDArray[np.int64] | None = None


class Blocks(NamedTuple):
    """Blocks of logs: their rows and messages, the ends of their offsets and times, and their faults.

    Of each fault there is the count and the offset of an example, and the microseconds by which a time is wrong.
    """

    log: NDArray[np.int64]
    block: NDArray[np.int64]
    rows: NDArray[np.int64]
    messages: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    duplicate_at: NDArray[np.int64]
    conflicts: NDArray[np.int64]
    conflict_at: NDArray[np.int64]
    late: NDArray[np.int64]
    late_at: NDArray[np.int64]
    lag: NDArray[np.int64]
    backwards: NDArray[np.int64]
    backward_at: NDArray[np.int64]
    back: NDArray[np.int64]

    def take(self, rows: Any) -> Blocks:
        """Return some of the blocks, by their places or by a mask."""
        return Blocks(*(column[rows] for column in self))


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
    order = np.lexsort((x, -rank, scope))
    order = order[count[order] > 0]
    places = np.flatnonzero(starts_of(scope[order]))
    sums = np.add.reduceat(count[order], places)
    for place, total in zip(order[places], sums, strict=True):
        second = None if y is None else int(y[place])
        yield Counted(check, names[scope[place]], int(total), int(x[place]), second)


def log_facts(rows: LogRows, names: list[str], rules: Rules) -> Facts:
    """Return the facts of logs: the logs, their missing ranges, and their findings.

    Args:
        rows: The rows that stand in a log.
        names: The names of the logs, sorted.
        rules: The rules of the audit.
    """
    if not len(rows.log):
        return NOTHING
    messages = messages_of(rows)
    blocks = blocks_of(messages)
    spans = Spans(messages.log, 0 * messages.log, messages.offset, messages.offset)
    return facts_of_blocks(names, blocks, gaps_in(spans, rules), rules)


def messages_of(rows: LogRows) -> Messages:
    """Return the messages of all rows of some logs."""
    order, first, number, _, conflicts = grouped(rows.content, rows.log, rows.offset)
    rows = rows.take(order)
    timestamp, landed, begin = (np.minimum.reduceat(of, first) for of in (rows.timestamp, rows.landed, rows.shown))
    until = np.maximum.reduceat(np.where(rows.shown == NEVER, -NEVER, rows.shown), first)
    log, offset = rows.log[first], rows.offset[first]
    return Messages(log, offset, number, conflicts + 1, timestamp, landed, begin, until)


def _least_after(group: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least of the values after each place in its group, or `NEVER`."""
    if not len(group):
        return values
    # From the end: the places of all values, lower in each group than in all groups before.
    distinct, code = np.unique(values, return_inverse=True)
    base = np.cumsum(starts_of(group)[::-1])
    base = np.append(0, base[:-1]) * len(distinct)
    least = (np.minimum.accumulate(code.reshape(-1)[::-1] - base) + base)[::-1]
    after = np.full(len(group), NEVER)
    same = group[1:] == group[:-1]
    after[:-1][same] = distinct[least[1:][same]]
    return after


def _last_before(group: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the last known value before each place in its group, or `NEVER`."""
    places = np.arange(len(group))
    known = np.maximum.accumulate(np.where(values != NEVER, places, -1))
    start = np.maximum.accumulate(np.where(starts_of(group), places, 0))
    known = np.append(-1, known[:-1])[: len(group)]
    return np.where(known >= start, values[known], NEVER)


def blocks_of(messages: Messages) -> Blocks:
    """Return the blocks of messages, which are ordered by log and offset, with their faults."""
    log, offset = messages.log, messages.offset
    starts = starts_of(log, offset >> BLOCK_SHIFT)
    first, of_block = np.flatnonzero(starts), np.cumsum(starts) - 1
    group = log if messages.landed_after is None else of_block
    after, before = _least_after(group, messages.landed), _last_before(group, messages.timestamp)
    if messages.landed_after is not None and messages.timestamp_before is not None:
        after = np.minimum(after, messages.landed_after)
        before = np.where(before == NEVER, messages.timestamp_before, before)
    is_late = (messages.landed != NEVER) & (after < messages.landed)
    is_back = (messages.timestamp != NEVER) & (before != NEVER) & (messages.timestamp < before)
    lag, back = np.where(is_late, messages.landed - after, 0), np.where(is_back, before - messages.timestamp, 0)

    def total(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.add.reduceat(values.astype(np.int64), first)

    def at(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.minimum.reduceat(np.where(chosen, offset, NEVER), first)

    most = np.maximum.reduceat(lag, first)
    backward_at = at(is_back)
    return Blocks(
        log[first], offset[first] >> BLOCK_SHIFT, total(messages.rows), np.diff(np.append(first, len(log))),
        offset[first], offset[np.append(first[1:], len(log)) - 1],
        np.minimum.reduceat(messages.first_time, first), np.maximum.reduceat(messages.last_time, first),
        total(messages.rows - messages.contents), at(messages.rows > messages.contents),
        total(messages.contents - 1), at(messages.contents > 1),
        total(is_late), at(is_late & (lag == most[of_block])), most,
        total(is_back), backward_at, np.maximum.reduceat(np.where(offset == backward_at[of_block], back, 0), first),
    )  # fmt: skip


def gaps_in(spans: Spans, rules: Rules) -> Gaps:
    """Return the gaps inside blocks.

    Args:
        spans: Spans of offsets, ordered by log and offset; their scope is the log.
        rules: The rules of the audit.
    """
    scope, low, high = spans.scope[1:], spans.low[1:], spans.high[:-1]
    near = (scope == spans.scope[:-1]) & (low >> BLOCK_SHIFT == high >> BLOCK_SHIFT)
    return gaps_between(scope[near], high[near], low[near], rules.max_gaps, rules.shortest)


def facts_of_blocks(names: list[str], blocks: Blocks, gaps: Gaps, rules: Rules) -> Facts:
    """Return the facts of logs: the logs, their missing ranges, and their findings.

    Args:
        names: The names of the logs, sorted.
        blocks: All blocks of the logs, at least one.
        gaps: The gaps in the short blocks. Those between blocks are added.
        rules: The rules of the audit.
    """
    blocks = blocks.take(np.lexsort((blocks.block, blocks.log)))
    near = np.flatnonzero(~starts_of(blocks.log))
    between = blocks.log[near], blocks.high[near - 1], blocks.low[near]
    gaps = merged_gaps([gaps, gaps_between(*between, rules.max_gaps, rules.shortest)], rules.max_gaps)
    first = np.flatnonzero(starts_of(blocks.log))
    log, end = blocks.log[first], np.append(first[1:], len(blocks.log)) - 1

    def total(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.add.reduceat(values, first)

    of_log = np.zeros(len(names), np.int64)
    of_log[log] = blocks.high[end] - blocks.low[first] + 1 - total(blocks.messages)
    np.subtract.at(of_log, gaps.holes.scope, gaps.holes.number)
    counted, missing = gaps.counted("missing_offsets", names, of_log), of_log[log]
    faults: list[tuple[str, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]] = [
        ("duplicate_messages", blocks.duplicates, blocks.duplicate_at, None),
        ("conflicting_messages", blocks.conflicts, blocks.conflict_at, None),
        ("late_messages", blocks.late, blocks.late_at, blocks.lag),
        ("time_backwards", blocks.backwards, blocks.backward_at, blocks.back),
    ]
    for check, count, at, wrong in faults:
        rank = wrong if wrong is not None and check == "late_messages" else 0 * count
        counted += per_scope(check, names, blocks.log, count, rank, at, wrong)
    duplicates, conflicts, late = total(blocks.duplicates), total(blocks.conflicts), total(blocks.late)
    rows = total(blocks.rows)
    worst = np.lexsort((log, -rows, -(missing + duplicates + conflicts + late)))[:MAX_ROWS]
    times = np.minimum.reduceat(blocks.first_time, first), np.maximum.reduceat(blocks.last_time, first)
    numbers = log, rows, blocks.low[first], blocks.high[end], *times, missing, duplicates, conflicts, late
    logs = [
        LogRow(names[place], number, low, high, moment(begin), moment(until), *counts)
        for place, number, low, high, begin, until, *counts in np.transpose(numbers)[worst].tolist()
    ]
    lengths = {"logs": len(log), "gaps": int(gaps.ranges.number.sum())}
    facts = part_of(counted, lengths, logs=logs, gaps=gaps.listed("offset", names))
    return facts._replace(holes=int(gaps.holes.number.sum()))


def moment(micros: int | None) -> datetime | None:
    """Return a moment of microseconds since 1970; None for None and for `NEVER`."""
    return None if micros is None or abs(micros) == NEVER else UNIX_EPOCH + timedelta(microseconds=micros)
