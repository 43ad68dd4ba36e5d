"""The MERGE of the guide to sinks on tables of Iceberg, and what Spark makes of Iceberg's type of UUIDs."""

import uuid

import pytest
from lakehouse.merge import check_merge

pytestmark = [pytest.mark.systems, pytest.mark.spark]


@pytest.mark.parametrize("type", ["STRING", "BINARY"])
def test_merge_of_the_page_has_each_message_once(spark, db, type):
    spark.sql(f"CREATE TABLE {db}.stock (id {type}, amount INT) USING iceberg")
    check_merge(spark, f"{db}.stock", type == "BINARY")


def test_filters_and_merge_on_a_column_of_uuids_find_nothing(spark, db):
    """The guides store IDs as text or bytes because of it. If this fails, Iceberg has mended it: change the guides."""
    java = spark._jvm.org.apache.iceberg
    fields = spark._jvm.java.util.ArrayList()
    fields.add(java.types.Types.NestedField.optional(1, "id", java.types.Types.UUIDType.get()))
    catalog, namespace = db.split(".")
    settings = {"type": "hadoop", "warehouse": spark.conf.get(f"spark.sql.catalog.{catalog}.warehouse")}
    lake = java.CatalogUtil.buildIcebergCatalog(catalog, settings, spark._jsparkSession.sessionState().newHadoopConf())
    levels = spark._gateway.new_array(spark._jvm.java.lang.String, 1)
    levels[0] = namespace
    name = java.catalog.TableIdentifier.of(java.catalog.Namespace.of(levels), "uuids")
    lake.createTable(name, java.Schema(fields))
    ids = [str(uuid.uuid4()) for _ in range(1000)]
    rows = spark.createDataFrame([(id,) for id in ids], "id string").coalesce(1)
    rows.writeTo(f"{db}.uuids").append()
    stored = spark.table(f"{db}.uuids")
    assert sorted(row.id for row in stored.collect()) == sorted(ids)
    assert stored.where(f"id = '{ids[3]}'").count() == 0
    rows.createOrReplaceTempView("fresh")
    spark.sql(f"MERGE INTO {db}.uuids s USING fresh ON s.id = fresh.id WHEN NOT MATCHED THEN INSERT *")
    assert spark.table(f"{db}.uuids").count() == 2 * len(ids)
