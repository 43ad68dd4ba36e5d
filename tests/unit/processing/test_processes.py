"""Real processes at once on one file: each message is handled once, whoever comes first."""

import json
import random
import subprocess
import sys

from helpers import vector_files as vectors

import msgid
from msgid.processing import SqliteStore

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
