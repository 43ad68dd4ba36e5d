"""The generators of a table in NumPy: their runs, missing sequence numbers and clocks, from spans of IDs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from msgid import layout
from msgid._moments import UNIX_EPOCH
from msgid.audit._logs import per_scope
from msgid.audit._spans import Gaps, divided, spans_of, starts_of
from msgid.audit._splitting import Steps, counts_by_two, neighbours, parts_of, runs_of, shared_runs
from msgid.audit.facts import NOTHING, Counted, Facts, GeneratorRow, NodeRow, part_of
from msgid.ids.node import shared_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msgid.audit._ids import Ids
    from msgid.audit._options import Rules
    from msgid.audit._spans import Spans


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
    by_node: dict[int, list[Run]] = {}
    for run in listed:
        by_node.setdefault(run.node, []).append(run)
    nodes = []
    for number, held in by_node.items():
        node, origin, why = layout.format_mac(number), layout.origin_of(number), shared_by(number)
        at_once, overlap = _at_once(held), _overlapping(held)
        if overlap or why:
            counted.append(Counted("shared_node", node, at_once, text=why))
        if origin != "mac":
            counted.append(Counted("synthetic_node", node, sum(run.ids for run in held), text=origin))
        why = why or ("two processes of one pid at the same time" if overlap else None)
        nodes.append(NodeRow(node, origin, at_once, why))
    lists = {"generators": [run.row for run in listed], "nodes": nodes, "gaps": gaps.listed("sequence", names)}
    return part_of(counted, {"gaps": gaps.total}, **lists)


class Run(NamedTuple):
    """One run of a generator. Times are Unix seconds; ``processes`` is 2 if several processes share it."""

    node: int
    pid: int
    number: int
    ids: int
    first_time: int
    last_time: int
    first_sequence: int
    last_sequence: int
    missing: int
    processes: int

    @property
    def row(self) -> GeneratorRow:
        """The run as a row of the report."""
        first, last = (UNIX_EPOCH + timedelta(seconds=second) for second in self[4:6])
        return GeneratorRow(layout.format_mac(self.node), *self[1:4], first, last, *self[6:9])


def _listed(runs: Runs, named: Named) -> list[Run]:
    """Return the runs by generator and time, with their numbers."""
    order = np.lexsort((runs.first_sequence, runs.first_time, runs.generator))
    generator, *columns = (column[order] for column in runs)
    places = np.arange(len(order))
    number = places - np.maximum.accumulate(np.where(starts_of(generator), places, 0)) + 1
    columns = [named.node[generator], named.pid[generator], number, *columns]
    return [Run(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _at_once(runs: list[Run]) -> int:
    """Return the largest number of processes in one second."""
    events = sorted(
        [(run.first_time, run.processes) for run in runs] + [(run.last_time + 1, -run.processes) for run in runs]
    )
    most = now = 0
    for _, change in events:
        now += change
        most = max(most, now)
    return most


def _overlapping(runs: list[Run]) -> bool:
    """Return whether a run has several processes, or begins before an earlier run of its pid has ended."""
    ends: dict[int, int] = {}
    for run in sorted(runs, key=lambda run: (run.first_time, run.last_time)):
        if run.processes > 1 or run.first_time < ends.get(run.pid, run.first_time):
            return True
        ends[run.pid] = max(run.last_time, ends.get(run.pid, run.last_time))
    return False
