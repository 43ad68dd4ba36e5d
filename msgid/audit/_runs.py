"""The generators of a table in NumPy: their runs, missing sequence numbers and clocks, from spans of IDs.

The rule, step by step:

1. The numbers of a generator end a *part* at a step of more than `PART_STEP`. The numbers between are lost if the
   generator had the time to make them, at twice its rate; then the next part continues this one. If it had not, two
   readings are possible, a restart at a random number and a large loss: a `sequence_jump`, which is an ``info``. A step
   of more than `RUN_STEP` is a restart without a finding.
2. The IDs of a part, by time, end a *run* where a number repeats, or where another process counts from 0.
3. Runs are one run of several processes if each process counts on in the next run, and soon. This is a `shared_node`,
   whose clocks are not compared.
4. Numbers between the neighbors of a run are `missing_sequences`. A process that takes two numbers for each ID, as
   transactional sends of RocketMQ do, does not lose every second one.
5. Neighbors whose time goes back are `clock_backwards`. Neighbors that are further apart in time than the caller
   allows are a `clock_jump`.

Runs and parts are numbered from 0 in the whole table. An array has the number of each span. Two spans of a generator
are equal or apart.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from msgid import layout
from msgid._moments import UNIX_EPOCH
from msgid.audit._logs import per_scope
from msgid.audit._spans import Gaps, divided, spans_of, starts_of
from msgid.audit.definitions import PART_STEP, RUN_STEP, Piece, split_pieces
from msgid.audit.facts import NOTHING, Counted, Facts, GeneratorRow, NodeRow, part_of
from msgid.ids.node import shared_by

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from msgid.audit._ids import Ids
    from msgid.audit._options import Rules
    from msgid.audit._spans import Spans


_TIME_BITS: Final = 33
"""The bits of a Unix second."""
_BY_TWO: Final = 2
_FEWEST_BY_TWO: Final = 8
"""With fewer steps of 2, the numbers between them may be lost."""
_ALIVE: Final = 8
"""The number of IDs of a run in whose time a process that is alive makes one, and two seconds more."""
_FEWEST_IDS: Final = 32
"""With fewer IDs, a loss decides the pace of a run."""
_SEVERAL: Final = 2


class Runs(NamedTuple):
    """Runs of generators as columns."""

    generator: NDArray[np.int64]
    ids: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    first_sequence: NDArray[np.int64]
    last_sequence: NDArray[np.int64]
    missing: NDArray[np.int64]
    processes: NDArray[np.int64]
    """The number of processes of the run at one time, at least: 1 or 2."""


class Shown(NamedTuple):
    """The runs of generators, their missing ranges, and the steps of their clocks and sequences."""

    runs: Runs
    gaps: Gaps
    steps: Steps
    jumps: Steps


class Named(NamedTuple):
    """The nodes and pids of generators, by their places."""

    node: NDArray[np.int64]
    pid: NDArray[np.int64]


class Steps(NamedTuple):
    """IDs at which the clock or the sequence of a generator stepped: the sequence numbers, and by how much."""

    generator: NDArray[np.int64]
    sequence: NDArray[np.int64]
    size: NDArray[np.int64]


class Near(NamedTuple):
    """IDs of a run and the next IDs by their numbers: the places of their spans, and the numbers."""

    before: NDArray[np.int64]
    low: NDArray[np.int64]
    after: NDArray[np.int64]
    high: NDArray[np.int64]


class Times(NamedTuple):
    """The first and the last second of runs, their number of IDs, and their seconds per ID."""

    begin: NDArray[np.int64]
    until: NDArray[np.int64]
    ids: NDArray[np.float64]
    pace: NDArray[np.float64]


def generator_facts(ids: Ids, rules: Rules) -> Facts:
    """Return the facts of the generators of a table's IDs."""
    rows = np.flatnonzero(ids.counted)
    if not len(rows):
        return NOTHING
    named, generator = named_by(ids.v1.node[rows], ids.v1.pid[rows])
    spans = spans_of(generator, ids.unix[rows], ids.v1.sequence[rows].astype(np.int64))
    return facts_of_spans(named, spans, rules)


