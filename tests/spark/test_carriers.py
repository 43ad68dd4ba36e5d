"""Every carrier of a column of IDs in every function of Spark: the same IDs, or a refusal with a cure at the call."""

import inspect
import json
import uuid
from itertools import count

import pytest
from helpers import carriers
from helpers.carriers import UUID, V1
from helpers.servers import running_postgres
from helpers.spark_carriers import (
    IDS,
    NUMBERS,
    SECTION_OF_TABLES,
    TYPES,
    audited,
    carried,
    cell,
    compared,
    in_memory,
    stored,
)
from helpers.versions import since
from pyspark.sql import functions as F

import spark_ext
from msgid.ids.checked_bytes import identity
from spark_ext.columns.fingerprint import fingerprint_of
from spark_ext.columns.identity import canonical
from spark_ext.jobs._input import read_rows

pytestmark = [pytest.mark.spark, since(4, 0)]

NAMES = {False: "Columns on Spark", True: "Columns through Spark Connect"}
KEYS = "Keys in PostgreSQL"


@pytest.fixture(scope="module")
def rows_of(spark, tmp_path_factory):
    """Return a function that returns the rows of a carrier, or of the same IDs as text."""
    with carried(spark, tmp_path_factory.mktemp("chars") / "table") as made:
        yield made


def functions(df):
    """Return what the functions of a value say of each row: first whether it is valid."""
    said = [getattr(spark_ext, name)("id") for name in ("is_valid_id", "id_from_binary", "try_parse_id", "id_kind")]
    return [tuple(row) for row in df.sort("n").select(*(one.cast("string") for one in said)).collect()]


def in_sql(df):
    """Return what the SQL functions say of each row."""
    if "msgid_is_valid" not in {row.function for row in df.sparkSession.sql("SHOW USER FUNCTIONS").collect()}:
        spark_ext.register(df.sparkSession)
    calls = ("msgid_is_valid", "msgid_from_binary", "msgid_kind")
    rows = df.sort("n").selectExpr(*(f"CAST({name}(id) AS STRING)" for name in calls))
    return [tuple(row) for row in rows.collect()]


def echo(state, message, context):
    """Publish nothing but that the message was handled."""
    context.publish(1)
    return (state or 0) + 1


def processed(df):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    rows = spark_ext.process(df.selectExpr("id", "'k' AS key"), "key", echo, buckets=1)
    return sorted((row.input_id, row.kind) for row in rows.collect())


def deduplicated(df):
    return [row.delivery for row in spark_ext.deduplicate(df, order_by="n", content=[]).sort("n").collect()]


def traced(df):
    """Return the rows of two messages."""
    return [sorted(row.n for row in spark_ext.trace(one, df, id="id").collect()) for one in (V1, UUID)]


ENTRIES = {
    "functions of a value": functions,
    "SQL functions": in_sql,
    "deduplicate": deduplicated,
    "process": processed,
    "audit": audited,
    "compare": lambda df: [compared(df, ids) for ids in ((V1, UUID), IDS)],
    "digest": lambda df: sorted(map(tuple, spark_ext.digest(df, id="id", offset="n").collect())),
    "trace": traced,
}
"""An entry point is one line."""
QUICK = {
    "functions of a value": tuple(TYPES),
    "deduplicate": ("char(60)", "string COLLATE UTF8_BINARY_RTRIM", "decimal(38,0)", "variant"),
    "process": ("decimal(38,0)", "double", "variant"),
    "audit": ("double",),
    "compare": ("bigint",),
    "digest": ("bigint",),
}
"""The cells that the default tests check."""


def test_each_carrier_in_the_quick_cells_is_as_the_page_says(rocksdb, rows_of, request, connect):
    """Run `pytest tests/spark/test_carriers.py -m "" --update-golden` to write the page, and again with `--connect`."""
    page, known = carriers.section_of(NAMES[connect]), {}
    if not request.config.getoption("--update-golden"):
        for entry, names in QUICK.items():
            for name in names:
                assert page[name][entry] == cell(ENTRIES[entry], name, rows_of, known), (entry, name)


