"""Fixtures of the Spark tests."""

import pytest
from helpers import sessions

from spark_ext._settings import settings
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@pytest.fixture
def other_settings(request, spark):
    """Run a test under settings that must not change a value; under Spark's own with ``--spark-defaults``."""
    with settings(spark, {} if request.config.getoption("--spark-defaults") else sessions.other_settings()):
        yield


@pytest.fixture(scope="module")
def generated_code(spark):
    """Run the queries of a module with generated code."""
    with settings(spark, GENERATED):
        yield


@pytest.fixture
def default_state_store(spark):
    """Reset the state store of the session before and after a test."""
    spark.conf.unset(PROVIDER)
    yield
    spark.conf.unset(PROVIDER)


@pytest.fixture
def rocksdb(spark, default_state_store):
    """Set the state store that stateful functions need."""
    spark.conf.set(PROVIDER, ROCKSDB)