def named_by(node: NDArray[Any], pid: NDArray[Any]) -> tuple[Named, NDArray[np.int64]]:
    """Return the generators of some nodes and pids by their names, and the place of each pair's generator."""
    codes, places = np.unique(node.astype(np.uint64) << np.uint64(16) | pid.astype(np.uint64), return_inverse=True)
    named = Named((codes >> np.uint64(16)).astype(np.int64), (codes & np.uint64(layout.PID_MAX)).astype(np.int64))
    order = np.lexsort((named.pid.astype(np.str_), named.node))
    return Named(*(column[order] for column in named)), np.argsort(order)[places.reshape(-1)]


def shown_by(spans: Spans, clock_jump: int, most: int) -> Shown:
    """Return the runs of generators, their gaps and the steps of their clocks.

    Args:
        spans: The spans of all generators, at least one.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        most: Number of gaps to return, the largest first; the largest of each generator is always one of them.
    """
    spans = divided(spans)
    order = np.lexsort((spans.seconds, spans.low, spans.scope))
    again = np.flatnonzero(~starts_of(spans.scope[order], spans.low[order]))
    used = np.full(len(order), -1, np.int64)
    used[order[again]] = spans.seconds[order[again - 1]]
    part, jumps = parts_of(spans)
    run, processes = shared_runs(spans, part, runs_of(spans, part, used))
    by_two = counts_by_two(spans, run) & (processes == 1)
    before, low, after, high = neighbours(spans, run)
    generator, of = spans.scope[after], run[after]
    seconds = np.where(processes[of] > 1, 0, spans.seconds[after] - spans.seconds[before])
    stepped = (seconds < 0) | (seconds > clock_jump)
    steps = np.array([generator[stepped], high[stepped], seconds[stepped]])
    # Of two numbers of a message, the ID has one. The other one, beside each ID, is not missing.
    beside = by_two[of].astype(np.int64)
    gaps, missing = Gaps(most), np.zeros(len(processes), np.int64)
    gaps.add(generator, low + beside, high - beside)
    np.add.at(missing, of, np.maximum(high - low - 1 - 2 * beside, 0))
    order = np.argsort(run, kind="stable")
    by_run, first = spans.take(order), np.flatnonzero(starts_of(run[order]))
    runs = Runs(
        by_run.scope[first],
        np.add.reduceat(by_run.ids, first),
        np.minimum.reduceat(by_run.seconds, first),
        np.maximum.reduceat(by_run.seconds, first),
        np.minimum.reduceat(by_run.low, first),
        np.maximum.reduceat(by_run.high, first),
        missing,
        processes,
    )
    return Shown(runs, gaps, Steps(*steps[:, np.lexsort((steps[2], steps[1], steps[0]))]), jumps)


def facts_of_spans(named: Named, spans: Spans, rules: Rules) -> Facts:
    """Return the facts of generators.

    Args:
        named: The generators.
        spans: All spans of their nodes.
        rules: The rules of the audit.
    """
    names = [f"{layout.format_mac(int(n))}/{p}" for n, p in zip(*named, strict=True)]
    runs, gaps, steps, jumps = shown_by(spans, rules.clock_jump, rules.max_gaps)
    missing = np.zeros(len(names), np.int64)
    np.add.at(missing, runs.generator, runs.missing)
    counted = gaps.counted("missing_sequences", names, np.arange(len(names)), missing)
    back = steps.size < 0
    for check, found in (
        ("clock_backwards", Steps(*(column[back] for column in steps))),
        ("clock_jump", Steps(*(column[~back] for column in steps))),
        ("sequence_jump", jumps),
    ):
        ones = np.ones(len(found.size), np.int64)
        counted += per_scope(check, names, found.generator, ones, 0 * ones, found.sequence, np.abs(found.size))
    listed = _listed(runs, named)
    nodes = []
    for number, held in listed.items():
        node, origin, why = layout.format_mac(number), layout.origin_of(number), shared_by(number)
        at_once, overlap = _at_once(held), _overlapping(held)
        if overlap or why:
            counted.append(Counted("shared_node", node, at_once, text=why))
        if origin != "mac":
            counted.append(Counted("synthetic_node", node, sum(run.row.ids for run in held), text=origin))
        why = why or ("two processes of one pid at the same time" if overlap else None)
        nodes.append(NodeRow(node, origin, at_once, why))
    rows = [run.row for held in listed.values() for run in held]
    return part_of(counted, {"gaps": gaps.total}, generators=rows, nodes=nodes, gaps=gaps.listed("sequence", names))


