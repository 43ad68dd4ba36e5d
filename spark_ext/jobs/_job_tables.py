"""Write the tables of a job without the input files that cannot be read, and add their rows after a repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from spark_ext._filesystem import filesystem
from spark_ext._private import files_of_batch, query_of_checkpoint
from spark_ext.jobs._bad_files import BadFile, Ledger, is_unreadable, list_files, split_files
from spark_ext.jobs._files import write_table
from spark_ext.jobs._formats import BadInput, Files, names_of
from spark_ext.tables._writers import checkpointed, query_id
from spark_ext.tables.sinks import is_written, write_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from spark_ext.jobs._bad_files import Entry

CHECKPOINT: Final = "checkpoint"
"""The folder with the progress of a stream, in the output folder."""


class Input(NamedTuple):
    """The files that a job reads."""

    path: str
    read: Callable[[SparkSession, str | Files, StructType | None], DataFrame]
    """Returns the rows of a path or of some of its files, with a schema if it is passed."""

    def rows(self, spark: SparkSession, files: list[str], schema: StructType) -> DataFrame:
        """Return the rows of some files with a known schema."""
        return self.read(spark, Files(self.path, files), schema) if files else spark.createDataFrame([], schema)

    def split(
        self, spark: SparkSession, files: list[str], schema: StructType | None = None
    ) -> tuple[list[str], list[BadFile]]:
        """Split files into readable and unreadable ones; with a schema, a file of other types is unreadable."""
        return split_files(files, lambda some: self.read(spark, Files(self.path, some), schema))

    def readable(self, spark: SparkSession, error: Exception) -> tuple[list[str], list[BadFile], StructType]:
        """Return the readable files, the unreadable files, and the schema of the readable ones, after an error.

        Raises
        ------
        BadInput
            if no file can be read.
        """
        files = list_files(spark, names_of(self.path))
        good, bad = self.split(spark, files)
        if files and not good:
            raise BadInput(f"cannot read any file of {self.path}: {bad[0].path}: {bad[0].reason}") from None
        schema = self.read(spark, Files(self.path, good), None).schema
        good, other = self.split(spark, good, schema)  # a file may be whole and have other types than the rest
        if not bad and not other:
            raise error
        return good, bad + other, schema


class Table(NamedTuple):
    """A table of a job."""

    name: str
    rows: Callable[[DataFrame], DataFrame]
    """Returns the rows of the table for the rows that were read."""
    partition_by: tuple[str, ...] = ()


def unreadable_files(output: str) -> list[BadFile]:
    """Return the files whose rows are missing in the output of a job."""
    return [BadFile(entry.path, entry.reason) for entry in Ledger(output).waiting()]


def write_run(
    spark: SparkSession, input: Input, tables: list[Table], output: str, mode: str, table_format: str
) -> None:
    """Write the tables of a batch run; files that cannot be read are left out and listed."""
    ledger = Ledger(output)
    bad: list[BadFile] = []
    started = False
    try:
        parts = _parts(input.read(spark, input.path, None), tables)
        started = True
        _write_parts(parts, output, mode, table_format)
    except Exception as error:
        if not is_unreadable(error):
            raise
        good, bad, schema = input.readable(spark, error)
        # The first attempt found that it may write the table. So the second one may replace its incomplete rows.
        parts = _parts(input.rows(spark, good, schema), tables)
        _write_parts(parts, output, "overwrite" if started else mode, table_format)
    ledger.clear()
    ledger.add(bad, None, [table.name for table in tables])


def _parts(rows: DataFrame, tables: list[Table]) -> list[tuple[Table, DataFrame]]:
    """Return the rows of each table; columns that do not fit raise before any row is written."""
    return [(table, table.rows(rows)) for table in tables]


def _write_parts(parts: list[tuple[Table, DataFrame]], output: str, mode: str, table_format: str) -> None:
    for table, rows in parts:
        write_table(rows, f"{output}/{table.name}", mode, table_format, table.partition_by)


def read_stream(spark: SparkSession, input: Input, follow: Callable[[StructType | None], DataFrame]) -> DataFrame:
    """Return the stream that ``follow`` reads, with the schema of the readable files."""
    try:
        return follow(None)
    except Exception as error:
        if not is_unreadable(error):
            raise
        return follow(input.readable(spark, error)[2])


class BatchWriter:
    """Writes each micro-batch of a stream to the tables of a job exactly once.

    Parameters
    ----------
    input : Input
        the files of the stream.
    schema : StructType
        the columns of the stream.
    tables : list of Table
        the tables.
    output : str
        the job's output folder.
    checkpoint : str
        the query's checkpoint folder.
    table_format : str
        ``parquet`` or ``delta``.
    """

    def __init__(
        self, input: Input, schema: StructType, tables: list[Table], output: str, checkpoint: str, table_format: str
    ) -> None:
        self._input, self._schema, self._tables = input, schema, tables
        self._output, self._checkpoint, self._format = output, checkpoint, table_format
        self._ledger = Ledger(output)

    def write(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch; files that cannot be read are left out and listed."""
        names = [table.name for table in self._tables]
        for place, table in enumerate(self._tables):
            while not is_written(batch, number, f"{self._output}/{table.name}", format=self._format):
                try:
                    self._write(table, self._rows(batch, number, table), number)
                except Exception as error:
                    if not is_unreadable(error):
                        raise
                    _, bad = self._input.split(batch.sparkSession, self._files(number, table), self._schema)
                    if not bad:
                        raise
                    self._ledger.add(bad, number, names[place:])
        self.read_repaired(batch.sparkSession, changed=True)

    def _rows(self, batch: DataFrame, number: int, table: Table) -> DataFrame:
        """Return the rows of a micro-batch, without files that an earlier attempt left out of the table."""
        if not self._ledger.left_out(number, table.name):
            return batch
        return self._input.rows(batch.sparkSession, self._files(number, table), self._schema)

    def _files(self, number: int, table: Table) -> list[str]:
        left_out = self._ledger.left_out(number, table.name)
        return [file for file in files_of_batch(*filesystem(self._checkpoint), number) if file not in left_out]

    def _write(self, table: Table, rows: DataFrame, number: int, app_id: str | None = None) -> None:
        path = f"{self._output}/{table.name}"
        write_once(table.rows(rows), number, path, format=self._format, app_id=app_id, partition_by=table.partition_by)

    def read_repaired(self, spark: SparkSession, *, changed: bool = False) -> None:
        """Write the rows of listed files that are readable now; with ``changed``, try only files that changed.

        Each file is written as a batch under its own writer name.
        """
        for entry in self._ledger.waiting() if _has_started(self._checkpoint) else ():
            if entry.batch is None or (changed and not self._ledger.has_changed(entry)):
                continue
            with checkpointed(self._checkpoint):
                self._read_again(spark, entry, entry.batch)

    def _read_again(self, spark: SparkSession, entry: Entry, batch: int) -> None:
        rows = spark.createDataFrame([], self._schema)
        tables = [table for table in self._tables if table.name in entry.tables]
        paths = [f"{self._output}/{table.name}" for table in tables]
        if not all(is_written(rows, batch, path, format=self._format) for path in paths):
            return  # the process ended after listing the file; the batch is written before it
        try:
            for table in tables:
                rows = self._input.rows(spark, [entry.path], self._schema)
                self._write(table, rows, 0, f"{query_id(rows)}-{entry.name}")
        except Exception as error:
            if not is_unreadable(error):
                raise
            _, bad = self._input.split(spark, [entry.path], self._schema)
            for file in bad:
                self._ledger.still(entry, file.reason)
        else:
            self._ledger.done(entry)


def _has_started(checkpoint: str) -> bool:
    """Check whether a query has run with a checkpoint folder."""
    return query_of_checkpoint(*filesystem(checkpoint)) is not None
