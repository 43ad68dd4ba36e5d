"""Java compiles a method of at most 8,000 bytecodes, and interprets a longer one, which is ten times as slow."""

import contextlib
import io
import re

import pytest
from helpers.versions import module_since
from pyspark.sql import functions as F

import spark_ext
from spark_ext.columns.identity import identity

pytestmark = pytest.mark.spark

FUNCTIONS = module_since("sql_functions", 4, 0).FUNCTIONS

LIMIT = 8_000
COLUMNS = {
    "position_id": lambda: spark_ext.position_id(F.lit("kafka://orders/3"), "offset", "offset"),
    "position_id of a column of sources": lambda: spark_ext.position_id("id", "offset", "offset"),
    "derive_id": lambda: spark_ext.derive_id("id", F.lit("invoice")),
    "derive_id at a moment": lambda: spark_ext.derive_id("id", "id", at="offset"),
    "derive_id of three names": lambda: spark_ext.derive_id("id", "id", "offset", "id"),
    "assign_id": spark_ext.assign_id,
    "parse_id": lambda: spark_ext.parse_id("id"),
    "parse_v0": lambda: spark_ext.parse_v0("id"),
    "id_kind": lambda: spark_ext.id_kind("id"),
    "v0_time": lambda: spark_ext.v0_time("id", "offset", F.lit("Asia/Shanghai")),
    "time_key": lambda: spark_ext.time_key("id"),
    "identity": lambda: identity("id"),
}
ARGUMENTS = {"offset": "offset", "at": "offset", "near": "offset", "timestamp": "offset", "expiry": "offset",
             "now": "offset", "code": "offset", "checksum": "offset"}  # fmt: skip
FORMATS = {
    "kafka": "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp_ltz,"
    " headers array<struct<key: string, value: binary>>",
    "rocketmq": "topic string, body binary, properties string, brokerName string, queueId int, queueOffset bigint,"
    " storeTimestamp timestamp_ltz, offsetMsgId string",
    "danube": "value binary",
    "iggy-message": "value binary",
}


@pytest.fixture(scope="module")
def ids(spark, generated_code, connect):
    """One row with a text and an integer, cached, so that the optimizer neither computes nor repeats them."""
    if connect:
        pytest.skip("Spark Connect has the same plans, and no explain of the code in this form")
    df = spark.range(1).select(F.hex(F.col("id")).alias("id"), F.col("id").alias("offset")).cache()
    yield df
    df.unpersist()


def largest_method(df):
    """Return the bytecodes of the largest method that Spark generates for a query."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        df.explain("codegen")
    sizes = re.findall(r"maxMethodCodeSize:(\d+)", shown.getvalue())
    assert sizes, "the query has generated code"
    return max(map(int, sizes))


@pytest.mark.details
@pytest.mark.parametrize("name", COLUMNS)
def test_column_is_a_method_that_java_compiles(ids, name):
    """Spark's generated code of each column function fits into methods that Java compiles."""
    assert largest_method(ids.select(COLUMNS[name]())) <= LIMIT


@pytest.mark.parametrize("name", ["id_kind", "id_time", "try_translate_v0"])
def test_filter_by_column_is_a_method_that_java_compiles(ids, name):
    """Spark shares nothing in a filter; the functions that users filter by are short there, too."""
    assert largest_method(ids.where(getattr(spark_ext, name)("id").isNotNull())) <= LIMIT


@pytest.mark.details
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sql_function_is_a_method_that_java_compiles(ids, spark, name):
    """Spark's generated code of each SQL function fits into methods that Java compiles."""
    spark_ext.register(spark)
    parameters = FUNCTIONS[name].parameters
    given = ", ".join(ARGUMENTS.get(parameter, "id") for parameter in parameters)
    assert largest_method(ids.selectExpr(f"{name}({given})")) <= LIMIT


@pytest.mark.details
@pytest.mark.parametrize("format", FORMATS)
def test_message_table_is_methods_that_java_compiles(spark, ids, format):
    """Spark makes one method of all projections of a message table in a row, so one of them stands apart."""
    rows = ids.select(F.lit(None).cast(f"struct<{FORMATS[format]}>").alias("row")).select("row.*").cache()
    table = spark_ext.messages(rows, format, **({"logged": True} if format == "danube" else {}))
    for wanted in (table, table.drop("headers"), table.select("id"), table.select("reason")):
        assert largest_method(wanted) <= LIMIT
