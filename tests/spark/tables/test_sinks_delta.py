"""`write_once` to Delta without a JAR: `deltalake` and Spark read each row that Spark wrote once."""

import datetime as dt
import json
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from helpers.edges import session_zone
from helpers.threads import at_once

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext._settings import settings
from spark_ext.tables import delta
from spark_ext.tables.writers import Writer

pytestmark = pytest.mark.spark

UTC = dt.timezone.utc


def write(df, number, path, app_id="a", **options):
    return ids.write_once(df, number, str(path), format="delta", app_id=app_id, **options)


def both(spark, path):
    """Return the rows; `deltalake` and Spark must read the same rows."""
    path = str(path)
    table = DeltaTable(path)
    names = [field.name for field in table.schema().fields]
    read = pa.table(table.to_pyarrow_table()).select(names).to_pylist()
    spark_rows = ids.read_table(spark, path).select(*names).toArrow().to_pylist()
    assert sorted(map(repr, spark_rows)) == sorted(map(repr, read))
    return read


def test_write_once_delta_batch_of_another_query_does_not_count_as_written(spark, tmp_path):
    """Two queries have one name and one number: the rows of the second one would be lost in silence."""

    def drive(query, number):
        writer = Writer("a", query, chosen=True)
        return delta.FORMAT.write_batch(spark.range(number, number + 1), number, str(tmp_path), writer, (), None)

    assert [drive("q1", 0), drive("q1", 0), drive(None, 0)] == [True, False, False]
    with pytest.raises(TableConflict, match="its writer 'a' is another query than q2"):
        drive("q2", 0)
    assert drive("q2", 1)
    for number in (0, 1):
        with pytest.raises(TableConflict):
            drive("q1", number)
    assert sorted(row["id"] for row in both(spark, tmp_path)) == [0, 1]


@pytest.mark.details
def test_write_once_delta_partitions_keep_their_values(spark, tmp_path):
    """NULL, escaped characters, digits as text and the first and last date are read unchanged."""
    df = spark.sql("""
        SELECT * FROM VALUES (0, 'a/b', DATE'2026-01-02', true, 1L),
        (1, '%2F ä=[*]?{x}#:', DATE'0001-01-01', false, -1L),
        (2, '%2F ä=[*]?{x}#:', DATE'9999-12-31', false, NULL), (3, NULL, NULL, NULL, NULL), (4, '007', NULL, true, 0L)
        AS t(id, text, day, flag, whole)
    """)
    assert write(df, 0, tmp_path, partition_by=("text", "day", "flag", "whole"))
    expected = sorted(map(repr, df.toArrow().to_pylist()))
    assert sorted(map(repr, both(spark, tmp_path))) == expected
    assert ids.read_table(spark, str(tmp_path)).where("text IS NULL").count() == 1


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        ("id, INTERVAL '1' DAY AS span", {}, "column 'span' to a Delta table: it lacks the type interval day; cast it"),
        ("id, 1 AS msgid_write", {}, "the table's folders have that name"),
        ("id", {"partition_by": ("nope",)}, "partition_by must name columns of the rows, got 'nope'"),
    ],
)
def test_write_once_delta_what_cannot_be_written_is_refused_before_anything_is(spark, tmp_path, columns, options, says):
    """Columns that Delta cannot hold raise one clear error, and no folder is created."""
    with settings(spark, {"spark.sql.caseSensitive": "true"}), pytest.raises(TableConflict, match=says):
        write(spark.sql(f"SELECT {columns} FROM RANGE(1)"), 0, tmp_path / "table", **options)
    assert not (tmp_path / "table").exists()


