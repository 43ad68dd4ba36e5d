"""Catalogs of Iceberg."""

from uuid import uuid4

import pytest


def add_catalog(spark, folder, kind):
    """Add a catalog in a folder to a session, and return the name of a namespace in it."""
    name = f"{kind}_{uuid4().hex[:8]}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": kind, ".warehouse": str(folder / "warehouse")}
    if kind == "jdbc":
        settings |= {".uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=60000", ".jdbc.schema-version": "V1"}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    spark.sql(f"CREATE NAMESPACE {name}.db")
    return f"{name}.db"


@pytest.fixture
def db(spark, tmp_path):
    """Return a namespace in a catalog of folders."""
    return add_catalog(spark, tmp_path, "hadoop")


@pytest.fixture
def jdbc(spark, tmp_path):
    """Return a namespace in a catalog whose commits are transactions of SQLite."""
    return add_catalog(spark, tmp_path, "jdbc")
