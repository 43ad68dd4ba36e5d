"""Logs and poll responses of Iggy: consecutive messages."""

import io
import tracemalloc

from msgid import iggy
from msgid.iggy import Message


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
