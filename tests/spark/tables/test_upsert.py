"""`upsert_postgres` stores each key once, for any writers and replays; other content goes to the side table."""

import contextlib
import random
import threading
import time
from datetime import date, datetime, timezone
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
from helpers.servers import running_pool, running_postgres
from helpers.threads import at_once
from psycopg import sql
from pyspark.sql import functions as F

from spark_ext import PostgresError, upsert_postgres
from spark_ext.tables import upsert
from spark_ext.tables.upsert import Upserted

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
    with running_pool(server) as pooled:
        assert upsert_postgres(more.repartition(3), pooled, "replayed") == Upserted(0, 21, 0)
        target = upsert._Target(pooled, ("replayed",), ("id",), {})
        prepared = "SELECT count(*) FROM pg_prepared_statements"
        assert upsert._transact(target, lambda one: [one.execute(prepared).fetchone() for _ in range(9)]) == [(0,)] * 9


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


REFUSED = {
    "a NULL key": ("NULL", "NULL", 'null value in column "id" of relation "strict" violates not-null constraint'),
    "a NUL character": ("CONCAT('n', CHAR(0))", "NULL", 'invalid byte sequence for encoding "UTF8": 0x00'),
    "a deferred constraint": ("'orphan'", "NULL", "insert or update on table"),
    "a trigger that raises an error": ("'refused'", "NULL", "not this one"),
    "a trigger that drops the row": ("'dropped'", "NULL", "a trigger or a policy of the table must not change or drop"),
    "a trigger that changes the row": ("'changed'", "NULL", "a trigger or a policy of the table must not change or"),
}
"""The key and the list of a row that a table does not take, and what the error says."""


@pytest.mark.parametrize(
    "case", [*list(REFUSED)[:2], *(pytest.param(case, marks=pytest.mark.details) for case in list(REFUSED)[2:])]
)
def test_upsert_postgres_row_that_the_database_refuses_ends_the_call_and_writes_no_row(spark, server, rows_of, case):
    """The error of the database is one line. The row's partition is one transaction; a later batch is stored."""
    id, list, says = REFUSED[case]
    with psycopg.connect(server) as connection:
        connection.execute("""
            DROP TABLE IF EXISTS strict, strict_conflicts, owners;
            CREATE TABLE owners (id text PRIMARY KEY);
            INSERT INTO owners VALUES ('good'), ('changed');
            CREATE TABLE strict (id text PRIMARY KEY, list jsonb,
                owner text REFERENCES owners DEFERRABLE INITIALLY DEFERRED);
            CREATE OR REPLACE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.id = 'dropped' THEN RETURN NULL; END IF;
                IF NEW.id = 'refused' THEN RAISE EXCEPTION 'not this one'; END IF;
                IF NEW.id = 'changed' THEN NEW.owner = 'changed'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER change BEFORE INSERT ON strict FOR EACH ROW EXECUTE FUNCTION change();
        """)
    owner = "IF(id = 'orphan', 'nobody', 'good') AS owner"
    rows = spark.sql(f"SELECT *, {owner} FROM VALUES ('good', NULL), ({id}, {list}) AS t(id, list)")
    rows = rows.withColumn("list", rows.list.cast("array<string>")).coalesce(1)
    with pytest.raises(PostgresError) as caught:
        upsert_postgres(rows, server, "strict")
    assert str(caught.value).startswith(f"cannot write to table strict: {says}")
    assert "\n" not in str(caught.value)
    assert rows_of("strict") == rows_of("strict_conflicts") == []
    assert upsert_postgres(rows.where("id = 'good'"), server, "strict") == Upserted(1, 0, 0)


def partition(rows):
    """Return rows of (id, n) as a task gets them."""
    for row in rows:
        yield pa.RecordBatch.from_pylist([dict(zip(("c0", "c1"), row, strict=True))])


