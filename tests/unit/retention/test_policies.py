"""Retention policies: their settings, and which segments they delete."""

import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta

import pytest

from msgid.retention import InvalidPolicy, RetentionPolicy, Segment, decide, is_expired
from msgid.retention.policy import OPEN


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"interval": 0}, r"interval must be more than 0 and at most \d+ seconds, got 0"),
        ({"interval": timedelta(0)}, r"interval must be more than 0 and at most \d+ seconds, got 0"),
        ({"interval": -1}, "interval must be more than 0"),
        ({"interval": float("nan")}, "interval must be more than 0"),
        ({"interval": True}, "interval must be more than 0"),
        ({"interval": float("inf")}, r"interval must be more than 0 and at most \d+ seconds, got inf"),
        ({"interval": "5"}, "interval must be a timedelta or text such as '1 day', of 0 or more, got '5'"),
        ({"default_expiry": -1}, "default_expiry must be an integer of 0 to 4294967295 seconds, got -1"),
        ({"default_expiry": 1.5}, "default_expiry must be an integer of 0 to 4294967295 seconds"),
        ({"default_expiry": None}, "default_expiry must be an integer of 0 to 4294967295 seconds"),
        ({"default_expiry": timedelta(days=50_000)}, "default_expiry must be an integer of 0 to 4294967295 seconds"),
        ({"default_expiry": "1.5 seconds"}, "default_expiry must be whole seconds, got '1.5 seconds'"),
        ({"topics": {"orders": True}}, "the expiry of 'orders' must be an integer of 0 to 4294967295 seconds"),
        ({"topics": {"orders": 1 << 32}}, "the expiry of 'orders' must be an integer of 0 to 4294967295 seconds"),
        ({"topics": {"orders": "2 months"}}, "the expiry of 'orders' must be a timedelta or text"),
        ({"topics": {7: 60}}, "topics must have strings as keys, got 7"),
        ({"topics": []}, "topics must be a mapping of topics to seconds"),
        ({"enabled": None}, "enabled must be true or false"),
        ({"enabled": 1}, "enabled must be true or false"),
    ],
)
def test_policy_invalid_setting_raises(setting, says):
    """The constructor and `dataclasses.replace` reject the same settings as `RetentionPolicy.of`."""
    for make in (RetentionPolicy, RetentionPolicy.of, lambda **values: replace(RetentionPolicy(), **values)):
        with pytest.raises(InvalidPolicy, match=says):
            make(setting) if make == RetentionPolicy.of else make(**setting)


def test_policy_of_timedeltas_and_texts_is_that_of_their_seconds():
    """Values of a TOML file may be texts, too."""
    seconds = RetentionPolicy(604_800, {"orders": 5400, "other": None}, interval=0.5)
    texts = RetentionPolicy("1 week", {"orders": "1 hour 30 minutes", "other": None}, interval="500 milliseconds")
    assert texts == seconds
    assert (
        replace(seconds, default_expiry=timedelta(days=7), topics={**seconds.topics, "orders": "90 minutes"}) == seconds
    )
    assert RetentionPolicy.of({"default_expiry": "7 days"}).expiry_of("any") == 604_800


def test_policy_given_dict_changed_later_stays():
    """A policy copies the expiries of topics; those of its own dict are checked again when they are used."""
    topics = {"orders": 10}
    policy = RetentionPolicy(topics=topics)
    topics["orders"] = -1
    assert policy.expiry_of("orders") == 10
    with pytest.raises(FrozenInstanceError):
        policy.default_expiry = -1
    assert pickle.loads(pickle.dumps(policy)) == policy
    policy.topics["orders"] = -1
    for use in (policy.check, lambda: policy.expiry_of("orders")):
        with pytest.raises(InvalidPolicy, match=r"expiry .*must be an integer"):
            use()


@pytest.mark.parametrize("expiry", [-1, -(10**9), True, 1.5, 1 << 32])
def test_rules_with_an_expiry_that_is_not_allowed_raise(expiry):
    """A negative expiry is an error in every function: messages would expire before they are written."""
    for rule in (lambda: is_expired(0, expiry, 10), lambda: is_expired(0, None, 10, expiry)):
        with pytest.raises(InvalidPolicy, match="expiry must be an integer of 0 to 4294967295 seconds, got"):
            rule()


def test_policy_in_a_file_is_read(tmp_path):
    """A TOML policy sets the expiry of a topic, the default, or no expiry."""
    path = tmp_path / "policy.toml"
    path.write_text("default_expiry = 60\ninterval = 5\n[topics]\norders = 10\naudit = 0\n")
    policy = RetentionPolicy.load(path)
    assert [policy.expiry_of(topic) for topic in ("orders", "audit", "others", None)] == [10, 0, 60, 60]
    path.write_text("default_expiry =")
    with pytest.raises(InvalidPolicy, match=r"cannot read .*policy\.toml as TOML: "):
        RetentionPolicy.load(path)
    with pytest.raises(OSError, match="No such file"):
        RetentionPolicy.load(tmp_path / "nothing.toml")


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
        ([(0, 4, True), (3, 9, True), (12, 13, True)], "---", "-x-", "-x-"),  # the gap is not after the first
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
    assert ["x" if decision.reason not in (None, OPEN) else "-" for decision in decided] == list(kept)
    assert all(decision.expired or decision.reason for decision in decided)  # all messages have expired
    allowed = decide(log(*parts), policy, NOW, allow_gaps=True)
    assert ["x" if decision.closed else "-" for decision in allowed] == list(allowing)
    assert {decision.reason for decision in allowed} <= {None, OPEN}
