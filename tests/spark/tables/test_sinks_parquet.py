"""`write_once` to Parquet: each batch is complete and written once, and only its query writes to a table."""

import json
import shutil

import pytest
from helpers.sinks import numbers, run_query
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext._settings import settings
from spark_ext.tables import parquet
from spark_ext.tables.table_formats import table_format

pytestmark = pytest.mark.spark
BOTH = ["parquet", pytest.param("delta", marks=pytest.mark.details)]
"""The formats of tests whose rule both share."""


def test_a_first_write_that_fails_fixes_nothing(spark, tmp_path):
    """Wrong partition columns are refused before anything is stored, and a batch that failed leaves no rule behind."""
    path, rows = str(tmp_path / "table"), spark.range(3).selectExpr("id", "id % 2 AS k", "array(id) AS a", "X'61' AS b")
    for partition_by, words in (
        (("zz",), "partition_by must name columns of the rows, got 'zz'; they have"),
        (("a",), "partition_by must name columns of text, .*, got 'a' of array<bigint>"),
        (("b",), "partition_by must name columns of text, .*, got 'b' of binary"),
    ):
        with pytest.raises(ValueError, match=words):
            ids.write_once(rows, 0, path, app_id="a", partition_by=partition_by)
    assert not (tmp_path / "table").exists()
    failing = rows.withColumn("k", F.raise_error(F.lit("no k")).cast("bigint"))
    with pytest.raises(Exception, match="no k"):
        ids.write_once(failing, 0, path, app_id="a", partition_by=("k",))
    for partition_by in (("k", "k"), ("id", "k")):
        with pytest.raises(AnalysisException):
            ids.write_once(rows.select("id", "k"), 0, path, app_id="a", partition_by=partition_by)
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        ids.read_table(spark, str(tmp_path / "none"))
    assert ids.write_once(rows.withColumn("more", F.lit(1)), 0, path, app_id="a", partition_by=("id",))
    with pytest.raises(TableConflict, match=r"partition_by must stay \('id',\), got \('k',\)"):
        ids.write_once(rows, 1, path, app_id="a", partition_by=("k",))
    assert ids.read_table(spark, path).where("more = 1").count() == 3


def test_batch_run_into_the_folder_of_another_run_is_refused(spark, tmp_path):
    """Also while the other one writes, and after it was interrupted."""
    (tmp_path / "out" / "_temporary").mkdir(parents=True)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        parquet.FORMAT.write_rows(spark.range(1), str(tmp_path / "out"), "error", ())


def test_write_once_into_an_incomplete_folder_is_refused(spark, tmp_path):
    """No writer leaves such a folder where it can rename; a check and a replacement could hide what another writes."""
    path, batch = str(tmp_path / "table"), tmp_path / "table" / "writer=a" / "batch=0"
    assert ids.write_once(spark.range(3), 0, path, app_id="a")
    (batch / "_SUCCESS").unlink()
    for _ in range(2):
        with pytest.raises(TableConflict, match="batch=0: the folder exists and is incomplete"):
            ids.write_once(spark.range(3), 0, path, app_id="a")
    shutil.rmtree(batch)
    assert ids.write_once(spark.range(3), 0, path, app_id="a")
    assert numbers(spark.read.parquet(path)) == [0, 1, 2]