@pytest.mark.parametrize("fault", ["the connection breaks", "the worker ends"])
def test_upsert_postgres_that_ends_between_two_rows_is_exact(server, rows_of, fault):
    """No row is visible before the commit; the retried task stores each row once."""
    name = f"between_{fault.split()[1]}"
    rows = [(f"key {number}", number) for number in range(10)]
    target = upsert._Target(server, (name,), ("id",), {"id": "text", "n": "bigint"})
    upsert._transact(target, lambda connection: upsert._prepare(connection, target))

    def failing():
        yield from partition(rows[:5])
        if fault == "the worker ends":
            raise KeyboardInterrupt
        with psycopg.connect(server, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
            )
        yield from partition(rows[5:])

    with pytest.raises((KeyboardInterrupt, PostgresError)):
        upsert._insert(target, failing())
    assert rows_of(name) == []
    assert upsert._insert(target, partition(rows)) == Upserted(10, 0, 0)
    assert upsert._insert(target, partition(rows)) == Upserted(0, 10, 0)
    assert sorted(rows_of(name)) == sorted(rows)
    assert rows_of(f"{name}_conflicts") == []


def test_upsert_postgres_rows_are_exact_wherever_the_first_stored_key_is(server, rows_of):
    """Chunks are copied to the table up to a stored key; the rest meets stored, other, equal and new rows."""
    types = {"id": "text", "n": "bigint"}
    for place in (0, 1, 3, 6, 9, None):
        for rival in ("the same", "another content", "a later row of this key"):
            name = f"first_{place}_{rival.split()[-1]}"
            rows = [(f"key {number}", number) for number in range(10)]
            target = upsert._Target(server, (name,), ("id",), types)
            upsert._transact(target, lambda connection, target=target: upsert._prepare(connection, target))
            stored, sent, conflicts = [], list(rows), 0
            if place is not None and rival == "a later row of this key":
                sent.insert(place + 1, rows[place])
            elif place is not None:
                conflicts = int(rival == "another content")
                stored = [(rows[place][0], rows[place][1] - conflicts)]
                with psycopg.connect(server) as connection:
                    connection.execute(f"INSERT INTO {name} VALUES (%s, %s)", stored[0])
            counts = upsert._insert(target, partition(sent))
            new = len(rows) - len(stored)
            assert counts == Upserted(new, len(sent) - new - conflicts, conflicts), (place, rival)
            assert rows_of(name) == sorted({**dict(rows), **dict(stored)}.items())
            assert len(rows_of(f"{name}_conflicts")) == conflicts
            assert upsert._insert(target, partition(sent)) == Upserted(0, len(sent) - conflicts, conflicts)


FORMS = {
    "smallint": (pa.int8(), [-128, 127, 0]),
    "integer": (pa.int16(), [-32768, 5]),
    "bigint": (pa.int64(), [-(1 << 63), (1 << 63) - 1]),
    "real": (pa.float32(), [1.5, float("nan"), float("inf"), -0.0]),
    "double precision": (pa.float64(), [5e-324, float("nan"), float("-inf"), 1 / 3]),
    "boolean": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2000, 1, 1)]),
    "timestamp with time zone": (
        pa.int64(),
        [-62_135_596_800_000_000, 0, 946_684_800_000_000, 253_402_300_799_999_999],
    ),
    "timestamp without time zone": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    ),
    "text": (pa.string(), ["", "\u00e4\t\n\\N", ",", '"']),
    "character varying(9)": (pa.string(), ["", "x"]),
    "json": (pa.string(), ['{"a": "\\\\"}', "[]", "null"]),
    "jsonb": (pa.string(), ['{"b": 1, "a": [2]}', "null", '"\u00e9"']),
    "bytea": (pa.binary(), [b"", b"\x00\xff\\", b"abc"]),
}
"""Types of a table that have a binary form, the type that Arrow has for them, and values."""