def test_write_once_delta_rows_that_do_not_fit_the_table_are_refused(spark, tmp_path):
    """Other types, columns or partitions, a constraint, a Parquet folder and a '%' are rejected."""
    write(spark.range(1).selectExpr("id", "1 AS n"), 0, tmp_path / "t", partition_by=("n",))
    for columns, says in [("id, 1L AS n", "'n' .* must be int, got bigint"), ("id, 1 AS n, 2 AS m", "column 'm'")]:
        with pytest.raises(TableConflict, match=says):
            write(spark.range(1).selectExpr(*columns.split(",")), 1, tmp_path / "t", partition_by=("n",))
    with pytest.raises(TableConflict, match=r"partition_by must be the table's \('n',\), got \(\)"):
        write(spark.range(1).selectExpr("id", "1 AS n"), 1, tmp_path / "t")
    assert write(spark.sql("SELECT 1 AS n, 5L AS id"), 1, tmp_path / "t", partition_by=("n",))  # another order
    spark.range(1).write.parquet(str(tmp_path / "parquet"))
    with pytest.raises(TableConflict, match=r"cannot create a Delta table at .* holds "):
        write(spark.range(1), 0, tmp_path / "parquet")
    with pytest.raises(ValueError, match="must not contain '%' and two hex digits"):
        write(spark.range(1), 0, tmp_path / "100%20")
    DeltaTable(tmp_path / "t").alter.add_constraint({"positive": "id >= 0"})
    with pytest.raises(TableConflict, match=r"it needs Delta's JAR, because it has delta.constraints.positive"):
        write(spark.sql("SELECT 5L AS id, 1 AS n"), 2, tmp_path / "t", partition_by=("n",))
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 days"}
    write_deltalake(tmp_path / "f", ids.read_table(spark, str(tmp_path / "t")).toArrow(), configuration=forgets)
    with pytest.raises(TableConflict, match=r"the table forgets batches, because it has delta.setTransac"):
        write(spark.sql("SELECT 5L AS id, 1 AS n"), 0, tmp_path / "f")


def test_write_once_delta_name_of_a_table_needs_the_catalog(spark):
    """Without Delta's catalog, the error names the settings, and the cure."""
    with pytest.raises(ValueError, match=r"`table` must be None without Delta's catalog, got 'shop.orders': set "):
        ids.write_once(spark.range(1), 0, table="shop.orders", format="delta", app_id="a")


def test_write_once_delta_to_a_path_with_a_percent_sign(spark, tmp_path):
    """A path or URL with a percent sign works as it is written, also with partition folders that have one."""
    df = spark.sql("SELECT 1L AS id, 'a%2Fb' AS text")
    assert write(df, 0, tmp_path / "100% ä", partition_by=("text",))
    assert not write(df, 0, f"file://{tmp_path}/100% ä", partition_by=("text",))
    assert both(spark, tmp_path / "100% ä") == [{"id": 1, "text": "a%2Fb"}]
    with pytest.raises(ValueError, match="must not contain '%' and two hex digits, got 'file:"):
        write(df, 0, f"{tmp_path.as_uri()}/100%25", partition_by=("text",))


def test_write_once_delta_many_writers_all_commit(spark, tmp_path):
    """Writers of different names do not block each other."""
    rows = [spark.range(10 * n, 10 * n + 10) for n in range(4)]
    assert at_once(*(lambda n=n, df=df: write(df, 0, tmp_path, str(n)) for n, df in enumerate(rows))) == [True] * 4
    assert sorted(row["id"] for row in both(spark, tmp_path)) == list(range(40))


def test_write_once_delta_of_a_feature_that_cannot_be_written_says_so(spark, tmp_path):
    """The error names the feature, and neither calls it the commits of others nor tries ten times."""
    path, out = str(tmp_path), {"format": "delta", "app_id": "a"}
    assert write(spark.sql("SELECT 0L AS id, 'a' AS topic, 0L AS segment, 'new' AS state"), 0, tmp_path)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["rowTracking"]}
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"protocol": protocol}))
    rows, says = ids.read_table(spark, path), r"cannot write to .*: Unsupported table features .*RowTracking"
    with pytest.raises(TableConflict, match=says):
        ids.write_once(rows, 1, path, **out)
    assert rows.count() == 1


