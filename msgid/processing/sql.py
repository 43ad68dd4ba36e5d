"""What the stores in databases share: tables and statements, in the SQL that SQLite and PostgreSQL both speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.processing.store import NOTHING_FORGOTTEN, Entry, Reading, Row, Version, find, keep, pack, unpack

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["TABLES", "SqlStore"]

TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS msgid_versions (key TEXT NOT NULL, version BIGINT NOT NULL, id TEXT,"
    " at BIGINT NOT NULL, packed {bytes} NOT NULL, PRIMARY KEY (key, version), UNIQUE (key, id))",
    "CREATE TABLE IF NOT EXISTS msgid_forgotten (one INTEGER PRIMARY KEY, before BIGINT NOT NULL)",
    f"INSERT INTO msgid_forgotten VALUES (1, {NOTHING_FORGOTTEN}) ON CONFLICT DO NOTHING",
)


class SqlStore:
    """A store in a database; `SqliteStore` and `PostgresStore` say how it is spoken to.

    Args:
        deltas: how many states in a row are kept as what differs from the one before; 0: all are kept whole.
    """

    blank = "?"
    """What stands for a value in a statement."""

    def __init__(self, deltas: int = 0) -> None:
        if deltas < 0:
            raise ValueError(f"deltas must be 0 or more, not {deltas}")
        self.deltas = deltas

    def transaction(self, *, writes: bool) -> AbstractContextManager[Any]:
        """Give a connection in a transaction: all of it happens, or nothing."""
        raise NotImplementedError

    def read(self, key: str, id: str) -> Reading:
        """Read what there is for a message."""
        with self.transaction(writes=False) as connection:
            before = connection.execute("SELECT before FROM msgid_forgotten").fetchone()[0]
            return find(self._rows(connection, key), id, before)

    def append(self, key: str, version: int, entry: Entry) -> bool:
        """Store what a message made of a version, if that still is the newest."""
        with self.transaction(writes=True) as connection:
            newest = connection.execute(
                self._sql("SELECT max(version) FROM msgid_versions WHERE key = ?"), (key,)
            ).fetchone()[0]
            if (newest or 0) != version:
                return False
            previous = None
            if version and version % (self.deltas + 1):
                previous = unpack(self._rows(connection, key), version)
            row = (key, version + 1, entry.id, entry.at, pack(entry.state, previous))
            # Where two of them have come so far at once, the second one's row is there already.
            done = connection.execute(
                self._sql("INSERT INTO msgid_versions VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"), row
            )
            return bool(done.rowcount == 1)

    def history(self, key: str) -> list[Version]:
        """Give a key's states, oldest first."""
        with self.transaction(writes=False) as connection:
            rows = self._rows(connection, key)
        return [Version(row.version, row.id, row.at, unpack(rows, row.version)) for row in rows]

    def forget(self, before: int) -> int:
        """Remove what messages older than a moment made, but for the newest state; a key at a time."""
        with self.transaction(writes=True) as connection:
            connection.execute(self._sql("UPDATE msgid_forgotten SET before = ? WHERE before < ?"), (before, before))
            keys = connection.execute(
                self._sql("SELECT DISTINCT key FROM msgid_versions WHERE at < ? AND id IS NOT NULL"), (before,)
            ).fetchall()
        count = 0
        for (key,) in keys:
            with self.transaction(writes=True) as connection:
                rows = self._rows(connection, key)
                kept = keep(rows, before)
                if kept == rows:
                    continue
                base = kept[0]
                connection.execute(
                    self._sql("DELETE FROM msgid_versions WHERE key = ? AND version < ?"), (key, base.version)
                )
                connection.execute(
                    self._sql("UPDATE msgid_versions SET id = NULL, packed = ? WHERE key = ? AND version = ?"),
                    (base.packed, key, base.version),
                )
                count += len(rows) - len(kept)
        return count

    def _rows(self, connection: Any, key: str) -> list[Row]:
        statement = "SELECT version, id, at, packed FROM msgid_versions WHERE key = ? ORDER BY version"
        rows = connection.execute(self._sql(statement), (key,)).fetchall()
        return [Row(version, id, at, bytes(packed)) for version, id, at, packed in rows]

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self.blank)
