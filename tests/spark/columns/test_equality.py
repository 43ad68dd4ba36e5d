"""SQL = column: one property over the functions and the types of input; other tests compare the columns with Python."""

import itertools
import re

import pytest
from helpers.strategies import ids, many, names, offsets
from helpers.versions import module_since
from hypothesis import strategies as st
from pyspark.sql import functions as F

import msgid
import spark_ext
from spark_ext._settings import settings

pytestmark = pytest.mark.spark
sql_functions = module_since("sql_functions", 4, 0)

LONGEST = 58
"""The digits of the longest ID."""
ZONE = "Asia/Kolkata"
COLUMNS = {"text": "STRING", "held_varchar": f"VARCHAR({LONGEST})", "held_char": f"CHAR({LONGEST})", "raw": "BINARY"}

spellings = st.one_of(
    ids.map(str),
    ids.map(lambda id: str(id).lower()),
    ids.map(lambda id: str(id).title()),
    ids.map(lambda id: id.canonical),
    ids.map(lambda id: str(id)[:-1]),
    ids.map(lambda id: str(id) + "0"),
    ids.map(lambda id: str(id)[:-1] + "g"),
    ids.map(lambda id: str(id)[:-1] + "_"),
    ids.map(lambda id: "+" + str(id)[1:]),
    ids.map(lambda id: "0x" + str(id)[2:]),
    ids.map(lambda id: "02" + str(id)[2:]),
    ids.map(lambda id: str(id)[:-1] + "\n"),
    ids.map(lambda id: " " + str(id)),
    ids.map(lambda id: str(id)[:-1] + "\uff11"),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: str(uuid).upper()),
    st.uuids().map(lambda uuid: str(uuid)[:-1] + "-"),
    st.text(st.characters(codec="utf-8"), max_size=20),
).filter(lambda text: len(text) <= LONGEST)


def is_told(raw):
    """Return whether a SQL function, which gets bytes as text, recognizes them as the bytes of an ID."""
    return re.search(r"[\x00-\x1F\x7F\uFFFD]", raw.decode("utf-8", "replace")) is not None


binaries = st.one_of(ids.map(bytes), ids.map(lambda id: bytes.fromhex(id.canonical)), st.binary(max_size=30)).filter(
    is_told
)
moments = st.integers(0, 4 * 10**15) | st.integers(-62 * 10**15, 253 * 10**15)


READING = {"msgid_time", "msgid_origin", "msgid_try_parse", "msgid_try_parse_v0"}
"""The functions that look up fields in tables of constants."""
RAISING = {"msgid_parse": "v1", "msgid_parse_v0": "v0", "msgid_translate_v0": "v0"}
"""The functions that raise for any value but an ID of the version."""
OF_ANY = [
    name for name, (_, parameters, _) in sql_functions.FUNCTIONS.items() if len(parameters) == 1 and name not in RAISING
]
SPLIT = {"spark.sql.codegen.fallback": "true"}
"""These queries repeat a struct in a branch for each field: too much code for one method, so Spark splits it."""


@pytest.fixture(scope="module")
def registered(spark):
    """The session with the functions and an empty table of all types."""
    spark_ext.register(spark)
    spark.sql("DROP TABLE IF EXISTS odd_ids")
    declared = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
    spark.sql(f"CREATE TABLE odd_ids ({declared}) USING parquet")
    yield spark
    spark.sql("DROP TABLE odd_ids")


def check_equal(df, pairs):
    """Check that the columns of each pair are equal in each row."""
    made = [one.eqNullSafe(other).alias(f"equal {name}") for name, (one, other) in pairs.items()]
    for row in df.select("*", *made).collect():
        assert [name for name in pairs if not row[f"equal {name}"]] == [], row


def check_functions(spark, functions, held):
    """Check functions of an ID on one column of the table, with rows of all types."""
    rows = [(text, text, text, raw) for text, raw in many(st.tuples(spellings, binaries), 150)]
    rows += [(None,) * 4, ("", "", "", b"")]
    spark.createDataFrame(rows, "a string, b string, c string, d binary").write.insertInto("odd_ids", True)
    of_other_type = "msgid_from_uuid" if held == "raw" else "msgid_from_iggy_id"
    pairs = {
        name: (sql_functions.FUNCTIONS[name].function(held), F.expr(f"{name}({held})"))
        for name in functions
        if name != of_other_type
    }
    check_equal(spark.table("odd_ids").select(held), pairs)


@pytest.mark.parametrize(
    "held", ["text", "raw", *(pytest.param(name, marks=pytest.mark.details) for name in ("held_char", "held_varchar"))]
)
def test_functions_of_an_id_are_equal_in_column_and_sql(registered, ansi, held):
    """Functions of an ID give one result for text, char, varchar, binary, NULL and odd spellings."""
    check_functions(registered, sorted({*OF_ANY} - READING), held)


@pytest.mark.variants
@pytest.mark.parametrize("name", sorted(READING))
def test_functions_that_read_fields_are_equal_in_column_and_sql(registered, ansi, name):
    """Functions that read fields, whose plans are large, give one result for every type."""
    with settings(registered, SPLIT):
        for held in COLUMNS:
            check_functions(registered, [name], held)


@pytest.mark.variants
@pytest.mark.parametrize("type", ["string", "binary"])
def test_functions_that_raise_are_equal_in_column_and_sql(registered, ansi, type):
    """Functions that accept IDs alone give one result for every ID; with moments and names of every type."""
    form = (lambda id: str(id).lower()) if type == "string" else bytes
    rows = []
    for id, name, offset, us in many(st.tuples(ids, names, offsets, moments), 100):
        if type == "string" or is_told(bytes(id)):
            is_v1 = isinstance(id, msgid.MessageId)
            rows.append((form(id), form(id) if is_v1 else None, None if is_v1 else form(id), name, offset, us))
    schema = f"held {type}, v1 {type}, v0 {type}, name string, n bigint, us bigint"
    df = registered.createDataFrame([*rows, (None,) * 6], schema)
    df = df.withColumns({"moment": F.timestamp_micros("us"), "unix": F.unix_seconds(F.timestamp_micros("us"))})
    df = df.withColumn("small", F.pmod("n", F.lit(99)).cast("smallint"))
    df = df.withColumn("exact", F.col("moment").cast("decimal(20, 6)"))
    pairs = {
        name: (sql_functions.FUNCTIONS[name].function(held), F.expr(f"{name}({held})"))
        for name, held in RAISING.items()
    }
    pairs["derive"] = (spark_ext.derive_id("held", "name"), F.expr("msgid_derive(held, name)"))
    for at in ("moment", "unix"):
        pairs[f"derive-{at}"] = (
            spark_ext.derive_id("held", "name", at=at),
            F.expr(f"msgid_derive_at(held, name, {at})"),
        )
        for source, offset in itertools.product(("name", "n"), ("n", "small")):
            pairs[f"position-{at}-{source}-{offset}"] = (
                spark_ext.position_id(source, offset, at),
                F.expr(f"msgid_position({source}, {offset}, {at})"),
            )
    for at in ("moment", "exact"):
        pairs[f"v0_time-{at}"] = (
            spark_ext.v0_time("v0", at, F.lit(ZONE)),
            F.expr(f"msgid_v0_time(v0, {at}, '{ZONE}')"),
        )
        pairs[f"expired-{at}"] = (
            spark_ext.is_expired(at, "small", "moment"),
            F.expr(f"msgid_is_expired({at}, small, moment)"),
        )
    with settings(registered, SPLIT):
        check_equal(df, pairs)
