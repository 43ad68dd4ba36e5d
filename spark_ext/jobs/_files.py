"""Input files and output tables of the jobs: file formats, columns by name, batch and streaming reads and writes."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.types import StringType, StructField, StructType

from spark_ext._filesystem import filesystem
from spark_ext.columns._expressions import CORRUPT, quoted_name
from spark_ext.jobs._csv import SEPARATORS, read_csv
from spark_ext.tables._delta import is_streamed
from spark_ext.tables._writers import TableConflict, checkpointed
from spark_ext.tables.sinks import check_rows, read_table, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "FORMATS",
    "BadInput",
    "Files",
    "check_output",
    "column_of",
    "follow",
    "guess_format",
    "input_of",
    "names_of",
    "read_rows",
    "reader_of",
    "write_table",
    "written",
]

FORMATS = ("csv", "tsv", "json", "parquet", "text")
_ENDINGS = {"csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}


_REFUSED = re.compile(rf"{TableConflict.__name__}: (.*)")


class BadInput(ValueError):
    """The options of a job do not fit its input. The message names the option and the values that are allowed."""


class Files(NamedTuple):
    """Some files of a job's input."""

    input: str
    names: list[str]


def guess_format(path: str) -> str:
    """Guess a format by the ending of a path, without the ending of a compression; ``text`` if it is unknown.

    >>> guess_format("logs/ids.tsv.gz"), guess_format("ids.txt")
    ('tsv', 'text')
    """
    endings = [
        suffix[1:].lower() for suffix in PurePath(path).suffixes if suffix.lower() not in (".gz", ".bz2", ".zst")
    ]
    return _ENDINGS.get(endings[-1], "text") if endings else "text"


def read_rows(
    spark: SparkSession,
    path: str | Files,
    format: str | None = None,
    *,
    stream: bool = False,
    schema: StructType | None = None,
    tolerant: bool = False,
) -> DataFrame:
    """Read the rows of a file or folder, or of some of its files; as a stream, also files that arrive later.

    Each CSV or TSV file has a header, and the columns stay text. Each line of a text file is a ``value``. A line that
    does not fit its header, or is not JSON, is in the column ``_corrupt_record``, with the columns that could be read.
    A stream takes its schema from the files that exist when it starts, unless ``schema`` is passed. A tolerant stream
    skips the unreadable part of a file without an error.
    """
    if format is None:
        format = guess_format(input_of(path))
    reader: Any = reader_of(spark, path, stream=stream)
    if tolerant:
        reader = reader.option("ignoreCorruptFiles", True).option("ignoreMissingFiles", True)
    if format not in SEPARATORS:
        if schema is None:
            now: DataFrame = reader_of(spark, path).format(format).load(names_of(path))
            if not stream:
                return now
            schema = now.schema
        if stream and format == "json" and CORRUPT not in schema.names:
            schema = StructType([*schema, StructField(CORRUPT, StringType())])  # a later file may have such lines
        followed: DataFrame = reader.format(format).schema(schema).load(names_of(path))
        return followed
    now_of = partial(reader_of, spark, path)
    return read_csv(spark, names_of(path), format, reader, now_of, stream=stream, schema=schema)


def reader_of(spark: SparkSession, path: str | Files, *, stream: bool = False) -> Any:
    """Return a reader of a path or of files. Names of files are not patterns, and partition folders become columns."""
    if stream:
        return spark.readStream
    if isinstance(path, str):
        return spark.read
    reader = spark.read.option("__globPaths__", "false")
    return reader.option("basePath", path.input) if _is_folder(path.input) else reader


def input_of(path: str | Files) -> str:
    """Return the path that a job was given."""
    return path if isinstance(path, str) else path.input


def names_of(path: str | Files) -> Any:
    """Return a path or the names of files, as an argument of Spark's readers."""
    return path if isinstance(path, str) else path.names


def _is_folder(path: str) -> bool:
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    return bool(files.get_file_info(inner).type == pafs.FileType.Directory)


def column_of(df: DataFrame, column: str) -> Column:
    """Return a column by its name; `BadInput` lists the names if it is missing."""
    if column not in df.columns or column == CORRUPT:
        raise BadInput(f"no column {column!r}; there are: {', '.join(name for name in df.columns if name != CORRUPT)}")
    return df[quoted_name(column)]


def written(spark: SparkSession, path: str) -> DataFrame | None:
    """Read a table of either format; return None if it is missing."""
    try:
        return read_table(spark, path)
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise


def write_table(df: DataFrame, path: str, mode: str, table_format: str, partition_by: tuple[str, ...] = ()) -> None:
    """Write the rows of a batch run as a table.

    Raises:
        BadInput: if a table exists and the mode is ``error``, or if a table of another format exists.
    """
    try:
        write_rows(df, path, mode, format=table_format, partition_by=partition_by)
    except FileExistsError:
        raise BadInput(f"{path} holds results already; --overwrite replaces them") from None
    except TableConflict as error:
        raise BadInput(str(error)) from None


def check_output(tables: dict[str, DataFrame], table_format: str, checkpoint: str) -> None:
    """Check, before a stream starts, that its tables can be written.

    Args:
        tables: the rows by the path of their table.
        table_format: ``parquet`` or ``delta``.
        checkpoint: the checkpoint folder.

    Raises:
        BadInput: if a table cannot hold the columns, or if the checkpoint of an earlier stream is missing. Without it,
            the rows of the earlier stream would be written a second time.
    """
    import pyarrow.fs as pafs

    try:
        for rows in tables.values():
            check_rows(rows, table_format)
    except TableConflict as error:
        raise BadInput(str(error)) from None
    files, folder = filesystem(checkpoint)
    if table_format == "delta" and files.get_file_info(f"{folder}/metadata").type == pafs.FileType.NotFound:
        for path in tables:
            if is_streamed(path):
                raise BadInput(
                    f"cannot write to {path}: an earlier stream has written it, and its checkpoint {checkpoint} is "
                    "missing. Restore the checkpoint, or choose another output"
                )


def follow(
    df: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: str, interval: float | None = None
) -> None:
    """Run a stream: pass each micro-batch to ``write``.

    Args:
        df: the stream.
        write: function of a micro-batch and its number. Spark calls it again with the same arguments if the process
            ended before the micro-batch was committed.
        checkpoint: the checkpoint folder.
        interval: seconds between two looks for new files; an interrupt ends the stream. Default: handle the files that
            exist, and return.

    Raises:
        BadInput: if a table belongs to another query, another kind of run or another format.
    """

    def named(batch: DataFrame, number: int) -> None:
        with checkpointed(checkpoint):
            write(batch, number)

    writer = df.writeStream.foreachBatch(named).option("checkpointLocation", checkpoint)
    if interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{interval} seconds")
    query = writer.start()
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
    except StreamingQueryException as error:
        refused = _REFUSED.search(str(error))
        if refused is None:
            raise
        raise BadInput(refused[1].strip()) from None
