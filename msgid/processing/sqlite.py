"""States in a SQLite file, a store for one machine without a server."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import sys
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgid._retrying import retry, within
from msgid._validate import quote
from msgid.processing._fork import CLOSING, at_each_fork, register
from msgid.processing._sql import CREATE, READ, SqlStore, rows_of
from msgid.processing.errors import InvalidStore
from msgid.processing.store import DEFAULT_REMEMBER, hash_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import timedelta

    from msgid.processing._sql import Rows
    from msgid.processing.store import Append, Reading

_T = TypeVar("_T")
_URL: Final = re.compile("file:|[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SIZES: Final = (4, 32, 256)
"""The numbers of rows that one statement reads; only a few, so that each statement stays prepared."""
_UPDATE: Final = (
    "UPDATE msgid_heads SET version = ?, packed = ?, base = ? WHERE handler = ? AND key = ? AND version = ?"
)
_INSERT: Final = "INSERT INTO msgid_heads VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ENTRIES: Final = "INSERT INTO msgid_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_BASES: Final = "INSERT OR REPLACE INTO msgid_bases VALUES (?, ?, ?, ?)"
# CROSS JOIN fixes the order: each requested row is one search by the primary key.
_FIND_HEADS: Final = """
SELECT h.key, h.version, h.packed, h.base, b.packed
FROM asked CROSS JOIN msgid_heads h ON h.handler = ? AND h.key = asked.column1
LEFT JOIN msgid_bases b ON b.handler = h.handler AND b.key = h.key AND b.version = h.base"""
_FIND_ENTRIES: Final = """
SELECT e.key, e.id, e.version, e.fingerprint, e.outputs, e.packed, b.packed
FROM asked CROSS JOIN msgid_entries e ON e.handler = ? AND e.key = asked.column1 AND e.id = asked.column2
LEFT JOIN msgid_bases b ON b.handler = e.handler AND b.key = e.key AND b.version = e.base"""
_FIND_REMEMBERED: Final = """
SELECT r.hash, r.stored_at
FROM asked CROSS JOIN msgid_remembered r ON r.handler = ? AND r.hash = asked.column1"""
_FREE_THREADED: Final = "t" in getattr(sys, "abiflags", "")
_users: Final[dict[tuple[int, int], tuple[int, set[int]]]] = {}
"""Process ID and threads that have used a file, by device and inode; only in a free-threaded Python."""


_open: Final[set[_Connection]] = set()
"""All open connections, also those of dropped stores, and those that this process has inherited and never uses."""


class _Connection(sqlite3.Connection):
    """A connection of a store. It stays open until it is closed, so each fork finds it."""

    def __init__(self, path: str, **options: Any) -> None:
        self.process = os.getpid()
        self.file: tuple[int, int] | None = None  # device and inode, as soon as the file exists
        self.idle = False
        _open.add(self)
        try:
            super().__init__(path, **options)
        except BaseException:
            _open.discard(self)
            raise

    def close(self) -> None:
        with CLOSING:
            super().close()
            _open.discard(self)

    @property
    def is_own(self) -> bool:
        """Whether this process has opened the connection."""
        return self.process == os.getpid()

    def inherit(self) -> None:
        """Keep an inherited connection open until this process ends: closing it would damage the file."""
        if self.process:
            with suppress(ImportError):  # a Python without ctypes closes it at its end
                import ctypes

                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
            self.process = 0


class SqliteStore(SqlStore):
    """Stores states in a SQLite file, for any number of processes and threads.

    A process can fork. The connection is closed before each fork, after the running transaction, and both processes
    open new connections when they need them.

    A free-threaded Python closes a connection only after all threads that used it have freed their objects, and a fork
    cannot wait for that. If other threads than the forking one have used the file there, the child process cannot open
    the file: each use raises `RuntimeError`. Start processes with ``multiprocessing``'s method ``spawn`` there. A fork
    at the moment when another thread frees objects of SQLite can stop the child for ever.

    Args:
        path: Path of the file; a missing file is created.
        deltas: Number of states before messages that are stored as the differences to one base state; 0 stores every
            state in full.
        timeout: Maximum time in seconds to wait for other processes that write or open the file.
        remember: How long the hash of a forgotten message is kept: a timedelta or text such as ``"1 day"``; None keeps
            it forever.

    Raises:
        InvalidStore: if the file is not a store of this version.

    >>> import tempfile
    >>> store = SqliteStore(os.path.join(tempfile.mkdtemp(), "states.db"))
    >>> store.read("handler", [("key", "id")])[0].version
    0
    >>> store.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        deltas: int = 0,
        timeout: float = 30,
        remember: timedelta | str | None = DEFAULT_REMEMBER,
    ) -> None:
        super().__init__(deltas, remember, timeout)
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path must be the path of a file, got {quote(path)}")
        self._path = os.fspath(path)
        if isinstance(self._path, str) and _URL.match(self._path):
            raise ValueError(f"path must be the path of a file, not a URL, got {quote(self._path)}")
        if not self._path or self._path == ":memory:":
            raise ValueError(f"path must be the path of a file, got {self._path!r}; MemoryStore keeps states in memory")
        self._path = os.path.abspath(self._path)  # of the folder that is current now, also for later connections
        self._lock = threading.RLock()
        self._held: list[_Connection] = []  # at most one
        weakref.finalize(self, _close, self._held).atexit = False
        asked = "FROM (SELECT ? AS handler, ? AS key, ? AS id, ? AS hash, ? AS first) a"
        self._read_one = READ.format(asked=asked, handler="a.handler", deltas=int(bool(deltas)))
        register(self)
        try:
            self._transact(self._create, writes=True)
        except sqlite3.DatabaseError as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):
                folder = os.path.dirname(self._path)
                why = error if os.path.isdir(folder) else f"the folder {folder} is missing"
                raise sqlite3.OperationalError(f"cannot open {self._path}: {why}") from None
            raise InvalidStore(f"cannot open {self._path}: {error}") from None
        except InvalidStore:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""
        number = self._number(handler)

        def one(connection: sqlite3.Connection) -> list[Any]:
            (asked,) = self._asked(handler, wanted)
            return [connection.execute(self._read_one, (number, *asked)).fetchone()]

        def many(connection: sqlite3.Connection) -> list[Any]:
            return _find(connection, number, handler, wanted)

        # One statement reads one snapshot without a transaction around it.
        single = len(wanted) == 1
        return self._readings(wanted, self._transact(one if single else many, writes=False, plain=single))

    def append(self, handler: str, appends: Sequence[Append]) -> list[bool]:
        """Store entries in one transaction; return for each key whether its version was still the newest."""
        number = self._number(handler)
        rows = [(append, rows_of(append, self._deltas)) for append in appends]
        try:
            if self._transact(lambda connection: _store(connection, number, rows), writes=True):
                return [True] * len(rows)
            if len(rows) == 1:
                return [False]

            def work(connection: sqlite3.Connection) -> list[bool]:
                return [_store(connection, number, [row]) for row in rows]

            return self._transact(work, writes=True)
        except sqlite3.IntegrityError:  # the caller appended an entry that exists, without reading it before
            if len(appends) == 1:
                return [False]
            return [self.append(handler, [append])[0] for append in appends]

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            _close(self._held)

    def _create(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = None
        if "msgid_store" in tables:
            found = connection.execute("SELECT schema FROM msgid_store").fetchone()[0]
        self._check_schema(self._path, found)
        if found is None:
            for statement in CREATE:
                connection.execute(statement.format(bytes="BLOB", options="WITHOUT ROWID"))

    def _transact(self, work: Callable[[sqlite3.Connection], _T], *, writes: bool, plain: bool = False) -> _T:
        """Run work in a transaction; repeat it until the timeout while another process has locked the file.

        SQLite itself waits in most cases, but not while another process switches the file to WAL or recovers it.
        """
        begin = "" if plain else "BEGIN IMMEDIATE" if writes else "BEGIN"
        delays = within(self._timeout, lambda: random.uniform(0.001, 0.01))
        with self._lock:
            return retry(lambda: self._once(work, begin), _is_locked, delays)

    def _once(self, work: Callable[[sqlite3.Connection], _T], begin: str) -> _T:
        connection = self._connection()
        connection.idle = False
        try:
            if not begin:
                return work(connection)
            connection.execute(begin)
            result = work(connection)
            if connection.is_own:
                connection.execute("COMMIT")
                return result
            raise RuntimeError(f"cannot write to {self._path}: the process was forked in the middle of a transaction")
        finally:
            if connection.is_own:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.idle = True

    def _connection(self) -> _Connection:
        for connection in self._held:
            # A fork may have closed it, or this process may have inherited it.
            if connection in _open and connection.is_own:
                if _FREE_THREADED and connection.file:
                    _users[connection.file][1].add(threading.get_ident())
                return connection
        self._held.clear()
        self._check_inherited()
        connection = sqlite3.connect(
            self._path,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            cached_statements=64,
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a state is on the disk before its outputs are published
            # A batch of 1000 messages changes more than 1000 pages. SQLite's cache holds 500 pages by default, so it
            # would write some pages several times, and copy all of them after every batch.
            connection.execute("PRAGMA cache_size = -16000")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.file = _file(self._path)
        except BaseException:
            connection.close()
            raise
        self._held.append(connection)
        if _FREE_THREADED:
            if _users.get(connection.file, (0,))[0] != os.getpid():
                _users[connection.file] = (os.getpid(), set())
            _users[connection.file][1].add(threading.get_ident())
        return connection

    def _check_inherited(self) -> None:
        """Raise an error for a file on which this process has inherited a connection.

        SQLite would treat the locks of that connection as its own, and would delete files that are in use.
        """
        inherited = [connection for connection in list(_open) if not connection.is_own]
        if not (inherited or _users) or not os.path.exists(self._path):
            return
        file = _file(self._path)
        process, threads = _users.get(file, (os.getpid(), set()))
        if process != os.getpid() and threads - {threading.main_thread().ident}:
            why = "it was forked by a free-threaded Python in which other threads had used the file"
        elif any(connection.file in (file, None) for connection in inherited):
            why = "it was forked while a transaction was under way in the thread that forked"
        else:
            return
        raise RuntimeError(
            f"cannot open {self._path} in this process: {why};"
            " start the process in another way, such as multiprocessing's spawn"
        )

    def _after_fork_in_child(self) -> None:
        self._held.clear()


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _close(held: list[_Connection]) -> None:
    """Close the connection of a store that is closed, or dropped; not if the process has inherited it."""
    while held:
        if held[-1].is_own:
            held[-1].close()
        held.pop()


def _close_idle() -> None:
    """Close the connections before a fork, except that of a transaction in the thread that forks.

    A free-threaded Python keeps a file open that other threads have used.
    """
    for connection in list(_open):
        used_by_others = _users.get(connection.file or (0, 0), (0, set()))[1] - {threading.get_ident()}
        if connection.is_own and connection.idle and not used_by_others:
            with suppress(sqlite3.Error):
                connection.close()


def _keep_inherited() -> None:
    for connection in list(_open):
        connection.inherit()


at_each_fork(before=_close_idle, in_child=_keep_inherited)


def _file(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _find(
    connection: sqlite3.Connection, number: int, handler: str, wanted: Sequence[tuple[str, str]]
) -> list[tuple[Any, ...]]:
    """Return for each (key, ID) the row that `READ` returns."""
    keys = [(key,) for key in dict.fromkeys(key for key, _ in wanted)]
    heads = {row[0]: row[1:] for row in _ask(connection, _FIND_HEADS, number, keys)}
    entries = {row[:2]: row[2:] for row in _ask(connection, _FIND_ENTRIES, number, wanted)}
    late: dict[int | None, int] = {}
    hashes: list[int | None] = [None] * len(wanted)
    if connection.execute("SELECT 1 FROM msgid_remembered WHERE handler = ? LIMIT 1", (number,)).fetchone():
        hashes = [hash_of(handler, key, id) for key, id in wanted]
        late = dict(_ask(connection, _FIND_REMEMBERED, number, [(hash,) for hash in hashes]))
    return [
        (*heads.get(one[0], _NO_HEAD), *entries.get(one, _NO_ENTRY), late.get(hash))
        for one, hash in zip(wanted, hashes, strict=True)
    ]


_NO_HEAD: Final = (None,) * 4
_NO_ENTRY: Final = (None,) * 5


def _ask(connection: sqlite3.Connection, query: str, number: int, rows: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the results of a query for rows of values, several rows per statement."""
    most = _SIZES[-1]
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        size = next(size for size in _SIZES if size >= len(some))
        blanks = f"({', '.join('?' * len(some[0]))})"
        padded = [*some, *[some[-1]] * (size - len(some))]
        values = [value for row in padded for value in row]
        asked = f"WITH asked AS (VALUES {', '.join([blanks] * size)})"
        yield from connection.execute(asked + query, (*values, number))


def _store(connection: sqlite3.Connection, number: int, rows: Sequence[tuple[Append, Rows]]) -> bool:
    """Store appends if each has the newest version; otherwise change nothing and return False."""
    old = [(*made.head, number, append.key, append.version) for append, made in rows if append.version]
    new = [(number, append.key, *made.head) for append, made in rows if not append.version]
    connection.execute("SAVEPOINT msgid")
    if _change(connection, _UPDATE, old) + _change(connection, _INSERT, new) < len(rows):
        connection.execute("ROLLBACK TO msgid")
        return False
    _change(connection, _ENTRIES, [(number, append.key, *entry) for append, made in rows for entry in made.entries])
    _change(connection, _BASES, [(number, append.key, *base) for append, made in rows for base in made.bases])
    return True


def _change(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run a statement for each row; return the number of changed rows of the table."""
    return connection.executemany(statement, rows).rowcount if rows else 0
