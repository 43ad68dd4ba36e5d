"""Reduce: the generators of a table, their runs, missing sequence numbers and clocks, from spans of IDs.

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
import math
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from msgid import layout
from msgid.audit._spans import Gaps, divided, gaps_between, per_scope, spans_of_words, starts_of
from msgid.audit.definitions import PART_STEP, RUN_STEP, Piece, split_pieces
from msgid.audit.facts import NOTHING, Counted, Facts, GeneratorRow, NodeRow, part_of
from msgid.ids.node import shared_by
from msgid.shared.moments import UNIX_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from msgid.audit._spans import Spans
    from msgid.audit.options import Rules


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
    """Runs of generators as columns, or one run.

    Attributes:
        generator: The place of the generator.
        ids: Number of IDs.
        begin: The first second.
        until: The last second.
        low: The lowest number.
        high: The highest number.
        low_at: The second of the lowest number.
        high_at: The second of the highest number.
        missing: Number of numbers that are missing.
        processes: The number of processes of the run at one time, at least: 1 or 2.
    """

    generator: Any
    ids: Any
    begin: Any
    until: Any
    low: Any
    high: Any
    low_at: Any
    high_at: Any
    missing: Any
    processes: Any

    @property
    def pace(self) -> float:
        """The seconds per ID."""
        return (self.until - self.begin + 1) / self.ids  # type: ignore[no-any-return]

    def rows(self) -> list[Runs]:
        """Return each run of columns."""
        return [Runs(*row) for row in np.transpose(self).tolist()]


class Shown(NamedTuple):
    """The runs of generators, their missing ranges, and the steps of their clocks and sequences."""

    runs: Runs
    gaps: Gaps
    steps: Steps
    jumps: Steps


class Steps(NamedTuple):
    """IDs at which the clock or the sequence of a generator stepped: the sequence numbers, and by how much."""

    generator: NDArray[np.int64]
    sequence: NDArray[np.int64]
    size: NDArray[np.int64]


Step = tuple[int, int, int, int, int]
"""A run, and neighbors in it with numbers between them, or whose time goes back: low number and second, and high."""


def facts_of_words(columns: Sequence[NDArray[Any]], rules: Rules) -> Facts:
    """Return the facts of generators.

    Args:
        columns: Node, pid, second, word and mask of all words of their nodes: see `spans` in `reduce.sql`.
        rules: The rules of the audit.
    """
    node, pid, seconds, word, mask = columns
    if not len(node):
        return NOTHING
    pairs, generator = generators_of(node, pid)
    return facts_of_spans(pairs, spans_of_words(generator, seconds, word, mask), rules)


def generators_of(node: NDArray[Any], pid: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes and pids of generators in the order of their names, and the place of each pair's generator."""
    codes, code_of_row = np.unique(node.astype(np.uint64) << np.uint64(16) | pid.astype(np.uint64), return_inverse=True)
    pairs = np.array([codes >> np.uint64(16), codes & np.uint64(layout.PID_MAX)], np.int64)
    order = np.lexsort((pairs[1].astype(np.str_), pairs[0]))
    return pairs[:, order], np.argsort(order)[code_of_row.reshape(-1)]


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
    gaps, missing = gaps_between(generator, low + beside, high - beside, most), np.zeros(len(processes), np.int64)
    np.add.at(missing, of, np.maximum(high - low - 1 - 2 * beside, 0))
    runs = _runs(spans, run)._replace(missing=missing, processes=processes)
    return Shown(runs, gaps, Steps(*steps[:, np.lexsort((steps[2], steps[1], steps[0]))]), jumps)


def facts_of_spans(pairs: NDArray[np.int64], spans: Spans, rules: Rules) -> Facts:
    """Return the facts of generators.

    Args:
        pairs: The nodes and pids of the generators.
        spans: All spans of their nodes.
        rules: The rules of the audit.
    """
    names = [f"{layout.format_mac(node)}/{pid}" for node, pid in pairs.T.tolist()]
    runs, gaps, steps, jumps = shown_by(spans, rules.clock_jump, rules.max_gaps)
    missing = np.zeros(len(names), np.int64)
    np.add.at(missing, runs.generator, runs.missing)
    counted = gaps.counted("missing_sequences", names, missing)
    back = steps.size < 0
    for check, steps_of_check in (
        ("clock_backwards", Steps(*(column[back] for column in steps))),
        ("clock_jump", Steps(*(column[~back] for column in steps))),
        ("sequence_jump", jumps),
    ):
        ones = np.ones(len(steps_of_check.size), np.int64)
        counted += per_scope(
            check, names, steps_of_check.generator, ones, 0 * ones, steps_of_check.sequence, np.abs(steps_of_check.size)
        )
    nodes, rows = [], []
    for number, runs_of_node in itertools.groupby(_listed(runs), key=lambda run: int(pairs[0, run.generator])):
        of_node = list(runs_of_node)
        node, origin, why = layout.format_mac(number), layout.origin_of(number), shared_by(number)
        at_once, overlap = _at_once(of_node), _overlapping(of_node)
        if overlap or why:
            counted.append(Counted("shared_node", node, at_once, text=why))
        if origin != "mac":
            counted.append(Counted("synthetic_node", node, sum(run.ids for run in of_node), text=origin))
        why = why or ("two processes of one pid at the same time" if overlap else None)
        nodes.append(NodeRow(node, origin, at_once, why))
        for _, of_generator in itertools.groupby(of_node, key=lambda run: run.generator):
            for number_of_run, run in enumerate(of_generator, 1):
                begin, until = (UNIX_EPOCH + timedelta(seconds=second) for second in (run.begin, run.until))
                pid, ends = int(pairs[1, run.generator]), (run.low, run.high)
                rows.append(GeneratorRow(node, pid, number_of_run, run.ids, begin, until, *ends, run.missing))
    lengths = {"gaps": gaps.number}
    return part_of(counted, lengths, generators=rows, nodes=nodes, gaps=gaps.listed("sequence", names))