class Run(NamedTuple):
    """One run of a generator; ``processes`` is 2 if several processes share it."""

    row: GeneratorRow
    processes: int


def _listed(runs: Runs, named: Named) -> dict[int, list[Run]]:
    """Return the runs of each node by generator and time, with their numbers."""
    order = np.lexsort((runs.first_sequence, runs.first_time, runs.generator))
    generator, *columns = (column[order] for column in runs)
    places = np.arange(len(order))
    number = places - np.maximum.accumulate(np.where(starts_of(generator), places, 0)) + 1
    columns = [named.node[generator], named.pid[generator], number, *columns]
    listed: dict[int, list[Run]] = {}
    for node, pid, run, ids, first, last, *numbers, processes in zip(*(one.tolist() for one in columns), strict=True):
        begin, end = (UNIX_EPOCH + timedelta(seconds=second) for second in (first, last))
        row = GeneratorRow(layout.format_mac(node), pid, run, ids, begin, end, *numbers)
        listed.setdefault(node, []).append(Run(row, processes))
    return listed


def _at_once(runs: list[Run]) -> int:
    """Return the largest number of processes in one second."""
    begins = [(row.first_time, processes) for row, processes in runs]
    ends = [(row.last_time + timedelta(seconds=1), -processes) for row, processes in runs]
    return max(itertools.accumulate(change for _, change in sorted(begins + ends)))


def _overlapping(runs: list[Run]) -> bool:
    """Return whether a run has several processes, or begins before an earlier run of its pid has ended."""
    ends: dict[int, datetime] = {}
    for row, processes in sorted(runs, key=lambda run: (run.row.first_time, run.row.last_time)):
        if processes > 1 or row.first_time < ends.get(row.pid, row.first_time):
            return True
        ends[row.pid] = max(row.last_time, ends.get(row.pid, row.last_time))
    return False


# --- Parts of numbers, their runs by time, and runs that several processes share ---


def parts_of(spans: Spans) -> tuple[NDArray[np.int64], Steps]:
    """Return the part of each span, from 0 in the whole table, and the steps that may be a loss or a restart.

    A part ends before a step of more than `PART_STEP` numbers, unless the next part continues it: the part is the next
    in time too, and the generator had the time for the numbers between, at twice its rate.
    """
    order = np.lexsort((spans.low, spans.scope))
    held = spans.take(order)
    top = np.maximum.accumulate(held.scope << 32 | held.high)
    starts = starts_of(held.scope)
    starts[1:] |= (held.scope << 32 | held.low)[1:] - top[:-1] > PART_STEP
    first = np.flatnonzero(starts)
    generator, low = held.scope[first], held.low[first]
    high = top[np.append(first[1:], len(top)) - 1] & layout.UINT32_MASK
    begin, end = np.minimum.reduceat(held.seconds, first), np.maximum.reduceat(held.seconds, first)
    ids = np.add.reduceat(held.ids, first)
    step, elapsed = low[1:] - high[:-1], begin[1:] - end[:-1]
    lived = end - begin + 1
    rate = (ids[1:] + ids[:-1]) / (lived[1:] + lived[:-1])
    follows = ~starts_of(generator)[1:] & (step <= RUN_STEP) & (elapsed >= 0) & ~_interrupted(generator, begin, end)
    has_time = step <= 2 * rate * (elapsed + 1)
    jumps = np.flatnonzero(follows & ~has_time) + 1
    part = np.zeros(len(order), np.int64)
    part[order] = (np.cumsum(np.append(True, ~(follows & has_time))) - 1)[np.cumsum(starts) - 1]
    return part, Steps(generator[jumps], low[jumps], step[jumps - 1])


