"""Every carrier of a column of IDs in every function of Spark: the same IDs, or a refusal with a cure at the call."""

import inspect

import pytest
from helpers import carriers
from helpers.carriers import DIGITS, NO_ID, REFUSED, SAME, UUID, V0, V1, is_refusal
from helpers.versions import since
from pyspark.sql import functions as F

import spark_ext
from spark_ext.columns.identity import canonical

pytestmark = [pytest.mark.spark, since(4, 0)]

NAME = "Columns on Spark"
IDS = (V1, V0, UUID, V1.lower(), f"00{V0}", "order 7")
RAW = (V1, V0, V1)
NUMBERS = (DIGITS, DIGITS[:-1] + "8")

TYPES = {
    "string": (IDS, "id"),
    "varchar(60)": (IDS, "varchar"),
    "char(60)": (IDS, "char"),
    "string COLLATE UTF8_LCASE": (IDS, "id COLLATE UTF8_LCASE"),
    "string COLLATE UTF8_BINARY_RTRIM": (IDS, "concat(id, repeat(' ', n + 1)) COLLATE UTF8_BINARY_RTRIM"),
    "binary": (RAW, "unhex(id)"),
    "binary of the text": (IDS[:4], "CAST(id AS binary)"),
    "decimal(38,0)": (NUMBERS, "CAST(id AS decimal(38,0))"),
    "double": (NUMBERS, "CAST(id AS double)"),
    "bigint": (NUMBERS, "CAST(n AS bigint)"),
    "variant": (IDS, "CAST(id AS variant)"),
    "array<string>": (IDS, "array(id)"),
    "struct<id: string>": (IDS, "named_struct('id', id)"),
    "timestamp": (IDS, "timestamp_seconds(n)"),
}
"""A carrier is one line: the IDs, and the column in SQL."""


@pytest.fixture(scope="module")
def rows_of(spark, tmp_path_factory):
    """Return a function that returns the rows of a carrier, or of the same IDs as text."""
    folder = tmp_path_factory.mktemp("chars") / "table"
    columns = "n int, id string, char char(60), varchar varchar(60)"
    spark.sql(f"CREATE TABLE msgid_chars ({columns}) USING parquet LOCATION '{folder}'")
    spark.sql(
        "INSERT INTO msgid_chars VALUES " + ", ".join(f"({n}, '{id}', '{id}', '{id}')" for n, id in enumerate(IDS))
    )

    def made(name, as_text=False):
        ids, expression = TYPES[name]
        if "char" in name and not as_text:
            return spark.table("msgid_chars").select("n", F.col(expression).alias("id"))
        texts = spark.createDataFrame([*enumerate(ids)], "n int, id string")
        return texts if as_text else texts.selectExpr("n", f"{expression} AS id")

    yield made
    spark.sql("DROP TABLE msgid_chars")


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


def audited(df):
    report = spark_ext.audit(df, id="id")
    return sorted((row.check, row["count"], str(row.example)) for row in report.findings.collect())


def compared(df):
    sent = df.sparkSession.createDataFrame([(V1,), (UUID,)], "id string")
    return sorted((row.check, row["count"]) for row in spark_ext.compare(sent, df, id="id").findings.collect())


ENTRIES = {
    "functions of a value": functions,
    "SQL functions": in_sql,
    "deduplicate": deduplicated,
    "process": processed,
    "audit": audited,
    "compare": compared,
    "digest": lambda df: sorted(map(tuple, spark_ext.digest(df, id="id", offset="n").collect())),
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


def cell(entry, name, rows_of, known):
    try:
        found = ENTRIES[entry](rows_of(name))
    except (TypeError, ValueError) as error:
        return REFUSED if is_refusal(error, "id") else f"{name} in {entry}: {error}"
    ids = TYPES[name][0]
    if (entry, ids) not in known:
        known[entry, ids] = ENTRIES[entry](rows_of(name, as_text=True))
    if "functions" in entry and all(row[0] == "false" for row in found):
        return NO_ID
    assert found == known[entry, ids], f"{name} in {entry} has other IDs"
    return SAME


def test_each_carrier_in_the_quick_cells_is_as_the_page_says(rocksdb, rows_of, request):
    """Run `pytest tests/spark/test_carriers.py -m "" --update-golden` to write the page."""
    page, known = carriers.section_of(NAME), {}
    if not request.config.getoption("--update-golden"):
        for entry, names in QUICK.items():
            for name in names:
                assert page[name][entry] == cell(entry, name, rows_of, known), (entry, name)


@pytest.mark.variants
def test_each_carrier_in_each_function_is_as_the_page_says(rocksdb, rows_of, request):
    known = {}
    cells = {name: {entry: cell(entry, name, rows_of, known) for entry in ENTRIES} for name in TYPES}
    if request.config.getoption("--update-golden"):
        carriers.write_section(NAME, cells)
    assert carriers.section_of(NAME) == cells


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


# --- Functions that take an ID ---

TAKERS = {
    "deduplicate": "deduplicate", "process": "process", "audit": "audit", "compare": "compare", "digest": "digest",
    "is_valid_id": "functions of a value", "try_parse_id": "functions of a value", "id_kind": "functions of a value",
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
    "trace": "it compares columns with the stored forms of one ID, which its own tests list",
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
