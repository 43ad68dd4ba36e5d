"""Checkpoints of other versions are refused, and the keys of buckets are spread evenly."""

import numpy as np
import pytest
from helpers.buckets import Checkpoint, run_batch
from pyspark.sql import functions as F

from spark_ext.streaming._buckets import MAX_BUCKETS, bucket_keys, spark_hash
from spark_ext.streaming._plain import dump

pytestmark = pytest.mark.spark


def count(state, message, context):
    """Return the number of messages."""
    return (state or 0) + 1


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