def _interrupted(generator: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each part but the first whether another part of the generator lies between it and the one before."""
    begins, ends = generator << _TIME_BITS | begin, generator << _TIME_BITS | end
    order = np.argsort(begins)
    earliest = np.append(np.minimum.accumulate(ends[order][::-1])[::-1], np.iinfo(np.int64).max)
    between: NDArray[np.bool_] = earliest[np.searchsorted(begins[order], ends[:-1], "right")] < begins[1:]
    return between


def runs_of(spans: Spans, part: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the run of each span.

    Args:
        spans: The spans.
        part: For each span, its part.
        used: For each span, the last second at which one of its numbers was used before; -1 if none was.
    """
    # Seconds, and pieces in which the sequence grows.
    order = np.lexsort((spans.seconds, part))
    by_part, by_time = part[order], spans.take(order)
    first = np.flatnonzero(starts_of(by_part, by_time.seconds))
    of, at = by_part[first], by_time.seconds[first]
    begin, end = np.minimum.reduceat(by_time.low, first), np.maximum.reduceat(by_time.high, first)
    new_piece = starts_of(of)
    new_piece[1:] |= begin[1:] <= end[:-1]
    heads = np.flatnonzero(new_piece)
    latest = np.maximum.reduceat(used[order], first)
    run_of_piece = _split(
        of[heads], at[heads], np.maximum.reduceat(latest, heads), begin[heads], np.maximum.reduceat(end, heads)
    )
    run = np.zeros(len(used), np.int64)
    run[order] = np.repeat(run_of_piece[np.cumsum(new_piece) - 1], np.diff(np.append(first, len(used))))
    return run


def _split(part: NDArray[np.int64], *columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the run of each piece, from 0 in the whole table; ``columns`` are those of `Piece`."""
    heads = np.flatnonzero(starts_of(part))
    bounds = np.append(heads, len(part))
    inner = np.zeros(len(part), np.int64)
    for place in np.flatnonzero(np.diff(bounds) > 1):
        own = slice(bounds[place], bounds[place + 1])
        inner[own] = split_pieces(map(Piece._make, zip(*(column[own].tolist() for column in columns), strict=True)))
    return np.cumsum(starts_of(part, inner)) - 1


def neighbours(spans: Spans, run: NDArray[np.int64]) -> Near:
    """Return the neighbours by number of the runs of some spans."""
    order = np.lexsort((spans.low, run))
    near = np.flatnonzero(~starts_of(run[order]))
    before, after = order[near - 1], order[near]
    return Near(before, spans.high[before], after, spans.low[after])


def counts_by_two(spans: Spans, run: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each run whether its process took two numbers for each ID, as RocketMQ's transactional sends do.

    All numbers of such a run are even, or all are odd, and most steps are 2.
    """
    near, number = neighbours(spans, run), int(run.max()) + 1
    step, of = near.high - near.low, run[near.after]
    odd = np.bincount(run, spans.ids > 1, number) + np.bincount(of, step & 1, number)
    twos = np.bincount(of, step == _BY_TWO, number)
    result: NDArray[np.bool_] = (odd == 0) & (twos >= _FEWEST_BY_TWO) & (2 * twos >= np.bincount(of, minlength=number))
    return result


def shared_runs(
    spans: Spans, part: NDArray[np.int64], run: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join the runs of processes that used the same numbers at the same time.

    Such processes look like one that is restarted again and again: a run ends where the numbers of one process meet
    those of another. But each of them counts on in the next run, and soon. So runs are joined if a number continues an
    earlier run and is dated before the next lower number of its own, or if a run begins where the one before goes back
    in time. All runs of a part are joined if two of three continue an earlier one, or begin inside it. But the run of
    one process is not joined with those before if none of their processes was alive: the IDs are silent for longer
    than a process needs for 8.

    Returns:
        For each span its run, and for each run the number of its processes at one time, at least: 1 or 2.
    """
    part_of = np.zeros(int(run.max()) + 1, np.int64)
    part_of[run] = part
    runs = np.bincount(part_of)
    if runs.max() == 1:
        return run, np.ones(len(part_of), np.int64)
    times = _times(spans, run)
    earlier, later, goes_back, is_mixed = _continued(spans, run, (runs > 1)[part_of], times)
    links = np.bincount(part_of[later], minlength=len(runs))
    everywhere = (links > 1) & (2 * runs <= 3 * links + 3)
    # A link joins all runs from the earlier to the later.
    change = np.bincount(earlier, minlength=len(part_of)) - np.bincount(later, minlength=len(part_of))
    follows = np.append(False, np.cumsum(change)[:-1] > 0)
    group = np.cumsum(~follows) - 1
    is_shared = np.bincount(group[later], goes_back, group[-1] + 1) > 0
    joined = follows | is_mixed | ~_is_after_silence(part_of, times)
    follows = np.where(everywhere[part_of], joined & ~starts_of(part_of), follows & is_shared[group])
    heads = np.flatnonzero(~follows)
    is_joined = np.diff(np.append(heads, len(part_of))) > 1
    # Where processes share most runs, they also share a single one whose clock goes back.
    # The IDs do not tell how many processes those are: a link may be one of chance.
    processes = np.where(is_joined | (everywhere[part_of] & is_mixed)[heads], _SEVERAL, 1)
    return (np.cumsum(~follows) - 1)[run], processes


def _times(spans: Spans, run: NDArray[np.int64]) -> Times:
    order = np.argsort(run, kind="stable")
    heads, seconds = np.flatnonzero(starts_of(run[order])), spans.seconds[order]
    begin, until = np.minimum.reduceat(seconds, heads), np.maximum.reduceat(seconds, heads)
    ids = np.bincount(run, spans.ids).astype(np.float64)
    return Times(begin, until, ids, (until - begin + 1) / ids)


def _is_after_silence(part_of: NDArray[np.int64], times: Times) -> NDArray[np.bool_]:
    """Return for each run whether all runs of its part before it had ended for longer than a process is silent."""
    until = np.maximum.accumulate(part_of << _TIME_BITS | times.until)[:-1]
    silence = (part_of << _TIME_BITS | times.begin)[1:] - until
    pace = np.where(times.ids < _FEWEST_IDS, 0, times.pace)
    slowest = np.maximum.reduceat(pace, np.flatnonzero(starts_of(part_of)))[part_of[1:]]
    return np.append(False, (silence > _ALIVE * slowest + 2) & (slowest > 0))


def _continued(
    spans: Spans, run: NDArray[np.int64], chosen: NDArray[np.bool_], times: Times
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the pairs of runs where the later continues the earlier, by processes that were alive.

    Args:
        spans: The spans.
        run: For each span, its run.
        chosen: For each run, whether to look at it.
        times: The times of the runs.

    Returns:
        The earlier runs, the later runs, and whether the number is dated before the next lower one of the later run;
        and for each run, whether one of its numbers is dated so.
    """
    by_low, by_high = np.lexsort((spans.low, run)), np.lexsort((spans.high, run))
    heads = np.flatnonzero(starts_of(run[by_low]))
    first, last = by_low[heads], by_high[np.append(heads[1:], len(run)) - 1]
    begin, until, _, pace = times
    low, high = spans.low[first], spans.high[last]
    near = neighbours(spans, run)
    goes_back = spans.seconds[near.after] < spans.seconds[near.before]
    is_mixed = np.zeros(len(low), bool)
    is_mixed[run[near.after[goes_back]]] = True
    is_open = chosen[run[near.after]] & (goes_back | (near.high > near.low + 1))
    back = goes_back[is_open]
    before, end, after, number = (column[is_open] for column in near)
    # A process may have lost IDs at the end of the run before.
    top = last[run[after] - 1]
    is_lost = back & (spans.scope[top] == spans.scope[after]) & (end < spans.high[top]) & (spans.high[top] < number)
    follows = np.where(is_lost, spans.high[top] + 1, number)
    ends, end_number = np.append(last[chosen], before), np.append(high[chosen], end)
    before, which = _latest_before(spans, ends, end_number + 1, after, follows)
    lag = spans.seconds[after[which]] - spans.seconds[before]
    alive = lag <= (_ALIVE + number[which] - follows[which]) * pace[run[before]] + 2
    inside = np.flatnonzero(
        chosen[1:] & (spans.scope[first][1:] == spans.scope[first][:-1])
        & (low[:-1] < low[1:]) & (low[1:] <= high[:-1] + 1) & (begin[1:] - until[:-1] <= _ALIVE * pace[:-1] + 2)
    )  # fmt: skip
    between = np.unique(_inserted(spans, run, near, goes_back, first, low, pace))
    inside = np.setdiff1d(inside, between)
    return (
        np.concatenate((run[before[alive]], inside, between)),
        np.concatenate((run[after[which[alive]]], inside + 1, between + 1)),
        np.concatenate((back[which[alive]], np.zeros(len(inside), bool), np.ones(len(between), bool))),
        is_mixed,
    )


def _inserted(
    spans: Spans,
    run: NDArray[np.int64],
    near: Near,
    goes_back: NDArray[np.bool_],
    first: NDArray[np.int64],
    low: NDArray[np.int64],
    pace: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return the runs whose next run begins between two of their numbers, soon after the lower one.

    The higher number is dated before the lower one. So it is of another process, and the next run is that of the
    process with the lower number.

    Args:
        spans: The spans.
        run: For each span, its run.
        near: Neighbours by number of the runs.
        goes_back: Which of them go back in time.
        first: For each run, the span of its lowest number.
        low: For each run, its lowest number.
        pace: For each run, its seconds per ID.
    """
    before, end, after, start = (column[goes_back & (run[near.after] + 1 < len(low))] for column in near)
    head = run[after] + 1
    lag = spans.seconds[first[head]] - spans.seconds[before]
    skipped = low[head] - end - 1
    chosen = (spans.scope[first[head]] == spans.scope[after]) & (end < low[head]) & (low[head] < start)
    # The run before has the IDs of both processes, so it is faster than the slower one.
    slowest = np.maximum(pace[run[after]], pace[head])
    chosen &= (lag >= 0) & (lag <= (_ALIVE + skipped) * slowest + 2)
    found: NDArray[np.int64] = run[after[chosen]]
    return found


def _latest_before(
    spans: Spans,
    end: NDArray[np.int64],
    end_number: NDArray[np.int64],
    start: NDArray[np.int64],
    number: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the spans of the latest ends of the same numbers, and the places of the starts that follow them.

    Each end has one start.
    """
    cell, of = np.append(end, start), np.append(end_number, number)
    order = np.lexsort((np.arange(len(cell)), spans.seconds[cell], of, spans.scope[cell]))
    is_start, cell, of = order >= len(end), cell[order], of[order]
    places = np.arange(len(order))
    group = np.maximum.accumulate(np.where(starts_of(spans.scope[cell], of), places, 0))
    latest = np.maximum.accumulate(np.where(is_start, -1, places))
    found = np.flatnonzero(is_start & (latest >= group))
    found = found[np.unique(latest[found], return_index=True)[1]]
    return cell[latest[found]], order[found] - len(end)
