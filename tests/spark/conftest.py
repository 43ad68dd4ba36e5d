"""Fixtures of the Spark tests."""

from contextlib import contextmanager

import pytest

from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@contextmanager
def generating(spark):
    """Run queries with generated code, as Spark does by default."""
    before = {name: spark.conf.get(name) for name in GENERATED}
    for name, value in GENERATED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def generated_code(spark):
    """Run the queries of a test with generated code."""
    with generating(spark):
        yield


@pytest.fixture(scope="module")
def module_of_generated_code(spark):
    """Run the queries of a module with generated code."""
    with generating(spark):
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