@pytest.mark.variants
@pytest.mark.parametrize("entry", ENTRIES)
def test_each_carrier_in_a_function_is_as_the_page_says(rocksdb, rows_of, request, connect, entry):
    """A function is a test of its own: all of them take a quarter of an hour through Spark Connect."""
    known = {}
    cells = {name: {entry: cell(ENTRIES[entry], name, rows_of, known)} for name in TYPES}
    carriers.check(NAMES[connect], cells, request)


def tables(folder):
    """Return the entry points of tables that need no JAR; each table is a new folder."""
    number = count()
    place = lambda: {"path": str(folder / str(next(number)))}  # noqa: E731
    return {"Parquet": stored("parquet", place), "Delta without its JAR": stored("delta", place)}


@pytest.mark.details
def test_a_char_that_a_table_has_stored_is_the_same_id(rows_of, tmp_path):
    assert cell(tables(tmp_path)["Parquet"], "char(60)", rows_of, {}, in_memory) == carriers.SAME


@pytest.mark.variants
def test_each_carrier_in_each_table_is_as_the_page_says(rows_of, request, tmp_path):
    """The rows are written, read again, and then audited and compared."""
    pytest.importorskip("deltalake")
    known, entries = {}, tables(tmp_path)
    cells = {
        name: {entry: cell(one, name, rows_of, known, in_memory) for entry, one in entries.items()} for name in TYPES
    }
    carriers.check(SECTION_OF_TABLES, cells, request)


@pytest.fixture(scope="module")
def keys_in():
    """Return the entry points of keys: the identities of the keys that a column of PostgreSQL then has."""
    psycopg = pytest.importorskip("psycopg")
    with running_postgres() as server:
        number = count()

        def in_type(type):
            def entry(df):
                table = f"t{next(number)}"
                with psycopg.connect(server) as connection:
                    if type != "new table":
                        connection.execute(f"CREATE TABLE {table} (id {type} PRIMARY KEY)")
                rows = df.where("n = 2") if type == "uuid" else df
                done = spark_ext.upsert_postgres(rows.select("id"), server, table)
                again = spark_ext.upsert_postgres(rows.select("id"), server, table)
                assert (again.inserted, again.present) == (0, done.inserted + done.present)
                with psycopg.connect(server) as connection:
                    keys = [key for (key,) in connection.execute(f"SELECT id FROM {table}").fetchall()]
                if not all(isinstance(key, str | bytes | uuid.UUID) for key in keys):
                    return carriers.NO_ID
                return sorted(map(identity, keys))

            return entry

        yield {type: in_type(type) for type in ("new table", "text", "varchar(60)", "uuid", "bytea")}


def keys_of(df):
    """Return the identities of text."""
    return sorted({identity(row.id) for row in df.collect()})


def uuids_of(df):
    """Return the identities of text that a column of the type uuid has."""
    return keys_of(df.where("n = 2"))


@pytest.mark.variants
def test_each_carrier_of_a_key_in_postgresql_is_as_the_page_says(rows_of, keys_in, request):
    known = {}
    cells = {
        name: {
            entry: cell(one, name, rows_of, known, uuids_of if entry == "uuid" else keys_of)
            for entry, one in keys_in.items()
        }
        for name in TYPES
    }
    carriers.check(KEYS, cells, request)


UUIDS = [uuid.UUID(int=uuid.UUID(UUID).int + n) for n in range(3)]
TEXTS, BARE = [*map(str, UUIDS)], [f"00{one.hex.upper()}" for one in UUIDS]


def arrow_of(**types):
    """Return a table of PyArrow with the UUIDs as a type, as text or as their bytes."""
    import pyarrow as pa

    ((kind, type),) = types.items()
    values = TEXTS if kind == "text" else [one.bytes for one in UUIDS]
    return pa.table({"id": pa.array(values, getattr(pa, type)())})


def with_pyarrow(table, path):
    from pyarrow import parquet

    parquet.write_table(table, f"{path}/a.parquet")


def with_pandas(values, path):
    import pandas as pd

    pd.DataFrame({"id": values}).to_parquet(f"{path}/a.parquet")


