"""`write_once` through Delta's catalog."""

import pyspark
import pytest

pytestmark = [pytest.mark.systems, pytest.mark.spark]


def test_session_has_the_jar_files_of_both_formats(spark, tmp_path):
    """Delta is the session's catalog, and a catalog of Iceberg can be added to it."""
    assert pyspark.__version__.startswith("4.1.")
    spark.range(3).write.format("delta").save(str(tmp_path / "delta"))
    assert spark.read.format("delta").load(str(tmp_path / "delta")).count() == 3
    spark.conf.set("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.ice.type", "hadoop")
    spark.conf.set("spark.sql.catalog.ice.warehouse", str(tmp_path / "ice"))
    spark.range(3).writeTo("ice.db.t").using("iceberg").create()
    assert spark.table("ice.db.t").count() == 3