@pytest.mark.parametrize("nulls", [0, 0.3, 1])
def test_upsert_postgres_binary_and_text_forms_are_the_same_rows(server, rows_of, monkeypatch, nulls):
    """Each value and NULL, sent in both forms; the rows that were sent in one form are those of the other."""
    types = {"id": "text", **{f"c {type}": type for type in FORMS}}
    rows = [
        {
            "id": f"{number:03}",
            **{
                f"c {type}": None if random.random() < nulls else random.choice(values)
                for type, (_, values) in FORMS.items()
            },
        }
        for number in range(200)
    ]
    schema = pa.schema([("id", pa.string()), *((f"c {type}", form) for type, (form, _) in FORMS.items())])
    batches = [pa.RecordBatch.from_pylist(rows[start : start + 30], schema) for start in range(0, 200, 30)]
    found, has_form = [], upsert._has_binary_form
    for is_binary in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(upsert, "_has_binary_form", lambda *arguments, form=is_binary: has_form(*arguments) and form)
            name = f"forms_{nulls}_{is_binary}"
            target = upsert._Target(server, (name,), ("id",), types)
            assert upsert._has_binary_form(batches[0], target) is is_binary
            upsert._transact(target, lambda connection, target=target: upsert._prepare(connection, target))
            assert upsert._insert(target, iter(batches)) == Upserted(200, 0, 0)
        found.append([str(row) for row in rows_of(name)])
    assert found[0] == found[1]
    assert upsert._insert(target, iter(batches)) == Upserted(0, 200, 0)  # text was stored, and binary is compared


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
    hashes = rows.withColumnRenamed("id", "order_key")
    assert upsert_postgres(hashes, server, "hashes", "order_key") == Upserted(2, 0, 0)
    assert upsert_postgres(hashes, server, "ids_by_name", "order_key", key_is_id=True) == Upserted(1, 1, 0)


TYPES = """
    id uuid PRIMARY KEY, short varchar(5), doc json, docb jsonb, pair json, n numeric, big numeric(20, 0),
    small smallint, exact numeric, texts text[], codes varchar(3)[], ints bigint[], decimals numeric[], days date[],
    nested jsonb
"""
"""A table of a service, with types that `upsert_postgres` does not choose itself."""


@pytest.mark.details
def test_upsert_postgres_into_a_table_of_a_service(spark, server, rows_of):
    """PostgreSQL converts and compares the values, also in other spellings; it refuses values that do not fit."""
    with psycopg.connect(server) as connection:
        connection.execute(f"DROP TABLE IF EXISTS typed, typed_conflicts; CREATE TABLE typed ({TYPES})")
    rows = spark.sql("""
        SELECT '0190A5B4-0000-7000-8000-00000000000A' AS id, 'ä' AS short, '{"b": 1, "a": [2]}' AS doc, '[1]' AS docb,
        NAMED_STRUCT('x', 1) AS pair, 7 AS n, 9L AS big, 3L AS small, 1.50BD AS exact,
        ARRAY('a"b', '\\\\', NULL, '', 'NULL', '{,}') AS texts, ARRAY('abc') AS codes, ARRAY(1, NULL) AS ints,
        ARRAY(1.50BD) AS decimals, ARRAY(DATE'2026-01-02') AS days, ARRAY(NAMED_STRUCT('n', 1)) AS nested
        UNION ALL SELECT '0190a5b4-0000-7000-8000-00000000000b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL""")
    assert upsert_postgres(rows, server, "typed") == Upserted(2, 0, 0)
    spelled = rows.selectExpr(
        "* EXCEPT (id, doc)", "lower(id) AS id", """IF(doc IS NULL, doc, '{"a":[2],"b":1}') AS doc"""
    )
    assert upsert_postgres(spelled, server, "typed") == Upserted(0, 2, 0)
    stored = dict(zip(rows.columns, rows_of("typed")[0], strict=True))
    assert stored["texts"] == ['a"b', "\\", None, "", "NULL", "{,}"]
    assert (stored["ints"], stored["decimals"], stored["pair"], stored["nested"]) == (
        [1, None], [Decimal("1.50")], {"x": 1}, [{"n": 1}],
    )  # fmt: skip
    other = rows.withColumn("texts", F.array(F.lit("other"))).withColumn("doc", F.lit("{}"))
    assert upsert_postgres(other, server, "typed") == Upserted(0, 0, 2)
    assert len(rows_of("typed_conflicts")) == 2
    new = rows.where("n = 7").withColumn("id", F.lit("0190a5b4-0000-7000-8000-00000000000c"))
    for name, value, says in [
        ("short", F.lit("six ch"), "value too long for type character varying"),
        ("small", F.lit(1 << 40), "out of range for type smallint"),
        ("big", F.lit(Decimal("1.5")), r"column 'big' must be numeric\(2,1\), and it is numeric\(20,0\)"),
        ("exact", F.lit(1.5), "column 'exact' must be double precision, and it is numeric"),
    ]:
        with pytest.raises(PostgresError, match=says):
            upsert_postgres(new.withColumn(name, value), server, "typed")
    assert len(rows_of("typed")) == 2


