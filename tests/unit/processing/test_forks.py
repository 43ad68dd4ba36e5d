"""Stores across real forks: a child is refused in one line, and changes nothing for its parent."""

import os
import sys

import pytest
from handlers import append
from helpers.commands import python

from msgid.processing import Message, Processor, SqliteStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def ended_well(work):
    """Fork, run the work in the child, and return whether it raised nothing; the child ends as Python does."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def handle(store, worker, count=5):
    processor = Processor(store, append, lambda outputs: None)
    return [processor.handle(Message(f"{worker}-{number}", f"key {worker}", "x")).kind for number in range(count)]


def test_child_is_refused_by_a_store_of_its_parent(new_store):
    """Reading, handling, history and forgetting name the cause; closing does nothing; the parent goes on."""
    store = new_store()
    handle(store, "before")

    def refused():
        name = type(store).__name__
        for use in (
            lambda: store.read("h", [("key", "id")]),
            lambda: handle(store, "child"),
            lambda: store.history("key before"),
            lambda: store.forget(0),
        ):
            with pytest.raises(RuntimeError, match=f"cannot use a {name} after a fork: process .*; open a store in"):
                use()
        if hasattr(store, "close"):
            store.close()

    assert ended_well(refused)
    assert handle(store, "before") == ["duplicate"] * 5
    assert handle(store, "after") == ["new"] * 5


def test_child_cannot_open_a_file_that_was_open_at_the_fork(tmp_path):
    """SQLite would take the inherited locks for its own; after the parent has closed its store, a child may open it."""
    store = SqliteStore(tmp_path / "states.db")
    handle(store, "before")

    def refused():
        with pytest.raises(RuntimeError, match="in this process: it was open at the fork; close the store before"):
            SqliteStore(tmp_path / "states.db")
        handle(SqliteStore(tmp_path / "other.db"), "child")

    assert ended_well(refused)
    store.close()
    assert ended_well(lambda: handle(SqliteStore(tmp_path / "states.db"), "child"))
    assert handle(store, "after") == ["new"] * 5
    counts = [len(store.history(f"key {name}")) for name in ("before", "child", "after")]
    assert counts == ([5, 5, 5] if "t" not in getattr(sys, "abiflags", "") else [5, 0, 5])


def test_store_that_is_dropped_frees_its_file(tmp_path):
    handle(SqliteStore(tmp_path / "states.db"), "before")
    assert ended_well(lambda: handle(SqliteStore(tmp_path / "states.db"), "child"))


ENDING = """
import gc, os, signal, sys
from msgid.processing import SqliteStore

store = SqliteStore(sys.argv[1])
forked = []

def fork(number, frame):
    forked.append(os.fork())

signal.signal(signal.SIGUSR1, fork)

def work(connection):
    forked.insert(0, connection)
    connection.execute("INSERT INTO msgid_handlers VALUES (1, 'h')")
    os.kill(os.getpid(), signal.SIGUSR1)
    if forked[1]:
        assert os.waitstatus_to_exitcode(os.waitpid(forked[1], 0)[1]) == 7
    return "done"

try:
    store._transact(work, writes=True)
except RuntimeError as error:
    assert "cannot use a SqliteStore after a fork" in str(error)
    assert forked.pop(0).in_transaction
    del store  # the child frees the connection, and ends as Python ends
    gc.collect()
    sys.exit(7)
store.close()
assert SqliteStore(sys.argv[1])._handlers("h") == [(1, "h")]
"""


def test_child_that_ends_in_the_middle_of_a_transaction_damages_nothing(tmp_path):
    """A signal handler forks in a transaction: the child neither commits nor rolls back, and the parent stores."""
    done = python(ENDING, tmp_path / "states.db")
    assert (done.returncode, done.stderr) == (0, "")
