"""Which segments are deleted: tables of the rules."""

from dataclasses import replace

import pytest

from msgid.retention import RetentionPolicy, Segment, decide, is_expired

NOW = 1_700_000_000_000_000
DAY = 86_400_000_000


def segment(first=0, *, size=10, closed=True, latest=NOW - 10 * DAY):
    return Segment(first, first + 9, size, closed, latest, latest)


@pytest.mark.parametrize(
    ("held", "expiry", "removing"),
    [
        (segment(), 86_400, True),
        (segment(closed=False), 86_400, False),  # it must be closed first
        (segment(latest=NOW), 86_400, False),
        (segment(), 0, False),
        (segment(latest=None), 86_400, False),  # the segment is empty
        (segment(latest=NOW - 86_400_000_000), 86_400, True),
        (segment(latest=NOW - 86_400_000_000 + 1), 86_400, False),
    ],
)
def test_segment_of_any_state_goes_by_the_rule(held, expiry, removing):
    """A segment is deleted when it is closed and has expired, by the expiry of its topic."""
    policy = RetentionPolicy(default_expiry=0 if expiry else 1, topics={"orders": expiry})
    (decision,) = decide([held], policy, NOW, topic="orders")
    assert (decision.expired, decision.action) == (removing, "delete" if removing else "keep")
    assert not any(decision.expired for decision in decide([held], replace(policy, enabled=False), NOW, topic="orders"))


def test_message_expires_to_the_microsecond_and_never_with_0():
    """The default is used without an expiry; 0 keeps messages forever."""
    due = NOW + 60_000_000
    assert [is_expired(NOW, "1 minute", now) for now in (due - 1, due)] == [False, True]
    assert [is_expired(NOW, None, due, default) for default in (60, 61, 0)] == [True, False, False]
    assert not is_expired(NOW, 0, due, 60)


def log(*parts):
    """Return the segments of a log from (first offset, last offset), and from "-" in front those with a bad begin."""
    return [Segment(first, last, 10, False, NOW - DAY, NOW - DAY, follows) for first, last, follows in parts]


@pytest.mark.parametrize(
    ("parts", "closed", "allowing", "kept"),
    [
        ([(0, 4, True)], "-", "-", "-"),
        ([(0, 4, True), (5, 9, True)], "x-", "x-", "--"),
        ([(0, 4, True), (5, None, True)], "x-", "x-", "--"),  # the new segment is empty
        ([(0, 4, True), (5, 9, False)], "--", "--", "--"),  # it does not begin with a valid message
        ([(0, 4, True), (6, 9, True)], "--", "x-", "x-"),  # an offset is missing
        ([(0, 4, True), (6, None, True)], "--", "--", "--"),  # nothing is known about the offsets between
        ([(0, 4, True), (3, 9, True)], "--", "--", "--"),  # a copy that overlaps
        ([(0, 4, True), (3, 9, True), (5, 6, True)], "x--", "x--", "---"),
        ([(0, 4, True), (3, 9, True), (12, 13, True)], "---", "xx-", "xx-"),
        ([(0, None, True), (5, 9, True)], "x-", "x-", "--"),  # empty, so nothing in it is lost or deleted
        ([(5, 9, True), (0, 4, True)], "-x", "-x", "--"),  # in any order
        ([(5, 4, True)], "-", "-", "-"),  # a wrong offset: no segment closes itself
    ],
)
def test_segment_is_closed_by_a_later_one_at_its_last_offset_plus_one(parts, closed, allowing, kept):
    """Any other later segment may be a stray copy: the segment before the gap is kept, and the reason says so."""
    policy = RetentionPolicy(default_expiry=60)
    decided = decide(log(*parts), policy, NOW)
    assert ["x" if decision.closed else "-" for decision in decided] == list(closed)
    assert ["x" if decision.reason else "-" for decision in decided] == list(kept)
    allowed = decide(log(*parts), policy, NOW, allow_gaps=True)
    assert ["x" if decision.closed else "-" for decision in allowed] == list(allowing)
    assert not any(decision.reason for decision in allowed)