def _listed(runs: Runs) -> list[Runs]:
    """Return each run, by generator and time."""
    return Runs(*np.array(runs)[:, np.lexsort((runs.low, runs.begin, runs.generator))]).rows()


def _at_once(runs: list[Runs]) -> int:
    """Return the largest number of processes in one second."""
    begins = [(run.begin, run.processes) for run in runs]
    ends = [(run.until + 1, -run.processes) for run in runs]
    most: int = max(itertools.accumulate(change for _, change in sorted(begins + ends)))
    return most


def _overlapping(runs: list[Runs]) -> bool:
    """Return whether a run has several processes, or begins before an earlier run of its pid has ended."""
    ends: dict[int, int] = {}
    for run in sorted(runs, key=lambda run: (run.begin, run.until)):
        if run.processes > 1 or run.begin < ends.get(run.generator, run.begin):
            return True
        ends[run.generator] = max(run.until, ends.get(run.generator, run.until))
    return False


# --- Parts of numbers, their runs by time, and runs that several processes share ---


def parts_of(spans: Spans) -> tuple[NDArray[np.int64], Steps]:
    """Return the part of each span, from 0 in the whole table, and the steps that may be a loss or a restart.

    A part ends before a step of more than `PART_STEP` numbers, unless the next part continues it: the part is the next
    in time too, and the generator had the time for the numbers between, at twice its rate.
    """
    order = np.lexsort((spans.low, spans.scope))
    sorted_spans = spans.take(order)
    top = np.maximum.accumulate(sorted_spans.scope << 32 | sorted_spans.high)
    starts = starts_of(sorted_spans.scope)
    starts[1:] |= (sorted_spans.scope << 32 | sorted_spans.low)[1:] - top[:-1] > PART_STEP
    first = np.flatnonzero(starts)
    generator, low = sorted_spans.scope[first], sorted_spans.low[first]
    high = top[np.append(first[1:], len(top)) - 1] & layout.UINT32_MASK
    begin, end = np.minimum.reduceat(sorted_spans.seconds, first), np.maximum.reduceat(sorted_spans.seconds, first)
    ids = np.add.reduceat(sorted_spans.ids, first)
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
    for part_index in np.flatnonzero(np.diff(bounds) > 1):
        own = slice(bounds[part_index], bounds[part_index + 1])
        inner[own] = split_pieces(map(Piece._make, zip(*(column[own].tolist() for column in columns), strict=True)))
    return np.cumsum(starts_of(part, inner)) - 1


