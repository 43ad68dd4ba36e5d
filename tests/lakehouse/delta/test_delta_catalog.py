"""`write_once` through Delta's catalog: every table that Delta's JAR writes, and each batch once."""

import itertools
import json

import pytest
from deltalake import DeltaTable
from lakehouse.delta.tables import (
    at_once,
    location,
    new_name,
    numbers,
    orders,
    plain_table,
    table_of_many_features,
    without_catalog,
    write,
)
from pyspark.sql import functions as F

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext.tables import _delta_catalog, sinks
from spark_ext.tables._writers import checkpointed

pytestmark = [pytest.mark.systems, pytest.mark.spark]


def test_table_of_many_features_has_each_batch_once(spark):
    """Batches by name and by path, OPTIMIZE and VACUUM between them, and replays of all of them."""
    table = table_of_many_features(spark)
    assert write(orders(spark, 0), 0, table=table)
    assert write(orders(spark, 1), 1, path=location(spark, table))
    spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"VACUUM {table}")
    assert not write(orders(spark, 1), 1, table=table)
    assert write(orders(spark, 2), 2, table=table)
    spark.sql(f"DELETE FROM {table} WHERE id = 4")
    for number in (0, 1, 2):
        assert not write(orders(spark, number), number, path=location(spark, table))
        assert sinks.is_written(orders(spark, 0), number, table=table, format="delta", app_id="a")
    rows = ids.read_table(spark, table=table)
    assert numbers(rows) == numbers(ids.read_table(spark, location(spark, table))) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert rows.where("day = DATE'2026-01-02' AND source = 'shop' AND k = 1").count() == 8
    assert rows.select("n").distinct().count() == 8


def test_rows_that_break_a_constraint_are_one_error_and_nothing_is_committed(spark):
    """The error names the constraint and the row's value, and the next batch is written."""
    table = table_of_many_features(spark, ())
    path = location(spark, table)
    assert write(orders(spark, 0), 0, table=table)
    before = DeltaTable(path).version()
    for columns, says in [
        (["id", "at", "IF(id = 4, -7, k) AS k"], r"CHECK constraint positive \(k > 0\) violated by row .*k : -7"),
        (["IF(id = 4, NULL, id) AS id", "at", "k"], r"NOT NULL constraint violated for column: id"),
        (["at", "k"], r"Column id, which has a NOT NULL constraint, is missing"),
        (["id", "at", "k", "id AS m"], r"column 'm'.*the table has"),
        (["id", "at", "string(k) AS k"], r"column 'k' .* must be int, got string"),
    ]:
        with pytest.raises(TableConflict, match=rf"cannot write .*{says}") as error:
            write(orders(spark, 1).selectExpr(*columns), 1, table=table)
        assert "\n" not in str(error.value)
    with pytest.raises(TableConflict, match=r"partition_by must be the table's \(\), got \('k',\)"):
        write(orders(spark, 1), 1, table=table, partition_by=("k",))
    assert DeltaTable(path).version() == before
    assert write(orders(spark, 1), 1, table=table)


def test_both_ways_see_the_batches_of_the_other(spark, tmp_path):
    """Batches alternate between Delta's own writer and `deltalake`, and each way finds the batches of both."""
    path, other = str(tmp_path / "t"), without_catalog(spark)
    for number in range(4):
        way = (spark, other)[number % 2]
        assert write(way.range(number, number + 1), number, path=path)
        for each in (spark, other):
            assert not write(each.range(number, number + 1), number, path=path)
    assert write(other.range(8, 9), 8, path=path)  # a new series
    assert write(spark.range(12, 13), 12, path=path)
    for each in (spark, other):
        assert not write(each.range(9), 12, path=path)
        for unknown in (5, 8):
            with pytest.raises(TableConflict, match=f"cannot tell whether batch {unknown} of 'a' is in"):
                write(each.range(5, 6), unknown, path=path)
        assert numbers(ids.read_table(each, path)) == [0, 1, 2, 3, 8, 12]
    # Spark's own batches with these options
    options = {"txnAppId": "a", "txnVersion": "13"}
    spark.range(13, 14).write.format("delta").mode("append").options(**options).save(path)
    assert not write(other.range(13, 14), 13, path=path)
    assert DeltaTable(path).transaction_version("a") == 13


def test_drivers_of_both_ways_at_once_write_each_batch_once(spark, tmp_path):
    """Of three drivers with one batch, one writes it, also the first batch, while another writer and OPTIMIZE run."""
    path, other = str(tmp_path / "t"), without_catalog(spark)
    for number in range(3):

        def drive(session, app_id="a", number=number):
            rows = session.range(10 * number, 10 * number + 5) if app_id == "a" else session.range(900, 901)
            return ids.write_once(rows, number, path, format="delta", app_id=app_id)

        def optimize(number=number):
            return number and spark.sql(f"OPTIMIZE delta.`{path}`").collect()

        wrote = at_once(*(lambda s=s: drive(s) for s in (spark, spark, other)), lambda: drive(spark, "b"), optimize)
        assert sorted(map(repr, wrote[:3])) == ["False", "False", "True"]
        assert wrote[3] is True
        assert not isinstance(wrote[4], Exception)
    assert numbers(ids.read_table(spark, path)) == [*range(5), *range(10, 15), *range(20, 25), 900, 900, 900]


