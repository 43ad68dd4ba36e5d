"""Seeded queues: each injected fault is found, and nothing else, by the audit, by two sides and by their digests."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")

from helpers.queues import COLUMNS, QUEUES, Queue  # noqa: E402


def check_audit(queue, rows):
    """The missing ranges are those of a plain model, with the severity that the caller's knowledge allows."""
    report = audit.audit_table(queue.table(rows), **COLUMNS, **queue.options)
    shortest = 2 if queue.kind in ("committed", "aborted") else 1
    expected = {gap for gap in queue.gaps(rows) if gap[2] - gap[1] + 1 >= shortest}
    if queue.kind == "compacted":
        expected = set()
    assert {(gap.scope, gap.first, gap.last) for gap in report.gaps if gap.kind == "offset"} == expected
    severity = "info" if queue.kind == "aborted" else "error"
    assert {one.severity for one in report.findings if one.check == "missing_offsets"} == (
        {severity} if expected else set()
    )
    return report


def check(queue):
    """A landed copy has no finding about messages, and a damaged one has exactly the faults."""
    clean = check_audit(queue, queue.rows)
    about_messages = {
        "missing_offsets",
        "duplicate_messages",
        "conflicting_messages",
        "duplicate_ids",
        "conflicting_ids",
    }
    found = {one.check for one in clean.findings if one.severity == "error"}
    assert not found & about_messages, found
    queue.damage()
    damaged = check_audit(queue, queue.landed)
    repeated = {fault[1] for fault in queue.faults if fault[0] == "duplicate"}
    assert {one.scope for one in damaged.findings if one.check == "duplicate_messages"} == repeated
    sides = queue.table(queue.rows), queue.table(queue.landed)
    columns = {**COLUMNS, **({"life": "life"} if queue.kind == "lives" else {})}
    digests = [audit.digest(side, **columns) for side in sides]
    for options in ({}, {"digests": digests}):
        report = audit.compare(*sides, **columns, **options)
        assert {(one.fault, one.scope, one.offset) for one in report.differences} == queue.faults
        assert audit.compare(sides[0], sides[0], **columns, **options and {"digests": digests[:1] * 2}).findings == []


@pytest.mark.parametrize("kind", QUEUES)
def test_each_fault_of_a_queue_is_found_and_nothing_else(kind):
    """The audit knows the kind of the queue; two sides need no such knowledge."""
    for seed in range(6):
        check(Queue(seed, kind))


@pytest.mark.volume
@pytest.mark.parametrize("kind", QUEUES)
def test_each_fault_of_many_queues_is_found_and_nothing_else(kind):
    """As above: 10,000 queues of all kinds."""
    for seed in range(6, 6 + 10_000 // len(QUEUES)):
        check(Queue(seed, kind))
