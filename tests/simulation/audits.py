"""Audit and compare seeded queues: each fault is found, and nothing else.

    PYTHONPATH=tests python -m simulation.audits --runs 10000

A queue has transactions, compaction, lives, retention, restarts, shared addresses and several time zones. Its table is
audited and compared as it landed, and with faults: lost, changed, repeated, contradicting, late and additional
messages, and clocks that were set back.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import traceback
from collections import Counter
from typing import TYPE_CHECKING

from helpers.queues import COLUMNS, NODE, QUEUES, V0, Queue

from msgid import audit

if TYPE_CHECKING:
    import pyarrow as pa

_OF_PROCESSES = ("missing_sequences", "clock_backwards", "clock_jump", "sequence_jump", "shared_node")
_SEVERITY = {"committed": "error", "aborted": "info"}


def check(seed: int, kind: str) -> Counter[str]:
    """Check a queue and return the number of its injected faults.

    Raises:
        AssertionError: if a fault is missed, or something else is found.
    """
    queue = Queue(seed, kind)
    sides = [queue.table(queue.rows)]
    _audited(queue, queue.rows, sides[0])
    queue.damage()
    sides.append(queue.table(queue.landed))
    _audited(queue, queue.landed, sides[1])
    columns = {**COLUMNS, **({"incarnation": "life"} if kind == "lives" else {})}
    digests = [audit.digest(side, **columns) for side in sides]
    for options in ({}, {"digests": digests}):
        report = audit.compare(*sides, **columns, **options)
        assert {(one.fault, one.scope, one.offset) for one in report.differences} == queue.faults
        assert report.complete_until == queue.complete_until
    same = {"digests": digests[:1] * 2} if seed % 4 else {}
    assert audit.compare(sides[0], sides[0], **columns, **same).findings == []
    return Counter(fault for fault, _, _ in queue.faults)


def _audited(queue: Queue, rows: list, table: pa.Table) -> None:
    """Audit rows of a queue: the findings are those of a plain model."""
    report = audit.audit_table(table, **COLUMNS, landed="landed", **queue.options)
    found = {(one.check, one.scope): one.count for one in report.findings if one.check not in _OF_PROCESSES}
    assert found == queue.expected(rows), set(found.items()) ^ set(queue.expected(rows).items())
    assert {(gap.scope, gap.first, gap.last) for gap in report.gaps if gap.kind == "offset"} == queue.gaps(rows)
    if not queue.options.get("holes"):
        assert sum(gap.count for gap in report.gaps if gap.kind == "offset") == sum(log.missing for log in report.logs)
    assert sum(log.rows for log in report.logs) == sum(kind.rows for kind in report.kinds) == report.rows == len(rows)
    severities = {one.severity for one in report.findings if one.check == "missing_offsets"}
    assert severities <= {_SEVERITY.get(queue.kind, "error")}, severities
    checks = {one.check: one.count for one in report.findings if one.check in _OF_PROCESSES}
    if queue.processes == V0:
        assert checks == {}, checks
        return
    _check_processes(queue, rows, checks, report)


def _check_processes(queue: Queue, rows: list, checks: dict[str, int], report: audit.Report) -> None:
    """Check the findings about a queue's process; `test_lives` checks several processes of one pid."""
    made = sorted({row.made for row in rows if row.made}, key=lambda id: id[1])
    numbers = {number for _, number in made}
    gaps = [range(gap.first, gap.last + 1) for gap in report.gaps if gap.kind == "sequence"]
    missing = set(itertools.chain(*gaps))
    assert checks.pop("missing_sequences", 0) == sum(map(len, gaps))
    assert {one.scope for one in report.findings if one.check == "shared_node"} <= {NODE}
    if queue.kind == "compacted":  # where most numbers are missing, it calls these two an info
        severities = {one.severity for one in report.findings if one.check in ("clock_backwards", "shared_node")}
        assert severities <= {"info"}, severities
        assert not missing
    elif queue.processes == "alone":
        assert missing == {*range(min(numbers), max(numbers) + 1)} - numbers
    if queue.processes == "alone":
        back = sum(after < before for (before, _), (after, _) in itertools.pairwise(made))
        assert checks == ({"clock_backwards": back} if back else {}), (checks, back)


def checked(seed: int, kind: str) -> tuple[Counter[str], str]:
    """Return the injected faults of a seed and a kind of queue, and the text of a difference or an empty text."""
    try:
        return check(seed, kind), ""
    except AssertionError:
        text = traceback.format_exc(limit=-1)
        return Counter(), f"seed {seed}, kind {kind}, processes {Queue(seed, kind).processes}: {text}"


def main() -> int:
    """Run the seeds, and print the differences, and the number of queues and faults; return 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m simulation.audits", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, default=600, help="the number of queues; default: 600")
    parser.add_argument("--kind", choices=QUEUES, help="the kind of queue; default: all in turn")
    arguments = parser.parse_args()
    kinds = (arguments.kind,) if arguments.kind else QUEUES
    runs = [(arguments.seed + run // len(kinds), kinds[run % len(kinds)]) for run in range(arguments.runs)]
    faults: Counter[str] = Counter()
    differences = 0
    for run in runs:
        injected, difference = checked(*run)
        faults += injected
        if difference:
            differences += 1
            print(difference, flush=True)
    injected_faults = ", ".join(f"{number:,} {fault}" for fault, number in sorted(faults.items()))
    print(
        f"{len(runs):,} queues, seeds {runs[0][0]} to {runs[-1][0]}; injected: {injected_faults}; "
        f"{differences:,} differences"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
