"""A read of a store is one snapshot, also if it takes several statements and a writer never stops."""

import threading
import time
from contextlib import contextmanager

import pytest

from msgid.processing.store import Append
from msgid.testing import entry

KEYS = ("left", "right")
HANDLERS = ("a", "b")


@contextmanager
def writer_that_never_stops(store):
    """Append one entry to both keys of handler b, then of handler a, and so on; delete old entries meanwhile."""
    stop, errors = threading.Event(), []

    def work():
        number = 0
        try:
            while not stop.is_set():
                number += 1
                for handler in reversed(HANDLERS):
                    found = store.read(handler, [(key, f"id {number}") for key in KEYS])
                    appends = [
                        Append(key, one.version, one.state, [entry(f"id {number}", b"%d" % number, number)])
                        for key, one in zip(KEYS, found, strict=True)
                    ]
                    assert store.append(handler, appends) == [True, True]
                if number % 10 == 0:
                    store.forget(number - 15)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not errors


def readings(read, moves=40):
    """Yield results until the writer has moved on between them often enough."""
    before, end = None, time.monotonic() + 60
    while time.monotonic() < end:
        found = read()
        yield found
        if found == before:
            time.sleep(0.001)  # the writer needs the lock or the processor, too
            continue
        before, moves = found, moves - 1
        if not moves:
            return
    pytest.fail("the writer stands still")


def test_history_is_one_snapshot(new_store):
    """Each version has its state, the newest one too, and two handlers are read at the same moment."""
    writing, reading = new_store(), new_store()
    with writer_that_never_stops(writing):
        for history in readings(lambda: reading.history("left")):
            versions = {handler: [one for one in history if one.handler == handler] for handler in HANDLERS}
            for found in versions.values():
                numbers = [one.version for one in found]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
                assert [one.state for one in found] == [b"%d" % number for number in numbers]
                assert all(one.id == f"id {one.version}" for one in found[1:])
            newest = [found[-1].version if found else 0 for found in versions.values()]
            assert newest[1] - newest[0] in (0, 1)  # the writer appends to handler b first


def test_read_of_several_messages_is_one_snapshot(new_store):
    """Keys that one append has written have the same version, and no entry is newer than the state of its key."""
    writing, reading = new_store(), new_store()
    with writer_that_never_stops(writing):
        newest = 0

        def read():
            return reading.read("b", [(key, f"id {newest + ahead}") for ahead in (0, 1, 2) for key in KEYS])

        for found in readings(read):
            assert len({one.version for one in found}) == 1
            newest = found[0].version
            assert all(one.handled is None or one.handled <= one.version for one in found)