@pytest.mark.details
def test_upsert_postgres_keys_of_several_columns(spark, server, rows_of):
    """The columns are one key, in any order of the index; a NULL in one of them is refused."""
    rows = spark.createDataFrame([("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")], 'id string, `N "o"` int, text string')
    keys = ['N "o"', "id"]
    assert upsert_postgres(rows, server, "several", keys) == Upserted(3, 0, 0)
    assert upsert_postgres(rows, server, "several", keys[::-1]) == Upserted(0, 3, 0)
    assert upsert_postgres(rows.withColumn("text", F.lit("x")), server, "several", keys) == Upserted(0, 1, 2)
    assert {row[1] for row in rows_of("several_conflicts")} == {"(2,a)", "(1,b)"}
    with pytest.raises(PostgresError, match="null value in column"):
        upsert_postgres(rows.withColumn("id", F.lit(None).cast("string")), server, "several", keys)
    for key in (["id"], ["id", "text"]):
        with pytest.raises(PostgresError, match="it must have a unique index on 'id'"):
            upsert_postgres(rows, server, "several", key)
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TABLE nulls (id text, n int, UNIQUE (id, n))")
    with pytest.raises(PostgresError, match="it must have a unique index on 'id', 'n', which must be NOT NULL"):
        upsert_postgres(rows.selectExpr("id", "1 AS n"), server, "nulls", ("id", "n"))


def test_upsert_postgres_latest_row_of_a_key_stays(spark, server, rows_of):
    """Batches in any order, replayed, and divided in any way leave the same rows; equal versions are a conflict."""
    rows = [("a", 1, "x"), ("a", 3, "y"), ("a", 2, "z"), ("b", 5, "u"), ("c", None, "n"), ("d", None, "m")]
    schema, options = "id string, version int, text string", {"latest_by": "version"}

    def put(*places, parts=1):
        df = spark.createDataFrame([rows[place] for place in places], schema).repartition(parts)
        return upsert_postgres(df, server, "latest", **options)

    assert put(0) == Upserted(1, 0, 0)
    assert put(1, 2, 3) == Upserted(2, 1, 0)
    assert put(0, 1, 2, 3) == Upserted(0, 4, 0)
    assert put(4, 5, parts=2) == Upserted(2, 0, 0)
    rows += [("c", 1, "n"), ("b", 5, "other"), ("b", None, "late"), ("b", 4, "late")]
    assert put(6) == Upserted(1, 0, 0)
    assert put(7, 8, 9) == Upserted(0, 1, 2)
    assert put(7, 8, 9) == Upserted(0, 1, 2)
    assert rows_of("latest") == [("a", 3, "y"), ("b", 5, "u"), ("c", 1, "n"), ("d", None, "m")]
    assert len(rows_of("latest_conflicts")) == 2


def test_upsert_postgres_latest_rows_of_drivers_at_once(spark, server, rows_of):
    """Drivers that write versions in any order leave the last version of each key."""
    versions = spark.range(300).selectExpr("CAST(id % 30 AS STRING) AS id", "id AS version", "id * 2 AS n")
    orders = [versions.orderBy("version"), versions.orderBy(versions.version.desc()), versions.repartition(3)]
    found = at_once(*(lambda df=df: upsert_postgres(df, server, "raced", latest_by="version") for df in orders))
    assert [(sum(counts), counts.conflicts) for counts in found] == [(300, 0)] * 3
    assert sorted(int(row[1]) for row in rows_of("raced")) == list(range(270, 300))


