"""The generators of a table in NumPy: their runs, missing sequence numbers, clocks and rates, from a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgid import layout
from msgid.audit._digests import Gaps, Read, cells_of, marked, marked_words, starts_of, words_of
from msgid.audit._logs import per_scope
from msgid.audit.definitions import COUNTED, RATE_GENERATORS, RUN_STEP, rate_width, split_pieces
from msgid.audit.facts import NOTHING, Counted, Facts, NodeFact, RateFact, RunFact, part_of
from msgid.ids.node import shared_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from msgid.audit._digests import Cells, Words
    from msgid.audit._ids import Ids


class Runs(NamedTuple):
    """Runs of generators as columns."""

    generator: NDArray[np.int64]
    ids: NDArray[np.int64]
    first_time: NDArray[np.int64]
    last_time: NDArray[np.int64]
    first_sequence: NDArray[np.int64]
    last_sequence: NDArray[np.int64]


class Steps(NamedTuple):
    """IDs at which the clock went back or jumped, with the seconds since the ID before in the run."""

    generator: NDArray[np.int64]
    sequence: NDArray[np.int64]
    seconds: NDArray[np.int64]


class Shown(NamedTuple):
    """The runs of generators, their missing ranges and the steps of their clocks."""

    runs: Runs
    gaps: Gaps
    steps: Steps


class Named(NamedTuple):
    """The nodes and pids of generators, by their places."""

    node: NDArray[np.int64]
    pid: NDArray[np.int64]


def generator_facts(ids: Ids, clock_jump: int, max_gaps: int) -> Facts:
    """Return the facts of the generators of a table's IDs.

    Args:
        ids: The IDs.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
    """
    import numpy as np

    rows = np.flatnonzero(np.isin(ids.origins(), COUNTED))
    if not len(rows):
        return NOTHING
    named, generator = named_by(ids.v1.node[rows], ids.v1.pid[rows])
    words = words_of(generator, ids.unix[rows], ids.v1.sequence[rows].astype(np.int64))
    cells = cells_of(words)
    facts = facts_of_digest(named, cells, marked_words(cells, words), clock_jump, max_gaps)
    return facts._replace(rates=rates_of(named, cells.generator, cells.seconds, cells.ids))


def named_by(node: NDArray[Any], pid: NDArray[Any]) -> tuple[Named, NDArray[np.int64]]:
    """Return the generators of some nodes and pids by their names, and the place of each pair's generator."""
    import numpy as np

    codes, places = np.unique(node.astype(np.uint64) << np.uint64(16) | pid.astype(np.uint64), return_inverse=True)
    named = Named((codes >> np.uint64(16)).astype(np.int64), (codes & np.uint64(layout.PID_MAX)).astype(np.int64))
    order = np.lexsort((named.pid.astype(np.str_), named.node))
    return Named(*(column[order] for column in named)), np.argsort(order)[places.reshape(-1)]


def shown_by(cells: Cells, words: Words, clock_jump: int, most: int) -> Shown:
    """Return the runs of generators, their gaps and the steps of their clocks.

    Args:
        cells: The cells of all generators, at least one.
        words: The words of the blocks that `msgid.audit._digests.marked` marks.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        most: Number of gaps to return, the largest first; the largest of each generator is always one of them.
    """
    import numpy as np

    cells = cells.take(np.lexsort((cells.seconds, cells.block, cells.generator)))
    ids = Read(cells, words)
    used = np.full(len(cells.ids), -1, np.int64)
    for cell, sequence in ids:
        order = np.lexsort((cells.seconds[cell], sequence, cells.generator[cell]))
        again = np.flatnonzero(~starts_of(cells.generator[cell[order]], sequence[order]))
        np.maximum.at(used, cell[order][again], cells.seconds[cell[order][again - 1]])
    run = _runs_of_cells(cells, used)
    found = _Found(clock_jump, most)
    _between_cells(cells, run, marked(cells), found)
    for cell, number in ids:
        order = np.lexsort((number, run[cell]))
        place = cell[order]
        near = np.flatnonzero(~starts_of(run[place], cells.block[place]))
        seconds, sequence = cells.seconds[place], number[order]
        found.add(cells.generator[place[near]], sequence[near - 1], sequence[near], seconds[near] - seconds[near - 1])
    order = np.argsort(run, kind="stable")
    by_run, first = cells.take(order), np.flatnonzero(starts_of(run[order]))
    runs = Runs(
        by_run.generator[first],
        np.add.reduceat(by_run.ids, first),
        np.minimum.reduceat(by_run.seconds, first),
        np.maximum.reduceat(by_run.seconds, first),
        np.minimum.reduceat(by_run.low, first),
        np.maximum.reduceat(by_run.high, first),
    )
    return Shown(runs, found.gaps, found.steps())


