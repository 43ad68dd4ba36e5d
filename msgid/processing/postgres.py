"""States in PostgreSQL, through psycopg: ``pip install 'msgid[postgres]'``."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgid.processing.sql import TABLES, SqlStore

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PostgresStore"]


class PostgresStore(SqlStore):
    """States in a PostgreSQL database, for any number of workers, each with a store of its own.

    Args:
        conninfo: what psycopg connects to, such as ``"host=db dbname=orders"``.
        deltas: how many states in a row are kept as what differs from the one before; 0: all are kept whole.
    """

    blank = "%s"

    def __init__(self, conninfo: str, *, deltas: int = 0) -> None:
        import psycopg

        super().__init__(deltas)
        self._connection: Any = psycopg.connect(conninfo, autocommit=True)
        with self.transaction(writes=True) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(6221)")  # two that make the tables at once would collide
            for statement in TABLES:
                connection.execute(statement.format(bytes="BYTEA"))

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Any]:
        """Give the connection in a transaction; what is read in it is of one moment."""
        with self._connection.transaction():
            # A statement that waited for another sees what that one did: what was read before must not be older.
            level = "READ COMMITTED" if writes else "REPEATABLE READ, READ ONLY"
            self._connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            yield self._connection

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
