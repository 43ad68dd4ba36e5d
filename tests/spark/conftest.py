"""Fixtures of the Spark tests."""

import pytest

from spark_ext.streaming._state_store import NO_DATA_BATCHES, PROVIDER, ROCKSDB


@pytest.fixture
def default_state_store(spark):
    """Reset the settings of the session before and after a test."""
    for name in (PROVIDER, NO_DATA_BATCHES):
        spark.conf.unset(name)
    yield
    for name in (PROVIDER, NO_DATA_BATCHES):
        spark.conf.unset(name)


@pytest.fixture
def rocksdb(spark, default_state_store):
    """Set the state store that stateful functions need."""
    spark.conf.set(PROVIDER, ROCKSDB)


@pytest.fixture
def no_timer_batches(spark, rocksdb):
    """Disable batches that only fire timers: a query with Trigger.AvailableNow would wait for them."""
    spark.conf.set(NO_DATA_BATCHES, "false")
