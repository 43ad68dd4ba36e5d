"""Parquet as a table format: one writer, and folders that appear and disappear as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from spark_ext._filesystem import literal
from spark_ext.tables import _parquet
from spark_ext.tables._segment_folders import SegmentFolders, TableBusy
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.table_formats import JudgedSegment, TableFormat, format_of_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables._writers import Writer


class _Parquet(TableFormat):
    name = "parquet"
    checks_later_columns = False

    def is_table(self, path: str) -> bool:
        return False  # any folder can be one

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        return _parquet.write_batch(df, batch_id, path, writer, partition_by)

    def is_written(self, batch_id: int, path: str, writer: Writer) -> bool:
        return _parquet.is_written(batch_id, path, writer)

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        return spark.read.parquet(path)

    def check_columns(self, df: DataFrame) -> None:
        _parquet.check_columns(df)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        other = format_of_table(path)
        if other != self.name:
            raise TableConflict(f"cannot write to {path}: it is a {other.capitalize()} table; pass format={other!r}")
        writer = df.write.mode(mode)
        (writer.partitionBy(*partition_by) if partition_by else writer).parquet(path)

    def clean(
        self,
        spark: SparkSession,
        path: str,
        judge: Callable[[DataFrame], list[dict[str, Any]]],
        *,
        dry_run: bool,
        mark: bool,
        storage_options: dict[str, str] | None,
    ) -> list[JudgedSegment]:
        table = SegmentFolders(path)
        if not dry_run:
            table.complete_removals()
        before = table.list()
        if not before:
            return []
        try:
            rows = judge(_read(spark, path))
        finally:
            changed = table.list() != before
            if changed:
                raise TableBusy(f"the files of {path} changed while they were read") from None
        folders = [table.folder_of(row) for row in rows]
        # A table that is not partitioned by source may have segments of several sources in one folder.
        staying = {folder for folder, row in zip(folders, rows, strict=True) if not row["expired"]}
        reasons: dict[str, str | None] = dict.fromkeys(staying, "its folder holds a segment that has not expired")
        judged = []
        for folder, row in zip(folders, rows, strict=True):
            if row["expired"] and folder not in reasons:
                change = table.mark if mark else table.remove
                reasons[folder] = None if dry_run else change(folder, before[folder])
            judged.append(JudgedSegment(row, folder, reasons[folder] if row["expired"] else None))
        return judged


FORMAT: Final = _Parquet()


def _read(session: SparkSession, path: str) -> DataFrame:
    """Read every file of a table. Settings of the session that skip files, or guess types, are overridden."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructType

    every = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    types = {"source": StringType(), "topic": StringType(), "partition": IntegerType(), "segment": LongType()}
    schema = StructType()
    for field in session.read.options(**every).parquet(literal(path)).schema:
        schema.add(field.name, types.get(field.name, field.dataType))
    return session.read.options(**every).schema(schema).parquet(literal(path))
