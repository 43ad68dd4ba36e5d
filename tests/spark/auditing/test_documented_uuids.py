"""Files of examples of UUIDs that were not written for this library have the right counts on Spark."""

import pytest
from helpers.documented_uuids import EXAMPLES

import spark_ext

pytestmark = [pytest.mark.spark, pytest.mark.details]


@pytest.mark.parametrize("name", EXAMPLES)
def test_file_of_a_documented_example_of_uuids_has_the_right_counts(spark, tmp_path, name):
    for package in ("duckdb", "polars"):
        pytest.importorskip(package)
    rows, _, _, write = EXAMPLES[name]()
    write(str(tmp_path / "ids.parquet"))
    df = spark_ext.read_table(spark, str(tmp_path))
    report = spark_ext.audit(df, id="id")
    assert report.rows == rows
    assert [(one.check, one["count"]) for one in report.findings.collect()] == []
    found = spark_ext.compare(df, df.limit(rows - 1), id="id").findings.collect()
    assert [(one.check, one["count"]) for one in found] == [("lost_messages", 1)]
