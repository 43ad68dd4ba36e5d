"""`msgid.processing`: every interleaving of workers, duplicates and crashes, on every store."""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid.processing import Context, MemoryStore, Message, PostgresStore, Processor, SqliteStore, TooLate
from msgid.processing.store import NOTHING_FORGOTTEN, Entry, Row, keep, pack, unpack

A, B = (str(msgid.position_id("log", number, 1_700_000_000 + number)) for number in range(2))


def append(state, message, context):
    """A handler whose state says all that happened, and whose output says on which state it was run."""
    state = state or []
    context.publish({"before": state, "body": message.body, "random": context.random.random()})
    if message.body == "twice":
        context.publish({"id": str(context.new_id()), "now": context.now.isoformat()})
    return [*state, message.body]


MESSAGES = {A: Message(A, "key", "a"), B: Message(B, "key", "twice")}


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server, where one is installed."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb = shutil.which("initdb") or next((str(place / "initdb") for place in places), None)
    if initdb is None or sys.platform == "win32":
        pytest.skip("no PostgreSQL server is installed")
    # Not in pytest's folders: another user cannot look into them, and a socket's path has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="msgid-"))
    binaries, data = Path(initdb).parent, folder / "data"
    as_user = []
    if os.geteuid() == 0:  # the server refuses to be run by root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")

    def call(program, *arguments):
        subprocess.run([*as_user, str(binaries / program), *arguments], check=True, capture_output=True, cwd=folder)

    try:
        call("initdb", "-D", str(data), "-A", "trust", "-U", "msgid", "--no-sync")
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder)
        pytest.skip(f"PostgreSQL cannot be started: {getattr(error, 'stderr', error)}")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    call("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    yield f"host={folder} user=msgid dbname=postgres"
    call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture(params=["memory", "sqlite", "sqlite, deltas", "postgres", "postgres, deltas"])
def new_store(request, tmp_path):
    """Makes stores with nothing in them; called again with the same name it opens the same one."""
    deltas = 3 if "deltas" in request.param else 0
    opened = {}

    def new(name="states"):
        if request.param == "memory":
            return opened.setdefault(name, MemoryStore())
        if request.param.startswith("sqlite"):
            return SqliteStore(tmp_path / f"{name}.db", deltas=deltas)
        conninfo = request.getfixturevalue("postgres")
        import psycopg

        if name not in opened:
            opened[name] = f"s{len(opened)}_{random.randrange(1 << 60)}"
            with psycopg.connect(conninfo, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {opened[name]}")
        return PostgresStore(f"{conninfo} options='-c search_path={opened[name]}'", deltas=deltas)

    return new


def test_versions(new_store):
    """A store keeps what was appended to the newest version, and nothing that was not."""
    store = new_store()
    assert store.append("key", 0, Entry(A, 5, b"first"))
    assert not store.append("key", 0, Entry(B, 6, b"other"))
    assert not store.append("key", 2, Entry(B, 6, b"other"))
    assert store.append("key", 1, Entry(B, 6, b"second"))
    assert store.read("key", A) == (2, 1, None, NOTHING_FORGOTTEN)
    assert store.read("key", B) == (2, 2, b"first", NOTHING_FORGOTTEN)
    assert store.read("key", "another") == (2, None, b"second", NOTHING_FORGOTTEN)
    assert store.read("nobody", A) == (0, None, None, NOTHING_FORGOTTEN)
    again = new_store()
    assert [version.state for version in again.history("key")] == [b"first", b"second"]


def test_a_message_is_not_stored_twice(new_store):
    """Even by a worker that did not look for it."""
    store = new_store()
    assert store.append("key", 0, Entry(A, 5, b"first"))
    if not isinstance(store, MemoryStore):
        assert not store.append("key", 1, Entry(A, 5, b"again"))
        assert len(store.history("key")) == 1


def test_forgetting(new_store):
    """The newest state stays, and what the oldest that is known was made of; all else before the moment goes."""
    store = new_store()
    for number in range(8):
        store.append("key", number, Entry(f"id{number}", number * 10, b"state %d" % number))
        store.append("old", number, Entry(f"id{number}", number, b"state %d" % number))
    assert store.forget(50) == 4 + 7
    assert [(version.id, version.state) for version in store.history("key")] == [
        (None, b"state 4"),
        ("id5", b"state 5"),
        ("id6", b"state 6"),
        ("id7", b"state 7"),
    ]
    assert [(version.id, version.state) for version in store.history("old")] == [(None, b"state 7")]
    assert store.read("key", "id5") == (8, 6, b"state 4", 50)
    assert store.read("key", "id4") == (8, None, b"state 7", 50)
    assert store.forget(50) == store.forget(20) == 0
    assert store.read("key", "id4").forgotten_before == 50
    assert store.append("old", 8, Entry("id8", 100, b"state 8"))
    assert [version.state for version in store.history("old")] == [b"state 7", b"state 8"]


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=12), st.integers(0, 13), st.integers(1, 4))
def test_deltas_are_what_was_packed(states, before, every):
    """Whole or as what differs, and with its beginning forgotten: every state comes back."""
    rows = []
    for number, state in enumerate(states):
        previous = states[number - 1] if number % every else None
        rows.append(Row(number + 1, str(number), number, pack(state, previous)))
    assert [unpack(rows, row.version) for row in rows] == states
    kept = keep(rows, before)
    assert [unpack(kept, row.version) for row in kept] == states[-len(kept) :]


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
    """Run a worker for each list of deliveries, a step of one of them at a time; give what was published and the store.

    A worker that crashes loses what it had in hand, and is given the same message again.
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
        for output in context.outputs:  # what was published is what the handler says on the state before
            assert by_place.pop((output.input_id, output.number)) == {json.dumps([output.id, output.body])}
    assert not by_place


SCHEDULES = {
    "duplicates at once": ([[A], [A]], 3),
    "two messages, one of them twice": ([[A, B], [A]], 2),
    "two messages in another order": ([[A, B], [B]], 1),
}


@pytest.mark.slow
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
            with stores[0].transaction(writes=True) as connection:
                connection.execute("DELETE FROM msgid_versions")
            for store in stores:
                store._connection().execute("PRAGMA synchronous = OFF")  # nothing here ends the machine
        else:
            stores = [MemoryStore()] * 2
        published = run_schedule(choices.choose, stores, deliveries, crashes)
        check(published, stores[0], {id for ids in deliveries for id in ids})
        count += 1
        if not choices.next():
            break
    assert count > 500


@settings(max_examples=150)
@given(data=st.data())
def test_long_random_schedules(data):
    """More workers, messages, duplicates and crashes than can be walked through: the four properties hold."""
    deliveries = data.draw(st.lists(st.lists(st.sampled_from([A, B]), max_size=5), min_size=2, max_size=4))
    chance = data.draw(st.randoms(use_true_random=False))
    store = MemoryStore()
    published = run_schedule(chance.randrange, [store] * len(deliveries), deliveries, data.draw(st.integers(0, 8)))
    check(published, store, {id for ids in deliveries for id in ids})


def test_a_handler_on_the_newest_state_would_fail():
    """The tests above can fail: a processor that handles duplicates on the newest state does."""

    class Forgetful(MemoryStore):
        def read(self, key, id):
            reading = super().read(key, id)
            return reading._replace(state=super().read(key, "another").state)

    store = Forgetful()
    published = run_schedule(lambda options: 0, [store], [[A, B, A]], 0)
    with pytest.raises(AssertionError):
        check(published, store, {A, B})


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from test_processing import append
from msgid.processing import Message, Processor, SqliteStore
store = SqliteStore({path!r})
for id in sys.argv[2:]:
    Processor(store, append, lambda outputs: None).handle(Message(id, "key", sys.argv[1] + id[-4:]))
"""