def neighbours(spans: Spans, run: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return IDs of a run and the next ones by number: the place of a span and a number, and again for the next one."""
    order = np.lexsort((spans.low, run))
    near = np.flatnonzero(~starts_of(run[order]))
    before, after = order[near - 1], order[near]
    return before, spans.high[before], after, spans.low[after]


def counts_by_two(spans: Spans, run: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each run whether its process took two numbers for each ID, as RocketMQ's transactional sends do.

    All numbers of such a run are even, or all are odd, and most steps are 2.
    """
    _, low, after, high = neighbours(spans, run)
    step, of, number = high - low, run[after], int(run.max()) + 1
    odd = np.bincount(run, spans.ids > 1, number) + np.bincount(of, step & 1, number)
    twos = np.bincount(of, step == _BY_TWO, number)
    result: NDArray[np.bool_] = (odd == 0) & (twos >= _FEWEST_BY_TWO) & (2 * twos >= np.bincount(of, minlength=number))
    return result


def shared_runs(
    spans: Spans, part: NDArray[np.int64], run: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join the runs of processes that used the same numbers at the same time.

    Such processes look like one that is restarted again and again: a run ends where the numbers of one process meet
    those of another. But each of them counts on in the next run, and soon. `_links` finds such runs, and `_groups`
    joins them.

    Returns:
        For each span its run, and for each run the number of its processes at one time, at least: 1 or 2.
    """
    lives = _runs(spans, run).rows()
    number = len(lives)
    (lower, low, higher, high), part_of = neighbours(spans, run), np.zeros(number, np.int64)
    part_of[run] = part
    before, after = spans.seconds[lower], spans.seconds[higher]
    is_open = (after < before) | (high > low + 1)
    steps = np.array([run[higher], low, before, high, after])[:, is_open]
    follows, processes = np.zeros(number, bool), np.ones(number, np.int64)
    heads = np.flatnonzero(starts_of(part_of))
    for head, end in zip(heads, np.append(heads[1:], number), strict=True):
        if end - head > 1:
            own = steps[:, slice(*np.searchsorted(steps[0], (head, end)))]
            opened = [(index - head, *step) for index, *step in own.T.tolist()]
            for group in _groups(lives[head:end], opened):
                follows[head + group.start + 1 : head + group.stop] = True
                processes[head + group.start] = _SEVERAL
    return (np.cumsum(~follows) - 1)[run], processes[~follows]


def _runs(spans: Spans, run: NDArray[np.int64]) -> Runs:
    """Return the runs of spans as columns."""
    order = np.lexsort((spans.low, run))
    scope, seconds, low, high = spans.take(order)
    first = np.flatnonzero(starts_of(run[order]))
    last = np.append(first[1:], len(order)) - 1
    begin, until = np.minimum.reduceat(seconds, first), np.maximum.reduceat(seconds, first)
    ids = np.add.reduceat(spans.ids[order], first)
    ends = begin, until, low[first], high[last], seconds[first], seconds[last]
    return Runs(scope[first], ids, *ends, missing=0 * ids, processes=0 * ids + 1)


def _links(lives: list[Runs], opened: list[Step]) -> Iterator[tuple[int, int, bool]]:
    """Yield pairs of runs where the later continues the earlier, by processes that were alive.

    The third value is whether the number is dated before the next lower one of the later run.
    """
    ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
    starts = []
    for index, life in enumerate(lives):
        ends[life.high].append((life.high_at, index))
    for index, low, before, high, after in opened:
        ends[low].append((before, index))
        # A process may have lost IDs at the end of the run before.
        top = lives[index - 1].high if index and after < before else -1
        starts.append((top + 1 if low < top < high else high, after, high, after < before, index))
    used = set()
    for number, after, high, is_back, index in sorted(starts):
        end = max((end for end in ends[number - 1] if end[0] <= after), default=None)
        if end is not None and (number, end) not in used:
            used.add((number, end))
            if after - end[0] <= (_ALIVE + high - number) * lives[end[1]].pace + 2:
                yield end[1], index, is_back
    # The run before has the IDs of both processes, so it is faster than the slower one.
    between = {
        index
        for index, low, before, high, after in opened
        if after < before and index + 1 < len(lives)
        for life in [lives[index + 1]]
        if low < life.low < high
        and 0 <= life.low_at - before <= (_ALIVE + life.low - low - 1) * max(life.pace, lives[index].pace) + 2
    }
    for index, (life, following) in enumerate(itertools.pairwise(lives)):
        is_soon = following.begin - life.until <= _ALIVE * life.pace + 2
        if index in between or (is_soon and life.low < following.low <= life.high + 1):
            yield index, index + 1, index in between


def _groups(lives: list[Runs], opened: list[Step]) -> Iterator[range]:
    """Yield the runs of a part that are one run of several processes, by their places.

    A link joins all runs from the earlier to the later, if a number of them is dated before the next lower one. All
    runs of a part are joined if two of three continue an earlier one, or begin inside it. But the run of one process is
    not joined with those before if none of their processes was alive: the IDs are silent for longer than a process
    needs for 8.
    """
    links, mixed = list(_links(lives, opened)), {index for index, _, before, _, after in opened if after < before}
    everywhere = len(links) > 1 and 2 * len(lives) <= 3 * len(links) + 3
    reaches, goes_back = [0] * len(lives), {later for _, later, is_back in links if is_back}
    for earlier, later, _ in links:
        reaches[earlier] = max(reaches[earlier], later)
    slowest = max((life.pace for life in lives if life.ids >= _FEWEST_IDS), default=math.inf)
    heads, reach, until = [], -1, -math.inf
    for index, life in enumerate(lives):
        is_alive = index in mixed or life.begin - until <= _ALIVE * slowest + 2
        if index > reach and not (everywhere and is_alive and index):
            heads.append(index)
        reach, until = max(reach, reaches[index]), max(until, life.until)
    for head, end in itertools.pairwise([*heads, len(lives)]):
        # Where processes share most runs, they also share a single one whose clock goes back.
        # The IDs do not tell how many processes those are: a link may be one of chance.
        is_shared = everywhere or not goes_back.isdisjoint(range(head, end))
        if is_shared and (end - head > 1 or (everywhere and head in mixed)):
            yield range(head, end)
