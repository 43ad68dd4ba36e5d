"""`upsert_postgres` stores each key once, for any writers and replays; other content goes to the side table."""

import datetime as dt
import random
import threading
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
from helpers.servers import running_postgres
from psycopg import sql

from spark_ext import PostgresError, Upserted, upsert_postgres
from spark_ext._spill import Limit
from spark_ext.tables import upsert

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server():
    with running_postgres() as conninfo:
        yield conninfo


@pytest.fixture
def rows_of(server):
    """Return the rows of a table."""

    def read(*table, columns="*"):
        with psycopg.connect(server) as connection:
            connection.execute("SET TIME ZONE 'UTC'")
            query = sql.SQL(f"SELECT {columns} FROM {{}} ORDER BY 1").format(sql.Identifier(*table))
            return connection.execute(query).fetchall()

    return read


def test_upsert_postgres_replayed_rows_change_nothing(spark, server, rows_of):
    """The first run inserts the rows; later runs find them, also in other partitions."""
    rows = spark.createDataFrame([(f"id {n}", n) for n in range(20)], "id string, n int")
    assert upsert_postgres(rows, server, "replayed") == Upserted(20, 0, 0)
    assert upsert_postgres(rows.repartition(3), server, "replayed") == Upserted(0, 20, 0)
    more = rows.unionAll(spark.createDataFrame([("id 20", 20)], rows.schema))
    assert upsert_postgres(more, server, "replayed") == Upserted(1, 20, 0)
    assert sorted(rows_of("replayed")) == sorted((f"id {n}", n) for n in range(21))
    assert rows_of("replayed_conflicts") == []


