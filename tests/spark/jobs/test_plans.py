"""The plans of jobs stay small enough for the 1 GB that Spark gives a driver."""

import pytest

import spark_ext
from spark_ext.jobs import ids_job as job


@pytest.fixture
def size(connect):
    """Return a function of the size of a DataFrame's plan, in characters."""
    if connect:
        pytest.skip("the plan is the server's")
    return lambda df: len(df._jdf.queryExecution().analyzed().toString())


def test_plan_of_the_ids_job_has_each_parser_once(spark, size):
    """A parser in each of 13 fields makes a plan of hundreds of megabytes, on which Spark works for 10 seconds."""
    ids = spark.createDataFrame([("0",)], "id string")
    parsers = (spark_ext.try_parse_id, spark_ext.try_parse_v0, spark_ext.try_translate_v0)
    once = size(ids.select(*(parser("id") for parser in parsers)))
    assert size(job.with_id_columns(ids)) < 1.5 * once


def test_plan_of_the_ids_job_with_positions_reads_each_column_once(spark, size):
    """The expression that reads a time from text is long, and `position_id` uses its argument 24 times."""
    rows = spark.createDataFrame([("a", "1", "2", 1, 2)], "source string, offset string, at string, o int, t int")
    once = size(rows.select(spark_ext.position_id("source", "o", "t")))
    ids = job.with_position_ids(rows, "id", job.Position(("source",), "offset", "at"))
    assert size(ids) < 2 * once
