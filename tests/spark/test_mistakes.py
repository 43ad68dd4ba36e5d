"""The mistakes of the first hour on Spark: each is one line that names the argument, the value and the cure."""

from datetime import datetime, timedelta, timezone

import pandas
import pytest
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.retention import RetentionPolicy

pytestmark = pytest.mark.spark
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


PANDAS = pandas.DataFrame()


def row(df, text):
    """A DataFrame of one row, from the expressions of a query."""
    return df.sparkSession.sql(f"SELECT {text}")


def keep(state, message, context):
    return state


BATCH = [
    (
        lambda df: ids.position_id("kafka://orders/3", "offset", "at"),
        "source must be a Column or the name of a column, got 'kafka://orders/3': pass lit()",
    ),
    (
        lambda df: ids.v0_time("id", "at", "Asia/Shanghai"),
        "timezone must be a Column or the name of a column, got 'Asia/Shanghai': pass lit()",
    ),
    (
        lambda df: ids.position_id("label", 5, "at"),
        "offset must be a Column or the name of a column, got 5: pass lit()",
    ),
    (lambda df: ids.position_id("label", "offset", NOW), "at must be a Column or the name of a column, got datetime"),
    (lambda df: ids.derive_id("id", None), "name must be a Column or the name of a column, got None: pass lit()"),
    (lambda df: ids.is_expired("at", 5, 10), "now must be a Column or the name of a column, got 10: pass lit()"),
    (lambda df: ids.is_expired("at", -1, NOW), "expiry must be an integer of 0 to 4294967295 seconds, got -1"),
    (lambda df: ids.is_expired("at", timedelta(-1), NOW), "expiry must be a timedelta or text such as '1 day', of 0"),
    (lambda df: ids.parse_id(5), "must be a Column or the name of a column, got 5"),
    (lambda df: ids.v0_time("id", 5, F.lit("UTC")), "near must be a Column or the name of a column, got 5"),
    (lambda df: ids.deduplicate(df, "message"), "`id` must be a column of the DataFrame, got 'message'; it has ['id'"),
    (
        lambda df: ids.deduplicate(df, "offset"),
        "`id` must be a column of text or binary, got 'offset' of bigint: if",
    ),
    (lambda df: ids.deduplicate(df, F.col("id")), "`id` must be the name of a column, got Column<'id'>"),
    (lambda df: ids.deduplicate(df, content=[F.col("at")]), "`content` must be the name of a column, got Column<'at'>"),
    (
        lambda df: ids.deduplicate(df, content=["ID"]),
        "`content` must not have the column of IDs, which are compared by",
    ),
    (lambda df: ids.deduplicate([1]), "df must be a DataFrame of Spark, got [1]"),
    (lambda df: ids.process(PANDAS, "label", keep), "df must be a DataFrame of Spark, got Empty DataFrame Columns: ["),
    (lambda df: ids.assign_ids(PANDAS), "df must be a DataFrame of Spark, got Empty DataFrame"),
    (lambda df: ids.messages(PANDAS, "kafka"), "df must be a DataFrame of Spark, got Empty DataFrame"),
    (lambda df: ids.digest(PANDAS), "df must be a DataFrame of Spark, got Empty DataFrame"),
    (
        lambda df: ids.write_once(PANDAS, 0, "t", app_id="a"),
        "batch_df must be a DataFrame of Spark, got Empty DataFrame",
    ),
    (lambda df: ids.upsert_postgres(PANDAS, "", "t"), "batch_df must be a DataFrame of Spark, got Empty DataFrame"),
    (
        lambda df: ids.upsert_postgres(df, "", None),
        "table must be a name or a schema and a name, got None",
    ),
    (
        lambda df: ids.upsert_postgres(df, "", ("a", 1)),
        "table must be a name or a schema and a name, got ('a', 1)",
    ),
    (
        lambda df: ids.upsert_postgres(df, "", "t", key_is_id="no"),
        "key_is_id must be one of True, False, None, got 'no'",
    ),
    (lambda df: ids.upsert_postgres(df, 5, "t"), "conninfo must be text, got a value of type int"),
    (lambda df: ids.upsert_postgres(df, "", "t", key=None), "key must be the name of a column, got None"),
    (lambda df: ids.upsert_postgres(df, "", "t", key=["id", 1]), "key must be the name of a column, got 1"),
    (
        lambda df: ids.upsert_postgres(df, "", "t", latest_by=F.col("at")),
        "latest_by must be the name of a column, got Column<'at'>",
    ),
    (
        lambda df: ids.upsert_postgres(df, "", "t", key=["id", "id"]),
        "cannot write the column 'id' several times: name each column once",
    ),
    (
        lambda df: ids.upsert_postgres(df.select("id", "id"), "", "t"),
        "cannot write the column 'id' several times: name each column once",
    ),
    (
        lambda df: ids.segment_report(PANDAS, RetentionPolicy(5), NOW),
        "messages must be a DataFrame of Spark, got Empty",
    ),
    (lambda df: ids.compare(["01"], df), "sent must be a DataFrame of Spark, got ['01']"),
    (lambda df: ids.compare(df, "/tmp/x"), "table must be a DataFrame of Spark, got '/tmp/x'"),
    (lambda df: ids.compare(df, df, digests=(df, df)), "`digests` must be two DataFrames that `digest` made, got the"),
    (ids.rows_too_late, "query must be a StreamingQuery, which `start` returns, got DataFrame[id: string"),
    (lambda df: ids.assign_ids(df, "x", order_by="zz"), "`order_by` must be a column of the DataFrame, got 'zz'; it h"),
    (
        lambda df: ids.audit(df, id="millis"),
        "`id` must be a column of text or binary, got 'millis' of bigint: if this column was text",
    ),
    (lambda df: ids.audit(df, parent="offset"), "`parent` must be a column of text or binary, got 'offset' of bigint"),
    (
        lambda df: ids.audit(df, id=None, source=F.col("label"), offset="offset"),
        "`source` must be the name of a column, got Column<'label'>",
    ),
    (
        lambda df: ids.audit(row(df, "0 AS offset, 1700000000L AS at"), id=None, offset="offset", timestamp="at"),
        "`timestamp` must be milliseconds since 1970, got 1700000000: seconds?",
    ),
    (
        lambda df: ids.audit(row(df, "0 AS offset, 0.5D AS a"), id=None, source="a", offset="offset"),
        "`source` and `incarnation` must be columns of text, integers or dates, got 'a' of double",
    ),
    (
        lambda df: ids.digest(
            row(df, "stack(2, 'a/b', 'c', 'a', 'b/c') AS (a, b), 0 AS offset"), source=["a", "b"], offset="offset"
        ),
        "at most one column of the source may have a '/' in its values: two logs could have one name",
    ),
    (lambda df: ids.audit("messages"), "df must be a DataFrame of Spark, got 'messages'; msgid.audit audits other"),
    (lambda df: ids.audit(df, offset="ofset"), "`offset` must be a column of the table, got 'ofset'; it has ['id'"),
    (lambda df: ids.messages(df, "kafak"), "format must be one of iggy, iggy-message"),
    (lambda df: ids.messages(df, "kafka"), "a DataFrame of format 'kafka' must have the column"),
    (lambda df: ids.write_once(df, "5", "table", app_id="a"), "batch_id must be an integer, got '5'"),
    (
        lambda df: ids.write_once(df, 5, "table", app_id=5),
        "app_id must be 1 to 100 letters, digits, '.', '_' or '-', got 5",
    ),
    (lambda df: ids.write_once(df.select(), 5, "table", app_id="a"), "batch_df must have columns, got none"),
    (
        lambda df: ids.write_once(df, 5, "table", app_id="a", partition_by=(F.col("id"),)),
        "partition_by must be the name of a column, got Column<'id'>",
    ),
    (lambda df: ids.process(df, keep, "label"), "key must be the name of a column, got <function keep"),
    (
        lambda df: ids.process(df, "label", "keep"),
        "handler must be a function of (state, message, context), got 'keep'",
    ),
    (lambda df: ids.process(df, "topik", keep), "key must be a column of the DataFrame, got 'topik'; it has ['id'"),
    (
        lambda df: ids.process(df, "label", keep, retention=7),
        "retention must be a timedelta or text such as '1 day', got",
    ),
]
STREAM = [
    (
        lambda df: ids.write_once(df, 5, "table", app_id="a"),
        "cannot write a stream: call `write_once` in its foreachBatch",
    ),
    (lambda df: ids.upsert_postgres(df, "", "t"), "cannot write a stream: call `upsert_postgres` in its foreachBatch"),
    (lambda df: ids.process(df, "label", lambda state, message: state), "handler must take three arguments (state, m"),
    (ids.deduplicate, "a stream needs `timestamp` and `within`"),
    (ids.audit, "cannot audit a stream: audit the table that it writes"),
    (lambda df: ids.deduplicate(df, timestamp="at", within=60), "within must be a timedelta or text such as '1 day'"),
]


def test_mistake_is_one_line_that_names_the_argument(spark, tmp_path):
    """The error comes from this package, before a query runs and whatever the session's state store is."""
    schema = "id string, label string, offset bigint, at timestamp, millis bigint"
    batch, stream = spark.createDataFrame([], schema), spark.readStream.schema(schema).json(str(tmp_path))
    for df, mistakes in ((batch, BATCH), (stream, STREAM)):
        for call, words in mistakes:
            with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
                call(df)
            assert words in str(caught.value)
            assert "\n" not in str(caught.value)


def test_milliseconds_of_a_column_are_told(spark):
    """The query fails, because the value is known only then."""
    df = spark.createDataFrame([(1_700_000_000_000,)], "millis bigint")
    with pytest.raises(Exception, match=r"at must be Unix seconds .*, got 1700000000000: milliseconds\?"):
        df.select(ids.position_id(F.lit("orders"), F.lit(7), "millis")).collect()
