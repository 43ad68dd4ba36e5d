"""The MERGE of the guide to sinks on tables of Iceberg, and what Spark makes of Iceberg's type of UUIDs."""

import uuid

import pytest
from lakehouse.merge import check_merge

pytestmark = [pytest.mark.systems, pytest.mark.spark]


@pytest.mark.parametrize("type", ["STRING", "BINARY"])
def test_merge_of_the_page_has_each_message_once(spark, db, type):
    spark.sql(f"CREATE TABLE {db}.stock (id {type}, amount INT) USING iceberg")
    check_merge(spark, f"{db}.stock", type == "BINARY")


def test_filters_on_a_column_of_uuids_find_nothing(spark, db):
    """The guides store IDs as text or bytes because of it. If this fails, Iceberg has mended it: change the guides."""
    java = spark._jvm.org.apache.iceberg
    fields = spark._jvm.java.util.ArrayList()
    fields.add(java.types.Types.NestedField.optional(1, "id", java.types.Types.UUIDType.get()))
    catalog, namespace = db.split(".")
    settings = {"type": "hadoop", "warehouse": spark.conf.get(f"spark.sql.catalog.{catalog}.warehouse")}
    lake = java.CatalogUtil.buildIcebergCatalog(catalog, settings, spark._jsparkSession.sessionState().newHadoopConf())
    lake.createTable(java.catalog.TableIdentifier.parse(f"{namespace}.uuids"), java.Schema(fields))
    ids = [str(uuid.uuid4()) for _ in range(1000)]
    rows = spark.createDataFrame([(id,) for id in ids], "id string").coalesce(1)
    rows.writeTo(f"{db}.uuids").append()
    table = f"{db}.uuids"
    assert sorted(row.id for row in spark.table(table).collect()) == sorted(ids)
    for condition in (
        f"id = '{ids[3]}'",
        f"id IN ('{ids[3]}', '{ids[4]}')",
        "id < 'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    ):
        assert spark.table(table).where(condition).count() == 0, condition
    spark.sql(f"DELETE FROM {table} WHERE id = '{ids[3]}'")
    merge = f"MERGE INTO {table} s USING {{}} f ON s.id = f.id WHEN NOT MATCHED THEN INSERT *"
    rows.createOrReplaceTempView("fresh")
    spark.sql(merge.format("fresh"))  # it is a join of all rows, without a filter
    assert spark.table(table).count() == len(ids)
    spark.sql(merge.format(f"(SELECT '{ids[3]}' AS id)"))  # Spark makes a filter of it
    assert spark.table(table).count() == len(ids) + 1
