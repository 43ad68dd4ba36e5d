"""Facts about Spark on which functions and guides rely. If one fails, the sentence that it names must change."""

import json

import pytest
from helpers.versions import since
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark


@since(4, 1)
def test_a_column_object_of_a_random_function_keeps_its_seed(spark):
    """Limits, `assign_id`: one Column gives equal values in two queries. Text of SQL is a new expression each time."""
    one, rows = F.uuid(), spark.range(3, numPartitions=1)

    def values(column):
        return [row[0] for row in rows.select(column).collect()]

    assert values(one) == values(one)
    assert values(F.uuid()) != values(F.uuid())
    assert values(F.expr("uuid()")) != values(F.expr("uuid()"))


@since(4, 2)
def test_micro_batches_replace_seeds_and_number_rows_anew(spark, tmp_path):
    """IDs in a stream come from a position or a generator: an index repeats, and random values change in a replay.

    Spark replaces the seed of a random function in each micro-batch, and `zipWithIndex` begins at 0 in each.
    """
    for number in range(2):
        path = tmp_path / "in" / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps({"n": number}) + "\n" for _ in range(3)))
    stream = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    stream = stream.zipWithIndex("place").select("n", "place", F.uuid().alias("uuid"), F.rand().alias("number"))
    query = stream.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = query.format("parquet").start(str(tmp_path / "out"))
    assert query.awaitTermination(200)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.n, row.place) for row in rows) == [(n, place) for n in range(2) for place in range(3)]
    assert len({row.uuid for row in rows}) == len({row.number for row in rows}) == 6


def test_a_stream_refuses_monotonically_increasing_ids(spark):
    """Coming from functions of Spark: it is refused in a stream, so `generate_id` is the way there."""
    stream = spark.readStream.format("rate").load().select(F.monotonically_increasing_id())
    with pytest.raises(PySparkException, match="monotonically_increasing_id"):
        stream.writeStream.format("noop").start().awaitTermination(60)


def test_a_batch_keeps_the_values_of_a_random_function_within_a_dataframe(spark):
    """Guides: two actions on one DataFrame give the same random values, as long as its rows are the same."""
    rows = spark.range(3, numPartitions=1).select(F.rand().alias("number"))
    assert rows.collect() == rows.collect()
