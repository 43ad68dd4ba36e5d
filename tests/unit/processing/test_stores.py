"""The stores pass the tests of `msgid.testing`, a faulty store does not, and real processes share a file."""

import json
import random
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from helpers import vector_files as vectors

import msgid
from msgid.processing import BatchFailed, ChangedOutputs, MemoryStore, SqliteStore
from msgid.processing.store import Append, unpack
from msgid.testing import StoreTests, add, entry, read


class TestStores(StoreTests):
    """The stores in memory, in a file and in a real PostgreSQL server, with and without differences between states."""

    @pytest.fixture
    def open_store(self, new_store):
        return new_store


def forget_keys_with_entries(store, before, *, handler=None, keys=False):
    count = MemoryStore.forget(store, before, handler=handler)
    for key in {key for held in store._handlers.values() for key in held} if keys else ():
        if store.history(key)[0].id is None:
            store.forget_key(key)
    return count


FAULTS = {
    "the states of all handlers are mixed": {
        "read": lambda store, handler, wanted: MemoryStore.read(store, "one", wanted),
        "append": lambda store, handler, *appends: MemoryStore.append(store, "one", *appends),
    },
    "a key with entries is forgotten": {"forget": forget_keys_with_entries},
    "a key of all handlers is forgotten": {"forget_key": lambda store, key, **_: MemoryStore.forget_key(store, key)},
    "messages are new after a key is forgotten": {
        "forget_key": lambda store, *key, **of: store._forgotten.clear() or MemoryStore.forget_key(store, *key, **of)
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_contract_notices_a_faulty_store(fault):
    failed = []
    for name in dir(StoreTests):
        if name.startswith("test_") and name != "test_threads_lose_nothing":
            store = type("Faulty", (MemoryStore,), FAULTS[fault])()
            try:
                getattr(StoreTests(), name)(lambda store=store: store)
            except (AssertionError, BatchFailed, ChangedOutputs):
                failed.append(name)
    assert failed


def test_forget_of_more_than_one_transaction(new_store):
    store = new_store()
    entries = [entry(f"id{number}", b"s%d" % number, number) for number in range(2500)]
    random.Random(1).shuffle(entries)
    assert store.append("h", [Append("key", 0, None, entries)]) == [True]
    assert store.forget(2400) == 2400
    assert read(store, "id2399").forgotten == 2399
    assert read(store, "id2400").handled == [one.id for one in entries].index("id2400") + 1
    assert store.forget(2300 + 90 * 86_400_000_000) == 100  # the hashes of those before 2300 go
    found = store.read("h", [("key", f"id{number}") for number in range(2500)])
    assert [one.forgotten for one in found] == [None] * 2300 + list(range(2300, 2500))


def test_damaged_state_is_refused():
    """A column of another form is an error, and never a state."""
    with pytest.raises(ValueError, match="packed must be a packed state"):
        unpack(b"X123")


def test_forget_takes_datetimes(new_store):
    store = new_store()
    add(store, "a", b"x", stored_at=1_700_000_000_000_000)
    assert store.forget(datetime(2023, 11, 14, tzinfo=timezone.utc)) == 0
    assert store.forget(datetime(2023, 11, 15, tzinfo=timezone.utc)) == 1


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
