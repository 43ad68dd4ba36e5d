"""States in a SQLite file: the store for one machine, with nothing to run beside it."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgid.processing.sql import TABLES, SqlStore

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SqliteStore"]


class SqliteStore(SqlStore):
    """States in a SQLite file, for any number of processes and threads.

    Args:
        path: the file; it is made where there is none.
        deltas: how many states in a row are kept as what differs from the one before; 0: all are kept whole.
        timeout: seconds to wait for another process that writes.

    >>> import tempfile
    >>> store = SqliteStore(os.path.join(tempfile.mkdtemp(), "states.db"))
    >>> store.read("key", "id").version
    0
    >>> store.close()
    """

    def __init__(self, path: str | os.PathLike[str], *, deltas: int = 0, timeout: float = 30) -> None:
        super().__init__(deltas)
        self._path = os.fspath(path)
        self._timeout = timeout
        self._local = threading.local()
        with self.transaction(writes=True) as connection:
            for statement in TABLES:
                connection.execute(statement.format(bytes="BLOB"))

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        """Give this thread's connection in a transaction."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def close(self) -> None:
        """Close this thread's connection; another use opens it again."""
        held = getattr(self._local, "held", None)
        if held is not None:
            held[1].close()
            self._local.held = None

    def _connection(self) -> sqlite3.Connection:
        held: tuple[int, sqlite3.Connection] | None = getattr(self._local, "held", None)
        if held is None or held[0] != os.getpid():  # SQLite's connections do not live through a fork
            connection = sqlite3.connect(self._path, timeout=self._timeout, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # what was stored is on the disk before it is published
            held = self._local.held = (os.getpid(), connection)
        return held[1]
