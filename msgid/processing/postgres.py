"""States in PostgreSQL, through psycopg: ``pip install 'msgid[postgres]'``."""

from __future__ import annotations

import os
import random
import re
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from msgid.processing._sql import CREATE, READ, SqlStore, rows_of
from msgid.processing.errors import InvalidStore
from msgid.processing.store import DEFAULT_REMEMBER, HASH_IN, check_process
from msgid.shared import postgres_limits
from msgid.shared.handler_message import check_text
from msgid.shared.retrying import retry, within
from msgid.shared.validate import check_installed, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from msgid.processing.store import Append, Reading

_T = TypeVar("_T")
_LOCK: Final = 6221
"""The advisory lock for creating the tables; deleting the entries of a handler locks its number."""
_ENCODINGS: Final = ("UTF8", "SQL_ASCII")
"""The encodings that hold every text; a database in SQL_ASCII keeps the bytes of UTF-8."""
# Every statement looks up rows by keys. A plan from a time when the tables were small must not scan them, and must not
# read all rows of a handler for each message.
_SETTINGS: Final = (
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_material = off",
    "join_collapse_limit = 1",
)
_ASKED: Final = (
    "FROM unnest(%(keys)b::text[], %(ids)b::text[], %(hashes)b::bigint[], %(firsts)b::bool[])"
    " WITH ORDINALITY AS a (key, id, hash, first, place)"
)
# Heads are locked in key order, so that two batches on the same keys wait and do not deadlock. If another worker has
# changed a head, the statement skips the head and all entries of its key. A cached plan can date from a time when the
# tables were empty, so no plan may scan a table: LATERAL with FOR UPDATE runs for each key, and ctid finds the rows of
# a locked head. "IS TRUE" prevents a join: the planner then looks up each key in a hash of the winners. Arrays are sent
# in binary form ("b"), which psycopg encodes several times as fast as text.
_APPEND: Final = f"""
WITH asked AS (
    SELECT * FROM unnest(%(keys)b::text[], %(read)b::bigint[], %(before)b::bytea[], %(versions)b::bigint[],
        %(states)b::bytea[]) AS t (key, read, before, version, packed)
), ordered AS MATERIALIZED (
    SELECT * FROM asked WHERE read > 0 ORDER BY key
), locked AS MATERIALIZED (
    SELECT o.*, h.place FROM ordered o CROSS JOIN LATERAL (
        SELECT ctid AS place FROM msgid_heads
        WHERE handler = %(handler)s AND key = o.key AND version = o.read
        AND {HASH_IN.format("packed")} = {HASH_IN.format("o.before")} FOR UPDATE
    ) h
), moved AS (
    UPDATE msgid_heads h SET version = l.version, packed = l.packed
    FROM locked l WHERE h.ctid = l.place RETURNING h.key
), made AS (
    INSERT INTO msgid_heads SELECT %(handler)s, key, version, packed FROM asked WHERE read = 0 ORDER BY key
    ON CONFLICT DO NOTHING RETURNING key
), won AS MATERIALIZED (
    SELECT key FROM moved UNION ALL SELECT key FROM made
), stored AS (
    INSERT INTO msgid_entries
    SELECT %(handler)s, e.key, e.id, e.version, e.stored_at, e.at, e.fingerprint, e.packed, e.outputs
    FROM unnest(%(entry_keys)b::text[], %(entry_0)b::text[], %(entry_1)b::bigint[], %(entry_2)b::bigint[],
        %(entry_3)b::bigint[], %(entry_4)b::bytea[], %(entry_5)b::bytea[], %(entry_6)b::bytea[])
        AS e (key, id, version, stored_at, at, fingerprint, packed, outputs)
    WHERE (e.key IN (SELECT key FROM won)) IS TRUE
), noted AS (
    INSERT INTO msgid_unpublished SELECT %(handler)s, %(writer)s::bigint, %(stored_at)s::bigint
    WHERE %(writer)s::bigint IS NOT NULL
    ON CONFLICT (handler, writer) DO UPDATE SET stored_at = excluded.stored_at
)
SELECT key FROM won
"""
# Each of these is one statement: `executemany` sends many at once, and the server does not take a session for idle in a
# transaction if its client vanishes among them.
_REMEMBER: Final = """
INSERT INTO msgid_remembered SELECT %s, hash, stored_at FROM unnest(%s::bigint[], %s::bigint[]) AS a (hash, stored_at)
ON CONFLICT (handler, hash) DO UPDATE SET stored_at = excluded.stored_at
"""
_DELETE_ENTRIES: Final = """
DELETE FROM msgid_entries e USING unnest(%s::text[], %s::text[]) AS a (key, id)
WHERE e.handler = %s AND e.key = a.key AND e.id = a.id
"""
_DELETE_HEADS: Final = """
DELETE FROM msgid_heads h USING unnest(%s::text[], %s::bigint[]) AS a (key, version)
WHERE h.handler = %s AND h.key = a.key AND h.version = a.version
AND NOT EXISTS (SELECT FROM msgid_entries e WHERE e.handler = h.handler AND e.key = h.key)
"""
_POOL: Final = "connections come from a pool in transaction mode: pass pooled=True"
_LOCKED: Final = re.compile(r'relation "([^"]+)"')
"""The table in the context of an error of PostgreSQL."""


