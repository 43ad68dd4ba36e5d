"""The fields of a Danube message are its own."""

import pickle
from dataclasses import FrozenInstanceError

import pytest

from msgid.danube import MessageID, StreamMessage


def test_attributes_of_two_messages_are_not_shared():
    """Each message without attributes has its own empty dict."""
    one, other = (StreamMessage(7, MessageID(9, "/a/b", "", n), b"", 5, "p") for n in range(2))
    one.attributes["a"] = "1"
    assert other.attributes == {}
    assert StreamMessage(7, MessageID(9, "/a/b", "", 1), b"", 5, "p") == other


def test_message_set_field_raises():
    """A message is immutable and can be pickled."""
    message = StreamMessage(7, MessageID(9, "/a/b", "", 1), b"", 5, "p")
    with pytest.raises(FrozenInstanceError):
        message.payload = b"x"
    assert pickle.loads(pickle.dumps(message)) == message
