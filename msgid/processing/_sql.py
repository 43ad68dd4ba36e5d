"""The tables, rows and statements of both database stores, in SQL that SQLite and PostgreSQL share.

=====================  ========================================================================================
table                  rows
=====================  ========================================================================================
``msgid_store``        one: the version of these tables
``msgid_handlers``     one per handler: its name and its number
``msgid_heads``        one per key: the newest version and state
``msgid_entries``      one per handled message: the version it made, the state before it, its outputs' fingerprint
``msgid_remembered``   one per forgotten message: the hash of its ID
``msgid_unpublished``  one per writer: when its last batch was stored, whose outputs may not be published
=====================  ========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgid.processing.errors import InvalidStore
from msgid.processing.store import Kept, Reading, assemble, check_key, hash_of, pack, remembered, unpack
from msgid.shared.moments import moment
from msgid.shared.validate import INT64_MIN, is_number, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime, timedelta

    from msgid.processing.store import Append, Version

SCHEMA: Final = 7
"""The version of the tables."""
CREATE: Final = (
    "CREATE TABLE msgid_store (schema BIGINT NOT NULL)",
    "CREATE TABLE msgid_handlers (number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE msgid_heads (handler BIGINT, key TEXT, version BIGINT NOT NULL, packed {bytes} NOT NULL,"
    " PRIMARY KEY (handler, key)) {options}",
    "CREATE TABLE msgid_entries (handler BIGINT, key TEXT, id TEXT, version BIGINT NOT NULL, stored_at BIGINT NOT NULL,"
    " at BIGINT, fingerprint {bytes} NOT NULL, packed {bytes}, outputs {bytes},"
    " PRIMARY KEY (handler, key, id)) {options}",
    "CREATE INDEX msgid_entries_stored_at ON msgid_entries (handler, stored_at)",
    "CREATE TABLE msgid_remembered (handler BIGINT, hash BIGINT, stored_at BIGINT NOT NULL,"
    " PRIMARY KEY (handler, hash)) {options}",
    "CREATE INDEX msgid_remembered_stored_at ON msgid_remembered (handler, stored_at)",
    "CREATE TABLE msgid_unpublished (handler BIGINT, writer BIGINT, stored_at BIGINT NOT NULL,"
    " PRIMARY KEY (handler, writer)) {options}",
    f"INSERT INTO msgid_store VALUES ({SCHEMA})",
)
READ: Final = """
SELECT h.version, h.packed, e.version, e.fingerprint, e.outputs, e.packed, r.stored_at
{asked}
LEFT JOIN msgid_heads h ON a.first AND h.handler = {handler} AND h.key = a.key
LEFT JOIN msgid_entries e ON e.handler = {handler} AND e.key = a.key AND e.id = a.id
LEFT JOIN msgid_remembered r ON r.handler = {handler} AND r.hash = a.hash
"""
_HEADS: Final = """
SELECT n.number, n.name, h.version, h.packed
FROM msgid_handlers n JOIN msgid_heads h ON h.handler = n.number AND h.key = ?
"""
_ENTRIES: Final = "SELECT version, id, at, stored_at, packed FROM msgid_entries WHERE handler = ? AND key = ?"
_HANDLED: Final = """
SELECT n.name, e.key, e.version, e.at, e.stored_at FROM msgid_entries e JOIN msgid_handlers n ON n.number = e.handler
WHERE e.id = ? ORDER BY e.stored_at
"""
_KEYS: Final = """
SELECT h.key, h.version,
    (SELECT count(*) FROM msgid_entries e WHERE e.handler = h.handler AND e.key = h.key)
