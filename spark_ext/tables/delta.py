"""Delta as a table format: any number of writers and readers, and one commit per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from spark_ext._filesystem import filesystem
from spark_ext.tables import _delta
from spark_ext.tables._segment_rows import clean_rows
from spark_ext.tables.table_formats import JudgedSegment, TableFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables._writers import Writer


class _Delta(TableFormat):
    name = "delta"
    batches_share_segments = True

    def is_table(self, path: str) -> bool:
        import pyarrow.fs as pafs

        files, base = filesystem(path)
        return bool(files.get_file_info(f"{base}/_delta_log").type == pafs.FileType.Directory)

    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        return _delta.write_batch(df, batch_id, path, writer, partition_by, storage_options)

    def is_written(self, batch_id: int, path: str, writer: Writer) -> bool:
        return _delta.is_written(batch_id, path, writer)

    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        return _delta.read_files(spark, path, storage_options)

    def check_columns(self, df: DataFrame) -> None:
        _delta.check_columns(df)

    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        _delta.write_rows(df, path, mode, partition_by)

    def is_streamed(self, path: str) -> bool:
        return _delta.is_streamed(path)

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
        rows = clean_rows(spark, path, judge, dry_run=dry_run, mark=mark, storage_options=storage_options)
        return [JudgedSegment(row, _folder_name(row)) for row in rows]


FORMAT: Final = _Delta()


def _folder_name(row: dict[str, Any]) -> str:
    """Return the folder that the segment has in a Parquet table."""
    return "/".join(f"{name}={row[name]}" for name in ("source", "topic", "partition", "segment") if name in row)
