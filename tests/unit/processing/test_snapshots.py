"""A read of a store is one snapshot, also if it takes several statements and a writer never stops."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from msgid.processing import Append, PostgresStore, SqliteStore
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


PROGRAM = """
import sys
from msgid.processing import Message, PostgresStore, Processor, SqliteStore
store = {store}
def count(state, message, context):
    state = state or {{"count": 0}}
    context.publish([message.body, state["count"]])
    return {{"count": state["count"] + 1, "last": message.body}}
def publish(outputs):
    for output in outputs:
        print(output.id, *output.body, flush=True)
processor = Processor(store, count, publish, name="h")
for number in range({messages}):
    for key in range({keys}):
        processor.handle(Message(f"{{key}}-{{number}}", f"key {{key}}", number))
"""


@pytest.mark.kills
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not have SIGSTOP")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_paused_workers_that_come_back_change_no_state(kind, request, tmp_path):
    """Workers are paused at random and go on later: each history is in order, the newest state and outputs fit it."""
    keys, messages, seed = 6, 150, random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    address = str(tmp_path / "states.db") if kind == "sqlite" else request.getfixturevalue("schema")
    opened = SqliteStore if kind == "sqlite" else PostgresStore
    store = opened(address)
    program = PROGRAM.format(store=f"{opened.__name__}({address!r})", messages=messages, keys=keys)
    outputs = [tmp_path / f"outputs {number}" for number in range(3)]
    workers = []
    for path in outputs:
        with path.open("w") as file:
            workers.append(subprocess.Popen([sys.executable, "-c", program], stdout=file))

    def check(key):
        history = store.history(f"key {key}")
        expected = [(f"{key}-{number}", {"count": number + 1, "last": number}) for number in range(len(history))]
        assert [(one.id, json.loads(one.state)) for one in history] == expected
        return history

    try:
        end = time.monotonic() + 120
        while any(worker.poll() is None for worker in workers) and time.monotonic() < end:
            paused = chance.sample(workers, chance.randrange(1, 3))
            for worker in paused:
                worker.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.2))
            for key in range(keys):
                check(key)
            for worker in paused:
                worker.send_signal(signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.2))
        assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert [len(check(key)) for key in range(keys)] == [messages] * keys
    published = {tuple(line.split()) for path in outputs for line in path.read_text().splitlines()}
    assert len(published) == len({id for id, *_ in published}) == keys * messages
    assert all(number == count for _, number, count in published)
    store.close()
