"""The generators of a table in NumPy: their runs, missing sequence numbers, clocks and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgid import layout
from msgid.audit._ids import starts_of
from msgid.audit._logs import Holes, holes, per_scope
from msgid.audit.definitions import COUNTED, RATE_GENERATORS, RUN_STEP, rate_width, split_pieces
from msgid.audit.facts import Counted, GapFact, NodeFact, RateFact, RunFact
from msgid.ids.node import shared_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from msgid.audit._ids import Ids


class GeneratorFacts(NamedTuple):
    """The facts of all generators of a table."""

    runs: list[RunFact]
    nodes: list[NodeFact]
    gaps: list[GapFact]
    counted: list[Counted]
    rates: list[RateFact]


class Points(NamedTuple):
    """The distinct IDs of generators: the place of the generator, Unix seconds and the sequence number."""

    generator: NDArray[np.int64]
    seconds: NDArray[np.int64]
    sequence: NDArray[np.int64]


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
    gaps: Holes
    steps: Steps


class Named(NamedTuple):
    """The nodes and pids of generators, by their places."""

    node: NDArray[np.int64]
    pid: NDArray[np.int64]


def generator_facts(ids: Ids, clock_jump: int) -> GeneratorFacts:
    """Return the facts of the generators of a table's IDs.

    Args:
        ids: The IDs.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
    """
    import numpy as np

    rows = np.flatnonzero(np.isin(ids.origins(), COUNTED))
    if not len(rows):
        return GeneratorFacts([], [], [], [], [])
    a, b, _ = ids.keys
    pairs = np.unique(np.stack([a[rows], b[rows]], axis=1), axis=0)
    named, codes = named_by(pairs[:, 0])
    seconds = (pairs[:, 1] >> np.uint64(32)).astype(np.int64) + layout.EPOCH_UNIX
    sequence = (pairs[:, 1] & np.uint64(layout.UINT32_MASK)).astype(np.int64)
    points = Points(codes, seconds, sequence)
    rates = rates_of(named, codes, seconds, np.ones(len(codes), np.int64))
    return facts_of_generators(named, shown_by(points, clock_jump), rates)


def named_by(codes: NDArray[np.uint64]) -> tuple[Named, NDArray[np.int64]]:
    """Return the generators of some codes, each a node and a pid in 64 bits, and the place of each code's generator."""
    import numpy as np

    named, places = np.unique(codes, return_inverse=True)
    node, pid = named >> np.uint64(16), named & np.uint64(layout.PID_MAX)
    return Named(node.astype(np.int64), pid.astype(np.int64)), places.reshape(-1).astype(np.int64)


def shown_by(points: Points, clock_jump: int) -> Shown:
    """Return what the distinct IDs of generators show."""
    import numpy as np

    points, run = _runs_of(points)
    starts = np.flatnonzero(starts_of(run))
    ends = np.append(starts[1:], len(run))
    generator = points.generator[starts]
    runs = Runs(
        generator,
        ends - starts,
        np.minimum.reduceat(points.seconds, starts),
        np.maximum.reduceat(points.seconds, starts),
        points.sequence[starts],
        points.sequence[ends - 1],
    )
    missing = holes(run, points.sequence)
    step = points.seconds[1:] - points.seconds[:-1]
    place = np.flatnonzero((run[1:] == run[:-1]) & ((step < 0) | (step > clock_jump)))
    steps = Steps(points.generator[place + 1], points.sequence[place + 1], step[place])
    return Shown(runs, missing._replace(scope=generator[missing.scope]), steps)


def facts_of_generators(named: Named, shown: Shown, rates: list[RateFact]) -> GeneratorFacts:
    """Return the facts that follow from the runs of all generators."""
    import numpy as np

    names = [f"{layout.format_mac(int(n))}/{p}" for n, p in zip(*named, strict=True)]
    gaps, steps = shown.gaps, shown.steps
    wide = gaps.last - gaps.first + 1
    counted = [*per_scope("missing_sequences", names, gaps.scope, wide, wide, gaps.first, gaps.last)]
    for check, held in (("clock_backwards", steps.seconds < 0), ("clock_jump", steps.seconds > 0)):
        of, sequence, size = (column[held] for column in steps)
        ones = np.ones(len(of), np.int64)
        counted += per_scope(check, names, of, ones, 0 * ones, sequence, np.abs(size))
    runs = _run_facts(shown.runs, named)
    nodes = _node_facts(runs)
    for one in nodes:
        if one.overlapping or shared_by(one.node):
            counted.append(
                Counted("shared_node", layout.format_mac(one.node), one.generators, text=shared_by(one.node))
            )
        origin = layout.origin_of(one.node)
        if origin != "mac":
            counted.append(Counted("synthetic_node", layout.format_mac(one.node), one.ids, text=origin))
    listed = [GapFact("sequence", names[g], int(low), int(high)) for g, low, high in zip(*gaps, strict=True)]
    return GeneratorFacts(runs, nodes, listed, counted, rates)


def _runs_of(points: Points) -> tuple[Points, NDArray[np.int64]]:
    """Return the points sorted by run and sequence, and the number of the run of each, from 0 in the whole table."""
    import numpy as np

    order = np.lexsort((points.seconds, points.sequence, points.generator))
    generator, seconds, sequence = (part[order] for part in points)
    # A step of many numbers is a new run, whatever the time says.
    apart = starts_of(generator)
    apart[1:] |= sequence[1:] - sequence[:-1] > RUN_STEP
    part = np.cumsum(apart) - 1
    used = np.full(len(order), -1, np.int64)  # the last second at which the same number was used before
    again = np.flatnonzero(~starts_of(generator, sequence) & ~apart)
    used[again] = seconds[again - 1]
    # By time: seconds, and pieces in which the sequence grows.
    order = np.lexsort((sequence, seconds, part))
    generator, seconds, sequence, part, used = (values[order] for values in (generator, seconds, sequence, part, used))
    first = np.flatnonzero(starts_of(part, seconds))
    last = np.append(first[1:], len(order)) - 1
    latest = np.maximum.reduceat(used, first)
    new_piece = starts_of(part[first])
    new_piece[1:] |= sequence[first][1:] <= sequence[last][:-1]
    piece = np.cumsum(new_piece) - 1
    heads = np.flatnonzero(new_piece)
    piece_part, piece_start = part[first][heads], seconds[first][heads]
    run_of_piece = _split(piece_part, piece_start, np.maximum.reduceat(latest, heads))
    run = np.repeat(run_of_piece[piece], np.diff(np.append(first, len(run_of_piece) and len(order))))
    order = np.lexsort((sequence, run))
    return Points(generator[order], seconds[order], sequence[order]), run[order]


def _split(part: NDArray[np.int64], start: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the run of each piece, from 0 in the whole table."""
    import numpy as np

    heads = np.flatnonzero(starts_of(part))
    bounds = np.append(heads, len(part))
    runs = np.zeros(len(part), np.int64)
    number = 0
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        inner = split_pieces(zip(start[low:high].tolist(), used[low:high].tolist(), strict=True))
        runs[low:high] = np.array(inner) + number
        number += inner[-1] + 1
    return runs


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