class _Found:
    """Gaps and steps between neighbours, as they are found."""

    def __init__(self, clock_jump: int, most: int) -> None:
        import numpy as np

        nothing = np.zeros(0, np.int64)
        self._clock_jump = clock_jump
        self._steps = [Steps(nothing, nothing, nothing)]
        self.gaps = Gaps(most)

    def add(
        self,
        generator: NDArray[np.int64],
        before: NDArray[np.int64],
        sequence: NDArray[np.int64],
        seconds: NDArray[np.int64],
    ) -> None:
        """Add neighbours: the sequence numbers of two IDs of a run, and the seconds from one to the other."""
        stepped = (seconds < 0) | (seconds > self._clock_jump)
        self._steps.append(Steps(generator[stepped], sequence[stepped], seconds[stepped]))
        self.gaps.add(generator, before, sequence)

    def steps(self) -> Steps:
        """Return all steps by generator and sequence number."""
        import numpy as np

        steps = Steps(*(np.concatenate(columns) for columns in zip(*self._steps, strict=True)))
        order = np.lexsort((steps.seconds, steps.sequence, steps.generator))
        return Steps(*(column[order] for column in steps))


def _between_cells(cells: Cells, run: NDArray[np.int64], is_marked: NDArray[np.bool_], found: _Found) -> None:
    """Find what neighbouring cells of a run show: in blocks that are not marked, and from block to block."""
    import numpy as np

    order = np.lexsort((cells.low, run))
    cells, run, is_marked = cells.take(order), run[order], is_marked[order]
    starts = starts_of(run, cells.block)
    first = np.flatnonzero(starts)
    # The last number of a marked block may be in any of its cells.
    last = np.lexsort((cells.high, np.cumsum(starts)))[np.append(first[1:], len(run)) - 1]
    before = np.arange(len(run)) - 1
    before[first[1:]] = last[:-1]
    near = np.flatnonzero((starts | ~is_marked) & ~starts_of(run))
    before = before[near]
    seconds = cells.seconds[near] - cells.seconds[before]
    found.add(cells.generator[near], cells.high[before], cells.low[near], seconds)


def facts_of_digest(named: Named, cells: Cells, words: Words, clock_jump: int, max_gaps: int) -> Facts:
    """Return the facts of generators, without their rates.

    Args:
        named: The generators.
        cells: All cells of their nodes.
        words: The words of the blocks that `msgid.audit._digests.marked` marks.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
        max_gaps: Number of ranges to list.
    """
    import numpy as np

    names = [f"{layout.format_mac(int(n))}/{p}" for n, p in zip(*named, strict=True)]
    shown = shown_by(cells, words, clock_jump, max_gaps)
    gaps, steps, runs = shown.gaps, shown.steps, shown.runs
    missing = np.zeros(len(names), np.int64)
    np.add.at(missing, runs.generator, runs.last_sequence - runs.first_sequence + 1 - runs.ids)
    counted = gaps.counted("missing_sequences", names, np.arange(len(names)), missing)
    for check, held in (("clock_backwards", steps.seconds < 0), ("clock_jump", steps.seconds > 0)):
        of, sequence, step = (column[held] for column in steps)
        ones = np.ones(len(of), np.int64)
        counted += per_scope(check, names, of, ones, 0 * ones, sequence, np.abs(step))
    listed = _run_facts(runs, named)
    nodes = _node_facts(listed)
    for one in nodes:
        if one.overlapping or shared_by(one.node):
            counted.append(
                Counted("shared_node", layout.format_mac(one.node), one.generators, text=shared_by(one.node))
            )
        origin = layout.origin_of(one.node)
        if origin != "mac":
            counted.append(Counted("synthetic_node", layout.format_mac(one.node), one.ids, text=origin))
    ranges = gaps.listed("sequence", names)
    return part_of(counted, gaps=ranges, gap_total=gaps.total, runs=listed, nodes=nodes)


