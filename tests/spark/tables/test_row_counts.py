"""A batch is committed only if the driver sees all rows that the tasks wrote."""

import pytest

from spark_ext import read_table, write_once
from spark_ext.tables import _written_files
from spark_ext.tables._written_files import MissingRows
from spark_ext.tables.table_formats import table_format

pytestmark = pytest.mark.spark


BOTH = ["parquet", pytest.param("delta", marks=pytest.mark.details)]


@pytest.fixture(params=BOTH)
def unshared(request, monkeypatch):
    """Hide a file from the driver, as on a disk that a worker does not share; return the format, and how to end it."""
    whole = _written_files.data_files
    monkeypatch.setattr(_written_files, "data_files", lambda *arguments: whole(*arguments)[1:])
    return request.param, lambda: monkeypatch.setattr(_written_files, "data_files", whole)


def test_batch_whose_rows_the_driver_does_not_see_is_not_committed(spark, unshared, tmp_path):
    """The error has both numbers and the likely cause, no row is visible, and the batch can be written again."""
    format, share = unshared
    path = str(tmp_path / "table")
    rows = spark.range(0, 1000, 1, 2)
    with pytest.raises(MissingRows, match=r"wrote 1,000 rows.* sees 500 rows in 1 files.* share"):
        write_once(rows, 0, path, format=format, app_id="orders")
    share()
    assert write_once(rows, 0, path, format=format, app_id="orders")
    assert read_table(spark, path).count() == 1000


def test_batch_run_whose_rows_the_driver_does_not_see_fails(spark, unshared, tmp_path):
    """The tables of the jobs are counted too."""
    format, _ = unshared
    with pytest.raises(MissingRows, match="wrote 10 rows"):
        table_format(format).write_rows(spark.range(0, 10, 1, 2), str(tmp_path / "table"), "error", ())


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.details
def test_batches_without_rows_and_with_partitions_are_counted(spark, tmp_path, format):
    """A plan that Spark knows to be empty still gives a count, and so does one file per partition."""
    path = str(tmp_path / "table")
    frames = [spark.range(0), spark.range(5).where("id < 0"), spark.createDataFrame([], "id bigint")]
    frames = [df.selectExpr("id", "cast(id % 3 AS int) AS k") for df in [*frames, spark.range(0, 10, 1, 2)]]
    for number, df in enumerate([*frames, frames[-1].limit(0)]):
        assert write_once(df, number, path, format=format, app_id="orders", partition_by=("k",))
    assert read_table(spark, path).count() == 10
