"""The place of a store is replaced: a pool, a switchover, a deleted file, a copy; or a signal ends a call."""

import itertools
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from functools import partial

import pytest
from helpers.servers import running_pair, running_pool
from helpers.threads import at_once

from msgid.processing import InvalidStore, MemoryStore, Message, PostgresStore, Processor, SqliteStore

HAS_ALARM = hasattr(signal, "setitimer")


def count(state, message, context):
    """Return how many messages a key has had."""
    return (state or 0) + 1


def handled(store, *ids, key="key"):
    """Handle messages and return their outcomes."""
    processor = Processor(store, count, lambda outputs: None, name="count")
    return [processor.handle(Message(id, key, "")) for id in ids]


class Interrupted(Exception):
    """The error of a signal handler, such as the soft time limit of a worker."""


def test_exception_of_a_signal_handler_at_any_line_of_memory_store_loses_nothing():
    """The append was made or not, as a whole: the next delivery makes the same state."""
    for line in range(1, 80):
        store, left = MemoryStore(), [line]
        handled(store, "a")

        def trace(frame, event, _, left=left):
            if not frame.f_code.co_filename.endswith("memory.py"):
                return None
            left[0] -= event == "line"
            if left[0] == 0:
                raise Interrupted
            return trace

        previous = sys.gettrace()
        sys.settrace(trace)
        try:
            handled(store, "b")
        except Interrupted:
            pass
        finally:
            sys.settrace(previous)
        assert [outcome.state for outcome in handled(store, "b", "c", "a")] == [2, 3, 1]
        assert [version.version for version in store.history("key")] == [1, 2, 3]
        if left[0] > 0:
            assert line > 20, "the lines of an append were not all tried"
            return
    pytest.fail("an append has more lines than were tried")


