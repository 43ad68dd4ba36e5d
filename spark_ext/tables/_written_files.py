"""The files of a batch: written by Spark, listed, and whether they have the rows of the batch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from spark_ext._filesystem import filesystem
from spark_ext._settings import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame
from spark_ext.tables._column_rules import EXACT, checked_partitions

THREADS: Final = 8
"""The number of footers that are read at once."""


class MissingRows(OSError):
    """The files of a batch do not have the rows that Spark's tasks wrote; the batch is not committed.

    Examples
    --------
    >>> issubclass(MissingRows, OSError)
    True
    """


def write_files(
    df: DataFrame, table: str, inner: str, partition_by: tuple[str, ...], mode: str = "error"
) -> list[tuple[pafs.FileInfo, int]]:
    """Write rows as Parquet files to a folder of a table; return the files, each with its number of rows.

    A task reports success after it wrote to a folder of its own machine that the others do not share. Spark's own
    commit does not notice the missing files, so the tasks count the rows.

    Raises
    ------
    MissingRows
        if the driver does not see all rows. The files that it sees in an inner folder are deleted.
    """
    observation = Observation()
    rows = checked_partitions(df.observe(observation, F.count(F.lit(1)).alias("rows")), partition_by)
    # With dynamic partition overwrite, Spark would keep files of an interrupted attempt.
    writer = rows.write.mode(mode).partitionBy(*partition_by).option("partitionOverwriteMode", "static")
    with settings(df.sparkSession, EXACT):
        writer.parquet(f"{table}/{inner}" if inner else table)
    files, base = filesystem(table)
    folder = f"{base}/{inner}".rstrip("/")
    paths = data_files(files, folder)
    counts = footer_rows(files, paths)
    written, seen = observation.get.get("rows"), sum(counts)
    if written not in (None, seen):
        if inner:  # other files in the folder of a batch run are those of another run
            with suppress(OSError):
                files.delete_dir(folder)
        raise MissingRows(
            f"cannot write to {table}: the tasks wrote {written:,} rows, and the driver sees {seen:,} rows in "
            f"{len(counts):,} files. Another driver of the query may have written the batch, or a worker may not share "
            "this folder with the driver: choose a store that all machines share"
        )
    return [*zip(paths, counts, strict=True)]


def entries(files: pafs.FileSystem, folder: str, *, recursive: bool = False) -> list[pafs.FileInfo]:
    """Return the files and folders in a folder; none if it is missing."""
    import pyarrow.fs as pafs

    return list(files.get_file_info(pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)))


def data_files(files: pafs.FileSystem, folder: str) -> list[pafs.FileInfo]:
    """Return the files in a folder, at any depth, that Spark's readers do not skip."""

    def is_hidden(name: str) -> bool:
        return name.startswith(".") or (name.startswith("_") and "=" not in name)

    return [
        info
        for info in entries(files, folder, recursive=True)
        if info.is_file and not any(map(is_hidden, info.path[len(folder) :].split("/")[1:]))
    ]


def footer_rows(files: pafs.FileSystem, infos: Iterable[pafs.FileInfo]) -> list[int]:
    """Return the number of rows in each Parquet file; the footers are read in parallel."""
    import pyarrow.parquet as pq

    def rows(info: pafs.FileInfo) -> int:
        with files.open_input_file(info.path) as file:
            return int(pq.ParquetFile(file).metadata.num_rows)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(rows, infos))