ORDERED = {
    "int": [-1, 0, 7],
    "bigint": [-(1 << 63), 5, 1 << 40],
    "double": [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, 5e-324],
    "float": [float("nan"), float("inf"), -1.5, 0.0],
    "decimal(38,10)": [Decimal("-1.5"), Decimal("1e20"), Decimal("1e-10")],
    "string": [
        "",
        "2a",
        "2B",
        "Z",
        "a",
        "ch",
        "h",
        "e",
        "\u00e9",
        "\u00e4",
        "z",
        "\uff5e",
        "\U0001f600",
        "a-b",
        "ab",
        "a b",
    ],
    "binary": [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"],
    "boolean": [False, True],
    "date": [date(1, 1, 1), date(1582, 10, 15), date(2026, 1, 1)],
    "timestamp": [
        datetime(1969, 12, 31, 23, tzinfo=timezone.utc),
        datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=timezone.utc),
    ],
    "timestamp_ntz": [datetime(1, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1)],
}
"""Values of each type by which `latest_by` orders rows; the languages order the texts in several ways."""


@pytest.mark.details
def test_upsert_postgres_latest_rows_are_those_of_max_by_in_every_language(spark, server):
    """Any rows, in any split into batches, on databases with C, ICU and another language: the order is Spark's."""
    seed = random.randrange(1 << 30)
    chance, names = random.Random(seed), [f"by {type}" for type in ORDERED]
    rows = []
    for key in range(300):
        used = chance.sample(range(len(names)), chance.choice([1, 1, 2]))
        for _ in range(chance.randrange(1, 7)):
            values = [None] * len(names)
            for place in used:
                values[place] = chance.choice([None, *list(ORDERED.values())[place]])
            rows.append((f"key {key}", len(rows), *values))
    columns = ", ".join(f"`{name}` {type}" for name, type in zip(names, ORDERED, strict=True))
    df = spark.createDataFrame(rows, f"key string, n int, {columns}").cache()
    order = F.struct(*(F.col(f"`{name}`") for name in names))
    greatest = df.groupBy("key").agg(F.max(order).alias("greatest"))
    latest = df.join(greatest, "key").where(order.eqNullSafe(F.col("greatest"))).select("key", "n").collect()
    expected = {}
    for key, n in latest:
        expected.setdefault(key, set()).add(n)
    numbers = [row[1] for row in rows]
    for language in ("C", "en-US", "cs-CZ-u-kf-upper"):
        database = f"in {language}"
        with psycopg.connect(server, autocommit=True) as connection:
            icu = "" if language == "C" else f"LOCALE_PROVIDER icu ICU_LOCALE '{language}'"
            connection.execute(f"CREATE DATABASE \"{database}\" TEMPLATE template0 LOCALE 'C' {icu} ENCODING 'UTF8'")
        address = psycopg.conninfo.make_conninfo(server, dbname=database)
        chance.shuffle(numbers)
        cuts = sorted(chance.sample(range(len(numbers)), 2))
        for batch in (numbers[: cuts[0]], numbers[cuts[0] : cuts[1]], numbers[cuts[1] :], numbers[:50]):
            part = df.where(F.col("n").isin(batch)).coalesce(chance.choice([1, 2]))
            upsert_postgres(part, address, "latest", "key", latest_by=names)
        with psycopg.connect(address) as connection:
            stored = dict(connection.execute("SELECT key, n FROM latest").fetchall())
        wrong = [(key, n, expected[key]) for key, n in stored.items() if n not in expected[key]]
        assert (stored.keys(), wrong) == (expected.keys(), []), (seed, language)


@pytest.mark.parametrize(
    ("type", "says"),
    [
        ("struct<term: int, seq: int>", "not nested, got 'by' of struct.*: latest_by=\\['term', 'seq'\\]"),
        ("array<int>", "not nested, got 'by' of array<int>"),
        ("map<string, int>", "not nested, got 'by' of map"),
        ("string collate UNICODE_CI", "text that is compared by its bytes"),
    ],
)
def test_upsert_postgres_order_that_postgres_cannot_repeat_is_refused(spark, type, says):
    value = "'x' COLLATE UNICODE_CI" if "collate" in type else f"CAST(NULL AS {type})"
    with pytest.raises(ValueError, match=says):
        upsert_postgres(spark.sql(f"SELECT 'a' AS id, {value} AS by"), "host=/nowhere", "t", latest_by="by")


