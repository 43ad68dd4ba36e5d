"""Batches: larger than one statement, interrupted, on a full disk, and on tables that grow."""

import sys

import pytest
from handlers import careless
from helpers.commands import python

from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore

HOUR = 3_600_000_000


def batch(first, end, keys=7):
    return [Message(f"id {number}", f"key {number % keys}", {"word": str(number)}, 1) for number in range(first, end)]


def counted(state, message, context):
    """Count the messages of a key, and publish the number."""
    context.publish({"number": (state or 0) + 1})
    return (state or 0) + 1


def test_batch_of_more_messages_than_a_statement_reads_is_handled_one_by_one(new_store):
    """New, redelivered and forgotten messages in one large batch: the outcomes are those of `handle`."""
    now = [0]
    kinds, published = [], []
    for store in (MemoryStore(), new_store()):
        now[0] = 0
        outputs, letters = [], []
        processor = Processor(
            store, counted, outputs.extend, dead_letter=letters.append, clock=lambda: now[0] * 1000, name="counted"
        )
        processor.handle_many(batch(0, 290))
        now[0] = HOUR
        processor.handle_many(batch(290, 700))
        assert processor.forget(HOUR) == 290
        work = [*batch(0, 1000), *batch(900, 1300, keys=1000)]
        outcomes = processor.handle_many(work, batch=5000) if kinds else [processor.handle(one) for one in work]
        kinds.append([outcome.kind for outcome in outcomes])
        published.append([outcome.outputs for outcome in outcomes])
        assert len(letters) == kinds[-1].count("too late") == 290
    assert kinds[0] == kinds[1]
    assert published[0] == published[1]
    assert (kinds[0].count("duplicate"), kinds[0].count("new")) == (410, 700)


def test_batch_that_is_interrupted_is_stored_up_to_its_last_whole_transaction(new_store):
    """An interrupt in the handler, or in the publisher after the entries are stored: nothing is lost or done twice."""
    published, interrupts = [], [{"25"}, {"47"}]

    def interrupted(state, message, context):
        if message.body["word"] in interrupts[0]:
            interrupts[0].clear()
            raise KeyboardInterrupt
        return counted(state, message, context)

    def publish(outputs):
        if interrupts[1] and len(published) >= 40:
            interrupts[1].clear()
            raise KeyboardInterrupt
        published.extend(outputs)

    processor = Processor(new_store(), interrupted, publish, name="h")
    with pytest.raises(KeyboardInterrupt):
        processor.handle_many(batch(0, 60), batch=10)
    assert len(published) == 20
    with pytest.raises(KeyboardInterrupt):
        processor.handle_many(batch(0, 60), batch=10)
    outcomes = processor.handle_many(batch(0, 60), batch=10)
    assert {output.id: output.body for output in published} == {
        output.id: output.body for outcome in outcomes for output in outcome.outputs
    }
    assert sum(len(processor.history(f"key {number}")) for number in range(7)) == 60


FULL = """
import resource, signal, sys
from msgid.processing import Message, Processor, SqliteStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
published = []
def count(state, message, context):
    context.publish((state or [0])[0] + 1)
    return [(state or [0])[0] + 1, message.id * 500]
processor = Processor(SqliteStore(sys.argv[1]), count, published.extend)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
error = None
try:
    for first in range(0, 2000, 50):
        processor.handle_many([Message(f"id {n}", f"key {n % 3}", None) for n in range(first, first + 50)])
except Exception as caught:
    error = type(caught).__name__
print(error, len(published))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit for the length of files")
@pytest.mark.parametrize("limit", [200_000, pytest.param(1_000_000, marks=pytest.mark.details)])
def test_batch_on_a_full_disk_is_published_only_if_it_is_stored(tmp_path, limit):
    """A full disk raises an error; published messages are stored, and the others are handled when there is room."""
    path = tmp_path / "states.db"
    error, published = python(FULL, path, limit).stdout.split()
    assert error == "OperationalError"
    store = SqliteStore(path)
    assert sum(len(store.history(f"key {number}")) for number in range(3)) == int(published) < 2000
    assert python(FULL, path, 1 << 40).stdout.split() == ["None", "2000"]
    assert sum(len(store.history(f"key {number}")) for number in range(3)) == 2000


def test_postgres_store_never_scans_a_table(schema):
    """A plan of the time when the tables were empty finds each row by an index, so a batch costs its own rows alone."""
    store = PostgresStore(schema)
    plans = []
    take = store._take

    class Explaining:
        """A connection that explains each statement on the batch and then runs it."""

        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            return getattr(self.real, name)

        def execute(self, statement, values=None, **options):
            if isinstance(values, dict):
                rows = self.real.execute(f"EXPLAIN {statement}", values).fetchall()
                plans.append("\n".join(row[0] for row in rows))
            return self.real.execute(statement, values, **options)

    store._take = lambda: Explaining(take())
    store._give_back = lambda connection: store._idle.append(connection.real)
    processor = Processor(store, careless, list, name="h")
    processor.handle_many(batch(0, 300))
    assert len(plans) == 2
    for plan in plans:
        for word in ("Materialize", "Seq Scan", "Bitmap", "Hash Join", "Merge Join"):
            assert word not in plan
        assert plan.count("Index Scan using msgid_") == plan.count("Index Scan")
        assert "msgid_entries_stored_at" not in plan