def test_upsert_postgres_in_sql_ascii_finds_the_stored_rows(spark, server):
    """The types of the columns and the keys are text there, too."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE in_sql_ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    ascii = psycopg.conninfo.make_conninfo(server, dbname="in_sql_ascii")
    rows = spark.createDataFrame([("id \u65e5", "\xe9")], "id string, name string")
    assert upsert_postgres(rows, ascii, "names") == Upserted(1, 0, 0)
    assert upsert_postgres(rows, ascii, "names") == Upserted(0, 1, 0)


def test_upsert_postgres_every_type_is_stored_as_it_is(spark, server, rows_of):
    """NULL differs from empty text; quotes, commas and line ends are text; nested values are JSON."""
    rows = spark.sql("""
        SELECT 1 AS id, CAST(2 AS BYTE) AS b, CAST(3 AS SHORT) AS s, 4L AS l, 0.1F AS f, DOUBLE('NaN') AS d,
        12.30BD AS amount, true AS flag, X'00FF' AS bin, DATE'2026-01-02' AS day,
        TIMESTAMP'2026-01-02 03:04:05.123456Z' AS at, TIMESTAMP_NTZ'2026-01-02 03:04:05' AS ntz, '' AS empty,
        CAST(NULL AS STRING) AS nothing, 'a"b,c\\n\\\\.' AS text, ARRAY('x', NULL) AS list,
        NAMED_STRUCT('n', CAST(NULL AS INT)) AS s2
    """)
    for expected in (Upserted(1, 0, 0), Upserted(0, 1, 0)):
        assert upsert_postgres(rows, server, "types") == expected
    (row,) = rows_of("types")
    utc = dt.datetime(2026, 1, 2, 3, 4, 5, 123456, dt.timezone.utc)
    assert row[:5] == (1, 2, 3, 4, pytest.approx(0.1))
    assert row[5] != row[5]
    assert row[6:12] == (
        Decimal("12.30"), True, b"\x00\xff", dt.date(2026, 1, 2), utc, dt.datetime(2026, 1, 2, 3, 4, 5),
    )  # fmt: skip
    assert row[12:] == ("", None, 'a"b,c\n\\.', ["x", None], {"n": None})


def test_upsert_postgres_other_content_is_kept_aside_once(spark, server, rows_of):
    """The stored row stays; the row with other content is in the side table once, also after replays."""
    schema = "id string, n int, tags array<string>"
    upsert_postgres(spark.createDataFrame([("a", 1, ["x"]), ("b", None, None)], schema), server, "conflicts")
    other = spark.createDataFrame([("a", 2, ["x"]), ("b", None, None), ("c", 3, None)], schema)
    assert upsert_postgres(other, server, "conflicts") == Upserted(1, 1, 1)
    assert upsert_postgres(other, server, "conflicts") == Upserted(0, 2, 1)
    assert rows_of("conflicts") == [("a", 1, ["x"]), ("b", None, None), ("c", 3, None)]
    (kept,) = rows_of("conflicts_conflicts", columns="key, row::jsonb, reason, at")
    assert kept[:3] == ("a", {"id": "a", "n": 2, "tags": ["x"]}, "another content under this key")
    assert kept[3].tzinfo is not None


def test_upsert_postgres_bad_rows_do_not_stop_the_others(spark, server, rows_of):
    """A NULL key, a NUL character, invalid UTF-8, a year above 9999 and a rejected value do not stop other rows."""
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE bad (id text PRIMARY KEY, n int CHECK (n < 9), at timestamptz, list jsonb)")
    rows = spark.sql("""
        SELECT id, n, at, list FROM VALUES ('good', 1, TIMESTAMP'2026-01-01 00:00:00Z', ARRAY('x')),
        (NULL, 2, NULL, NULL),
        (CONCAT('n', CHAR(0)), 3, NULL, NULL), (CAST(X'ff61' AS STRING), 4, NULL, NULL),
        ('year', 5, TIMESTAMP'+12026-01-01 00:00:00Z', NULL), ('refused', 9, NULL, NULL),
        ('json', 6, NULL, ARRAY(CHAR(0))),
        ('backslash', 7, NULL, ARRAY('\\\\u0000')) AS t(id, n, at, list)
    """)
    for expected in (Upserted(2, 0, 6), Upserted(0, 2, 6)):
        assert upsert_postgres(rows.coalesce(1), server, "bad") == expected
    assert [row[0] for row in rows_of("bad")] == ["backslash", "good"]
    reasons = sorted(reason for (reason,) in rows_of("bad_conflicts", columns="reason"))
    assert reasons == [
        "column 'at' is outside the years 1 to 9999",
        "column 'id' has a NUL character",
        "column 'id' is not UTF-8",
        "column 'list' has a NUL character",
        'new row for relation "bad" violates check constraint "bad_n_check"',
        "the key 'id' is NULL",
    ]


def test_upsert_postgres_rows_that_a_table_rejects_do_not_stop_the_others(spark, server, rows_of):
    """A key too long for the index, and a deferred constraint; a rejected row that is stored already counts once."""
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE owners (name text PRIMARY KEY)")
        connection.execute("INSERT INTO owners VALUES ('a')")
        connection.execute(
            "CREATE TABLE owned (id text PRIMARY KEY, n int CHECK (n < 9), "
            "owner text REFERENCES owners DEFERRABLE INITIALLY DEFERRED)"
        )
        connection.execute("INSERT INTO owned VALUES ('held', 1, 'a')")
    long = random.Random(1).randbytes(5000).hex()
    rows = spark.createDataFrame(
        [("good", 1, "a"), (long, 2, "a"), ("orphan", 3, "nobody"), ("held", 9, "a")], "id string, n int, owner string"
    )
    for expected in (Upserted(1, 0, 3), Upserted(0, 1, 3)):
        assert upsert_postgres(rows.coalesce(1), server, "owned") == expected
    assert rows_of("owned") == [("good", 1, "a"), ("held", 1, "a")]
    assert len(rows_of("owned_conflicts")) == 3


@pytest.mark.details
def test_upsert_postgres_row_that_is_rejected_for_two_reasons_is_kept_aside_once(spark, server, rows_of):
    """A constraint rejects a row first. Its key is taken later, so a replay finds other content under the key.

    The settings of the second connection write times, bytes and fractions differently.
    """
    with psycopg.connect(server) as connection:
        connection.execute(
            "CREATE TABLE twice (id text PRIMARY KEY, n int UNIQUE, at timestamptz, raw bytea, part float8, tags jsonb)"
        )
    schema, at = "id string, n int, at timestamp, raw binary, part double, tags array<string>", dt.datetime(2026, 1, 2)
    taken, rejected, other = (
        spark.createDataFrame([(id, n, at, b"\xff", 0.1 + 0.2, ["x"])], schema)
        for id, n in [("z", 1), ("a", 1), ("a", 2)]
    )
    elsewhere = psycopg.conninfo.make_conninfo(
        server, options="-c TimeZone=Asia/Tokyo -c bytea_output=escape -c extra_float_digits=-9"
    )
    orders = [(taken, server), (rejected, server), (other, server), (rejected, elsewhere)]
    found = [upsert_postgres(rows, conninfo, "twice") for rows, conninfo in orders]
    assert found == [Upserted(1, 0, 0), Upserted(0, 0, 1), Upserted(1, 0, 0), Upserted(0, 0, 1)]
    ((key, row, reason),) = rows_of("twice_conflicts", columns="key, row::jsonb, reason")
    assert (key, row["n"], row["raw"], row["part"], row["tags"]) == ("a", 1, "\\xff", 0.1 + 0.2, ["x"])
    assert reason == 'duplicate key value violates unique constraint "twice_n_key"'


@pytest.mark.variants
@pytest.mark.parametrize(
    "rule",
    [
        "n int UNIQUE",
        "n int UNIQUE DEFERRABLE INITIALLY DEFERRED",
        "n int REFERENCES allowed DEFERRABLE INITIALLY DEFERRED",
        "n int CHECK (n < 4)",
        "n int",
    ],
)
def test_upsert_postgres_random_batches_of_drivers_at_once_lose_and_repeat_no_row(spark, server, rows_of, rule):
    """Each row is in the table, or in the side table once; the counts add up to the rows of the batch."""
    seed = random.randrange(10**9)
    draw = random.Random(seed)
    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS drawn, drawn_conflicts, allowed")
        connection.execute("CREATE TABLE allowed (n int PRIMARY KEY)")
        connection.execute("INSERT INTO allowed SELECT generate_series(0, 4)")
        connection.execute(f"CREATE TABLE drawn (id text PRIMARY KEY, {rule}, s text)")
    rows = [(f"k{draw.randrange(6)}", draw.choice([None, *range(8)]), draw.choice([None, "", "b"])) for _ in range(60)]
    batches, found = [rows[:5], rows[5:20], rows[20:]], []

    def drive(order, parts):
        for rows in order:
            df = spark.createDataFrame(rows, "id string, n int, s string").repartition(parts)
            found.append((len(rows), upsert_postgres(df, server, "drawn")))

    drivers = []
    for parts in (1, 3):
        order = [*batches, draw.choice(batches)]
        draw.shuffle(order)
        drivers.append(threading.Thread(target=drive, args=(order, parts)))
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert len(found) == 8, seed
    assert all(sum(counts) == size for size, counts in found), seed
    stored = rows_of("drawn")
    aside = [(row["id"], row["n"], row["s"]) for (row,) in rows_of("drawn_conflicts", columns="row::jsonb")]
    assert sum(counts.inserted for _, counts in found) == len(stored), seed
    assert sorted(stored + aside, key=repr) == sorted(set(rows), key=repr), seed


@pytest.mark.details
def test_upsert_postgres_nested_times_are_whole_in_every_zone(spark, server, rows_of):
    """A replay in a session with another time zone finds the rows; microseconds are kept."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for session, expected in (("Asia/Tokyo", Upserted(1, 0, 0)), ("UTC", Upserted(0, 1, 0))):
            spark.conf.set("spark.sql.session.timeZone", session)
            rows = spark.sql(
                "SELECT 'a' AS id, NAMED_STRUCT('at', TIMESTAMP'2026-01-02 03:04:05.123456Z', "
                "'local', TIMESTAMP_NTZ'2026-01-02 03:04:05.123456') AS times"
            )
            assert upsert_postgres(rows, server, "nested_times") == expected
        ((_, times),) = rows_of("nested_times")
        assert times == {"at": "2026-01-02T03:04:05.123456Z", "local": "2026-01-02T03:04:05.123456"}
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        late = spark.sql("SELECT 'a' AS id, TIMESTAMP'9999-12-31 23:00:00' AS at")
        assert upsert_postgres(late, server, "late_times") == Upserted(0, 0, 1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


V0 = "7F0000010000238F000000000001E240"


@pytest.mark.parametrize("binary", [False, True])
def test_upsert_postgres_ids_are_compared_by_value(spark, server, rows_of, binary):
    """All spellings of an ID or a UUID are one key; other keys stay unchanged."""
    table = f"by_value_{binary}".lower()
    spelled = [V0, V0.lower(), f"00{V0}", "orders-0-42", ""]
    spelled += [] if binary else ["0190A5B4-0000-7000-8000-00000000000A", "0190a5b4-0000-7000-8000-00000000000a"]
    rows = spark.createDataFrame([(id, 1) for id in spelled], "id string, n int")
    if binary:
        rows = rows.selectExpr("IF(length(id) >= 32, unhex(id), CAST(id AS BINARY)) AS id", "n")
    distinct = {f"00{V0}", "orders-0-42", "", *([] if binary else ["0190a5b4-0000-7000-8000-00000000000a"])}
    first = upsert_postgres(rows, server, table)
    assert first == Upserted(len(distinct), len(spelled) - len(distinct), 0)
    ids = [row[0] for row in rows_of(table)]
    expected = [bytes.fromhex(id) if len(id) == 34 else id.encode() for id in distinct] if binary else distinct
    assert sorted(ids) == sorted(expected)
    assert upsert_postgres(rows.where("n = 1"), server, table) == Upserted(0, len(spelled), 0)


def test_upsert_postgres_keys_that_are_not_ids_are_compared_as_they_are(spark, server, rows_of):
    """Hashes in two spellings are two keys."""
    rows = spark.createDataFrame([(V0,), (V0.lower(),)], "id string")
    assert upsert_postgres(rows, server, "plain_keys", key_is_id=False) == Upserted(2, 0, 0)
    assert sorted(rows_of("plain_keys")) == [(V0,), (V0.lower(),)]


def test_upsert_postgres_names_are_quoted(spark, server, rows_of):
    """Schemas, tables and columns may have any name."""
    with psycopg.connect(server) as connection:
        connection.execute('CREATE SCHEMA "my schema"')
    rows = spark.sql("""SELECT 'a' AS `the "id"; DROP`, 1 AS `select`, 2 AS `with.dot`""")
    key = 'the "id"; DROP'
    assert upsert_postgres(rows, server, ("my schema", "a.b'\""), key) == Upserted(1, 0, 0)
    assert rows_of("my schema", "a.b'\"") == [("a", 1, 2)]
    with psycopg.connect(server) as connection:
        connection.execute('CREATE TABLE "50%s" ("100%" text PRIMARY KEY, "%(n)s" int CHECK ("%(n)s" < 9))')
    rows = spark.sql("SELECT * FROM VALUES ('good', 1), ('bad', 9) AS t(`100%`, `%(n)s`)")
    assert upsert_postgres(rows, server, "50%s", "100%") == Upserted(1, 0, 1)
    assert rows_of("50%s") == [("good", 1)]


def test_upsert_postgres_drivers_at_once_insert_each_key_once(spark, server, rows_of):
    """Concurrent drivers that write the same keys in different orders insert each key once."""
    rows, found = spark.range(200).selectExpr("CAST(id AS STRING) AS id", "id AS n"), []
    orders = [rows.orderBy("n"), rows.orderBy(rows.n.desc()), rows.repartition(2)]
    drivers = [
        threading.Thread(target=lambda df=df: found.append(upsert_postgres(df, server, "drivers"))) for df in orders
    ]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert [sum(counts) for counts in zip(*found, strict=True)] == [200, 400, 0]
    assert len(rows_of("drivers")) == 200


def test_upsert_postgres_rows_that_a_trigger_changes_drops_or_refuses_are_counted_once(spark, server, rows_of):
    """Each row is counted once: the number of present rows was below 0, or had rows that are not in the table."""
    with psycopg.connect(server) as connection:
        connection.execute("""
            CREATE TABLE triggered (id text PRIMARY KEY, n int);
            CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.id = 'dropped' THEN RETURN NULL; END IF;
                IF NEW.id = 'refused' THEN RAISE EXCEPTION 'not this one'; END IF;
                IF NEW.id = 'changed' THEN NEW.n = 0; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER change BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION change();
        """)
    names = ["same", "same", "changed", "dropped", "refused"]
    rows = spark.createDataFrame([(name, 1) for name in names], "id string, n int").coalesce(1)
    assert upsert_postgres(rows, server, "triggered") == Upserted(2, 1, 2)
    assert rows_of("triggered") == [("changed", 0), ("same", 1)]
    aside = [("dropped", "the database did not store it"), ("refused", "not this one")]
    assert sorted(rows_of("triggered_conflicts", columns="key, reason")) == aside
    assert upsert_postgres(rows, server, "triggered") == Upserted(0, 2, 3)  # the changed row is a conflict now
    changed = ("changed", "another content under this key")
    assert sorted(rows_of("triggered_conflicts", columns="key, reason")) == [changed, *aside]


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("id text PRIMARY KEY, n int GENERATED ALWAYS AS (1) STORED", "cannot insert a non-DEFAULT value into column"),
        ("id text PRIMARY KEY, n int GENERATED ALWAYS AS IDENTITY", "cannot insert a non-DEFAULT value into column"),
        ("id text PRIMARY KEY, n bigint", "column 'n' must be integer, and it is bigint"),
        ("id text PRIMARY KEY", "column 'n' must be integer, and it is missing"),
        ("id text, n int", "it must have a unique index on 'id'"),
        ("id text UNIQUE DEFERRABLE, n int", "it must have a unique index on 'id'"),
        ("id text, n int, UNIQUE (id, n)", "it must have a unique index on 'id'"),
    ],
)
def test_upsert_postgres_table_that_does_not_fit_is_refused(spark, server, definition, says):
    """A table that does not fit is rejected before a row is sent."""
    with psycopg.connect(server) as connection:
        connection.execute(f"DROP TABLE IF EXISTS unfit; CREATE TABLE unfit ({definition})")
    with pytest.raises(PostgresError, match=says):
        upsert_postgres(spark.sql("SELECT 'a' AS id, 1 AS n"), server, "unfit")