def test_upsert_postgres_order_of_a_column_of_another_type_is_refused(spark, server):
    """A uuid is ordered by its value, and jsonb by its parts: text on Spark has another order."""
    rows = spark.sql("SELECT 'a' AS id, '74b158ca-ddb3-498f-b0a9-9eec1c6197ae' AS by")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE TABLE other_order (id text PRIMARY KEY, by uuid)")
        connection.execute("CREATE DATABASE in_koi8r ENCODING 'KOI8R' TEMPLATE template0 LOCALE 'C'")
    with pytest.raises(PostgresError, match=r"'by' of latest_by must be text or varchar .* it is uuid in UTF8"):
        upsert_postgres(rows, server, "other_order", latest_by="by")
    koi8r = psycopg.conninfo.make_conninfo(server, dbname="in_koi8r")
    with pytest.raises(PostgresError, match=r"'by' of latest_by must be text .* it is text in KOI8R"):
        upsert_postgres(rows, koi8r, "other_order", latest_by="by")


def test_upsert_postgres_columns_of_other_types_are_refused_with_their_cure(spark, server):
    """An enum, a domain, char(n), and an ID that is not a UUID in a column of UUIDs."""
    with psycopg.connect(server) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('x'); CREATE DOMAIN word AS text")
        for type in ("mood", "word", "char(3)"):
            connection.execute(f'CREATE TABLE "odd {type}" (id text PRIMARY KEY, n {type})')
        connection.execute("CREATE TABLE in_uuid (id uuid PRIMARY KEY)")
    rows = spark.sql("SELECT 'a' AS id, 'x' AS n")
    for type, says in [("mood", "an enum, .*: change the column to text"), ("word", "a domain: change the column to"),
                       ("char(3)", "pads its values with spaces: change the column to varchar")]:  # fmt: skip
        with pytest.raises(PostgresError, match=f"column 'n' must be text, and it is .*{says}"):
            upsert_postgres(rows, server, f"odd {type}")
    digits = spark.sql("SELECT '74b158caddb3498fb0a99eec1c6197ae' AS id")
    with pytest.raises(PostgresError, match=r"invalid input syntax for type uuid.*pass key_is_id=False"):
        upsert_postgres(digits, server, "in_uuid")
    assert upsert_postgres(digits, server, "in_uuid", key_is_id=False) == Upserted(1, 0, 0)


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=pytest.mark.details)])
def test_upsert_postgres_waits_for_no_lock_longer_than_it_says(spark, server, pooled):
    """The error names table, key and cure. A client that vanishes in its transaction frees its locks."""
    table, rows = f"waited_{pooled}", spark.sql("SELECT 'a' AS id, 1 AS n")
    upsert_postgres(rows.limit(0), server, table)
    with psycopg.connect(server) as other:
        other.execute(f"INSERT INTO \"{table}\" VALUES ('a', 1)")
        says = f"to table {table}: another transaction has locked it, or a row with the same 'id'.*pg_blocking_pids"
        with pytest.raises(PostgresError, match=says):
            upsert_postgres(rows, server, table, lock_timeout=0.2)
        other.execute(f"ROLLBACK; BEGIN; SELECT pg_advisory_xact_lock(hashtext('msgid'), hashtext('{table}'))")
        with pytest.raises(PostgresError, match=f"to table {table}: another transaction has locked it"):
            upsert_postgres(rows, server, table, lock_timeout=0.2)

    is_over = threading.Event()

    def vanish(connection):
        connection.execute(f"INSERT INTO \"{table}\" VALUES ('a', 1)")
        is_over.wait(60)

    def vanishing(target):
        with contextlib.suppress(PostgresError):
            upsert._transact(target, vanish)

    with running_pool(server) if pooled else contextlib.nullcontext(server) as address:
        target = upsert._Target(address, (table,), ("id",), {"id": "text", "n": "integer"}, limits=(60, 0.5))
        thread = threading.Thread(target=vanishing, args=(target,))
        thread.start()
        with psycopg.connect(server, autocommit=True) as other:
            busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
            while not other.execute(busy).fetchone()[0]:
                time.sleep(0.01)
        assert upsert_postgres(rows, address, table, lock_timeout=30) == Upserted(1, 0, 0)
        is_over.set()
        thread.join()