def _runs_of_cells(cells: Cells, used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the run of each cell, from 0 in the whole table.

    Args:
        cells: The cells, ordered by generator, block and seconds.
        used: For each cell, the last second at which one of its numbers was used before; -1 if none was.
    """
    import numpy as np

    # A step of many numbers is a new run, whatever the time says. It is a step from block to block.
    blocks = np.flatnonzero(starts_of(cells.generator, cells.block))
    low, high = np.minimum.reduceat(cells.low, blocks), np.maximum.reduceat(cells.high, blocks)
    apart = starts_of(cells.generator[blocks])
    apart[1:] |= low[1:] - high[:-1] > RUN_STEP
    part = np.repeat(np.cumsum(apart) - 1, np.diff(np.append(blocks, len(used))))
    # By time: seconds, and pieces in which the sequence grows.
    order = np.lexsort((cells.seconds, part))
    part, by_time = part[order], cells.take(order)
    first = np.flatnonzero(starts_of(part, by_time.seconds))
    of, at = part[first], by_time.seconds[first]
    begin, end = np.minimum.reduceat(by_time.low, first), np.maximum.reduceat(by_time.high, first)
    new_piece = starts_of(of)
    new_piece[1:] |= begin[1:] <= end[:-1]
    heads = np.flatnonzero(new_piece)
    latest = np.maximum.reduceat(used[order], first)
    run_of_piece = _split(of[heads], at[heads], np.maximum.reduceat(latest, heads))
    run = np.zeros(len(used), np.int64)
    run[order] = np.repeat(run_of_piece[np.cumsum(new_piece) - 1], np.diff(np.append(first, len(used))))
    return run


def _split(part: NDArray[np.int64], start: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the run of each piece, from 0 in the whole table."""
    import numpy as np

    heads = np.flatnonzero(starts_of(part))
    bounds = np.append(heads, len(part))
    inner = np.zeros(len(part), np.int64)
    for place in np.flatnonzero(np.diff(bounds) > 1):
        own = slice(bounds[place], bounds[place + 1])
        inner[own] = split_pieces(zip(start[own].tolist(), used[own].tolist(), strict=True))
    return np.cumsum(starts_of(part, inner)) - 1


def _run_facts(runs: Runs, named: Named) -> list[RunFact]:
    """Return the runs by generator and time, with their numbers."""
    import numpy as np

    order = np.lexsort((runs.first_sequence, runs.first_time, runs.generator))
    generator, ids, first, last, low, high = (column[order] for column in runs)
    places = np.arange(len(order))
    number = places - np.maximum.accumulate(np.where(starts_of(generator), places, 0)) + 1
    columns = (
        named.node[generator], named.pid[generator], number, ids, first, last, low, high, high - low + 1 - ids,
    )  # fmt: skip
    return [RunFact(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _node_facts(runs: list[RunFact]) -> list[NodeFact]:
    by_node: dict[int, list[RunFact]] = {}
    for run in runs:
        by_node.setdefault(run.node, []).append(run)
    return [
        NodeFact(node, sum(run.ids for run in held), _at_once(held), _overlapping(held))
        for node, held in by_node.items()
    ]


def _at_once(runs: list[RunFact]) -> int:
    """Return the largest number of runs in one second."""
    events = sorted([(run.first_time, 1) for run in runs] + [(run.last_time + 1, -1) for run in runs])
    most = now = 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


def _overlapping(runs: list[RunFact]) -> bool:
    """Return whether a run of a pid begins before an earlier run of the pid has ended."""
    ends: dict[int, int] = {}
    for run in sorted(runs, key=lambda run: (run.first_time, run.last_time)):
        if run.first_time < ends.get(run.pid, run.first_time):
            return True
        ends[run.pid] = max(run.last_time, ends.get(run.pid, run.last_time))
    return False


def rates_of(
    named: Named, generator: NDArray[np.int64], seconds: NDArray[np.int64], ids: NDArray[np.int64]
) -> list[RateFact]:
    """Return the IDs of the largest generators in equal intervals.

    Args:
        named: The generators.
        generator: Places of generators.
        seconds: Unix seconds.
        ids: The number of distinct IDs of each generator and second.
    """
    import numpy as np

    totals = np.bincount(generator, ids, len(named.node))
    chosen = np.lexsort((named.pid, named.node, -totals))[:RATE_GENERATORS]
    kept = np.isin(generator, chosen)
    generator, seconds, ids = generator[kept], seconds[kept], ids[kept]
    width = rate_width(int(seconds.min()), int(seconds.max()))
    pairs, places = np.unique(np.stack([generator, seconds // width * width], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(places.reshape(-1), ids)
    return [
        RateFact(int(named.node[g]), int(named.pid[g]), int(start), width, int(count))
        for (g, start), count in zip(pairs, counts, strict=True)
    ]