@pytest.mark.parametrize("format", BOTH)
def test_write_once_batch_below_the_last_one_is_refused(spark, tmp_path, monkeypatch, format):
    """Spark replays its last batch alone, so the checkpoint is an old copy, or another query has the name."""
    path, one = str(tmp_path / "table"), {"format": format, "app_id": "a"}
    assert [ids.write_once(spark.range(n, n + 1), n, path, **one) for n in (7, 9, 10, 10)] == [*[True] * 3, False]
    for number in (7, 8, 9, 8):
        monkeypatch.setattr(parquet, "_LAST", {} if number == 8 else parquet._LAST)  # another process
        with pytest.raises(TableConflict, match=f"cannot write batch {number} of 'a' .*: its batch 10 is in the table"):
            ids.write_once(spark.range(9), number, path, **one)
    assert ids.write_once(spark.range(6, 7), 8, path, format=format, app_id="b")
    for name in ("batch=99", "batch=\u00b2", "batch=12.bak") if format == "parquet" else ():
        (tmp_path / "table" / "writer=a" / name).mkdir()  # no batch: a mark is missing
    assert not ids.write_once(spark.range(10, 11), 10, path, **one)
    for name in ("batch=\u00b2", "batch=12.bak") if format == "parquet" else ():
        (tmp_path / "table" / "writer=a" / name).rmdir()  # Spark would read them as batches
    assert numbers(ids.read_table(spark, path)) == [6, 7, 9, 10]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false"),
        ("spark.sql.sources.partitionOverwriteMode", "dynamic"),
    ],
)
def test_write_once_where_spark_marks_no_output_marks_the_batch(spark, tmp_path, setting, value):
    """Without the mark ``_SUCCESS`` of `write_once`, a replay would repeat the rows."""
    path, rows = str(tmp_path / "table"), spark.range(4).selectExpr("id", "id % 2 AS k")
    with settings(spark, {setting: value}):
        assert ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
        assert not ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
    assert numbers(spark.read.parquet(path)) == [0, 1, 2, 3]
    assert list((tmp_path / "table" / "writer=a" / ".writing").iterdir()) == []


def test_write_once_to_a_store_that_does_not_rename_folders_is_refused(spark, tmp_path, monkeypatch):
    """The files of a batch would appear one by one, such as on S3."""
    monkeypatch.setattr(parquet, "_RENAMES", ())
    with pytest.raises(TableConflict, match=r"its store does not rename folders; use format='delta'"):
        ids.write_once(spark.range(5), 0, str(tmp_path / "table"), app_id="a")
    assert not (tmp_path / "table").exists()