def test_upsert_postgres_needs_rights_on_the_columns_alone(spark, server, rows_of):
    """The role inserts and reads the columns of the rows, and does not own the tables."""
    rows = spark.sql("SELECT 'a' AS id, 1 AS n")
    with psycopg.connect(server) as connection:
        connection.execute("CREATE ROLE lowly LOGIN; CREATE TABLE rights (id text PRIMARY KEY, n int, hidden int)")
        connection.execute("GRANT INSERT (id, n), SELECT (id, n) ON rights TO lowly")
    upsert_postgres(rows.limit(0), server, "rights")  # creates the table of conflicts
    with psycopg.connect(server) as connection:
        connection.execute("GRANT INSERT, SELECT ON rights_conflicts TO lowly")
    address = psycopg.conninfo.make_conninfo(server, user="lowly")
    assert upsert_postgres(rows, address, "rights") == Upserted(1, 0, 0)
    assert upsert_postgres(rows, address, "rights") == Upserted(0, 1, 0)
    assert rows_of("rights") == [("a", 1, None)]


def test_upsert_postgres_adds_columns(spark, server, rows_of):
    """With ``evolve=True`` a missing column is added; without it, the rows are refused."""
    rows = spark.sql("""SELECT 'a' AS id, 1 AS n, ARRAY('x') AS `new "list"`""")
    assert upsert_postgres(rows.select("id", "n"), server, "grown") == Upserted(1, 0, 0)
    more = rows.withColumn("id", F.lit("b"))
    with pytest.raises(PostgresError, match=r"column 'new \"list\"' must be text.*, and it is missing"):
        upsert_postgres(more, server, "grown")
    assert upsert_postgres(more, server, "grown", evolve=True) == Upserted(1, 0, 0)
    assert upsert_postgres(more, server, "grown") == Upserted(0, 1, 0)
    assert rows_of("grown") == [("a", 1, None), ("b", 1, ["x"])]
    with pytest.raises(PostgresError, match="column 'n' must be text, and it is integer"):
        upsert_postgres(more.withColumn("n", F.lit("1")), server, "grown", evolve=True)


def test_upsert_postgres_names_are_quoted(spark, server, rows_of):
    """Schemas, tables and columns may have any name."""
    with psycopg.connect(server) as connection:
        connection.execute('CREATE SCHEMA "my schema"')
    rows = spark.sql("""SELECT 'a' AS `the "id"; DROP`, 1 AS `select`, 2 AS `with.dot`""")
    longest = spark.sql(f"SELECT 'a' AS id, 1 AS `{'é' * 31}x`")
    assert upsert_postgres(longest, server, "y" * 53) == Upserted(1, 0, 0)
    assert upsert_postgres(longest, server, "y" * 53) == Upserted(0, 1, 0)
    key = 'the "id"; DROP'
    assert upsert_postgres(rows, server, ("my schema", "a.b'\""), key) == Upserted(1, 0, 0)
    assert rows_of("my schema", "a.b'\"") == [("a", 1, 2)]
    with psycopg.connect(server) as connection:
        connection.execute('CREATE TABLE "50%s" ("100%" text PRIMARY KEY, "%(n)s" int)')
    rows = spark.sql("SELECT * FROM VALUES ('a', 1), ('a', 9) AS t(`100%`, `%(n)s`)").coalesce(1)
    assert upsert_postgres(rows, server, "50%s", "100%") == Upserted(1, 0, 1)
    assert len(rows_of("50%s")) == len(rows_of("50%s_conflicts")) == 1