def test_upsert_postgres_side_table_that_does_not_fit_is_refused(spark, server, rows_of):
    """Another program's table has the name of the side table: no row is sent."""
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE beside (id text PRIMARY KEY, n int); CREATE TABLE beside_conflicts (n int)")
    with pytest.raises(PostgresError, match='column "fingerprint" of relation "beside_conflicts" does not exist'):
        upsert_postgres(spark.sql("SELECT 'a' AS id, 1 AS n"), server, "beside")
    assert rows_of("beside") == []


def test_upsert_postgres_error_of_an_executor_is_a_postgres_error(spark, server):
    """An error that only the insertion shows ends the call with `PostgresError`, as an error of the driver does."""
    with psycopg.connect(server) as connection:
        connection.execute("""
            CREATE TABLE broken (id text PRIMARY KEY);
            CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'not supported here';
            END $$;
            CREATE TRIGGER break BEFORE INSERT ON broken FOR EACH ROW EXECUTE FUNCTION break();
        """)
    with pytest.raises(PostgresError) as caught:
        upsert_postgres(spark.sql("SELECT 'a' AS id"), server, "broken")
    assert str(caught.value) == "cannot write to table broken: not supported here"


def test_upsert_postgres_errors_show_no_password(spark, monkeypatch):
    """The errors of a malformed connection string and of an unreachable server do not show the password."""
    monkeypatch.setattr("spark_ext.tables.upsert._DELAYS", ())
    rows = spark.sql("SELECT 'a' AS id")
    for conninfo, error in [("password=hunter2 host", ValueError), ("host=/nowhere password=hunter2", PostgresError)]:
        with pytest.raises(error) as caught:
            upsert_postgres(rows, conninfo, "t")
        assert "hunter2" not in str(caught.getrepr(showlocals=False, style="value"))


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ("1 AS n", {}, "key must be one of the columns n, got 'id'"),
        ("1 AS id", {"table": "a.b.c"}, "table must be a name or a schema and a name"),
        ("1 AS id", {"table": "x" * 60}, "table must leave room for '_conflicts' in 63 bytes"),
        ("1 AS id, INTERVAL '1' DAY AS s", {}, "cannot store column 's' in PostgreSQL: it lacks the type interval day"),
        ("1 AS id, 1 AS msgid_reason", {}, "must not have a column 'msgid_reason'"),
    ],
)
def test_upsert_postgres_arguments_are_checked(spark, rows, options, says):
    """Invalid arguments raise an error before a connection is opened."""
    with pytest.raises(ValueError, match=says):
        upsert_postgres(spark.sql(f"SELECT {rows}"), "host=/nowhere", **{"table": "t", **options})


