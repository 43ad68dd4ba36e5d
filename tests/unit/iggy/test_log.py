"""Logs and poll responses of Iggy: consecutive messages."""

import contextlib
import io
import tracemalloc

import pytest
from helpers import strategies
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy import Message


@given(st.lists(strategies.iggy_messages(), max_size=5), st.integers(1, 400), st.integers(0, 400))
def test_log_read_in_chunks_of_any_size_gives_the_same_messages(messages, chunk, cut):
    """Pieces of any size give the same messages, and the position of an incomplete message at the end."""
    raw = iggy.encode_log(messages, "m45")
    short = raw[: max(0, len(raw) - cut)]
    whole = []
    error = None
    try:
        for message in iggy.read_log(io.BytesIO(short), "m45", chunk=chunk):
            whole.append(message)
    except msgid.TruncatedMessage as caught:
        error = caught
    assert whole == messages[: len(whole)]
    kept = len(iggy.encode_log(whole, "m45"))
    if kept == len(short):
        assert error is None
    else:
        assert error is not None
        assert error.offset == kept


def test_log_of_many_messages_takes_constant_memory():
    """Reading 64 MB of messages takes only a few MB of memory."""
    large = iggy.encode(Message.new(bytes(8_000), id=1, layout="m45"), "m45")

    class Endless(io.RawIOBase):
        def __init__(self, count):
            self.left = count

        def read(self, size=-1):
            count = min(size // len(large) + 1, self.left)
            self.left -= count
            return large * count

    tracemalloc.start()
    count = sum(1 for _ in iggy.read_log(Endless(8_000), "m45"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 8_000
    assert peak < 8_000_000


@pytest.mark.parametrize("layout", ["m45", "h64"])
def test_read_log_with_a_broken_length_holds_the_record_and_one_message_of_it(layout):
    """The record that the length claims is in memory once, and once more as the payload of the message."""
    good = iggy.encode(Message.new(b"good", id=1, layout=layout), layout)
    claim = 10_000_000
    at = len(good) + (45 - 4 if layout == "m45" else 52)
    raw = bytearray(good + iggy.encode(Message.new(b"", id=2, layout=layout), layout) + bytes(3 * claim))
    raw[at : at + 4] = claim.to_bytes(4, "little")
    file = io.BytesIO(raw)
    with contextlib.suppress(ImportError):
        import numpy  # noqa: F401 - the search uses it, and its import takes memory of its own
    tracemalloc.start()
    found = iggy.read_log(file)
    assert next(found).payload == b"good"
    assert len(next(found).payload) == claim
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * claim
