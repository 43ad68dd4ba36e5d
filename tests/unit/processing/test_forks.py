"""Stores across real forks: no connection is used or closed in a child that has inherited it."""

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from datetime import timedelta

import pytest
from handlers import append

from msgid.processing import MemoryStore, Message, PostgresStore, Processor, SqliteStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
needs_gil = pytest.mark.skipif("t" in getattr(sys, "abiflags", ""), reason="a free-threaded Python refuses this fork")
sqlite = sys.modules["msgid.processing.sqlite"]


def in_child(work):
    """Fork, run the work in the child, and return the child's process ID."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def ended_well(*pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * len(pids)


def handle(store, worker, count=100, key=None):
    processor = Processor(store, append, lambda outputs: None)
    for number in range(count):
        processor.handle(Message(f"{worker}-{number}", key or f"key {worker}", "x"))


@pytest.fixture
def quick(tmp_path):
    """A SQLite store that does not wait for the disk."""

    def new():
        store = SqliteStore(tmp_path / "states.db")
        open_connection = store._connection

        def connection():
            made = open_connection()
            made.execute("PRAGMA synchronous = OFF")
            return made

        store._connection = connection
        return store

    return new


def test_sqlite_store_in_parent_and_children_loses_nothing(quick):
    """Two children and the parent go on with one store object that was in use: every message is in the file."""
    store = quick()
    handle(store, "before", 5)
    children = [in_child(lambda name=name: handle(store, name)) for name in ("one", "two")]
    handle(store, "parent")
    assert ended_well(*children)
    handle(store, "after", 5)
    store.close()
    again = SqliteStore(store._path)
    counts = {name: len(again.history(f"key {name}")) for name in ("before", "one", "two", "parent", "after")}
    assert counts == {"before": 5, "one": 100, "two": 100, "parent": 100, "after": 5}


def test_sqlite_store_that_the_parent_closes_while_the_child_writes_loses_nothing(quick):
    """The parent closes its store, and ends its connection, in the middle of the child's work: the file has all."""
    store = quick()
    handle(store, "before", 5)
    child = in_child(lambda: handle(store, "child"))
    for _ in range(20):
        handle(store, "parent", 1)
        store.close()
    assert ended_well(child)
    assert len(SqliteStore(store._path).history("key child")) == 100


@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_child_loses_nothing_if_the_parent_drops_a_store_without_closing_it(tmp_path, in_a_cycle):
    """The child inherited the store's connection; when the parent freed it, SQLite deleted the log under the child."""
    path = tmp_path / "states.db"
    dropped = [SqliteStore(path)]
    handle(dropped[0], "before", 3)
    if in_a_cycle:
        dropped.append(dropped)
    del dropped
    (written, write), (freed, free) = os.pipe(), os.pipe()

    def work():
        store = SqliteStore(path)
        handle(store, "one", 5)
        os.write(write, b"1")
        os.read(freed, 1)
        handle(store, "two", 5)

    child = in_child(work)
    os.read(written, 1)
    gc.collect()
    os.write(free, b"1")
    assert ended_well(child)
    again = SqliteStore(path)
    assert [len(again.history(f"key {name}")) for name in ("before", "one", "two")] == [3, 5, 5]


INTERRUPTED = """
import os, signal, sys, threading
from msgid.processing import SqliteStore
one, other = SqliteStore(sys.argv[1]), SqliteStore(sys.argv[1] + ".other")
started, ended = threading.Event(), threading.Event()

def work(connection):
    started.set()
    ended.wait(2)

threading.Thread(target=lambda: one._transact(work, writes=True)).start()
started.wait()

def raises(number, frame):
    raise TimeoutError("the alarm")

signal.signal(signal.SIGALRM, raises)
signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
pid = os.fork()
signal.setitimer(signal.ITIMER_REAL, 0)
if pid == 0:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20)
    one.history("key"), other.history("key"), SqliteStore(sys.argv[1]).close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
used = threading.Event()

def use():
    one.history("key"), other.history("key"), SqliteStore(sys.argv[1])
    used.set()

threading.Thread(target=use).start()
assert used.wait(20)
"""


@needs_gil
def test_signal_handlers_that_raise_while_a_fork_waits_leave_no_lock(tmp_path):
    """The system forks in any case: the fork still waits for the transaction, and each process can use its stores."""
    program = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "states.db")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "TimeoutError: the alarm" in done.stderr


@needs_gil
def test_fork_while_another_thread_is_in_a_transaction(quick):
    """A fork waits for the transaction of another thread: parent and children lose nothing, and nothing hangs."""
    store, stop, done = quick(), threading.Event(), []

    def work():
        number = 0
        processor = Processor(store, append, lambda outputs: None)
        while not stop.is_set():
            processor.handle(Message(f"thread-{number}", f"thread {number % 7}", "x"))
            number += 1
        done.append(number)

    thread = threading.Thread(target=work)
    thread.start()
    children = []
    for number in range(8):
        time.sleep(0.01)
        children.append(in_child(lambda number=number: handle(store, f"child {number}", 20)))
    assert ended_well(*children)
    stop.set()
    thread.join(60)
    again = SqliteStore(store._path)
    assert [len(again.history(f"key child {number}")) for number in range(8)] == [20] * 8
    assert sum(len(again.history(f"thread {number}")) for number in range(7)) == done[0]


