"""Logs and poll responses of Iggy: consecutive messages."""

import io
import tracemalloc

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
