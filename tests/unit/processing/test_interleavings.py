"""Every schedule of two workers, and real processes at once: each message is handled once, whoever comes first."""

import json
import random
import subprocess
import sys

import pytest
from helpers import vector_files as vectors

import msgid
from msgid.processing import MemoryStore, SqliteStore
from msgid.testing import A, B, run_schedule


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


SCHEDULES = {
    "duplicates at once": ([[A], [A.lower()]], 3),
    "two messages, one of them twice": ([[A, B], [A]], 2),
    "two messages in another order": ([[A, B], [B]], 1),
}


@pytest.mark.volume
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_interleaving_and_kill(name, kind, tmp_path):
    """Two workers, a step of one or the other at a time, and a kill after any step."""
    deliveries, kills = SCHEDULES[name]
    choices, count = Choices(), 0
    path = tmp_path / "states.db"
    stores = [SqliteStore(path), SqliteStore(path)] if kind == "sqlite" else [MemoryStore()] * 2
    if kind == "sqlite":
        for store in stores:
            store._connection().execute("PRAGMA synchronous = OFF")  # nothing here ends the machine
    while True:
        count += 1
        run_schedule(choices.choose, stores, deliveries, kills, name=f"schedule {count}")
        if not choices.next():
            break
    assert count > 500


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