def test_fork_waits_while_another_thread_frees_a_connection(tmp_path, monkeypatch):
    """A fork in the middle copied a lock of SQLite that nobody released: about one child in 300 waited for ever."""
    closing, closed = threading.Event(), []

    class Slow(set):
        def discard(self, connection):
            closing.set()
            time.sleep(0.3)
            super().discard(connection)
            closed.append(True)

    dropped = [SqliteStore(tmp_path / "states.db")]
    handle(dropped[0], "before", 1)
    monkeypatch.setattr(sqlite, "_open", Slow(sqlite._open))
    thread = threading.Thread(target=lambda: (dropped.clear(), gc.collect()))
    thread.start()
    assert closing.wait(20)
    assert ended_well(in_child(lambda: closed or os._exit(1)))
    thread.join()


IN_TRANSACTION = """
import os, signal, sys
from msgid.processing import SqliteStore
store = SqliteStore(sys.argv[1])
codes = []

def fork(number, frame):
    pid = os.fork()
    if pid == 0:
        # The child of a fork in the middle of a transaction: neither this store nor a new one opens the file.
        for use in (lambda: store.history("key"), lambda: SqliteStore(sys.argv[1])):
            try:
                use()
            except RuntimeError as error:
                assert "cannot open" in str(error), error
            else:
                os._exit(3)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

signal.signal(signal.SIGUSR1, fork)

def work(connection):
    connection.execute("INSERT INTO msgid_handlers VALUES (1, 'h')")
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(1000):
        pass

store._transact(work, writes=True)
store.close()
assert codes == [0], codes
assert SqliteStore(sys.argv[1])._number("h") == 1
"""


def test_child_of_a_fork_in_the_middle_of_a_transaction_is_refused(tmp_path):
    """A signal handler forks in the middle of a transaction: the child cannot open the file, and the parent stores."""
    program = [sys.executable, "-c", IN_TRANSACTION, str(tmp_path / "states.db")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_child_of_a_fork_that_python_was_not_told_of_is_refused(tmp_path, monkeypatch):
    """If the process ID changed without a fork hook, the inherited connection is neither used nor closed."""
    store = SqliteStore(tmp_path / "states.db")
    handle(store, "one", 1)
    held = list(store._held)
    monkeypatch.setattr(os, "getpid", lambda: held[0].process + 1)
    with pytest.raises(RuntimeError, match=r"cannot open .*: it was forked while"):
        store.history("key one")
    monkeypatch.undo()
    (connection,) = held
    connection.execute("SELECT 1")
    connection.close()


def test_inherited_connection_stays_open_until_the_process_ends(tmp_path):
    """A child that ends would close it with Python, and could roll back the parent's transaction in shared memory."""
    store = SqliteStore(tmp_path / "states.db")
    connection = store._held.pop()
    connection.inherit()
    sqlite._open.discard(connection)
    left = weakref.ref(connection)
    del connection
    gc.collect()
    left().execute("SELECT 1")
    left().close()


def test_child_of_a_free_threaded_python_is_refused_if_other_threads_used_the_file(quick, monkeypatch):
    """Their connection may still be open in the child, which read wrong rows through it and damaged the file."""
    monkeypatch.setattr(sqlite, "_FREE_THREADED", True)
    monkeypatch.setattr(sqlite, "_users", {})
    store = quick()
    handle(store, "before", 5)
    assert ended_well(in_child(lambda: handle(store, "child", 5)))
    thread = threading.Thread(target=handle, args=(store, "thread", 5))
    thread.start()
    thread.join()

    def refused():
        for use in (lambda: store.history("key before"), lambda: SqliteStore(store._path)):
            with pytest.raises(RuntimeError, match=r"cannot open .*: it was forked by a free-threaded Python"):
                use()

    assert ended_well(in_child(refused), in_child(lambda: ended_well(in_child(refused)) or os._exit(1)))
    handle(store, "after", 5)
    assert [len(store.history(f"key {name}")) for name in ("before", "child", "thread", "after")] == [5] * 4


def test_memory_store_goes_on_in_parent_and_child():
    """After a fork, each process has a copy, and no lock stays locked."""
    store = MemoryStore()
    handle(store, "before", 5)

    def check():
        handle(store, "child", 5)
        assert len(store.history("key before")) == len(store.history("key child")) == 5

    assert ended_well(in_child(check))
    assert store.history("key child") == []


def test_postgres_store_in_parent_and_children(schema):
    """Children open connections of their own, and leave the parent's alone, also when they end."""
    store = PostgresStore(schema)
    handle(store, "before", 5)
    children = [in_child(lambda name=name: handle(store, name, 50)) for name in ("one", "two")]
    handle(store, "parent", 50)
    assert ended_well(*children)
    handle(store, "after", 5)
    counts = {name: len(store.history(f"key {name}")) for name in ("before", "one", "two", "parent", "after")}
    assert counts == {"before": 5, "one": 50, "two": 50, "parent": 50, "after": 5}
    assert len(store._idle) == 1


@needs_gil
def test_forgetting_goes_on_in_the_parent_alone(quick):
    """The thread does not run in a child, closing it there does nothing, and in the parent it goes on."""
    store = quick()
    processor = Processor(store, append, lambda outputs: None)
    forgetting = processor.start_forgetting(every=timedelta(milliseconds=2), older_than=timedelta(0))

    def check():
        assert not forgetting.running
        forgetting.close()
        handle(store, f"child {os.getpid()}", 5)

    assert ended_well(*[in_child(check) for _ in range(5)])
    assert forgetting.running
    handle(store, "parent", 5)
    deadline = time.monotonic() + 60
    while any(version.id for version in store.history("key parent")) and time.monotonic() < deadline:
        time.sleep(0.01)
    forgetting.close()
    assert [version.id for version in store.history("key parent")] == [None]