class PostgresStore(SqlStore):
    """Stores states in a PostgreSQL database, for any number of processes and threads.

    Each active thread has its own connection; idle connections are reused. A child process that inherits the store
    cannot use it. A connection that the server has closed, or whose server takes no more writes after a switchover, is
    replaced, and the work is repeated: the version of a key shows whether an entry was stored. A client that vanishes
    in a transaction holds its locks for at most ``idle_timeout``.

    Args:
        conninfo: Connection string of psycopg, such as ``"host=db dbname=orders"``.
        timeout: Maximum time in seconds to reach a server that takes writes again.
        remember: How long the hash of a forgotten message is kept: a timedelta or text such as ``"1 day"``; None keeps
            it forever.
        schema: Schema of the tables. Default: the search path of the connection.
        create: Whether missing tables are created. Without it, an administrator creates them: see the guide "Operate a
            consumer". The role of the connection then needs to SELECT, INSERT, UPDATE and DELETE in all tables.
        lock_timeout: Maximum time in seconds to wait for a lock of another worker. After it, psycopg's
            ``LockNotAvailable`` is raised.
        idle_timeout: Time in seconds after which the server ends a transaction whose client is silent, and TCP ends a
            connection whose other machine is silent. Keep it shorter than ``lock_timeout``.
        pooled: Whether connections come from a pool in transaction mode, such as PgBouncer's. Nothing then stays on a
            connection: no statement is prepared, and settings end with their transaction.

    Raises:
        InvalidStore: if the database contains tables of another version, or none and ``create`` is False, if rights are
            missing, if the encoding is not UTF8 or SQL_ASCII, or if connections come from a pool and ``pooled`` is
            False.
    """

    blank = "%s"

    def __init__(
        self,
        conninfo: str,
        *,
        timeout: float = 30,
        remember: timedelta | str | None = DEFAULT_REMEMBER,
        schema: str | None = None,
        create: bool = True,
        lock_timeout: float = postgres_limits.LOCK_TIMEOUT,
        idle_timeout: float = postgres_limits.IDLE_TIMEOUT,
        pooled: bool = False,
    ) -> None:
        super().__init__(remember, timeout)
        if not isinstance(conninfo, str):
            raise TypeError(f"conninfo must be a connection string of psycopg, got {quote(conninfo)}")
        self._conninfo = conninfo
        self._lock_timeout = postgres_limits.seconds("lock_timeout", lock_timeout)
        self._idle_timeout = postgres_limits.seconds("idle_timeout", idle_timeout)
        self._settings: tuple[str, ...] = _SETTINGS + postgres_limits.settings(lock_timeout, idle_timeout)
        if schema is not None:
            check_text("schema", schema)
            self._settings += ('search_path = "{}"'.format(schema.replace('"', '""')),)
        self._creates = create
        self._pooled = pooled
        self._idle: list[Any] = []
        self._marks: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        """The mark of the session of each connection that may come from a pool."""
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._read_all = READ.format(asked=_ASKED, handler="%(handler)s")
        self._read_all += "ORDER BY a.place"
        self._idle.append(self._connect())  # a wrong address then raises an error at once
        self._transact(self._create, writes=True)

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""
        keys, ids, hashes, firsts = map(list, zip(*self._asked(handler, wanted), strict=True))
        values = {"handler": self._number(handler), "keys": keys, "ids": ids, "hashes": hashes, "firsts": firsts}
        return self._readings(
            wanted, self._statement(lambda db: db.execute(self._read_all, values, binary=True).fetchall())
        )

    def append(self, handler: str, appends: Sequence[Append], writer: int | None = None) -> list[bool]:
        """Store entries in one transaction; return for each key whether its version was still the newest."""
        rows = [(append, rows_of(append)) for append in appends]
        versions, states = map(list, zip(*(packed.head for _, packed in rows), strict=True))
        values: dict[str, Any] = {
            "handler": self._number(handler),
            "keys": [append.key for append in appends],
            "read": [append.version for append in appends],
            "before": [packed.entries[0][5] for _, packed in rows],
            "versions": versions,
            "states": states,
            "writer": writer,
            "stored_at": appends[0].entries[0].stored_at,
            "entry_keys": [append.key for append, packed in rows for _ in packed.entries],
        }
        columns = zip(*(entry for _, packed in rows for entry in packed.entries), strict=True)
        values |= {f"entry_{number}": list(column) for number, column in enumerate(columns)}
        keys: list[str] = values["keys"]
        won = {key for (key,) in self._statement(lambda db: db.execute(_APPEND, values).fetchall(), keys)}
        return [append.key in won for append in appends]

    def close(self) -> None:
        """Close the idle connections; the next use opens new ones. It does nothing in a forked child."""
        if os.getpid() != self._process:
            return
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _transact(self, work: Callable[[Any], _T], *, writes: bool, keys: Sequence[str] = ()) -> _T:
        # With READ COMMITTED, a statement that waited for another one sees its changes.
        level = "READ COMMITTED" if writes else "REPEATABLE READ, READ ONLY"

        def transaction(connection: Any) -> _T:
            with connection.transaction():
                connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                if self._pooled:
                    connection.execute("; ".join(f"SET LOCAL {setting}" for setting in self._settings))
                elif mark := self._marks.get(connection):
                    asked = connection.execute("SELECT current_setting('msgid.client', true)", prepare=False)
                    if asked.fetchone()[0] != mark:
                        raise InvalidStore(f"cannot use the database: {_POOL}")
                return work(connection)

        return self._run(transaction, keys)

    def _statement(self, work: Callable[[Any], _T], keys: Sequence[str] = ()) -> _T:
        """Run work of one statement, which is a transaction of its own."""
        is_shared = self._pooled or self._marks
        return self._transact(work, writes=True, keys=keys) if is_shared else self._run(work, keys)

    def _run(self, work: Callable[[Any], _T], keys: Sequence[str]) -> _T:
        """Run work on a connection; repeat it on a new one if the server cannot be used, or ended a deadlock.

        An error of a lock names the keys.
        """
        import psycopg
        from psycopg import errors

        check_process(self, self._process)
        lost = False

        def once() -> _T:
            nonlocal lost
            connection = None
            try:
                connection = self._take()
                return work(connection)
            except _of_a_pool() as error:
                raise _refusal(error, _POOL) from None
            except errors.UndefinedTable as error:
                raise _refusal(error, f"its tables were deleted, or {_POOL}") from None
            except errors.LockNotAvailable as error:
                raise type(error)(self._locked(error, keys)) from None
            except psycopg.OperationalError as error:
                if not (keys and isinstance(error, TimeoutError)):
                    raise
                raise type(error)(f"cannot write {_named(keys)}: {error}") from None
            except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
                raise _refusal(error, "create the schema and the tables, or grant rights on them") from None
            finally:
                lost = connection is None or connection.closed
                if connection is not None:
                    self._give_back(connection)

        def again(error: Exception) -> bool:
            if isinstance(error, errors.DeadlockDetected | errors.SerializationFailure):
                return True
            is_standby = isinstance(error, errors.ReadOnlySqlTransaction)
            if is_standby or (lost and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)):
                self.close()  # the other connections belong to the same server
                return True
            return False

        return retry(once, again, within(self._timeout, lambda: random.uniform(0.01, 0.1)))

    def _locked(self, error: Any, keys: Sequence[str]) -> str:
        """Return what the store has waited for, in one line."""
        table = _LOCKED.search(error.diag.context or "")
        where = table[1] if table else "the tables of the store"
        if keys:
            where += f" for {_named(keys)},"
        return (
            f"cannot get a lock in {where} within lock_timeout={self._lock_timeout:g} seconds: another session holds "
            "it. pg_blocking_pids names that session: end it, or handle the messages again later"
        )

    def _take(self) -> Any:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: Any) -> None:
        """Keep a connection for the next work; one that a signal handler's exception has left at work is closed."""
        from psycopg.pq import TransactionStatus

        if connection.info.transaction_status == TransactionStatus.IDLE:
            with self._lock:
                self._idle.append(connection)
        else:
            connection.close()

    def _connect(self) -> Any:
        check_installed("PostgresStore", "postgres", "psycopg")
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        # Without a known encoding, text comes back as bytes from a database in SQL_ASCII.
        try:
            given = conninfo_to_dict(self._conninfo)
            options = postgres_limits.connection_options(given, self._idle_timeout, self._timeout)
            connection = postgres_limits.connect(
                self._conninfo, postgres_limits.ANSWER_TIMEOUT, autocommit=True, client_encoding="utf8", **options
            )
        except psycopg.OperationalError as error:
            raise type(error)(" ".join(str(error).split())) from None  # one line
        except psycopg.ProgrammingError as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"conninfo must be a connection string of psycopg, got {quote(self._conninfo)}: {reason}"
            ) from None
        if self._pooled:
            connection.prepare_threshold = None
        else:
            _name_statements(connection)
            connection.execute("; ".join(f"SET {setting}" for setting in self._settings))
            asked: Any = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
            if asked[0] != connection.info.backend_pid:
                # There is a pool. In transaction mode, the settings, such as the schema, may be another client's.
                mark = self._marks[connection] = uuid4().hex
                connection.execute(f"SET msgid.client = '{mark}'", prepare=False)
        return connection

    def _create(self, connection: Any) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))  # concurrent creation of a table fails
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in _ENCODINGS:
            raise InvalidStore(f"cannot use the database: its encoding must be UTF8, got {encoding}")
        has = connection.execute("SELECT to_regclass('msgid_store') IS NOT NULL").fetchone()[0]
        schema = (connection.execute("SELECT schema FROM msgid_store").fetchone() or (None,)) if has else None
        self._check_tables("the database", schema)
        if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            raise InvalidStore("cannot use the database: its synchronous_commit is off, so a crash would lose messages")
        if schema is None and not self._creates:
            raise InvalidStore("cannot use the database: the tables are missing, and create is False")
        if schema is None:
            for statement in CREATE:
                connection.execute(statement.format(bytes="BYTEA", options=""))

    def _lock_forgetting(self, connection: Any, number: int) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))

    def _remember_hashes(self, connection: Any, number: int, hashes: list[tuple[int, int]]) -> None:
        connection.execute(_REMEMBER, (number, *map(list, zip(*hashes, strict=True))))

    def _delete_entries(self, connection: Any, number: int, entries: list[tuple[str, str]]) -> None:
        connection.execute(_DELETE_ENTRIES, (*map(list, zip(*entries, strict=True)), number))

    def _delete_heads(self, connection: Any, number: int, versions: list[tuple[str, int]]) -> None:
        if versions:
            connection.execute(_DELETE_HEADS, (*map(list, zip(*versions, strict=True)), number))


def _of_a_pool() -> tuple[type[Exception], ...]:
    """Return the errors of a prepared statement that another client's session has, or lacks."""
    from psycopg import errors

    return errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName, errors.ProtocolViolation


def _name_statements(connection: Any) -> None:
    """Let the names of prepared statements be unlike those of all other connections.

    psycopg counts them from 0 in each connection. In a pool in transaction mode, a name would be another client's
    statement, with any error or a wrong answer. An unknown name is always one error.
    """
    statements: Any = getattr(connection, "_prepared", None)
    if hasattr(statements, "_prepared_idx"):
        statements._prepared_idx = random.SystemRandom().getrandbits(62)


def _named(keys: Sequence[str]) -> str:
    several = f"one of {len(keys)} keys, the first is" if len(keys) > 1 else "key"
    return f"{several} {quote(keys[0])}"


def _refusal(error: Any, cure: str) -> InvalidStore:
    return InvalidStore(f"cannot use the database: {error.diag.message_primary}; {cure}")
