"""The functions under ``trigger(realTime=...)``, with the source and the trigger of Spark's own tests of this mode."""

import pytest
from helpers.versions import since
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_ext
from spark_ext._private import conditions_of
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

pytestmark = [pytest.mark.spark, pytest.mark.variants, since(4, 3)]

PARENT = "0156F7E71C361B21BC024CCDBE00000000"


@pytest.fixture
def start(spark, connect, tmp_path):
    """Return a function that starts a query on a real-time source, and waits for its end or its row."""
    if connect:
        pytest.skip("the source is a class of Spark's JVM")
    spark.conf.set(PROVIDER, ROCKSDB)
    jvm = spark._jvm
    factory = getattr(
        getattr(jvm.org.apache.spark.sql.execution.streaming.sources, "LowLatencyMemoryStream$"), "MODULE$"
    )
    source = factory.singlePartition(spark._jsparkSession, jvm.org.apache.spark.sql.Encoders.STRING())
    source.addData(jvm.org.apache.spark.api.python.PythonUtils.toSeq([PARENT]))
    rows = DataFrame(source.toDF(), spark).select(
        F.col("value").alias("id"), F.lit(0).alias("offset"), F.lit("2026-11-29").cast("timestamp").alias("at")
    )
    started = []

    def run(make):
        writer = make(rows).writeStream.outputMode("update").foreach(lambda row: None).trigger(realTime="5 seconds")
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        started.append(query)
        for _ in range(600):
            # A batch of this mode has a fixed length: on a busy machine, the first ones may end before the row is read.
            if query.awaitTermination(1) or sum(progress.numInputRows for progress in query.recentProgress):
                return query
        raise AssertionError("the query neither ended nor made progress")

    yield run
    for query in started:
        query.stop()


def test_column_functions_run(start):
    """A query with every kind of column function completes a batch of this mode."""
    query = start(
        lambda rows: rows.select(
            spark_ext.position_id("id", "offset", "at"),
            spark_ext.derive_id(F.lit(PARENT), "id"),
            spark_ext.parse_id(F.lit(PARENT)),
            spark_ext.try_parse_id("id"),
            spark_ext.id_time(F.lit(PARENT)),
            spark_ext.is_valid_id("id"),
            spark_ext.try_parse_v0("id"),
            spark_ext.id_to_binary(F.lit(PARENT)),
            spark_ext.is_expired("at", 3600, F.lit(1648047038)),
        )
    )
    assert query.exception() is None
    assert sum(progress.numInputRows for progress in query.recentProgress) == 1


PYTHON = {
    "deduplicate": lambda rows: spark_ext.deduplicate(rows, timestamp="at", within="1 day", buckets=2),
    "process": lambda rows: spark_ext.process(rows, "id", lambda state, message, context: 1, timestamp="at", buckets=2),
    "generate_id": lambda rows: rows.select(spark_ext.generate_id()),
}


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("deduplicate", "STDS_FAILED_TO_READ_OPERATOR_METADATA"),
        ("process", "STDS_FAILED_TO_READ_OPERATOR_METADATA"),
        ("generate_id", "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"),
    ],
)
def test_functions_that_need_python_end_with_the_error_that_the_limits_name(start, name, condition):
    """If Spark words it otherwise, or runs it, the page of limits and the docstrings must change."""
    with pytest.raises(StreamingQueryException) as caught:
        start(PYTHON[name]).awaitTermination(1)
    assert condition in conditions_of(caught.value)
