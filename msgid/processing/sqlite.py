"""States in a SQLite file, a store for one machine without a server."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import sys
import threading
import weakref
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from msgid.processing._sql import CREATE, READ, SqlStore, rows_of
from msgid.processing.errors import InvalidStore
from msgid.processing.store import DEFAULT_REMEMBER, HASH_IN, check_process, hash_of
from msgid.shared.retrying import retry, within
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import timedelta

    from msgid.processing._sql import Rows
    from msgid.processing.store import Append, Reading

_T = TypeVar("_T")
_URL: Final = re.compile("file:|[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_SIZES: Final = (4, 32, 256)
"""The numbers of rows that one statement reads; only a few, so that each statement stays prepared."""
_UPDATE: Final = f"""
UPDATE msgid_heads SET version = ?, packed = ?
WHERE handler = ? AND key = ? AND version = ? AND {HASH_IN.format("packed")} = {HASH_IN.format("?")}"""
_INSERT: Final = "INSERT INTO msgid_heads VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ENTRIES: Final = "INSERT INTO msgid_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UNPUBLISHED: Final = "INSERT OR REPLACE INTO msgid_unpublished VALUES (?, ?, ?)"
# CROSS JOIN fixes the order: each requested row is one search by the primary key.
_FIND_HEADS: Final = """
SELECT h.key, h.version, h.packed
FROM asked CROSS JOIN msgid_heads h ON h.handler = ? AND h.key = asked.column1"""
_FIND_ENTRIES: Final = """
SELECT e.key, e.id, e.version, e.fingerprint, e.outputs, e.packed
FROM asked CROSS JOIN msgid_entries e ON e.handler = ? AND e.key = asked.column1 AND e.id = asked.column2"""
_FIND_REMEMBERED: Final = """
SELECT r.hash, r.stored_at
FROM asked CROSS JOIN msgid_remembered r ON r.handler = ? AND r.hash = asked.column1"""
_MARK: Final = "msgid_began"
"""The table in a file that gets its first entry, or has had it; with a row, states were deleted on purpose."""
_CREATE_MARK: Final = f"CREATE TABLE IF NOT EXISTS {_MARK} (at BIGINT)"
_FREE_THREADED: Final = "t" in getattr(sys, "abiflags", "")
_opened: Final[Counter[tuple[int, int, int]]] = Counter()
"""The number of open connections by process, device and inode; those of other processes are inherited."""


class _Open(NamedTuple):
    """An open connection."""

    connection: sqlite3.Connection
    process: int
    opened_as: tuple[int, int, int]


class SqliteStore(SqlStore):
    """Stores states in a SQLite file, for any number of processes and threads.

    A child process that inherits the store cannot use it, and cannot open its file while the parent's connection was
    open at the fork. Close the store before a fork, or start processes with ``multiprocessing``'s method ``spawn``.

    Args:
        path: Path of the file; a missing file is created.
        timeout: Maximum time in seconds to wait for other processes that write or open the file.
        remember: How long the hash of a forgotten message is kept: a timedelta or text such as ``"1 day"``; None keeps
            it forever.

    Raises:
        InvalidStore: if the file is not a store of this version, if it was copied without the entries in its
            ``-wal`` file, or if the path of an open store has lost its file, or has another one.

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
        timeout: float = 30,
        remember: timedelta | str | None = DEFAULT_REMEMBER,
    ) -> None:
        super().__init__(remember, timeout)
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path must be the path of a file, got {quote(path)}")
        self._path = os.fspath(path)
        if isinstance(self._path, str) and _URL.match(self._path):
            raise ValueError(f"path must be the path of a file, not a URL, got {quote(self._path)}")
        if not self._path or self._path == ":memory:":
            raise ValueError(f"path must be the path of a file, got {self._path!r}; MemoryStore keeps states in memory")
        self._path = os.path.abspath(self._path)  # of the folder that is current now, also for later connections
        self._lock = threading.RLock()
        self._connections: list[_Open] = []  # at most one
        self._process = os.getpid()
        self._is_marked = False
        weakref.finalize(self, _close, self._connections)
        asked = "FROM (SELECT ? AS handler, ? AS key, ? AS id, ? AS hash, ? AS first) a"
        self._read_one = READ.format(asked=asked, handler="a.handler")
        try:
            self._transact(self._create, writes=True)
        except InvalidStore:
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                folder = os.path.dirname(self._path)
                if _is_locked(error):
                    raise
                why = error if os.path.isdir(folder) else f"the folder {folder} is missing"
                raise sqlite3.OperationalError(f"cannot open {self._path}: {why}") from None
            raise InvalidStore(f"cannot open {self._path}: {error}") from None

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

    def append(self, handler: str, appends: Sequence[Append], writer: int | None = None) -> list[bool]:
        """Store entries in one transaction; return for each key whether its version was still the newest."""
        number = self._number(handler)
        rows = [(append, rows_of(append)) for append in appends]
        self._mark()
        if self._transact(lambda connection: _store(connection, number, rows, writer), writes=True):
            return [True] * len(rows)
        if len(rows) == 1:
            return [False]

        def work(connection: sqlite3.Connection) -> list[bool]:
            return [_store(connection, number, [row], writer) for row in rows]

        return self._transact(work, writes=True)

    def close(self) -> None:
        """Close the connection; the next use opens it again. It does nothing in a forked child."""
        if os.getpid() == self._process:
            with self._lock:
                _close(self._connections)

    def _create(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        schema = None
        if "msgid_store" in tables:
            schema = connection.execute("SELECT schema FROM msgid_store").fetchone() or (None,)
        self._check_tables(self._path, schema)
        if schema is None:
            for statement in CREATE:
                connection.execute(statement.format(bytes="BLOB", options="WITHOUT ROWID"))
        self._is_marked = _MARK in tables
        lost = f"SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM msgid_heads) AND NOT EXISTS (SELECT 1 FROM {_MARK})"
        if self._is_marked and connection.execute(lost).fetchone():
            log = f"{os.path.realpath(self._path)}-wal"
            if not os.path.exists(log) or not os.path.getsize(log):  # this connection has not written into it yet
                raise InvalidStore(
                    f"cannot open {self._path}: it has lost its entries. Copy it with its -wal file, or by sqlite3's"
                    " .backup; if its first message was never handled, delete it"
                )
            # With its log, the file has lost nothing: a process ended, or is, between the mark and the first entry.
            connection.execute(f"DROP TABLE {_MARK}")
            self._is_marked = False

    def _emptied(self, connection: sqlite3.Connection) -> None:
        # Another process may have written the mark after this one looked, or dropped it.
        connection.execute(_CREATE_MARK)
        connection.execute(f"INSERT INTO {_MARK} SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM {_MARK})")

    def _mark(self) -> None:
        """Write into the file itself, not only into its log, that the store will have entries."""
        if not self._is_marked:
            self._transact(lambda db: db.execute(_CREATE_MARK), writes=True)
            self._transact(lambda db: db.execute("PRAGMA wal_checkpoint").fetchone(), writes=False, plain=True)
            self._is_marked = True

    def _transact(
        self,
        work: Callable[[sqlite3.Connection], _T],
        *,
        writes: bool,
        keys: Sequence[str] = (),
        plain: bool = False,
    ) -> _T:
        """Run work in a transaction; repeat it until the timeout while another process has locked the file.

        SQLite itself waits in most cases, but not while another process switches the file to WAL or recovers it.
        """
        begin = "" if plain else "BEGIN IMMEDIATE" if writes else "BEGIN"
        delays = within(self._timeout, lambda: random.uniform(0.001, 0.01))
        check_process(self, self._process)
        with self._lock:
            try:
                return retry(lambda: self._once(work, begin), _is_locked, delays)
            except sqlite3.OperationalError as error:
                if not _is_locked(error):
                    raise
                raise sqlite3.OperationalError(
                    f"cannot use {self._path} within timeout={self._timeout:g} seconds: {error} by another process. "
                    "Pass a longer timeout, or end the process that keeps a transaction open; for workers on several "
                    "machines, take a PostgresStore"
                ) from None

    def _once(self, work: Callable[[sqlite3.Connection], _T], begin: str) -> _T:
        connection = self._connection()
        if begin and connection.in_transaction:
            raise RuntimeError("cannot use a SqliteStore in the middle of its own transaction, as in a signal handler")
        try:
            if not begin:
                return work(connection)
            connection.execute(begin)
            result = work(connection)
            check_process(self, self._process)  # a signal handler may fork in the middle of the transaction
            connection.execute("COMMIT")
            return result
        finally:
            if os.getpid() == self._process and connection.in_transaction:
                connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        if self._connections:
            if _file(self._path) != self._connections[0].opened_as[1:]:
                raise InvalidStore(f"cannot use {self._path}: the file of this store was deleted or replaced")
            return self._connections[0].connection
        self._check_inherited()
        connection = sqlite3.connect(
            self._path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a state is on the disk before its outputs are published
            # A batch of 1000 messages changes more than 1000 pages. SQLite's cache holds 500 pages by default, so it
            # would write some pages several times, and copy all of them after every batch.
            connection.execute("PRAGMA cache_size = -16000")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            opened_as = (self._process, *_file(self._path))
        except BaseException:
            connection.close()
            raise
        _count_reference(connection, 1)
        _opened[opened_as] += 1
        self._connections.append(_Open(connection, self._process, opened_as))
        return connection

    def _check_inherited(self) -> None:
        """Raise an error for a file on which this process has inherited a connection.

        SQLite would treat the locks of that connection as its own, and would delete files that are in use.
        """
        inherited = {
            opened_as[1:] for opened_as, count in list(_opened.items()) if count and opened_as[0] != self._process
        }
        if inherited and _file(self._path) in inherited:
            raise RuntimeError(
                f"cannot open {self._path} in this process: it was open at the fork; close the store before a fork, or"
                " start the process in another way, such as multiprocessing's spawn"
            )


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _close(connections: list[_Open]) -> None:
    """Close the connection of a store that is closed, or dropped; not if the process has inherited it."""
    while connections:
        connection, process, opened_as = connections.pop()
        if process == os.getpid():
            connection.close()
            # A free-threaded Python may keep the file open that other threads have used.
            _opened[opened_as] -= 0 if _FREE_THREADED else 1
            _count_reference(connection, -1)


def _count_reference(connection: sqlite3.Connection, change: Literal[1, -1]) -> None:
    """Add or remove a reference, so that Python never closes a connection: a child would damage its parent's file."""
    with suppress(ImportError, AttributeError):  # a Python without ctypes, or without counted references
        import ctypes

        change_by_one = ctypes.pythonapi.Py_IncRef if change == 1 else ctypes.pythonapi.Py_DecRef
        change_by_one(ctypes.py_object(connection))


def _file(path: str) -> tuple[int, int]:
    """Return the device and the inode of a file; zeros if it is missing."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
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


_NO_HEAD: Final = (None,) * 2
_NO_ENTRY: Final = (None,) * 4


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


def _store(
    connection: sqlite3.Connection, number: int, rows: Sequence[tuple[Append, Rows]], writer: int | None
) -> bool:
    """Store appends if each has the newest version; otherwise change nothing and return False."""
    old = [
        (*packed.head, number, append.key, append.version, packed.entries[0][5])
        for append, packed in rows
        if append.version
    ]
    new = [(number, append.key, *packed.head) for append, packed in rows if not append.version]
    connection.execute("SAVEPOINT msgid")
    if _change(connection, _UPDATE, old) + _change(connection, _INSERT, new) < len(rows):
        connection.execute("ROLLBACK TO msgid")
        return False
    if writer is not None:
        connection.execute(_UNPUBLISHED, (number, writer, rows[0][0].entries[0].stored_at))
    _change(connection, _ENTRIES, [(number, append.key, *entry) for append, packed in rows for entry in packed.entries])
    return True


def _change(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Run a statement for each row; return the number of changed rows of the table."""
    return connection.executemany(statement, rows).rowcount if rows else 0
