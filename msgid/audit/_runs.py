"""The generators of a table in NumPy: their runs, missing sequence numbers, clocks and rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgid import layout
from msgid.audit._ids import starts_of
from msgid.audit._logs import holes, per_scope
from msgid.audit.definitions import COUNTED, RATE_GENERATORS, RUN_STEP, rate_width, split_pieces
from msgid.audit.facts import Counted, GapFact, NodeFact, RateFact, RunFact
from msgid.ids.node import shared_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from msgid.audit._ids import Ids

__all__ = ["GeneratorFacts", "generator_facts"]


class GeneratorFacts(NamedTuple):
    """The facts of all generators of a table."""

    runs: list[RunFact]
    nodes: list[NodeFact]
    gaps: list[GapFact]
    counted: list[Counted]
    rates: list[RateFact]


class _Points(NamedTuple):
    """The distinct IDs of generators."""

    generator: NDArray[np.int64]
    seconds: NDArray[np.int64]
    sequence: NDArray[np.int64]


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
    named, codes = np.unique(pairs[:, 0], return_inverse=True)
    seconds = (pairs[:, 1] >> np.uint64(32)).astype(np.int64) + layout.EPOCH_UNIX
    sequence = (pairs[:, 1] & np.uint64(layout.UINT32_MASK)).astype(np.int64)
    points = _Points(codes.reshape(-1).astype(np.int64), seconds, sequence)
    node = (named >> np.uint64(16)).astype(np.int64)
    pid = (named & np.uint64(layout.PID_MAX)).astype(np.int64)
    names = [f"{layout.format_mac(int(n))}/{p}" for n, p in zip(node, pid, strict=True)]
    points, run = _runs_of(points)
    generator = points.generator
    same = run[1:] == run[:-1]
    missing = holes(run, points.sequence)
    of_run = generator[np.flatnonzero(starts_of(run))]
    scope = of_run[missing.scope]
    wide = missing.last - missing.first + 1
    counted = [*per_scope("missing_sequences", names, scope, wide, wide, missing.first, missing.last)]
    step = points.seconds[1:] - points.seconds[:-1]
    for check, held, size in (("clock_backwards", step < 0, -step), ("clock_jump", step > clock_jump, step)):
        place = np.flatnonzero(same & held)
        ones = np.ones(len(place), np.int64)
        size_of = size[place]
        counted += per_scope(check, names, generator[place + 1], ones, 0 * ones, points.sequence[place + 1], size_of)
    runs = _run_facts(points, run, node, pid)
    nodes = _node_facts(runs)
    for one in nodes:
        if one.overlapping or shared_by(one.node):
            counted.append(
                Counted("shared_node", layout.format_mac(one.node), one.generators, text=shared_by(one.node))
            )
        origin = layout.origin_of(one.node)
        if origin != "mac":
            counted.append(Counted("synthetic_node", layout.format_mac(one.node), one.ids, text=origin))
    gaps = [
        GapFact("sequence", names[g], int(low), int(high))
        for g, low, high in zip(scope, missing.first, missing.last, strict=True)
    ]
    return GeneratorFacts(runs, nodes, gaps, counted, _rates(points, node, pid))


def _runs_of(points: _Points) -> tuple[_Points, NDArray[np.int64]]:
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
    return _Points(generator[order], seconds[order], sequence[order]), run[order]


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


def _run_facts(
    points: _Points, run: NDArray[np.int64], node: NDArray[np.int64], pid: NDArray[np.int64]
) -> list[RunFact]:
    import numpy as np

    starts = np.flatnonzero(starts_of(run))
    ends = np.append(starts[1:], len(run))
    first, last = np.minimum.reduceat(points.seconds, starts), np.maximum.reduceat(points.seconds, starts)
    low, high, generator = points.sequence[starts], points.sequence[ends - 1], points.generator[starts]
    order = np.lexsort((low, first, generator))
    numbers = np.arange(len(order)) - np.maximum.accumulate(
        np.where(starts_of(generator[order]), np.arange(len(order)), 0)
    )
    count = ends - starts
    return [
        RunFact(
            int(node[generator[place]]),
            int(pid[generator[place]]),
            int(number) + 1,
            int(count[place]),
            int(first[place]),
            int(last[place]),
            int(low[place]),
            int(high[place]),
            int(high[place] - low[place] + 1 - count[place]),
        )
        for place, number in zip(order, numbers, strict=True)
    ]


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


def _rates(points: _Points, node: NDArray[np.int64], pid: NDArray[np.int64]) -> list[RateFact]:
    """Return the IDs of the largest generators in equal intervals."""
    import numpy as np

    totals = np.bincount(points.generator, minlength=len(node))
    chosen = np.lexsort((pid, node, -totals))[:RATE_GENERATORS]
    kept = np.isin(points.generator, chosen)
    generator, seconds = points.generator[kept], points.seconds[kept]
    width = rate_width(int(seconds.min()), int(seconds.max()))
    pairs, counts = np.unique(np.stack([generator, seconds // width * width], axis=1), axis=0, return_counts=True)
    return [
        RateFact(int(node[g]), int(pid[g]), int(start), width, int(count))
        for (g, start), count in zip(pairs, counts, strict=True)
    ]