def test_batch_that_another_driver_wrote_meanwhile_is_not_reported_as_written(spark, tmp_path, monkeypatch):
    """Delta's own writer skips such a batch without an error."""
    path, save = str(tmp_path / "t"), _delta_catalog.save
    assert write(spark.range(1), 0, path=path)

    def overtaken(*arguments, **options):
        monkeypatch.setattr(_delta_catalog, "save", save)
        assert write(spark.range(1, 2), 1, path=path)
        return save(*arguments, **options)

    monkeypatch.setattr(_delta_catalog, "save", overtaken)
    assert not write(spark.range(5, 9), 1, path=path)
    assert numbers(ids.read_table(spark, path)) == [0, 1]


def test_commit_whose_answer_is_lost_is_reported_as_written(spark, tmp_path, monkeypatch):
    """The commit is in the table, so an error after it is not one of this batch."""
    path, save = str(tmp_path / "t"), _delta_catalog.save

    def lost(*arguments, **options):
        save(*arguments, **options)
        raise ConnectionError("the answer is lost")

    monkeypatch.setattr(_delta_catalog, "save", lost)
    assert write(spark.range(2), 0, path=path)

    def failed(*arguments, **options):
        raise ConnectionError("the store is away")

    monkeypatch.setattr(_delta_catalog, "save", failed)
    with pytest.raises(ConnectionError, match="the store is away"):
        write(spark.range(2), 1, path=path)
    monkeypatch.undo()
    assert not write(spark.range(2), 0, path=path)
    assert numbers(ids.read_table(spark, path)) == [0, 1]


@pytest.mark.parametrize(
    ("way", "stop"),
    [
        pytest.param(way, stop, marks=() if (way, stop) in {("catalog", 0), ("deltalake", 1)} else pytest.mark.variants)
        for way in ("catalog", "deltalake")
        for stop in range(4)
    ],
)
def test_jobs_that_start_at_once_do_not_share_a_table(spark, tmp_path, monkeypatch, way, stop):
    """Both found the table empty; one of them is refused before its rows are in the table, and the other one goes on.

    Job one stops before its claim, its record, its series or its rows, and job two runs meanwhile.
    """
    out, save, results = str(tmp_path / "out"), _delta_catalog.save, []
    session = spark if way == "catalog" else without_catalog(spark)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata").write_text(json.dumps({"id": f"{name:0<8}-0000-4000-8000-000000000000"}))

    def job(name, number, session=spark):
        with checkpointed(str(tmp_path / name)):
            return ids.write_once(session.range(number, number + 1), number, out, format="delta")

    calls = itertools.count()

    def overtaken(*arguments, **options):
        if next(calls) == stop:
            results.extend(at_once(lambda: job("two", 0, session)))
        return save(*arguments, **options)

    monkeypatch.setattr(_delta_catalog, "save", overtaken)
    results.extend(at_once(lambda: job("one", 1)))
    monkeypatch.setattr(_delta_catalog, "save", save)
    two, one = results
    refused = two if one is True else one
    assert [one, two].count(True) == 1, results
    assert isinstance(refused, TableConflict), results
    assert "it has the rows of another query than" in str(refused)
    winner, loser, first = ("one", "two", 1) if one is True else ("two", "one", 0)
    assert job(winner, 2)
    with pytest.raises(TableConflict, match=f"it has the rows of another query than {loser:0<8}"):
        job(loser, 3, session)
    assert numbers(ids.read_table(spark, out)) == [first, 2]


def test_name_of_a_missing_table_creates_it_and_other_relations_are_refused(spark):
    """A view, a table of another format and text that is not a name raise one line."""
    table = new_name()
    first, second = (rows.selectExpr("id", "id % 2 AS k") for rows in (spark.range(3), spark.range(3, 4)))
    wrote = at_once(*[lambda: write(first, 0, table=table, partition_by=("k",))] * 2)
    assert sorted(map(repr, wrote)) == ["False", "True"]
    assert write(second, 1, table=table, partition_by=("k",))
    assert numbers(spark.table(table)) == [0, 1, 2, 3]
    assert DeltaTable(location(spark, table)).metadata().partition_columns == ["k"]
    spark.range(1).createOrReplaceTempView("a_view")
    spark.sql("CREATE TABLE IF NOT EXISTS parquet_table (id BIGINT) USING parquet")
    for name in ("a_view", "parquet_table"):
        with pytest.raises(TableConflict, match=f"cannot use {name} as a Delta table: it is a view or a table of"):
            write(spark.range(1), 0, table=name)
    for name in ("a b", "x; DROP TABLE y", "", "'x'"):
        with pytest.raises(ValueError, match="`table` must be the name of a table, got "):
            write(spark.range(1), 0, table=name)


def test_audit_of_a_named_table_finds_its_rows(spark):
    """An audit reads a table with mapped columns through the catalog."""
    table = plain_table(spark, "id STRING", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    made = ids.position_id(F.lit("log"), F.col("id"), F.timestamp_seconds(F.lit(1_700_000_000)))
    assert write(spark.range(6).select(made.alias("id")), 0, table=table)
    assert "in 6 rows" in str(ids.audit(ids.read_table(spark, table=table), id="id"))
