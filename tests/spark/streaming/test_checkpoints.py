"""Checkpoints of other versions are refused, and the keys of buckets are spread evenly."""

import json

import numpy as np
import pytest
from helpers.buckets import Checkpoint, run_batch
from helpers.streams import run_to_end
from helpers.versions import since
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import spark_ext
from spark_ext.streaming._buckets import MAX_BUCKETS, bucket_keys, spark_hash
from spark_ext.streaming._plain import dump

pytestmark = pytest.mark.spark

SCHEMA = "id string, key string, at timestamp"


@pytest.fixture(autouse=True, scope="module")
def pickled_by_value():
    """Python workers cannot import this module."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))


def count(state, message, context):
    """Return the number of messages."""
    return (state or 0) + 1


class WithPages(StatefulProcessor):
    """An operator as in an earlier version, as far as Spark's metadata describe it."""

    def init(self, handle):
        self.meta = handle.getValueState("meta", "value binary")
        self.state = handle.getMapState("pages", "number int", "value binary")

    def handleInputRows(self, key, rows, timerValues):
        self.state.updateValue((0,), (b"",))
        self.meta.update((dump((4, 64, b"")),))
        return iter(())

    def close(self):
        pass


def read(spark, folder):
    """Add a file, and return the stream."""
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    row = {"id": f"a-{number}", "key": "a", "at": "2026-01-01T00:00:00Z"}
    (folder / "in" / f"{number}.json").write_text(json.dumps(row))
    return spark.readStream.schema(SCHEMA).json(str(folder / "in"))


@pytest.mark.details
def test_check_checkpoint_without_state_is_silent(spark, rocksdb, tmp_path):
    """A missing folder and the checkpoint of this version are well."""
    spark_ext.check_checkpoint(spark, str(tmp_path / "checkpoint"))
    run_to_end(spark_ext.process(read(spark, tmp_path), "key", count), tmp_path)
    spark_ext.check_checkpoint(spark, str(tmp_path / "checkpoint"))


@pytest.mark.details
@pytest.mark.parametrize("function", ["process", "deduplicate"])
@since(4, 1)  # the first version with the row-wise operator
def test_checkpoint_of_an_earlier_version_is_refused(spark, rocksdb, tmp_path, function):
    """The check names the folder; without it Spark ends the query, and the checkpoint stays."""
    df = read(spark, tmp_path)
    mode = "None" if function == "process" else "EventTime"
    old = (df if function == "process" else df.withWatermark("at", "1 day")).select("id", "at")
    run_to_end(old.groupBy("id").transformWithState(WithPages(), "id string", "append", mode), tmp_path)
    checkpoint = str(tmp_path / "checkpoint")
    with pytest.raises(ValueError, match=r"cannot continue a query from .*checkpoint: an earlier version"):
        spark_ext.check_checkpoint(spark, checkpoint)
    if function == "process":
        again = spark_ext.process(read(spark, tmp_path), "key", count)
    else:
        again = spark_ext.deduplicate(read(spark, tmp_path), timestamp="at", within="1 day")
    with pytest.raises(PySparkException):
        run_to_end(again, tmp_path)
    with pytest.raises(ValueError, match="cannot continue"):
        spark_ext.check_checkpoint(spark, checkpoint)


def test_state_of_an_earlier_format_is_refused():
    """The error names both formats."""
    checkpoint = Checkpoint()
    checkpoint.getValueState("meta", "value binary").update((dump((3, 1, 1, 0, 0, 0)),))
    with pytest.raises(ValueError, match="cannot read the checkpoint: its state has format 3, this version reads 5"):
        run_batch(checkpoint, count, [("a-1", "a", 1, b"", None)], 1)


def test_bucket_keys_are_spread_evenly_over_partitions():
    """Each partition gets the same number of buckets, or one more; the first keys stay those of fewer buckets."""
    for partitions in (1, 2, 3, 4, 8, 16, 48, 64, 200):
        for buckets in (32, 64, 1000):
            places = spark_hash(bucket_keys(buckets)).astype(np.int64) % partitions
            shares = np.bincount(places, minlength=partitions)
            assert shares.max() - shares.min() <= 1
    assert np.array_equal(bucket_keys(MAX_BUCKETS)[:32], bucket_keys(32))
    assert len(set(bucket_keys(MAX_BUCKETS).tolist())) == MAX_BUCKETS
    assert bucket_keys(MAX_BUCKETS).min() > 0


def test_spark_hash_is_the_hash_of_spark(spark):
    """Of positive and negative numbers and of the limits of an integer."""
    values = [0, 1, -1, 42, 300_825, -(1 << 31), (1 << 31) - 1]
    df = spark.createDataFrame([(value,) for value in values], "value int")
    assert [row[0] for row in df.select(F.hash("value")).collect()] == spark_hash(np.array(values, np.int32)).tolist()
