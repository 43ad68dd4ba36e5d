"""Files and databases of stores: opened at once, reopened, locked, and refused."""

import contextlib
import gc
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from helpers.servers import running_pool, silent_network
from helpers.threads import at_once

from msgid.processing import InvalidStore, MemoryStore, PostgresStore, SqliteStore, _sql
from msgid.processing.store import Append, Reading
from msgid.shared import postgres_limits
from msgid.testing import SUM, add, entry, read


def test_store_of_a_later_version_is_refused(tmp_path):
    SqliteStore(tmp_path / "states.db").close()
    connection = sqlite3.connect(tmp_path / "states.db")
    for change, version in ("UPDATE msgid_store SET schema = 8", 8), ("DELETE FROM msgid_store", None):
        with connection:
            connection.execute(change)
        with pytest.raises(InvalidStore, match=f"its tables are of version {version}, and this is version 7"):
            SqliteStore(tmp_path / "states.db")


def test_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database " * 100)
    with pytest.raises(InvalidStore, match=r"text\.db: file is not a database"):
        SqliteStore(tmp_path / "text.db")
    with pytest.raises(ValueError, match="path must be the path of a file"):
        SqliteStore(":memory:")


@pytest.mark.parametrize("remember", [7, timedelta(-1)])
def test_remember_must_be_a_duration(remember):
    with pytest.raises((TypeError, ValueError), match="remember must be a timedelta or text such as '1 day'"):
        MemoryStore(remember=remember)


OPENING = """
import sys
from msgid.processing import SqliteStore
from msgid.processing.store import Append, Entry
for path in sys.argv[2:]:
    print("ready", flush=True)
    sys.stdin.readline()
    store = SqliteStore(path, timeout=60)
    assert store.append("h", [Append(sys.argv[1], 0, None, [Entry("id", b"state", bytes(16), 0)])]) == [True]
"""


def test_first_open_by_several_processes_at_once_succeeds(tmp_path):
    """A new file that many processes open at the same moment is never "locked" for one of them."""
    paths, pipes = [tmp_path / f"{turn}.db" for turn in range(4)], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    workers = [
        subprocess.Popen([sys.executable, "-c", OPENING, str(number), *map(str, paths)], **pipes) for number in range(6)
    ]
    for _ in paths:
        assert [worker.stdout.readline() for worker in workers] == [b"ready\n"] * 6
        for worker in workers:
            worker.stdin.write(b"go\n")
            worker.stdin.flush()
    assert [worker.wait(120) for worker in workers] == [0] * 6
    for path in paths:
        store = SqliteStore(path)
        assert all(store.history(str(number)) for number in range(6))


def test_open_waits_for_the_lock_that_the_switch_to_wal_needs(tmp_path):
    """Another process that writes to a file that is not in WAL mode yet delays the store, up to the timeout."""
    path = tmp_path / "states.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE other (x)")
    other.execute("BEGIN EXCLUSIVE")
    says = (
        r"cannot use \S+states\.db within timeout=0.05 seconds: database is locked by .*longer timeout.*PostgresStore"
    )
    with pytest.raises(sqlite3.OperationalError, match=says):
        SqliteStore(path, timeout=0.05)
    opened = []
    thread = threading.Thread(target=lambda: opened.append(SqliteStore(path, timeout=60)))
    thread.start()
    time.sleep(0.3)
    assert not opened
    other.execute("COMMIT")
    thread.join(60)
    assert add(opened[0], "a", b"state")
    assert opened[0]._connection().execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.parametrize("moment", ["read", "append"])
