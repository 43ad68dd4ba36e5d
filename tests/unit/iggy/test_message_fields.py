"""The fields of an Iggy message: checked wherever it is made, and fixed afterwards."""

import copy
import pickle
from dataclasses import replace

import pytest

from msgid import iggy
from msgid.iggy import Message

GOOD = Message.new(b"hello", id=7, offset=3, headers={"n": 1}, layout="m45")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"offset": -1}, ValueError, "offset must be 0 to 18446744073709551615, got -1"),
        ({"offset": True}, TypeError, "offset must be an integer"),
        ({"timestamp": 1 << 64}, ValueError, "timestamp must be 0 to"),
        ({"id": 1 << 128}, ValueError, "id must be 0 to"),
        ({"checksum": 1 << 32}, ValueError, "checksum must be 0 to"),
        ({"checksum": None}, ValueError, "both a state and a checksum, or neither"),
        ({"state": None}, ValueError, "both a state and a checksum, or neither"),
        ({"state": 1}, TypeError, "state must be a MessageState or None"),
        ({"payload": "text"}, TypeError, "payload must be bytes"),
        ({"headers": None}, TypeError, "headers must be a dict"),
        ({"headers": {"n": 1}}, TypeError, "header 'n' must be a Header"),
        ({"headers": {1: GOOD.headers["n"]}}, TypeError, "key must be text"),
        ({"headers": {"": GOOD.headers["n"]}}, ValueError, "key must have 1 to 255 bytes"),
    ],
)
def test_message_invalid_field_raises(change, error, says):
    with pytest.raises(error, match=says):
        replace(GOOD, **change)


@pytest.mark.parametrize("made", [GOOD, iggy.decode(iggy.encode(GOOD, "m45"), "m45")], ids=["made", "decoded"])
def test_message_copied_or_pickled_is_equal(made):
    for again in (copy.copy(made), copy.deepcopy(made), *(pickle.loads(pickle.dumps(made, n)) for n in range(6))):
        assert again == made == GOOD
        assert type(again) is type(made) is Message
