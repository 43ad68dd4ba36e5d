"""The fixtures of the tests of Spark."""

import pytest

from spark_ext.streaming._state_store import NO_DATA_BATCHES, PROVIDER, ROCKSDB


@pytest.fixture
def default_state_store(spark):
    """Reset the state store of the session to Spark's default, before and after a test."""
    for name in (PROVIDER, NO_DATA_BATCHES):
        spark.conf.unset(name)
    yield
    for name in (PROVIDER, NO_DATA_BATCHES):
        spark.conf.unset(name)


@pytest.fixture
def rocksdb(spark, default_state_store):
    """The state store of the stateful functions."""
    spark.conf.set(PROVIDER, ROCKSDB)


@pytest.fixture
def no_timer_batches(spark, rocksdb):
    """And no batches for timers alone, which a query that ends by itself would wait for."""
    spark.conf.set(NO_DATA_BATCHES, "false")