def test_write_once_delta_with_an_old_deltalake_is_refused(spark, tmp_path, monkeypatch):
    """An old deltalake does not record the number of a batch, so a replayed batch would be written twice."""
    import deltalake

    monkeypatch.setattr(deltalake, "__version__", "1.5.1")
    with pytest.raises(ImportError, match=r"needs deltalake 1.6 or later: .*, got 1.5.1"):
        write(spark.range(1), 0, tmp_path)


def test_write_once_delta_commit_whose_answer_is_lost_is_kept(spark, tmp_path, monkeypatch):
    """If the answer of a commit is lost, its files are in the table and are not deleted."""
    write(spark.range(1), 0, tmp_path)
    commit = delta._Table.commit
    monkeypatch.setattr(delta._Table, "commit", lambda *arguments: commit(*arguments) and False)
    assert write(spark.range(1, 3), 1, tmp_path)
    assert sorted(row["id"] for row in both(spark, tmp_path)) == [0, 1, 2]


def test_read_table_of_another_writer(spark, tmp_path):
    """A table that `deltalake` has written and `write_once` continues, partitions and a column added later included."""
    first = pa.table({"id": [1, 2], "k": ["x/y", None]})
    write_deltalake(tmp_path, first, partition_by=["k"])
    write_deltalake(tmp_path, first.append_column("n", pa.array([5, 6])), mode="append", schema_mode="merge")
    assert write(spark.sql("SELECT 3L AS id, 'x/y' AS k, 7L AS n"), 0, tmp_path, partition_by=("k",))
    rows = ids.read_table(spark, str(tmp_path)).select("id", "k", "n").collect()
    assert sorted(map(repr, rows)) == sorted(
        map(repr, spark.createDataFrame(
            [(1, "x/y", None), (2, None, None), (1, "x/y", 5), (2, None, 6), (3, "x/y", 7)], "id long, k string, n long"
        ).collect())
    )  # fmt: skip
    DeltaTable(tmp_path).delete()
    assert ids.read_table(spark, str(tmp_path)).count() == 0
    with pytest.raises(FileNotFoundError, match="cannot find a Delta table at"):
        ids.read_table(spark, str(tmp_path / "nothing"), "delta")


def test_read_table_partitions_of_another_writer_do_not_depend_on_time_zones(spark, tmp_path, monkeypatch):
    """Times without a zone are text in the log; a time with one needs Delta's JAR, and so do folders of other names."""
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 250_000)
    times = {"ntz": pa.array([at], pa.timestamp("us")), "utc": pa.array([at], pa.timestamp("us", "UTC"))}
    rows = pa.table({"id": [1], **times, "day": [at.date()]})
    write_deltalake(tmp_path / "a", rows, partition_by=["ntz", "day"])
    write_deltalake(tmp_path / "b", rows, partition_by=["utc"])
    with pytest.raises(TableConflict, match=r"cannot read .* without Delta's JAR, because of the partition of utc="):
        ids.read_table(spark, str(tmp_path / "b"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with session_zone(spark, "America/New_York"):
            rows = ids.read_table(spark, str(tmp_path / "a"))
            (row,) = rows.selectExpr("string(ntz)", "unix_micros(utc)", "day").collect()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert row == ("2026-01-02 03:04:05.25", int(at.replace(tzinfo=UTC).timestamp() * 1_000_000), at.date())


def test_write_once_delta_log_is_read_from_a_checkpoint(spark, tmp_path):
    """Every tenth commit writes a checkpoint, so a long history costs as much as a short one."""
    write(spark.range(1), 0, tmp_path)
    for number in range(1, 10):
        write_deltalake(tmp_path, pa.table({"id": [number]}), mode="append")
    write(spark.range(10, 11), 1, tmp_path)
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