def test_write_once_without_a_query_needs_app_id(spark, tmp_path):
    """Outside a query, `app_id` is required, and must be a valid name of a folder."""
    with pytest.raises(ValueError, match="app_id must be given where the streaming query is unknown"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"))
    with pytest.raises(ValueError, match=r"app_id must be 1 to 100 letters, .*, got 'a/b'"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a/b")
    with pytest.raises(TypeError, match="partition_by must be a tuple of columns, got 'id'"):
        ids.write_once(spark.range(1), 0, str(tmp_path / "table"), app_id="a", partition_by="id")
    for wrong in (1.0, True, None, "01", -1, 1 << 63):
        with pytest.raises((TypeError, ValueError), match="batch_id must be"):
            ids.write_once(spark.range(1), wrong, str(tmp_path / "table"), app_id="a")
    rows = spark.sql("SELECT 1 AS id, 'a' AS `.k`, now() AS at, 1D AS double, 1BD AS decimal")
    for name in (".k", "at", "double", "decimal"):
        with pytest.raises(ValueError, match=f"partition_by must name columns of text, .*, got '{name}' of "):
            ids.write_once(rows, 0, str(tmp_path / "table"), app_id="a", partition_by=(name,))
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


@pytest.mark.details
@pytest.mark.parametrize("format", BOTH)
def test_write_once_batch_after_a_restored_checkpoint_is_refused(spark, connect, tmp_path, format):
    """It has the number of the table's last batch and other rows; a replay of that batch is still no error."""
    if connect:  # the query and its offsets are unknown there
        return

    def run(rows):
        run_query(spark, tmp_path, "one", rows, format=format)
        return ids.read_table(spark, str(tmp_path / "out")).count()

    checkpoint, backup = tmp_path / "one-checkpoint", tmp_path / "backup"
    assert [run(rows) for rows in (2, 3)] == [2, 5]
    shutil.copytree(checkpoint, backup)
    for file in checkpoint.glob("commits/*1*"):
        file.unlink()  # as if the driver had been killed before it noted the commit
    assert run(1) == 6
    shutil.rmtree(checkpoint)
    backup.rename(checkpoint)
    for _ in range(2):
        with pytest.raises(Exception, match=r"cannot write batch 2 of .*: the table has a batch of this number that"):
            run(4)
    assert ids.read_table(spark, str(tmp_path / "out")).count() == 6
    if format == "parquet":
        (batch,) = (tmp_path / "out").glob("writer=*/batch=2")
        shutil.rmtree(batch)
        assert run(5) == 19


@pytest.mark.parametrize("format", BOTH)
def test_write_once_a_batch_goes_to_a_table_in_one_call(spark, tmp_path, format):
    """A second call is refused: it looks like a replay, and after a crash its rows may be those of no call."""
    spark.range(6).write.parquet(str(tmp_path / "in"))
    log, first, second = tmp_path / "log", ("id < 3", "orders"), ("id >= 3", "orders")

    def run(name, *calls):
        def sink(batch, number):
            for condition, app_id, *other in calls:
                path, column = other or ("", "id")
                rows, path = batch.where(condition).toDF(column), f"{tmp_path}/{name}{path}"
                is_new = ids.write_once(rows, number, path, format=format, app_id=app_id)
                with log.open("a") as lines:
                    lines.write(f"{is_new} ")

        stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in")).writeStream.foreachBatch(sink)
        query = stream.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination(200)

    others = {"names": ("id < 3", "late"), "paths": (*second, "/./", "id"), "columns": (*first, "", "other")}
    for name, calls in {"rows": (first, second), **{name: (first, call) for name, call in others.items()}}.items():
        for _ in range(2):  # also if the first call is a replay
            with pytest.raises(Exception, match=r"cannot write batch 0 to .* twice with .* Unite .* by unionByName"):
                run(name, *calls)
    run("equal", first, first)
    assert log.read_text().split() == ["True", "False"] * 4 + ["True", "False"]


@pytest.mark.details
@pytest.mark.parametrize("format", BOTH)
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


@pytest.mark.parametrize(
    ("holds", "says"),
    [
        ("batch=0/part-0.parquet", "it holds batch=0, which `write_once` has not written"),
        ("part-0.parquet", "it holds part-0.parquet, which"),
        ("topic=a/part-0.parquet", "it holds topic=a, which"),
        ("_delta_log/0.json", "it is a table of the format 'delta'; pass format='delta'"),
        ("_spark_metadata/0", "it holds _spark_metadata, which"),
        ("metadata/v1.metadata.json", "it holds metadata, which"),
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


def test_write_once_other_partitions_or_reserved_columns_are_refused(spark, tmp_path):
    """Other partitions and reserved column names are rejected: readers of the whole table would fail."""
    path, rows = str(tmp_path / "table"), spark.range(2).selectExpr("id", "id AS k")
    ids.write_once(rows, 0, path, app_id="a", partition_by=("k",))
    with pytest.raises(TableConflict, match=r"partition_by must stay \('k',\), got \(\)"):
        ids.write_once(rows, 1, path, app_id="a")
    with pytest.raises(TableConflict, match="cannot write a column named 'Batch'"):
        ids.write_once(spark.range(1).selectExpr("id AS `Batch`"), 0, str(tmp_path / "other"), app_id="a")
    claim = json.loads((tmp_path / "table" / "writer=a" / "_writer.json").read_text())
    assert (claim["query"], claim["partition_by"]) == (None, ["k"])
    assert [field["name"] for field in claim["columns"]["fields"]] == ["id", "k"]


@pytest.mark.parametrize("format", BOTH)
def test_write_once_names_that_differ_in_case_only_are_refused(spark, tmp_path, format):
    """Spark's default settings could not read such a table; a refused batch leaves no columns behind."""
    path = str(tmp_path / "table")
    for columns, says in [
        ("id, 1 AS ID", "the columns 'id' and 'ID'"),
        ("id, 1 AS id", "the columns 'id' and 'id'"),
        ("id, NAMED_STRUCT('n', 1, 'N', 2) AS s", "the columns 's.n' and 's.N'"),
        ("id, MAP('k', ARRAY(NAMED_STRUCT('n', 1, 'N', 2))) AS s", "the columns 's.value.element.n' and"),
    ]:
        with pytest.raises(TableConflict, match=f"cannot write {says}.*: Spark compares names without case"):
            ids.write_once(spark.sql(f"SELECT {columns} FROM RANGE(1)"), 0, path, format=format, app_id="a")
    assert ids.write_once(spark.sql("SELECT id FROM RANGE(1)"), 0, path, format=format, app_id="a")
    assert ids.read_table(spark, path).select("id").collect() == [(0,)]


def test_write_once_partition_values_keep_their_type(spark, tmp_path):
    """Digits as text stay text, also the names of writers; Spark alone would read '007' and '7' as one integer."""
    path = str(tmp_path / "table")
    rows = spark.createDataFrame([(1, "007"), (2, "7"), (3, None)], "id int, k string")
    ids.write_once(rows, 0, path, app_id="2026", partition_by=("k",))
    ids.write_once(rows.where("id = 3"), 1, path, app_id="2026", partition_by=("k",))
    table = ids.read_table(spark, path)
    assert sorted(map(tuple, table.select("id", "k").collect()), key=str) == [
        (1, "007"), (2, "7"), (3, None), (3, None),
    ]  # fmt: skip
    assert {row.writer for row in table.collect()} == {"2026"}


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.details
def test_write_once_partition_whose_text_no_folder_can_have_is_refused(spark, tmp_path, format):
    """Empty text, Spark's name for NULL, NUL, bytes that are not UTF-8, the years 0 and 10000: no row is written."""
    path = str(tmp_path / "table")
    for text in ("''", "'__HIVE_DEFAULT_PARTITION__'", "CONCAT('a', CHAR(0))", "CAST(X'FF' AS STRING)"):
        rows = spark.sql(f"SELECT * FROM VALUES (1, 'a'), (2, {text}) AS t(id, k)")
        with pytest.raises(Exception, match="cannot write a partition of 'k': it must be text in UTF-8 that is"):
            ids.write_once(rows, 0, path, format=format, app_id="a", partition_by=("k",))
    for year in (0, 10000):
        rows = spark.sql(f"SELECT 1 AS id, MAKE_DATE({year}, 1, 1) AS k")
        with pytest.raises(Exception, match=r"cannot write a partition of 'k': .* a date of the years 1 to 9999"):
            ids.write_once(rows, 0, f"{path}{year}", format=format, app_id="a", partition_by=("k",))
    rows = spark.sql("SELECT 3 AS id, 'a' AS k")
    assert ids.write_once(rows, 0, path, format=format, app_id="b", partition_by=("k",)) is True
    assert numbers(ids.read_table(spark, path)) == [3]


@pytest.mark.parametrize("format", BOTH)
def test_write_once_void_columns_are_refused(spark, tmp_path, format):
    """A table whose first batch has one would refuse every later batch with a type."""
    for columns, place in [("NULL AS n", "n"), ("ARRAY() AS n", "n.element"), ("NAMED_STRUCT('b', NULL) AS n", "n.b")]:
        with pytest.raises(TableConflict, match=rf"cannot write column '{place}': its type is void; cast it"):
            ids.write_once(spark.sql(f"SELECT 1 AS id, {columns}"), 0, str(tmp_path / "t"), format=format, app_id="a")
    assert not (tmp_path / "t").exists()


def test_batch_run_keeps_the_types_of_its_partitions(spark, tmp_path):
    """The rows of a batch run have text in their folders, and `read_table` knows it."""
    path = str(tmp_path / "table")
    rows = spark.createDataFrame([(1, "007"), (2, "7")], "id int, k string")
    table = table_format("parquet")
    table.write_rows(rows, path, "error", ("k",))
    assert sorted(row.k for row in ids.read_table(spark, path).collect()) == ["007", "7"]
    table.write_rows(rows.selectExpr("*", "1 AS new"), path, "overwrite", ("k",))
    assert ids.read_table(spark, path).columns == ["id", "new", "k"]
