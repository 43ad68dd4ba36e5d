"""Every interleaving of workers, duplicates and crashes: the four properties of consistent processing."""

import json
import random
import subprocess
import sys

import pytest
from handlers import append
from helpers import vector_files as vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid.processing import Context, MemoryStore, Message, Processor, SqliteStore

A, B = (str(msgid.position_id("log", number, 1_700_000_000 + number)) for number in range(2))

MESSAGES = {A: Message(A, "key", "a"), B: Message(B, "key", "twice"), A.lower(): Message(A.lower(), "key", "a")}


class Choices:
    """Takes one way through all choices, and then the next, until all have been taken."""

    def __init__(self):
        self.taken, self.of = [], []
        self.place = 0

    def choose(self, options):
        if self.place == len(self.taken):
            self.taken.append(0)
            self.of.append(options)
        choice = self.taken[self.place]
        self.place += 1
        return choice

    def next(self):
        while self.taken and self.taken[-1] + 1 == self.of[-1]:
            self.taken.pop()
            self.of.pop()
        if not self.taken:
            return False
        self.taken[-1] += 1
        self.place = 0
        return True


def run_schedule(choose, stores, deliveries, crashes):
    """Run a worker for each list of deliveries, a step of one of them at a time; return all outputs.

    A worker that crashes loses its work, and is given the same message again.
    """
    published = []
    workers = [Processor(store, append, published.extend) for store in stores]
    left = [list(ids) for ids in deliveries]
    running = [None] * len(workers)
    while any(left):
        alive = [number for number, ids in enumerate(left) if ids]
        busy = [number for number in alive if running[number] is not None] if crashes else []
        choice = choose(len(alive) + len(busy))
        if choice >= len(alive):
            crashes -= 1
            running[busy[choice - len(alive)]] = None
            continue
        number = alive[choice]
        if running[number] is None:
            running[number] = workers[number].steps(MESSAGES[left[number][0]])
        try:
            # Nothing that others see happens between reading and having handled, nor after publishing: whether another
            # one comes in between, or the crash does, is the same.
            if next(running[number]) in ("read", "published"):
                next(running[number])
        except StopIteration:
            left[number].pop(0)
            running[number] = None
    return published


def check(published, store, ids):
    """The four properties: one change of state a message, one output a place, both fit together; it has ended."""
    history = store.history("key")
    made = [version.id for version in history]
    assert sorted(made) == sorted(set(made)) == sorted(ids)  # one change of state for each message
    by_place = {}
    for output in published:
        by_place.setdefault((output.input_id, output.number), set()).add(json.dumps([output.id, output.body]))
    assert all(len(contents) == 1 for contents in by_place.values())  # one distinct output for each message and place
    state = None
    for version in history:
        context = Context(MESSAGES[version.id])
        state = append(state, MESSAGES[version.id], context)
        assert json.loads(version.state) == state
        for output in context.outputs:  # each output follows from the state before
            assert by_place.pop((output.input_id, output.number)) == {json.dumps([output.id, output.body])}
    assert not by_place


SCHEDULES = {
    "duplicates at once": ([[A], [A.lower()]], 3),
    "two messages, one of them twice": ([[A, B], [A]], 2),
    "two messages in another order": ([[A, B], [B]], 1),
}


@pytest.mark.volume
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_interleaving_and_crash(name, kind, tmp_path):
    """Two workers, a step of one or the other at a time, and a crash after any step: the four properties hold."""
    deliveries, crashes = SCHEDULES[name]
    choices, count = Choices(), 0
    path = tmp_path / "states.db"
    stores = [SqliteStore(path), SqliteStore(path)] if kind == "sqlite" else [MemoryStore()] * 2
    while True:
        if kind == "sqlite":
            for store in stores:
                store._connection().execute("PRAGMA synchronous = OFF")  # nothing here ends the machine
            for table in ("msgid_heads", "msgid_entries"):
                stores[0]._connection().execute(f"DELETE FROM {table}")
        else:
            stores = [MemoryStore()] * 2
        published = run_schedule(choices.choose, stores, deliveries, crashes)
        check(published, stores[0], {id.upper() for ids in deliveries for id in ids})
        count += 1
        if not choices.next():
            break
    assert count > 500


@settings(max_examples=150)
@given(data=st.data())
def test_long_random_schedules(data):
    """More workers, messages, duplicates and crashes than can be walked through: the four properties hold."""
    deliveries = data.draw(st.lists(st.lists(st.sampled_from([A, B, A.lower()]), max_size=5), min_size=2, max_size=4))
    chance = data.draw(st.randoms(use_true_random=False))
    store = MemoryStore()
    published = run_schedule(chance.randrange, [store] * len(deliveries), deliveries, data.draw(st.integers(0, 8)))
    check(published, store, {id.upper() for ids in deliveries for id in ids})


def test_a_store_that_reads_the_newest_state_for_a_duplicate_fails_the_check():
    """The tests above can fail: they do for duplicates that are handled on the newest state."""

    class Forgetful(MemoryStore):
        def read(self, handler, wanted):
            newest = super().read(handler, [(key, "another") for key, _ in wanted])
            return [
                reading._replace(state=now.state)
                for reading, now in zip(super().read(handler, wanted), newest, strict=True)
            ]

    class Trusting(Processor):
        def _run(self, action):
            return super()._run(action)._replace(fingerprint=bytes(16))

    published, store = [], Forgetful()
    worker = Trusting(store, append, published.extend)
    for id in (A, B, A):
        worker.handle(MESSAGES[id])
    with pytest.raises(AssertionError):
        check(published, store, {A, B})


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from handlers import append
from msgid.processing import Message, Processor, SqliteStore
store = SqliteStore({path!r})
processor = Processor(store, append, lambda outputs: None)
messages = [Message(id, "key", id[-4:]) for id in sys.argv[2:]]
if sys.argv[1] == "many":
    processor.handle_many(messages, batch=7)
else:
    for message in messages:
        processor.handle(message)
"""


def test_processes_at_once_handle_each_message_once(tmp_path):
    """Real processes on one file, one by one and in batches: every message changes the state once."""
    ids = [str(msgid.position_id("log", number, 1_700_000_000)) for number in range(40)]
    program = PROGRAM.format(tests=str(vectors.PROGRAMS), path=str(tmp_path / "states.db"))
    workers = [
        subprocess.Popen([sys.executable, "-c", program, way, *random.Random(number).sample(ids, len(ids))])
        for number, way in enumerate(["one", "one", "many"])
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    history = SqliteStore(tmp_path / "states.db").history("key")
    assert sorted(version.id for version in history) == sorted(ids)
    assert sorted(json.loads(history[-1].state)) == sorted(id[-4:] for id in ids)