FROM msgid_heads h WHERE h.handler = ? {after} ORDER BY h.key LIMIT ?
"""
_REMEMBERED: Final = "SELECT stored_at FROM msgid_remembered WHERE handler = ? AND hash = ?"
_FORGET_HEAD: Final = "DELETE FROM msgid_heads WHERE handler = ?"
_FORGET_ENTRY: Final = "DELETE FROM msgid_entries WHERE handler = ?"
_OF_KEY: Final = "SELECT 1 FROM msgid_entries WHERE handler = ? AND key = ?"
_CHUNK: Final = 1000
"""The maximum number of entries that one transaction deletes, so that other work waits only briefly."""
_T = TypeVar("_T")


class Rows(NamedTuple):
    """The rows that an append inserts, without handler and key."""

    head: tuple[int, bytes]
    """Columns: version, state."""
    entries: list[tuple[str, int, int, int | None, bytes, bytes | None, bytes | None]]
    """Columns: ID, version, stored at, at, fingerprint, state before, outputs.

    The state before the first entry is the one that was read. A key that was forgotten and began anew can have the
    version that was read, and then has another state. So a store compares both; a compressed state (``W``) by its
    version alone, because libraries compress in different bytes.
    """


def rows_of(append: Append) -> Rows:
    """Return the rows of an append."""
    version, packed = append.version, pack(append.before)
    entries = []
    for entry in append.entries:
        version += 1
        entries.append((entry.id, version, entry.stored_at, entry.at, entry.fingerprint, packed, entry.outputs))
        packed = pack(entry.state)
    assert packed is not None
    return Rows((version, packed), entries)


MAX_TIMEOUT: Final = 86_400
"""The longest time in seconds to wait for a database: a day."""


class Handled(NamedTuple):
    """The entry of a handled message."""

    handler: str
    key: str
    version: int | None
    """The version of the state that the message made; None if its entry was deleted."""
    at: int | None
    """The time of the message, in microseconds since 1970."""
    stored_at: int
    """The time when the handling of its batch began, in microseconds since 1970."""


class KeySize(NamedTuple):
    """A key of a handler."""

    handler: str
    key: str
    version: int
    """The number of the newest version."""
    entries: int
    """The number of handled messages whose entries are kept."""


class HandlerSize(NamedTuple):
    """The numbers of rows of a handler."""

    handler: str
    keys: int
    entries: int
    """The number of handled messages whose entries are kept."""
    forgotten: int
    """The number of deleted entries whose hashes are kept."""


class SqlStore:
    """A store in a database; `SqliteStore` and `PostgresStore` add the connection and its SQL dialect."""

    blank = "?"
    """The placeholder of a value in a statement."""

    def __init__(self, remember: timedelta | str | None, timeout: float) -> None:
        if not is_number(timeout):
            raise TypeError(f"timeout must be a number of seconds, got {quote(timeout)}")
        if not 0 <= timeout <= MAX_TIMEOUT:
            raise ValueError(f"timeout must be 0 to {MAX_TIMEOUT} seconds, got {quote(timeout)}")
        self._timeout = float(timeout)
        self._remember = remembered(remember)
        self._numbers: dict[str, int] = {}

    def _transact(self, work: Callable[[Any], _T], *, writes: bool, keys: Sequence[str] = ()) -> _T:
        """Run work on a connection in a transaction; repeat it if it fails before anything is stored.

        An error of a lock may name the keys.
        """
        raise NotImplementedError

    def history(self, key: str, *, handler: str | None = None) -> list[Version]:
        """Return the states of a key at one moment, oldest first, from one handler or from all handlers."""
        check_key(key)

        def work(connection: Any) -> list[Version]:
            versions = []
            asked, values = (_HEADS, (key,)) if handler is None else (f"{_HEADS} WHERE n.name = ?", (key, handler))
            for number, name, newest, packed in connection.execute(self._sql(asked), values).fetchall():
                entries = connection.execute(self._sql(_ENTRIES), (number, key)).fetchall()
                kept = [
                    Kept(version, id, at, stored_at, unpack(state)) for version, id, at, stored_at, state in entries
                ]
                versions += assemble(name, newest, unpack(packed), kept)
            return sorted(versions, key=lambda version: (version.handler, version.version))

        return self._transact(work, writes=False)

    def handled(self, id: str, keys: Collection[str] = ()) -> list[Handled]:
        """Return the entries of a message by its canonical ID, of all handlers and keys; nothing is changed.

        Args:
            id: The canonical text of the ID.
            keys: Keys that the message may have. A message whose entry was deleted is found by one of them alone.
        """

        def work(connection: Any) -> list[Handled]:
            entries = [Handled(*row) for row in connection.execute(self._sql(_HANDLED), (id,)).fetchall()]
            known = {(entry.handler, entry.key) for entry in entries}
            for number, name in connection.execute("SELECT number, name FROM msgid_handlers").fetchall():
                for key in keys:
                    values = (number, hash_of(name, key, id))
                    row = connection.execute(self._sql(_REMEMBERED), values).fetchone()
                    if row is not None and (name, key) not in known:
                        entries.append(Handled(name, key, None, None, row[0]))
            return entries

        return self._transact(work, writes=False)

    def handlers(self) -> list[HandlerSize]:
        """Return the handlers by name, each with the numbers of its keys, entries and forgotten messages."""

        def work(connection: Any) -> list[HandlerSize]:
            rows = connection.execute("SELECT number, name FROM msgid_handlers ORDER BY name").fetchall()
            count = "SELECT count(*) FROM msgid_{} WHERE handler = ?"
            return [
                HandlerSize(
                    name,
                    *(
                        connection.execute(self._sql(count.format(table)), (number,)).fetchone()[0]
                        for table in ("heads", "entries", "remembered")
                    ),
                )
                for number, name in rows
            ]

        return self._transact(work, writes=False)

    def keys(self, *, handler: str | None = None) -> Iterator[KeySize]:
        """Yield the keys of one handler or of all, in the order of the database.

        The keys are read in parts, each at its own moment, so that any number of them fits in memory.
        """
        for number, name in sorted(self._handlers(handler), key=lambda one: one[1]):
            after = ""
            values: tuple[int | str, ...] = (number, _CHUNK)
            while True:
                query = self._sql(_KEYS.format(after=after))
                rows = self._transact(lambda db: db.execute(query, values).fetchall(), writes=False)  # noqa: B023
                yield from (KeySize(name, *row) for row in rows)
                if len(rows) < _CHUNK:
                    break
                after, values = "AND h.key > ?", (number, rows[-1][0], _CHUNK)

    def forget(self, before: int | datetime, *, handler: str | None = None, keys: bool = False) -> int:
        """Delete the entries that were stored before a time, of one handler or of all; return their number.

        A transaction deletes at most 1000 entries. The hashes of the deleted entries are kept: see
        `msgid.processing.store`.
        """
        limit = moment("before", before)
        return sum(self._forget(number, name, limit, keys) for number, name in self._handlers(handler))

    def forget_key(self, key: str, *, handler: str | None = None) -> int:
        """Delete the state and the entries of a key, of one handler or of all; return the number of entries."""
        check_key(key)

        def work(connection: Any) -> int:
            count = 0
            for number, _ in handlers:
                connection.execute(self._sql(f"{_FORGET_HEAD} AND key = ?"), (number, key))
                count += connection.execute(self._sql(f"{_FORGET_ENTRY} AND key = ?"), (number, key)).rowcount
            self._emptied(connection)
            return count

        handlers = self._handlers(handler)
        return self._transact(work, writes=True, keys=[key])

    def _handlers(self, handler: str | None) -> list[tuple[int, str]]:
        """Return the number and name of one handler, or of all."""
        query = "SELECT number, name FROM msgid_handlers"
        handlers = self._transact(lambda connection: connection.execute(query).fetchall(), writes=False)
        return [(number, name) for number, name in handlers if handler in (None, name)]

    def _forget(self, number: int, name: str, before: int, keys: bool) -> int:
        count = self._in_parts(lambda db: self._forget_some(db, number, name, before, keys))
        if self._remember is not None:
            oldest = max(before - self._remember, INT64_MIN)
            for table, column in (("remembered", "hash"), ("unpublished", "writer")):
                drop = (
                    f"DELETE FROM msgid_{table} WHERE handler = ? AND {column} IN"
                    f" (SELECT {column} FROM msgid_{table} WHERE handler = ? AND stored_at < ? LIMIT {_CHUNK})"
                )
                values = (number, number, oldest)
                self._in_parts(lambda db: int(db.execute(self._sql(drop), values).rowcount))  # noqa: B023
        return count

    def _in_parts(self, work: Callable[[Any], int]) -> int:
        """Repeat work, each time in a transaction, until it finds less than a chunk; return how much it found."""
        count = changed = _CHUNK
        while changed == _CHUNK:
            changed = self._transact(work, writes=True)
            count += changed
        return count - _CHUNK

    def _forget_some(self, connection: Any, number: int, name: str, before: int, keys: bool) -> int:
        """Delete the oldest entries that have expired and are published, and keep their hashes."""
        self._lock_forgetting(connection, number)
        query = (
            "SELECT e.key, e.id, e.stored_at, h.version FROM msgid_entries e"
            " LEFT JOIN msgid_heads h ON h.handler = e.handler AND h.key = e.key"
            " WHERE e.handler = ? AND e.stored_at < ? AND e.stored_at NOT IN"
            " (SELECT stored_at FROM msgid_unpublished WHERE handler = ?) ORDER BY e.stored_at LIMIT ?"
        )
        gone = connection.execute(self._sql(query), (number, before, number, _CHUNK)).fetchall()
        if not gone:
            return 0
        hashes = {hash_of(name, key, id): stored_at for key, id, stored_at, _ in gone}
        self._remember_hashes(connection, number, sorted(hashes.items()))
        self._delete_entries(connection, number, [(key, id) for key, id, *_ in gone])
        if keys:  # another version: a worker has just stored an entry
            versions = sorted({(key, version) for key, _, _, version in gone if version is not None})
            self._delete_heads(connection, number, versions)
            self._emptied(connection)
        return len(gone)

    def _remember_hashes(self, connection: Any, number: int, hashes: list[tuple[int, int]]) -> None:
        connection.executemany(
            "INSERT INTO msgid_remembered VALUES (?, ?, ?)"
            " ON CONFLICT (handler, hash) DO UPDATE SET stored_at = excluded.stored_at",
            [(number, *one) for one in hashes],
        )

    def _delete_entries(self, connection: Any, number: int, entries: list[tuple[str, str]]) -> None:
        connection.executemany(f"{_FORGET_ENTRY} AND key = ? AND id = ?", [(number, *one) for one in entries])

    def _delete_heads(self, connection: Any, number: int, versions: list[tuple[str, int]]) -> None:
        """Delete the states of keys that have these versions, and no entries."""
        connection.executemany(
            f"{_FORGET_HEAD} AND key = ? AND version = ? AND NOT EXISTS ({_OF_KEY})",
            [(number, key, version, number, key) for key, version in versions],
        )

    def _emptied(self, connection: Any) -> None:
        """Note that states were deleted."""

    def _lock_forgetting(self, connection: Any, number: int) -> None:
        """Ensure that only one worker at a time deletes entries."""

    def _number(self, handler: str) -> int:
        """Return the number of a handler."""
        number = self._numbers.get(handler)
        if number is None:
            number = self._numbers[handler] = self._transact(lambda db: self._numbered(db, handler), writes=True)
        return number

    def _numbered(self, connection: Any, handler: str) -> int:
        """Return the number of a handler; a new name gets one that follows from the name.

        So a store that goes on with another copy of its database, such as a restored one, does not use the number of
        another handler.
        """
        number = hash_of(handler, "", "")
        insert = self._sql("INSERT INTO msgid_handlers VALUES (?, ?) ON CONFLICT DO NOTHING")
        connection.execute(insert, (number, handler))
        return number

    def _asked(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[tuple[str, str, int, bool]]:
        """Return key, ID, hash, and whether the key occurs for the first time; its state is read only then."""
        seen: set[str] = set()
        asked = []
        for key, id in wanted:
            asked.append((key, id, hash_of(handler, key, id), key not in seen))
            seen.add(key)
        return asked

    def _readings(self, wanted: Sequence[tuple[str, str]], rows: Sequence[Any]) -> list[Reading]:
        """Return the readings for the rows of `READ`."""
        heads: dict[str, tuple[int, bytes | None]] = {}
        readings = []
        for (key, _), row in zip(wanted, rows, strict=True):
            version, packed, handled, fingerprint, outputs, before, late = row
            if key not in heads:
                heads[key] = (version or 0, unpack(packed))
            newest, state = heads[key]
            if handled is None:
                readings.append(Reading(newest, state, forgotten=late))
            else:  # the entry of a handled message contains the state before it
                outputs = None if outputs is None else bytes(outputs)
                readings.append(Reading(newest, unpack(before), handled, bytes(fingerprint), outputs))
        return readings

    def _check_tables(self, name: str, schema: tuple[int | None] | None) -> None:
        """Raise `InvalidStore` if there are tables, and they are those of another version, or of none."""
        if schema is not None and schema[0] != SCHEMA:
            reason = f"its tables are of version {schema[0]}, and this is version {SCHEMA}"
            raise InvalidStore(f"cannot open {name}: {reason}")

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self.blank)
