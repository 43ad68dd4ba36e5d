"""A retention policy checks its settings in every way to create it."""

import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta

import pytest

from msgid.retention import InvalidPolicy, RetentionPolicy, is_expired


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"interval": 0}, "interval must be more than 0 seconds, got 0"),
        ({"interval": timedelta(0)}, "interval must be more than 0 seconds"),
        ({"interval": -1}, "interval must be more than 0"),
        ({"interval": float("nan")}, "interval must be more than 0"),
        ({"interval": True}, "interval must be more than 0"),
        ({"interval": float("inf")}, r"interval must be \d+ seconds or less, got inf"),
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
    for rule in (
        lambda: is_expired(0, expiry, 10),
        lambda: is_expired(0, None, 10, expiry),
        lambda: RetentionPolicy(default_expiry=expiry),
    ):
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
