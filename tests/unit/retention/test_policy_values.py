"""A retention policy checks its settings wherever it is made."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from msgid.retention import InvalidPolicy, RetentionPolicy


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"default_expiry": -1}, "default_expiry must be whole seconds, 0 to 4294967295, not -1"),
        ({"topics": {"orders": True}}, "the expiry of 'orders' must be whole seconds"),
        ({"segment_bytes": True}, "segment_bytes must be 1 or more"),
        ({"enabled": None}, "enabled must be true or false"),
        ({"interval": "5"}, "interval must be more than 0 seconds"),
    ],
)
def test_policy_invalid_setting_raises(setting, says):
    """The constructor and `dataclasses.replace` refuse what `RetentionPolicy.of` refuses."""
    for make in (RetentionPolicy, RetentionPolicy.of, lambda **values: replace(RetentionPolicy(), **values)):
        with pytest.raises(InvalidPolicy, match=says):
            make(setting) if make == RetentionPolicy.of else make(**setting)


def test_policy_given_dict_changed_later_stays():
    """A policy copies the expiries of topics, so a later change of the caller's dict has no effect on it."""
    topics = {"orders": 10}
    policy = RetentionPolicy(topics=topics)
    topics["orders"] = -1
    assert policy.expiry_of("orders") == 10
    with pytest.raises(FrozenInstanceError):
        policy.default_expiry = -1
    assert pickle.loads(pickle.dumps(policy)) == policy