def with_polars(values, path):
    import polars as pl

    pl.DataFrame({"id": values}).write_parquet(f"{path}/a.parquet")


def with_duckdb(expression, path):
    import duckdb

    duckdb.sql(f"COPY (SELECT {expression} AS id FROM (SELECT unnest({TEXTS}) AS one)) TO '{path}/a.parquet'")


def with_delta_rs(table, path):
    import deltalake

    deltalake.write_deltalake(str(path), table)


WRITTEN = {
    "PyArrow, uuid": (TEXTS, lambda path: with_pyarrow(arrow_of(uuid="uuid"), path)),
    "PyArrow, text": (TEXTS, lambda path: with_pyarrow(arrow_of(text="string"), path)),
    "PyArrow, binary": (BARE, lambda path: with_pyarrow(arrow_of(bytes="binary"), path)),
    "DuckDB, UUID": (TEXTS, lambda path: with_duckdb("one::UUID", path)),
    "DuckDB, VARCHAR": (TEXTS, lambda path: with_duckdb("one", path)),
    "pandas, objects of `uuid.UUID`": (TEXTS, lambda path: with_pandas(UUIDS, path)),
    "pandas, text": (TEXTS, lambda path: with_pandas(TEXTS, path)),
    "Polars, String": (TEXTS, lambda path: with_polars(TEXTS, path)),
    "Polars, Binary": (BARE, lambda path: with_polars([one.bytes for one in UUIDS], path)),
    "delta-rs, uuid": (TEXTS, lambda path: with_delta_rs(arrow_of(uuid="uuid"), path)),
    "delta-rs, text": (TEXTS, lambda path: with_delta_rs(arrow_of(text="string"), path)),
    "delta-rs, binary": (BARE, lambda path: with_delta_rs(arrow_of(bytes="binary"), path)),
}
"""A writer is one line: the IDs that its file or table has, and what writes it."""


def read_locally(spark, ids, path):
    import msgid.audit

    return [one.check for one in msgid.audit.compare({"id": ids}, f"{path}/*.parquet", id="id").findings]


def read_by(read):
    """Return a reader on Spark: the findings of a comparison with the IDs."""

    def found(spark, ids, path):
        sent = spark.createDataFrame([(one,) for one in ids], "id string")
        report = spark_ext.compare(sent, read(spark, str(path)), id="id")
        return [row.check for row in report.findings.collect()]

    return found


READERS = {
    "files in Python": read_locally,
    "`read_table`": read_by(spark_ext.read_table),
    "jobs": read_by(read_rows),
}
"""A reader is one line."""


@pytest.mark.variants
def test_files_and_tables_of_other_writers_are_as_the_page_says(spark, request, tmp_path):
    """A comparison with the IDs finds nothing: no ID is missing, and none is unknown."""
    for name in ("duckdb", "pandas", "polars", "deltalake"):
        pytest.importorskip(name)
    cells = {}
    for number, (name, (ids, write)) in enumerate(WRITTEN.items()):
        path = tmp_path / str(number)
        path.mkdir()
        write(path)
        found = {reader: read(spark, ids, path) for reader, read in READERS.items()}
        cells[name] = {reader: carriers.SAME if checks == [] else str(checks) for reader, checks in found.items()}
    carriers.check("Files and tables of other writers", cells, request)


def test_the_check_of_a_column_runs_no_job(spark, rows_of, connect):
    """The type and the metadata of the field are in the plan."""
    if connect:
        pytest.skip("Spark Connect does not show its jobs")
    spark.sparkContext.setJobGroup("msgid-checked", "the check of a column")
    try:
        for name in ("char(60)", "string COLLATE UTF8_BINARY_RTRIM", "binary"):
            spark_ext.deduplicate(rows_of(name), order_by="n")
        with pytest.raises(ValueError, match="got 'id' of double"):
            spark_ext.audit(rows_of("double"), id="id")
        assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("msgid-checked")) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_key_of_upsert_has_one_spelling_in_each_type_of_text(spark, rows_of):
    """`upsert_postgres` stores this column; the rows of PostgreSQL are in the tests of the sink."""
    for name, (ids, _) in TYPES.items():
        if name.startswith(("string", "varchar", "char")):
            sides = [rows_of(name).sort("n"), rows_of(name, as_text=True).sort("n")]
            keys, texts = ([row[0] for row in df.select(canonical(df, "id")).collect()] for df in sides)
            assert len(ids) == len(keys), name
            assert keys == texts, name
    for name in ("decimal(38,0)", "double"):
        with pytest.raises(ValueError, match=r"`key` must be a column of text or binary, got .*: if this column"):
            canonical(rows_of(name), "id")
    assert rows_of("bigint").select(canonical(rows_of("bigint"), "id")).count() == len(NUMBERS)


