"""The keys of buckets are spread evenly over the partitions of Spark."""

import numpy as np
import pytest
from pyspark.sql import functions as F

from spark_ext.streaming._state.buckets import MAX_BUCKETS, bucket_keys, spark_hash

pytestmark = pytest.mark.spark


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
