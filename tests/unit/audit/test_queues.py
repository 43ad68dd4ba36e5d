"""Seeded queues: each injected fault is found, and nothing else, by the audit, by two sides and by their digests.

`python -m simulation.audits` checks as many queues as its caller asks for.
"""

from collections import Counter

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")
pytest.importorskip("msgid.audit")

from helpers.queues import NAMES, OPTIONS, QUEUES, Queue, several
from simulation import audits

from msgid import audit

MANY = 10_000 // len(QUEUES)


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 3 + MANY), marks=pytest.mark.volume)], ids=len)
@pytest.mark.parametrize("kind", QUEUES)
def test_each_fault_of_a_queue_is_found_and_nothing_else(kind, seeds):
    """The audit knows the kind of the queue; two sides need no such knowledge."""
    for seed in seeds:
        audits.check(seed, kind)


@pytest.mark.parametrize("count", [8, pytest.param(20, marks=pytest.mark.volume)])
def test_table_of_several_queues_has_the_findings_of_each(count):
    """The logs and the processes of one queue do not matter to those of another."""
    queues, table = several(range(count))
    report = audit.audit_table(table, **NAMES)
    findings, gaps = Counter(), []
    for queue in queues:
        alone = audit.audit_table(queue.table(queue.landed), **NAMES)
        findings.update({(one.check, one.scope): one.count for one in alone.findings})
        gaps += [(gap.kind, gap.scope, gap.first, gap.last) for gap in alone.gaps]
    assert {(one.check, one.scope): one.count for one in report.findings} == findings
    assert sorted((gap.kind, gap.scope, gap.first, gap.last) for gap in report.gaps) == sorted(gaps)


def test_queues_have_all_kinds_of_processes_and_faults():
    """Over some seeds, each way in which processes start and each fault is in several queues."""
    queues = [Queue(seed, kind) for seed in range(10) for kind in QUEUES]
    assert len({queue.processes for queue in queues}) == 9
    assert {kind for queue in queues for kind in OPTIONS if queue.kind == kind} == set(OPTIONS)
    checks = set()
    for queue in queues[:60]:
        queue.damage()
        checks |= {check for check, _ in queue.expected(queue.landed)}
    assert checks == {
        "missing_offsets", "duplicate_messages", "conflicting_messages", "duplicate_ids", "conflicting_ids",
        "late_messages", "time_backwards", "malformed_ids", "future_ids",
    }  # fmt: skip
