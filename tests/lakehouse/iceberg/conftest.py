"""Catalogs of Iceberg."""

from uuid import uuid4

import pytest
from systems.iceberg_rest import IcebergRest


def add_catalog(spark, kind, **settings):
    """Add a catalog to a session, and return the name of a namespace in it."""
    name = f"{kind}_{uuid4().hex[:8]}"
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {"type": kind, **settings}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.{name}")
    return f"{name}.{name}"


@pytest.fixture
def db(spark, tmp_path):
    """Return a namespace in a catalog of folders."""
    return add_catalog(spark, "hadoop", warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def jdbc(spark, tmp_path):
    """Return a namespace in a catalog whose commits are transactions of SQLite, without the cache of a session.

    The threads of a test stand for drivers, and drivers do not share a cache.
    """
    settings = {"uri": f"jdbc:sqlite:{tmp_path}/catalog.db?busy_timeout=60000", "jdbc.schema-version": "V1"}
    settings["cache-enabled"] = "false"
    return add_catalog(spark, "jdbc", warehouse=str(tmp_path / "warehouse"), **settings)


@pytest.fixture(scope="session")
def rest_server(tmp_path_factory):
    """Return a server of Iceberg's REST catalog."""
    server = IcebergRest(tmp_path_factory.mktemp("rest"))
    yield server
    server.kill()


@pytest.fixture
def rest(spark, rest_server):
    """Return a namespace in a catalog that a server has."""
    return add_catalog(spark, "rest", uri=rest_server.uri)
