"""Tests that each table format must pass, for a `spark_ext.TableFormat` of your own."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from pyspark.sql import functions as F

from spark_ext.tables import table_formats
from spark_ext.tables.sinks import read_table, write_once
from spark_ext.tables.table_formats import TableName, format_of_table, register_table_format
from spark_ext.tables.writers import TableConflict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables.table_formats import TableFormat

_DRIVERS = 3
"""The number of drivers that write one batch at once."""


class TableFormatTests:
    """Tests of one table format. Set the attributes in a subclass whose name starts with ``Test``.

    The fixture ``spark`` is your session. Each test writes to a table of its own, which is missing at first. For a
    format whose tables have names, define the fixture ``table``, which returns a `TableName`.
    """

    format: TableFormat
    """The format. It is registered for each test."""
    evolves: bool = False
    """Whether the format adds columns with ``evolve=True``."""
    options: ClassVar[dict[str, Any]] = {}
    """Options that are passed to `spark_ext.write_once`, such as ``partition_by`` with the column ``k``."""

    @pytest.fixture
    def table(self, tmp_path: Path) -> str:
        """Return the path of a missing table, or a `TableName`."""
        return str(tmp_path / "table")

    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(table_formats._FORMATS, "loaded", dict(table_formats._FORMATS.loaded))
        register_table_format(self.format)

    def test_a_replayed_batch_is_in_the_table_once(self, spark: SparkSession, table: str) -> None:
        """True means that the rows were written, and False that they were there, whatever the replay has."""
        assert self._write(_rows(spark, 0, 5), 0, table)
        assert not self._write(_rows(spark, 0, 5), 0, table)
        assert not self._write(_rows(spark, 50, 51), 0, table)
        assert self._write(_rows(spark, 5, 8), 1, table)
        assert not self._write(_rows(spark, 5, 8), 1, table)
        assert self._ids(spark, table) == list(range(8))

    def test_the_batches_of_each_writer_are_its_own(self, spark: SparkSession, table: str) -> None:
        """Batch 0 of a second writer is another batch."""
        assert self._write(_rows(spark, 0, 2), 0, table, "one")
        assert self._write(_rows(spark, 2, 4), 0, table, "two")
        assert not self._write(_rows(spark, 4, 6), 0, table, "one")
        assert self._ids(spark, table) == [0, 1, 2, 3]

    def test_a_batch_without_rows_is_a_batch(self, spark: SparkSession, table: str) -> None:
        """It is written once, too, and the table can be read."""
        assert self._write(_rows(spark, 0, 0), 0, table)
        assert not self._write(_rows(spark, 0, 1), 0, table)
        assert self._ids(spark, table) == []
        assert self._write(_rows(spark, 0, 1), 1, table)
        assert self._ids(spark, table) == [0]

    def test_drivers_at_once_write_a_batch_once(self, spark: SparkSession, table: str) -> None:
        """One of them writes its rows; the others find the batch. The first batch creates the table."""
        for number in range(2):
            rows, wrote = _rows(spark, 10 * number, 10 * number + 10), _Results()
            wrote.run([partial(self._write, rows, number, table)] * _DRIVERS)
            assert sorted(wrote.results, key=repr) == [*[False] * (_DRIVERS - 1), True], wrote.results
            assert self._ids(spark, table) == list(range(10 * number + 10))

    @pytest.mark.parametrize("first", [True, False], ids=["first batch", "later batch"])
    def test_a_batch_that_fails_leaves_no_row(self, spark: SparkSession, table: str, first: bool) -> None:
        """No reader sees the rows of the tasks that ended before; the batch is then written as a whole."""
        if not first:
            assert self._write(_rows(spark, 0, 2), 0, table)
        number = 0 if first else 1
        failing = _rows(spark, 2, 9).withColumn(
            "id", F.expr("IF(id < 8, id, CAST(raise_error('the last row') AS BIGINT))")
        )
        with pytest.raises(Exception, match="the last row"):
            self._write(failing, number, table)
        if not first:
            assert self._ids(spark, table) == [0, 1]
        assert self._write(_rows(spark, 2, 9), number, table)
        assert self._ids(spark, table) == list(range(2 if first else 0, 9))

    def test_rows_that_do_not_fit_are_refused(self, spark: SparkSession, table: str) -> None:
        """A column that the table lacks and a column of another type are a `TableConflict`; no row is written."""
        assert self._write(_rows(spark, 0, 2), 0, table)
        for changed in (
            _rows(spark, 2, 4).withColumn("more", F.lit(1)),
            _rows(spark, 2, 4).withColumn("text", F.lit(1)),
        ):
            with pytest.raises(TableConflict, match="cannot write"):
                self._write(changed, 1, table)
        assert self._ids(spark, table) == [0, 1]
        assert self._write(_rows(spark, 2, 4), 1, table)

    def test_columns_are_added_and_widened_where_the_format_can(self, spark: SparkSession, table: str) -> None:
        """With ``evolve=True``, readers see NULL in the earlier rows of a new column; a type widens or is refused."""
        assert self._write(_rows(spark, 0, 2), 0, table)
        more = _rows(spark, 2, 4).withColumn("a.b", F.lit(7))
        if not self.evolves:
            with pytest.raises(ValueError, match=r"evolve must be False for format=|it needs Delta's JAR"):
                self._write(more, 1, table, evolve=True)
            return
        wrote = _Results()
        wrote.run([partial(self._write, more, 1, table, evolve=True)] * _DRIVERS)
        assert sorted(wrote.results, key=repr) == [*[False] * (_DRIVERS - 1), True], wrote.results
        for changed in ({"A.B": F.lit(1)}, {"text": F.lit(1)}, {"more": F.lit(None)}, {"k": F.lit("1")}):
            with pytest.raises(TableConflict, match="cannot write"):
                self._write(_rows(spark, 4, 5).withColumns(changed), 2, table, evolve=True)
        assert self._write(_rows(spark, 4, 5), 2, table)
        longer, wide = _rows(spark, 5, 6).withColumn("a.b", F.lit(2**40)), {5: 2**40, 6: 8}
        try:
            assert self._write(longer, 3, table, evolve=True)
            assert self._write(_rows(spark, 6, 7).withColumn("a.b", F.lit(8)), 4, table, evolve=True)
        except TableConflict:
            wide = {}
        rows = self._read(spark, table).select("id", "`a.b`").collect()
        assert dict(map(tuple, rows)) == {0: None, 1: None, 2: 7, 3: 7, 4: None, **wide}

    def test_rows_are_read_as_they_were_written(self, spark: SparkSession, table: str) -> None:
        """NULL, empty and other text, bytes, times and nested values keep their types and values."""
        rows = spark.sql("""
            SELECT id, k, text, bytes, at, day, ARRAY(text, NULL) AS list, NAMED_STRUCT('n', id) AS inner FROM VALUES
            (1L, 0, '', X'', TIMESTAMP'2026-01-02 03:04:05.123456Z', DATE'2026-01-02'),
            (2L, 0, 'a"b,c\\n%/=', X'00FF', TIMESTAMP'2038-01-19 03:14:08Z', DATE'1582-10-15'),
            (3L, NULL, NULL, NULL, NULL, NULL) AS t(id, k, text, bytes, at, day)
        """)
        assert self._write(rows, 0, table)
        read = self._read(spark, table).select(*rows.columns)
        assert read.dtypes == rows.dtypes
        assert sorted(read.collect(), key=repr) == sorted(rows.collect(), key=repr)

    def test_a_table_is_recognized(self, spark: SparkSession, table: str) -> None:
        """`spark_ext.read_table` finds the format of a folder, and Parquet refuses to write there."""
        if isinstance(table, TableName) or not self.format.has_log:
            return  # no folder is a table of the format alone
        assert self._write(_rows(spark, 0, 2), 0, table)
        assert format_of_table(table) == self.format.name
        assert sorted(row["id"] for row in read_table(spark, table).collect()) == [0, 1]
        with pytest.raises(TableConflict, match=f"it is a table of the format '{self.format.name}'"):
            write_once(_rows(spark, 2, 3), 1, table, app_id="one")

    def test_the_rows_of_a_job_are_written_or_replaced(self, spark: SparkSession, table: str) -> None:
        """`write_rows` refuses a table that exists, or replaces its rows, by its mode."""
        partition_by = tuple(self.options.get("partition_by", ()))

        def write(first: int, last: int, mode: str) -> None:
            self.format.write_rows(_rows(spark, first, last), table, mode, partition_by)

        write(0, 2, "error")
        with pytest.raises(Exception):  # noqa: B017, PT011  # each format has its own error
            write(2, 3, "error")
        assert self._ids(spark, table) == [0, 1]
        write(7, 8, "overwrite")
        assert self._ids(spark, table) == [7]

    def _target(self, table: str) -> dict[str, Any]:
        return {"table" if isinstance(table, TableName) else "path": table}

    def _write(self, df: DataFrame, number: int, table: str, app_id: str = "one", **options: Any) -> bool:
        options = {**self.options, **options}
        return write_once(df, number, **self._target(table), format=self.format.name, app_id=app_id, **options)

    def _read(self, spark: SparkSession, table: str) -> DataFrame:
        return read_table(spark, **self._target(table), format=self.format.name)

    def _ids(self, spark: SparkSession, table: str) -> list[int]:
        return sorted(row["id"] for row in self._read(spark, table).select("id").collect())


class _Results:
    """The results of calls in threads; an error is one, too."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def run(self, calls: Iterable[Any]) -> None:
        """Run calls in threads, and wait for them."""
        threads = [threading.Thread(target=self.add, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def add(self, call: Any) -> None:
        try:
            self.results.append(call())
        except Exception as error:
            self.results.append(error)


def _rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Return rows of numbers in two tasks."""
    return spark.range(first, last, 1, 2).selectExpr("id", "CAST(id % 2 AS INT) AS k", "CONCAT('text ', id) AS text")