def test_processes_at_once(tmp_path):
    """Real processes on one file: every message is handled once."""
    ids = [str(msgid.position_id("log", number, 1_700_000_000)) for number in range(40)]
    program = PROGRAM.format(tests=str(Path(__file__).parent), path=str(tmp_path / "states.db"))
    workers = [
        subprocess.Popen([sys.executable, "-c", program, "", *random.Random(number).sample(ids, len(ids))])
        for number in range(3)
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    history = SqliteStore(tmp_path / "states.db").history("key")
    assert sorted(version.id for version in history) == sorted(ids)
    assert sorted(json.loads(history[-1].state)) == sorted(id[-4:] for id in ids)


def test_context_is_the_same_everywhere():
    """What it gives follows from the id alone: here are the values, which no machine may change."""
    context = Context(Message(A, "key", None, 5))
    assert [str(context.new_id()), str(context.new_id())] == [
        str(msgid.derive_id(A, "new 1")),
        str(msgid.derive_id(A, "new 2")),
    ]
    assert context.publish("x") == str(msgid.derive_id(A, "output 0"))
    assert context.publish("y", topic="t") == str(msgid.derive_id(A, "output 1"))
    assert [output.topic for output in context.outputs] == [None, "t"]
    assert context.now.timestamp() == 5e-6
    fixed = Context(Message("0156F7E71C361B21BC024CCDBE00000000", "key", None))
    assert [fixed.random.randrange(1000) for _ in range(3)] == [855, 648, 246]
    assert Message("7F0000010000238F000000000001E240", "key", None).at == 0


def test_what_is_no_id_is_refused():
    """Before anything is read or stored."""
    with pytest.raises(msgid.InvalidMessageId):
        Processor(MemoryStore(), append, print).handle(Message("x", "key", None))


def test_a_publisher_that_fails_is_called_again(new_store):
    """The message was stored and not published: it comes again, and is."""
    store, published = new_store(), []

    def fail(outputs):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        Processor(store, append, fail).handle(MESSAGES[A])
    assert Processor(new_store(), append, published.extend).handle(MESSAGES[A]).kind == "duplicate"
    assert [output.body["before"] for output in published] == [[]]


def test_too_late_pickles():
    """It travels between processes."""
    import pickle

    error = pickle.loads(pickle.dumps(TooLate(MESSAGES[A], 7)))
    assert (error.message, error.forgotten_before) == (MESSAGES[A], 7)
    assert list(itertools.islice(Choices().taken, 1)) == []