def test_upsert_postgres_drivers_at_once_insert_each_key_once(spark, server, rows_of):
    """Concurrent drivers that write the same keys in different orders insert each key once."""
    rows = spark.range(200).selectExpr("CAST(id AS STRING) AS id", "id AS n")
    orders = [rows.orderBy("n"), rows.orderBy(rows.n.desc()), rows.repartition(2)]
    found = at_once(*(lambda df=df: upsert_postgres(df, server, "drivers") for df in orders))
    assert [sum(counts) for counts in zip(*found, strict=True)] == [200, 400, 0]
    assert len(rows_of("drivers")) == 200


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("id text PRIMARY KEY, n int GENERATED ALWAYS AS (1) STORED", "cannot insert a non-DEFAULT value into column"),
        ("id text PRIMARY KEY, n text", "column 'n' must be integer, and it is text"),
        ("id text PRIMARY KEY", "column 'n' must be integer, and it is missing"),
        ("id text NOT NULL, n int", "it must have a unique index on 'id'"),
        ("id text UNIQUE, n int", "it must have a unique index on 'id', which must be NOT NULL"),
        ("id text NOT NULL UNIQUE DEFERRABLE, n int", "it must have a unique index on 'id'"),
        ("id text NOT NULL, n int NOT NULL, UNIQUE (id, n)", "it must have a unique index on 'id'"),
        ("id text NOT NULL, n int, UNIQUE (id) INCLUDE (n), CHECK (n > 1)", "violates check constraint"),
        ("id text PRIMARY KEY, n smallint[]", "column 'n' must be integer, and it is smallint"),
        ("id bigint PRIMARY KEY, n int", "column 'id' must be text, and it is bigint"),
    ],
)
def test_upsert_postgres_table_that_does_not_fit_is_refused(spark, server, definition, says):
    """A table that does not fit is rejected before a row is sent."""
    with psycopg.connect(server) as connection:
        connection.execute(f"DROP TABLE IF EXISTS unfit; CREATE TABLE unfit ({definition})")
    with pytest.raises(PostgresError, match=says):
        upsert_postgres(spark.sql("SELECT 'a' AS id, 1 AS n"), server, "unfit")


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
        ("1 AS n", {}, r"key and latest_by must be of \['n'\], got key='id', latest_by=None"),
        ("1 AS id", {"key": ()}, r"key and latest_by must be of \['id'\], got key=\(\)"),
        ("1 AS id", {"key": ("id", "k")}, r"must be of \['id'\], got key=\('id', 'k'\)"),
        ("1 AS id", {"latest_by": "at"}, r"must be of \['id'\], got key='id', latest_by='at'"),
        ("1 AS id", {"latest_by": ()}, r"must be of \['id'\], got key='id', latest_by=\(\)"),
        ("1 AS id", {"lock_timeout": 0}, "lock_timeout must be 0.001 to 86400 seconds, got 0"),
        ("1 AS id", {"idle_timeout": 1e9}, "idle_timeout must be 0.001 to 86400 seconds"),
        ("1 AS id", {"table": "a.b.c"}, "table must be a name or a schema and a name"),
        (
            "1 AS id",
            {"table": "x" * 54},
            "a name in PostgreSQL must have at most 63 bytes of UTF-8, got 'xxx.*_conflicts'",
        ),
        ("1 AS id", {"table": ("é" * 32, "t")}, "at most 63 bytes of UTF-8, got 'éé"),
        (f"1 AS id, 2 AS `{'é' * 32}`", {}, "at most 63 bytes of UTF-8, got 'éé"),
        ("1 AS id, INTERVAL '1' DAY AS s", {}, "cannot store column 's' in PostgreSQL: it lacks the type interval day"),
        (
            "1 AS id, ARRAY(MAP(X'00', 1)) AS m",
            {},
            "cannot store column 'm' in PostgreSQL: it lacks the type array<map",
        ),
        (
            "1 AS id, NAMED_STRUCT('double', 1, 'x', ARRAY(MAP('k', 1e23))) AS m",
            {},
            "cannot store column 'm' .*: as JSON, its floats have another text on a later Java",
        ),
        ("1 AS id, ARRAY(ARRAY(float(1))) AS m", {}, "'m' of array<array<float>>: as JSON, its floats have another"),
        ("1 AS id, NAMED_STRUCT('double', 1, 'float', 2) AS m", {"table": "x" * 64}, "must have at most 63 bytes"),
    ],
)
def test_upsert_postgres_arguments_are_checked(spark, rows, options, says):
    """Invalid arguments raise an error before a connection is opened."""
    with pytest.raises(ValueError, match=says):
        upsert_postgres(spark.sql(f"SELECT {rows}"), "host=/nowhere", **{"table": "t", **options})