def test_postgres_store_goes_on_after_the_server_has_closed_the_connection(schema, moment):
    """The server closes all connections: the store opens new ones, and nothing is stored twice."""
    import psycopg

    store = PostgresStore(schema)
    assert add(store, "a", b"first")
    (found,) = store.read("h", [("key", "b")])
    with psycopg.connect(schema, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    if moment == "append":
        append = Append("key", 1, found.state, [entry("b", b"second")])
        assert store.append("h", [append]) == [True]
    assert read(store, "a") == Reading(2 if moment == "append" else 1, None, 1, SUM)


def test_postgres_store_stores_once_if_the_answer_to_a_commit_is_lost(schema):
    """The server has stored the entry and closed the connection: the version shows it, and the caller reads again."""
    import psycopg

    store = PostgresStore(schema)
    add(store, "a", b"first")
    (found,) = store.read("h", [("key", "b")])
    lost = []

    class Lossy:
        """A connection that stores, and then is closed before it answers."""

        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            return getattr(self.real, name)

        def execute(self, *arguments, **options):
            self.real.execute(*arguments, **options)
            self.real.close()
            lost.append(True)
            raise psycopg.OperationalError("the connection is lost")

    store._idle[:] = [Lossy(one) for one in store._idle]
    assert store.append("h", [Append("key", 1, found.state, [entry("b", b"second")])]) == [False]
    assert lost == [True]
    assert read(store, "b") == Reading(2, b"first", 2, SUM)


def test_postgres_store_of_a_wrong_address_fails_at_once(tmp_path):
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(psycopg.OperationalError):
        PostgresStore(f"host={tmp_path} dbname=nowhere")


def test_batches_on_the_same_keys_in_another_order_do_not_deadlock(schema):
    """Workers that append to the same keys in opposite orders, new and old ones, all end."""
    keys = [f"key {number}" for number in range(30)]

    def work(worker):
        store = PostgresStore(schema)
        for turn in range(10):
            wanted = [(key, f"{worker}-{turn}") for key in (keys if worker % 2 else reversed(keys))]
            while wanted:
                found = store.read("h", wanted)
                appends = [
                    Append(key, one.version, one.state, [entry(id, b"state %d" % turn * 99)])
                    for (key, id), one in zip(wanted, found, strict=True)
                ]
                won = store.append("h", appends)
                wanted = [one for one, stored in zip(wanted, won, strict=True) if not stored]
        store.close()

    assert at_once(*(partial(work, worker) for worker in range(4))) == [None] * 4
    assert all(len(PostgresStore(schema).history(f"key {number}")) == 40 for number in (0, 29))


def test_store_in_a_signal_handler_does_not_end_the_transaction_that_it_interrupts(tmp_path):
    """Its use is refused, and the transaction goes on."""
    store = SqliteStore(tmp_path / "states.db")

    def work(connection):
        connection.execute("INSERT INTO msgid_remembered VALUES (1, 2, 3)")
        with pytest.raises(RuntimeError, match="in the middle of its own transaction, as in a signal handler"):
            store.history("key")
        return connection.in_transaction

    assert store._transact(work, writes=True)
    assert store._transact(lambda db: db.execute("SELECT hash FROM msgid_remembered").fetchone(), writes=False)[0] == 2


def test_file_that_cannot_be_opened_is_one_error(tmp_path, monkeypatch):
    """Python prints nothing more when it frees the connection that was never made."""
    printed = []
    gc.collect()  # what earlier tests left prints its errors now
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    for path, why in (("missing/states.db", "the folder .*missing is missing"), (".", "unable to open database file")):
        with pytest.raises(sqlite3.OperationalError, match=f"cannot open .*: {why}$"):
            SqliteStore(tmp_path / path)
    gc.collect()
    assert printed == []


def test_relative_path_stays_the_same_file_in_another_folder(tmp_path, monkeypatch):
    """A connection that is opened again after a change of the folder finds the states."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(folders[0])
    store = SqliteStore("states.db")
    add(store, "a", b"state")
    monkeypatch.chdir(folders[1])
    store.close()
    assert read(store, "a").version == 1
    store.close()
    assert os.listdir() == []


@pytest.mark.parametrize("new_store", ["sqlite", "postgres"], indirect=True)
def test_database_that_was_restored_keeps_handlers_apart(new_store):
    """A worker that goes on with the tables of another time does not read or write the states of another handler."""
    old = new_store()
    for handler in ("first", "second"):
        add(old, "a", b"before", handler=handler)
    for table in ("handlers", "entries", "remembered"):
        old._transact(lambda connection, table=table: connection.execute(f"DELETE FROM msgid_{table}"), writes=True)
    # Heads of other handlers remain: a file that has lost all of them is refused.
    old._transact(lambda connection: connection.execute("UPDATE msgid_heads SET handler = -handler"), writes=True)
    new = new_store()
    for handler in ("second", "first"):
        add(new, "a", handler.encode(), handler=handler)
    for handler in ("first", "second"):
        assert old.read(handler, [("key", "b")])[0].state == handler.encode()


def database(postgres, encoding):
    """The address of a new database in an encoding."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        name = f"in_{encoding.lower()}"
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    return psycopg.conninfo.make_conninfo(postgres, dbname=name)


def test_postgres_in_sql_ascii_handles_each_message_once(postgres):
    """Text is UTF-8 there, too: the second time, a message is a duplicate."""
    store = PostgresStore(database(postgres, "SQL_ASCII"))
    key, id, handler = "k\u65e5", "i\U0001f600", "h\xe9"
    assert add(store, id, b"state", key=key, handler=handler) is True
    assert read(store, id, key, handler).handled == 1
    assert store.forget(1, handler=handler) == 1
    assert read(store, id, key, handler).forgotten == 0
    store.close()


def test_postgres_in_another_encoding_is_refused(postgres):
    """A key of other letters would fail only when its message comes."""
    with pytest.raises(InvalidStore, match="its encoding must be UTF8, got LATIN1"):
        PostgresStore(database(postgres, "LATIN1"))


def test_postgres_that_answers_before_its_disk_has_a_message_is_refused(postgres):
    """A crash of the server would lose messages whose outputs are published."""
    with pytest.raises(InvalidStore, match="its synchronous_commit is off"):
        PostgresStore(f"{postgres} options='-c synchronous_commit=off'")


GUIDE = Path(__file__).parents[3] / "docs/pages/guides/operate-consumer.md"


def test_role_without_the_right_to_create_uses_the_tables_of_the_guide(postgres):
    """Its SQL creates the tables in a schema and grants what a consumer needs; without it, one line says so."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    statements = re.search(r"```sql\n(CREATE SCHEMA.*?)```", GUIDE.read_text(), re.DOTALL)[1]
    tables = [re.sub(r"\s+", " ", one).strip() for one in statements.split(";")]
    created = [statement.format(bytes="BYTEA", options="").strip() for statement in _sql.CREATE]
    assert [one for one in tables if one in created] == created
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE ROLE consumer LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        address = make_conninfo(postgres, user="consumer")
        with pytest.raises(InvalidStore, match="permission denied for schema public; create the schema and the tables"):
            PostgresStore(address)
        with pytest.raises(InvalidStore, match="the tables are missing, and create is False"):
            PostgresStore(address, create=False, schema="msgid")
        connection.execute(statements)
        store = PostgresStore(address, create=False, schema="msgid")
        assert add(store, "a", b"state")
        assert store.forget(1 << 62, keys=True) == 1
        assert connection.execute("SELECT count(*) FROM msgid.msgid_heads").fetchone() == (0,)
        connection.execute("REVOKE INSERT ON ALL TABLES IN SCHEMA msgid FROM consumer")
        with pytest.raises(InvalidStore, match=r"^[^\n]*permission denied for table[^\n]*grant rights on them$"):
            add(store, "b", b"state")


def test_postgres_store_waits_for_no_lock_longer_than_it_says(schema):
    """The error names the table, the key and a cure, and other keys go on."""
    import psycopg

    store = PostgresStore(schema, lock_timeout=0.1)
    add(store, "a", b"state")
    (found,) = store.read("h", [("key", "b")])
    append = Append("key", 1, found.state, [entry("b", b"second")])
    with psycopg.connect(schema) as other:
        other.execute("SELECT FROM msgid_heads FOR UPDATE")
        with pytest.raises(psycopg.errors.LockNotAvailable, match=r"in msgid_heads for key 'key', .*pg_blocking_pids"):
            store.append("h", [append])
        assert store.append("h", [append._replace(key="other", version=0, before=None)]) == [True]
        with pytest.raises(psycopg.errors.LockNotAvailable, match="in msgid_heads for key 'key', within"):
            store.forget_key("key")
        other.execute("ROLLBACK; BEGIN; LOCK msgid_store IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="lock in the tables of the store within"):
            PostgresStore(schema, lock_timeout=0.1)
    assert store.append("h", [append]) == [True]


VANISH = {
    "append": (b"msgid_unpublished", lambda store: add(store, "b", b"state"), True),
    "forget": (b"INTO msgid_remembered", lambda store: store.forget(1 << 62, keys=True), False),
    "forget entries": (b"DELETE FROM msgid_entries", lambda store: store.forget(1 << 62, keys=True), False),
    "forget heads": (b"DELETE FROM msgid_heads", lambda store: store.forget(1 << 62, keys=True), False),
    "forget a key": (b"DELETE FROM msgid_entries", lambda store: store.forget_key("key"), False),
    "create": (b"CREATE TABLE msgid_remembered", lambda store: store._transact(store._create, writes=True), False),
}


@pytest.mark.parametrize("case", VANISH)
def test_session_that_vanished_in_a_transaction_frees_its_locks(schema, case):
    """The server ends it after ``idle_timeout``, so the same work of another worker goes on, pooled or not."""
    import psycopg

    word, work, pooled = VANISH[case]

    def vanishing(lost):
        with contextlib.suppress(psycopg.OperationalError):
            work(lost)

    store = PostgresStore(schema, lock_timeout=60)
    for key in ("key", "other"):
        assert store.append("h", [Append(key, 0, None, [entry("a", b"state")])]) == [True]
    with silent_network(schema) as network:
        lost = PostgresStore(network.address, idle_timeout=0.5, timeout=0, pooled=pooled)
        lost.read("h", [("key", "a")])
        if case == "create":
            with psycopg.connect(schema, autocommit=True) as connection:
                names = "store, handlers, heads, entries, remembered, unpublished"
                connection.execute(f"DROP TABLE {', '.join(f'msgid_{name}' for name in names.split(', '))}")
        network.word = word
        thread = threading.Thread(target=vanishing, args=(lost,))
        thread.start()
        assert network.silent.wait(60)
        work(PostgresStore(schema, lock_timeout=60) if case == "create" else store)
        network.close()
        thread.join(60)
        assert not thread.is_alive()


def test_server_that_keeps_the_connection_and_does_not_answer_is_not_waited_for(schema, monkeypatch):
    """The error names the key; no setting of libpq or of the server ends this wait."""
    import psycopg

    monkeypatch.setattr(postgres_limits, "ANSWER_TIMEOUT", 0.5)
    with silent_network(schema) as network:
        store = PostgresStore(network.address, timeout=0)
        assert add(store, "a", b"state")
        network.word = b"more"
        with pytest.raises(psycopg.OperationalError, match="write key 'key': the server has not answered a statement"):
            store.append("h", [Append("key", 1, b"state", [entry("b", b"more")])])
        assert network.silent.is_set()


def test_first_error_behind_a_pool_says_pooled_whatever_another_client_has_prepared(schema):
    """No statement runs on the session of another client: it could have another schema, or another statement."""
    import psycopg

    with psycopg.connect(schema, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA one_of_a_pool; CREATE SCHEMA other_of_a_pool")
    try:
        with running_pool(schema) as address:
            one = PostgresStore(address, schema="one_of_a_pool")
            assert [add(one, f"{n}", b"state") for n in range(9)] == [True] * 9
            with psycopg.connect(address) as holding:  # the session of the first store
                holding.execute("SELECT 1")
                for use in (lambda: add(one, "a", b"state"), lambda: one.history("key"), lambda: one.forget(1)):
                    with pytest.raises(InvalidStore, match="pass pooled=True"):
                        use()
            other = PostgresStore(address, schema="other_of_a_pool")  # on the same session
            with pytest.raises(InvalidStore, match="pass pooled=True"):
                add(one, "b", b"state")
            assert other.history("key") == []
    finally:
        with psycopg.connect(schema, autocommit=True) as connection:
            connection.execute("DROP SCHEMA one_of_a_pool CASCADE; DROP SCHEMA other_of_a_pool CASCADE")


def test_names_of_prepared_statements_differ_between_connections(schema):
    """A pool that hides itself finds no other client's statement under a name."""
    names = []
    for _ in range(2):
        store = PostgresStore(schema)
        for _ in range(9):
            store.read("h", [("key", "a")])
        (connection,) = store._idle
        names.append({name for (name,) in connection.execute("SELECT name FROM pg_prepared_statements").fetchall()})
        assert not store._marks
    assert names[0]
    assert not names[0] & names[1]


def test_schema_of_a_store_behind_a_pool_is_its_own(schema):
    import psycopg

    with psycopg.connect(schema, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "a ""b"""')
        for pooled in (False, True):
            store = PostgresStore(schema, schema='a "b"', pooled=pooled)
            assert add(store, f"{pooled}", b"state")
        assert connection.execute('SELECT count(*) FROM "a ""b""".msgid_entries').fetchone() == (2,)
        assert connection.execute("SELECT to_regclass('msgid_entries')").fetchone() == (None,)
        connection.execute('DROP SCHEMA "a ""b""" CASCADE')