@pytest.mark.parametrize("change", ["deleted", "replaced"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete an open file")
def test_file_of_an_open_store_that_is_deleted_or_replaced_is_refused(tmp_path, change):
    """Entries would go into a file that nobody sees."""
    path = tmp_path / "states.db"
    store = SqliteStore(path)
    handled(store, "a")
    path.rename(tmp_path / "old.db")
    if change == "replaced":
        SqliteStore(tmp_path / "new.db").close()
        (tmp_path / "new.db").rename(path)
    with pytest.raises(InvalidStore, match="the file of this store was deleted or replaced"):
        handled(store, "b")
    store.close()


def test_file_that_was_copied_without_its_log_is_refused(tmp_path):
    """The copy is without entries, and is not taken for a new store."""
    path, copy = tmp_path / "states.db", tmp_path / "copy.db"
    store = SqliteStore(path)
    handled(store, "a", "b")
    shutil.copy(path, copy)
    with pytest.raises(InvalidStore, match=r"has lost its entries. Copy it with its -wal file"):
        SqliteStore(copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    assert [outcome.kind for outcome in handled(SqliteStore(copy), "a", "b")] == ["duplicate"] * 2
    store.close()
    assert handled(SqliteStore(path), "b")[0].kind == "duplicate"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_file_of_a_process_that_was_killed_in_its_first_message_is_opened_again(tmp_path):
    """At each statement of the first open and the first message: nothing was copied, so nothing is lost."""

    class KilledStore(SqliteStore):
        """Ends the process at a statement, as `kill -9` does."""

        def _connection(self):
            connection = super()._connection()
            connection.set_trace_callback(lambda _: next(self.left, None) is None and os._exit(9))
            return connection

    for statement in itertools.count():
        path = tmp_path / f"{statement}.db"
        child = os.fork()
        if not child:
            KilledStore.left = iter(range(statement))
            handled(KilledStore(path), "a")
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        SqliteStore(path).close()
        assert [outcome.state for outcome in handled(SqliteStore(path), "a", "b")] == [1, 2]
        if not killed:
            break
    assert statement > 15, "the statements of a message were not all tried"


def test_store_without_entries_is_opened_again_in_the_file_of_an_application(tmp_path):
    """The first message failed; the version that the application keeps in its file stays."""
    path = tmp_path / "application.db"
    with sqlite3.connect(path) as application:
        application.execute("PRAGMA user_version = 1")
        application.execute("CREATE TABLE orders (id)")
    for _ in range(2):
        store = SqliteStore(path)
        with pytest.raises(ZeroDivisionError):
            Processor(store, lambda state, message, context: 1 / 0, list, name="count").handle(Message("a", "key", ""))
        store.close()
    assert handled(SqliteStore(path), "a")[0].kind == "new"
    assert application.execute("PRAGMA user_version").fetchone() == (1,)
    application.close()


@pytest.mark.skipif(not HAS_ALARM, reason="no SIGALRM")
def test_connection_that_a_signal_handler_has_left_at_work_is_not_used_again(schema):
    """A time limit ends a call that waits for a lock; the next calls work."""
    import psycopg

    store = PostgresStore(schema)
    handled(store, "a")

    def stop(*_):
        raise Interrupted

    previous = signal.signal(signal.SIGALRM, stop)
    try:
        with psycopg.connect(schema) as other:
            other.execute("UPDATE msgid_heads SET version = version")
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Interrupted):
                handled(store, "b")
            other.rollback()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert [outcome.state for outcome in handled(store, "b", "c")] == [2, 3]


def test_server_that_becomes_read_only_is_waited_for(schema):
    """After a switchover, an open connection leads to a server that takes no writes."""
    import psycopg

    store = PostgresStore(schema, timeout=30)
    handled(store, "a")
    with psycopg.connect(schema, autocommit=True) as other:

        def set_read_only(value):
            other.execute("SET default_transaction_read_only = off")
            other.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            other.execute("SELECT pg_reload_conf()")

        try:
            set_read_only("on")
            time.sleep(0.2)  # the server's processes read the setting
            timer = threading.Timer(1, set_read_only, ["off"])
            timer.start()
            assert [outcome.state for outcome in handled(store, "b", "c")] == [2, 3]
            timer.join()
            set_read_only("on")
            time.sleep(0.2)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                handled(PostgresStore(schema, timeout=0), "d")
        finally:
            set_read_only("off")


@pytest.mark.programs
@pytest.mark.parametrize("old", ["read-only", "stopped"])
def test_switchover_to_another_server_loses_and_doubles_nothing(old):
    """The old primary takes no writes or stops, and its standby is promoted, while two workers handle messages."""
    psycopg = pytest.importorskip("psycopg")
    with running_pair() as (primary, standby):
        address = f"host=127.0.0.1,127.0.0.1 port={primary.port},{standby.port} user=msgid dbname=postgres"
        address += " target_session_attrs=read-write"
        stores = [PostgresStore(address, timeout=60) for _ in range(2)]
        done, failed, is_over = [[], []], [], threading.Event()

        def work(worker):
            store, number = stores[worker], 0
            try:
                while not is_over.is_set():
                    handled(store, f"{worker}-{number}", key=f"key {number % 2}")
                    done[worker].append(f"{worker}-{number}")
                    number += 1
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2)]
        for thread in threads:
            thread.start()

        def wait_for_more():
            before, end = [len(ids) for ids in done], time.monotonic() + 60
            while not failed and any(len(ids) < count + 20 for ids, count in zip(done, before, strict=True)):
                assert time.monotonic() < end, "the workers do not go on"
                time.sleep(0.01)

        try:
            wait_for_more()
            if old == "stopped":
                primary.control("-m", "fast", "stop")
            else:
                switch_to_read_only(psycopg, primary, standby)
            standby.control("promote")
            wait_for_more()
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        assert not failed
        with psycopg.connect(standby.address) as connection:
            ids = [id for (id,) in connection.execute("SELECT id FROM msgid_entries").fetchall()]
        assert sorted(ids) == sorted(id for worker in done for id in worker)
        assert [outcome.kind for outcome in handled(stores[0], "0-0", "0-2", key="key 0")] == ["duplicate"] * 2
        versions = [version.version for version in stores[1].history("key 0")]
        assert versions == list(range(1, len(versions) + 1))
        for store in stores:
            store.close()


def switch_to_read_only(psycopg, primary, standby):
    """Let a primary take no more transactions that write, and wait until its standby has all of its entries."""
    with (
        psycopg.connect(primary.address, autocommit=True) as old,
        psycopg.connect(standby.address, autocommit=True) as new,
    ):
        old.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        old.execute("SELECT pg_reload_conf()")
        at, end = None, time.monotonic() + 60
        while at != (at := old.execute("SELECT pg_current_wal_lsn()::text").fetchone()[0]):
            time.sleep(0.3)
        while not new.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (at,)).fetchone()[0]:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_store_behind_a_pool_in_transaction_mode_handles_each_message_once(schema):
    """Two workers share a server connection; nothing stays on it. Without the option, the pool is named."""
    import psycopg

    with running_pool(schema) as pooled:
        stores = [PostgresStore(pooled, pooled=True, timeout=5) for _ in range(3)]

        def work(number):
            handled(stores[number], *(f"{number}-{n % 20}" for n in range(40)), key=f"key {number % 2}")

        assert at_once(*(partial(work, number) for number in range(3))) == [None] * 3
        assert {version.version for version in stores[0].history("key 0")} == set(range(1, 41))
        with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as other:
            assert other.execute("SHOW enable_seqscan").fetchone() == ("on",)
            assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        others = [PostgresStore(pooled), PostgresStore(pooled)]
        with pytest.raises(InvalidStore, match="from a pool in transaction mode: pass pooled=True"):
            [handled(store, str(number)) for number in range(40) for store in others]