def partition(rows, per_batch=4):
    """Return rows of (id, n) as a task gets them: with NULL as the reason, or with the reason why a row is bad."""
    schema = pa.schema([("c0", pa.string()), ("c1", pa.int64()), (upsert.REASON, pa.string())])
    lines = [{"c0": id, "c1": n} if id else {upsert.REASON: f"the key is NULL\n{n}"} for id, n in rows]
    return [
        pa.RecordBatch.from_pylist(lines[first : first + per_batch], schema)
        for first in range(0, len(lines), per_batch)
    ]


def target(server, name):
    made = upsert._Target(server, (name,), "id", {"id": "text", "n": "bigint"})
    upsert._with_retries(made, lambda connection: upsert._prepare(connection, made))
    return made


@pytest.mark.parametrize("limit", [Limit(1, 1 << 30), Limit(3, 1 << 30), Limit(1 << 30, 1), Limit(7, 200)])
def test_upsert_postgres_in_slices_of_any_size_counts_and_stores_as_in_one(server, rows_of, monkeypatch, limit):
    """Repeated keys, two contents of a key, refused rows and bad ones."""
    rows = [("a", 1), ("a", 1), ("b", 2), (None, 3), ("a", 1), ("c", 3), ("c", 4), ("refused", 9), ("d", 5), ("b", 2)]
    rows += [("refused", 9), ("c", 3), (None, 4), ("e", 6)]
    found = []
    for name, size in (("in_one_slice", upsert.SLICE), ("in_slices", limit)):
        monkeypatch.setattr(upsert, "SLICE", size)
        with psycopg.connect(server) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}, {name}_conflicts")
            connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, n bigint CHECK (n < 9))")
        place = target(server, name)
        counts = [upsert._insert(place, partition(rows[first:])) for first in (7, 0, 0)]
        kept = [row[1:] for row in rows_of(f"{name}_conflicts", columns="1, key, row, left(reason, 20)")]
        found.append((counts, rows_of(name), sorted(kept, key=repr)))
    assert found[0][0] == [Upserted(4, 0, 3), Upserted(1, 8, 5), Upserted(0, 9, 5)]
    assert found[1] == found[0]


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("fault", ["the connection breaks", "the worker ends"])
def test_upsert_postgres_that_ends_between_two_slices_is_exact(server, rows_of, monkeypatch, place, fault):
    """No slice is visible before the last one. A broken connection repeats all slices; so does a retried task."""
    monkeypatch.setattr(upsert, "SLICE", Limit(2, 1 << 30))
    monkeypatch.setattr(upsert, "_DELAYS", (0, 0))
    name = f"between_{place}_{fault.split()[1]}"
    rows = [(f"key {number}", number) for number in range(10)]
    insert_slice, calls = upsert._insert_slice, []

    def failing(connection, *more):
        calls.append(place)
        if len(calls) == place + 1 and fault == "the worker ends":
            raise KeyboardInterrupt
        if len(calls) == place + 1:
            with psycopg.connect(server, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        return insert_slice(connection, *more)

    where = target(server, name)
    monkeypatch.setattr(upsert, "_insert_slice", failing)
    if fault == "the worker ends":
        with pytest.raises(KeyboardInterrupt):
            upsert._insert(where, partition(rows))
        assert rows_of(name) == []
    assert upsert._insert(where, partition(rows)) == Upserted(10, 0, 0)
    assert upsert._insert(where, partition(rows)) == Upserted(0, 10, 0)
    assert sorted(rows_of(name)) == sorted(rows)
    assert rows_of(f"{name}_conflicts") == []


def test_upsert_postgres_partitions_are_sorted_by_the_bytes_of_the_key(spark):
    """As ``COLLATE "C"`` sorts them: transactions of several slices insert in one order, so none waits in a circle."""
    keys = ["b", "\u00e9", "a", "B", "\U0001f600", "\uffff", "a b", "", "ab"]
    rows = spark.createDataFrame([(1, key) for key in keys], "n int, id string").coalesce(1)
    sorted_rows = upsert._in_order(upsert.prepared(rows, "id"), 1).collect()
    assert [row.c1 for row in sorted_rows] == sorted(keys, key=lambda key: key.encode())
