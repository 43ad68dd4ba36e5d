"""`write_once` to Parquet: each batch is complete and written once, and only its query writes to a table."""

import json
import threading

import pytest
from helpers.sinks import numbers, run_query

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext.tables import _parquet

pytestmark = pytest.mark.spark


def test_write_once_replayed_batch_is_written_once(spark, tmp_path):
    """A complete batch is not written again, an incomplete one is replaced, and other batches stay."""
    path = str(tmp_path / "table")
    assert ids.write_once(spark.range(5), 0, path, app_id="a")
    assert not ids.write_once(spark.range(7), 0, path, app_id="a")
    assert ids.write_once(spark.range(3), 1, path, app_id="a")
    assert spark.read.parquet(path).count() == 8
    (tmp_path / "table" / "writer=a" / "batch=1" / "_SUCCESS").unlink()
    assert ids.write_once(spark.range(3), 1, path, app_id="a")
    assert spark.read.parquet(path).count() == 8


def test_write_once_dynamic_partition_overwrite_marks_the_batch(spark, tmp_path):
    """Spark does not write ``_SUCCESS`` in this mode; without the mark of `write_once`, a replay would repeat rows."""
    path = str(tmp_path / "table")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        rows = spark.range(4).selectExpr("id", "id % 2 AS k")
        assert ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
        assert not ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert spark.read.parquet(path).count() == 4


def test_write_once_where_spark_marks_no_output_marks_the_batch(spark, tmp_path):
    """A setting of Hadoop turns off Spark's ``_SUCCESS``; a replay still finds the batch."""
    setting = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    spark.conf.set(setting, "false")
    try:
        assert ids.write_once(spark.range(3), 0, str(tmp_path / "table"), app_id="a")
        assert not ids.write_once(spark.range(3), 0, str(tmp_path / "table"), app_id="a")
    finally:
        spark.conf.unset(setting)
    assert numbers(spark.read.parquet(str(tmp_path / "table"))) == [0, 1, 2]


def test_write_once_without_rename_writes_in_place(spark, tmp_path, monkeypatch):
    """On a store that cannot rename folders, a batch without the mark ``_SUCCESS`` is replaced."""
    path = str(tmp_path / "table")
    monkeypatch.setattr(_parquet, "RENAMES", ())
    assert ids.write_once(spark.range(5), 0, path, app_id="a")
    assert not ids.write_once(spark.range(5), 0, path, app_id="a")
    (tmp_path / "table" / "writer=a" / "batch=0" / "_SUCCESS").unlink()
    assert ids.write_once(spark.range(5), 0, path, app_id="a")
    assert numbers(spark.read.parquet(path)) == [0, 1, 2, 3, 4]