def publish_id(state, message, context):
    context.publish(message.body["id"])


@pytest.mark.details
def test_a_char_beside_an_id_is_text_without_its_padding(rocksdb, rows_of):
    """In the content of a message and in its body."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    char, text = rows_of("char(60)"), rows_of("char(60)", as_text=True)
    told = [fingerprint_of([(F.col("id"), df.schema["id"])]) for df in (char, text)]
    sides = zip((char, text), told, strict=True)
    assert len({tuple(row[0] for row in df.sort("n").select(one).collect()) for df, one in sides}) == 1
    assert spark_ext.compare(text, char, offset="n", content=("id",)).findings.collect() == []
    rows = char.selectExpr("id", "concat('m', n) AS message", "'k' AS key")
    bodies = spark_ext.process(rows, "key", publish_id, id="message", buckets=1).collect()
    assert sorted(json.loads(row.body) for row in bodies) == sorted(row.id for row in text.collect())


def test_a_partition_of_a_collation_is_refused(rows_of, tmp_path):
    """Spark writes its folders, and cannot read them."""
    with pytest.raises(ValueError, match="got 'id' of string collate UTF8_LCASE; cast it to string"):
        spark_ext.write_once(
            rows_of("string COLLATE UTF8_LCASE"), 0, str(tmp_path / "t"), app_id="a", partition_by=("id",)
        )


# --- Functions that take an ID ---

TAKERS = {
    "deduplicate": "deduplicate", "process": "process", "audit": "audit", "compare": "compare", "digest": "digest",
    "trace": "trace", "is_valid_id": "functions of a value", "try_parse_id": "functions of a value",
    "id_kind": "functions of a value",
    "id_from_binary": "functions of a value",
}  # fmt: skip
OF_HEX_TEXT = {
    "id_origin", "id_time", "id_to_binary", "id_to_uuid", "id_from_uuid", "parse_id", "parse_v0", "time_key",
    "translate_v0", "try_parse_v0", "try_translate_v0", "v0_time", "derive_id",
}  # fmt: skip
"""The other functions of a value, which read it by `hex_text`."""
OTHERS = {
    "id_from_iggy_id": "its argument is the 16 bytes of an Iggy message",
    "upsert_postgres": "its keys are those of `canonical`",
    "check_schema": "its payload is bytes", "is_expired": "its arguments are times", "register": "of the session",
    "messages": "its IDs are in headers, which the formats read by `header_identity`",
    "position_id": "it takes a place",
    "assign_id": "", "assign_ids": "", "generate_id": "", "read_table": "", "write_once": "", "segment_report": "",
    "rows_too_late": "", "register_message_format": "", "register_table_format": "",
}  # fmt: skip
"""Public functions that take no column of IDs, and the reason where one could think so."""


def test_each_public_function_is_an_entry_point_or_takes_no_ids():
    """A new function fails here until the lists have it; those of a value read it by the door."""
    names = {name for name in spark_ext.__all__ if name[0].islower()}
    assert names == TAKERS.keys() | OF_HEX_TEXT | OTHERS.keys()
    assert {*TAKERS.values(), "SQL functions"} == ENTRIES.keys()
    for name in OF_HEX_TEXT | {"is_valid_id", "try_parse_id", "id_from_binary"}:
        assert "hex_text(" in inspect.getsource(getattr(spark_ext, name)), name
