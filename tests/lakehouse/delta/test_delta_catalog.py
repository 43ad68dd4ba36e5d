"""`write_once` through Delta's catalog: every table that Delta's JAR writes, and each batch once."""

from typing import ClassVar

import pytest
from deltalake import DeltaTable
from helpers.threads import at_once
from lakehouse.delta.tables import (
    location,
    new_name,
    numbers,
    orders,
    table_of_many_features,
    without_catalog,
    write,
)

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext.tables import delta
from spark_ext.tables.table_formats import TableName, table_format
from spark_ext.testing import TableFormatTests

pytestmark = [pytest.mark.systems, pytest.mark.spark]


class TestDeltaOfAPath(TableFormatTests):
    """Delta's own writer commits to a folder."""

    format = table_format("delta")
    evolves = True
    options: ClassVar = {"partition_by": ("k",)}


class TestDeltaOfAName(TableFormatTests):
    """Delta's own writer commits to a table of the catalog."""

    format = table_format("delta")
    evolves = True

    @pytest.fixture
    def table(self):
        return TableName(new_name())


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
    assert not write(orders(spark, 2), 2, path=location(spark, table))
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
    assert write(spark.range(12, 13), 12, path=path)
    for each in (spark, other):
        assert not write(each.range(9), 12, path=path)
        for lower in (3, 5):
            with pytest.raises(TableConflict, match=f"cannot write batch {lower} of 'a' to .*: its batch 12 is in"):
                write(each.range(5, 6), lower, path=path)
        assert numbers(ids.read_table(each, path)) == [0, 1, 2, 3, 12]
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
    path, save = str(tmp_path / "t"), delta._Table.save
    assert write(spark.range(1), 0, path=path)

    def overtaken(*arguments, **options):
        monkeypatch.setattr(delta._Table, "save", save)
        assert write(spark.range(1, 2), 1, path=path)
        return save(*arguments, **options)

    monkeypatch.setattr(delta._Table, "save", overtaken)
    assert not write(spark.range(5, 9), 1, path=path)
    assert numbers(ids.read_table(spark, path)) == [0, 1]


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
        with pytest.raises(TableConflict, match=f"cannot use {name} as a Delta table: "):
            write(spark.range(1), 0, table=name)
    for name in ("a b", "x; DROP TABLE y", "", "'x'"):
        with pytest.raises(TableConflict, match=r"cannot use .* as a Delta table: ") as error:
            write(spark.range(1), 0, table=name)
        assert "\n" not in str(error.value)