def test_write_once_two_drivers_at_once_write_one_batch_once(spark, tmp_path):
    """One driver writes the batch and the others find it; no part of another attempt is left."""
    path, wrote = str(tmp_path / "table"), []

    def write():
        wrote.append(ids.write_once(spark.range(100), 0, path, app_id="a"))

    drivers = [threading.Thread(target=write) for _ in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert sorted(wrote) == [False, False, False, True]
    assert numbers(spark.read.parquet(path)) == list(range(100))
    assert list((tmp_path / "table" / "writer=a" / ".writing").iterdir()) == []


def test_write_once_half_written_batches_are_deleted_later(spark, tmp_path):
    """The files of a killed driver are deleted after the next batch."""
    left = tmp_path / "table" / "writer=a" / ".writing" / "batch=0-f00"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(b"half")
    ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a")
    assert left.exists()  # it may be another driver's, which is still writing
    ids.write_once(spark.range(1), 1, str(tmp_path / "table"), app_id="a")
    assert not left.exists()


def test_write_once_without_a_query_needs_app_id(spark, tmp_path):
    """Outside a query, `app_id` is required, and must be a valid name of a folder."""
    with pytest.raises(ValueError, match="app_id must be given where the streaming query is unknown"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"))
    with pytest.raises(ValueError, match=r"app_id must be 1 to 128 letters, .*, got 'a/b'"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a/b")
    with pytest.raises(ValueError, match="format must be 'parquet' or 'delta', got 'orc'"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a", format="orc")
    with pytest.raises(ValueError, match="partition_by must be a tuple of column names, got 'id'"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a", partition_by="id")
    assert not (tmp_path / "table").exists()


def test_write_once_in_a_query_is_named_by_it(spark, connect, tmp_path):
    """Each batch is in the folder of the query's ID; over Spark Connect, where it is unknown, the error says so."""
    if connect:
        with pytest.raises(Exception, match="app_id must be given where the streaming query is unknown"):
            run_query(spark, tmp_path, "one")
        return
    query = run_query(spark, tmp_path, "one")
    assert [place.name for place in (tmp_path / "out").iterdir()] == [f"writer={query.id}"]
    assert run_query(spark, tmp_path, "one", rows=3).id == query.id
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write_once_another_checkpoint_never_reports_rows_it_did_not_write(spark, connect, tmp_path, format):
    """Batch 0 of a second query is not batch 0 of the first: Parquet rejects it, and Delta has the rows of both."""
    if connect:
        pytest.skip("the query's ID is unknown over Spark Connect")
    run_query(spark, tmp_path, "one", format=format)
    if format == "delta":
        run_query(spark, tmp_path, "two", format=format)
        assert ids.read_table(spark, str(tmp_path / "out")).count() == 4
        return
    with pytest.raises(Exception, match=r"it belongs to the query .* and this is the query"):
        run_query(spark, tmp_path, "two")
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2
    run_query(spark, tmp_path, "one", rows=3)  # the first one goes on
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5


@pytest.mark.details
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write_once_one_app_id_of_two_queries_is_refused(spark, connect, tmp_path, format):
    """A name belongs to one checkpoint: the batches of a second query would look written."""
    if connect:
        pytest.skip("the query's ID is unknown over Spark Connect")
    run_query(spark, tmp_path, "one", app_id="orders", format=format)
    with pytest.raises(Exception, match=r"its writer 'orders' is .*query"):
        run_query(spark, tmp_path, "two", app_id="orders", format=format)
    run_query(spark, tmp_path, "three", app_id="refunds", format=format)
    assert ids.read_table(spark, str(tmp_path / "out")).count() == 4


@pytest.mark.parametrize(
    ("holds", "says"),
    [
        ("batch=0/part-0.parquet", "a batch run, perhaps"),
        ("part-0.parquet", "a batch run, perhaps"),
        ("topic=a/part-0.parquet", "a batch run, perhaps"),
        ("_delta_log/0.json", "it is a Delta table; pass format='delta'"),
        ("_spark_metadata/0", "Spark's own file sink manages it"),
        ("metadata/v1.metadata.json", "it looks like an Iceberg table"),
    ],
)
def test_write_once_folder_of_another_kind_is_refused(spark, tmp_path, holds, says):
    """No row is written to such a folder, and the error names its kind."""
    file = tmp_path / "table" / holds
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    with pytest.raises(TableConflict, match=says):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a")
    assert [place for place in (tmp_path / "table").rglob("*") if place.is_file()] == [file]


def test_write_once_folders_of_the_first_version_moved_are_continued(spark, tmp_path):
    """Its batches count as written when they are in the folder of their writer."""
    spark.range(5).write.parquet(str(tmp_path / "table" / "writer=a" / "batch=0"))
    assert not ids.write_once(spark.range(5), 0, str(tmp_path / "table"), app_id="a")
    assert ids.write_once(spark.range(2), 1, str(tmp_path / "table"), app_id="a")
    assert spark.read.parquet(str(tmp_path / "table")).count() == 7


def test_write_once_other_partitions_or_reserved_columns_are_refused(spark, tmp_path):
    """Other partitions and reserved column names are rejected: readers of the whole table would fail."""
    path, rows = str(tmp_path / "table"), spark.range(2).selectExpr("id", "id AS k")
    ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
    with pytest.raises(TableConflict, match=r"partition_by must stay \('k',\), got \(\)"):
        ids.write_once(rows, 1, path, app_id="a")
    with pytest.raises(TableConflict, match="cannot write a column named 'Batch'"):
        ids.write_once(spark.range(1).selectExpr("id AS `Batch`"), 0, str(tmp_path / "other"), app_id="a")
    claim = json.loads((tmp_path / "table" / "writer=a" / "_writer.json").read_text())
    assert claim == {"query": None, "partition_by": ["k"]}
