"""Input files and output tables of the jobs: file formats, columns by name, batch and streaming reads and writes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, StreamingQueryException

from spark_ext._filesystem import filesystem
from spark_ext._private import is_other_source, python_error_in, query_of_checkpoint
from spark_ext.columns._expressions import CORRUPT, quoted_name
from spark_ext.jobs._csv import SEPARATORS, read_csv
from spark_ext.jobs._formats import (
    DEFAULT_LIMIT,
    EVERY_FILE,
    BadInput,
    BatchLimit,
    Files,
    format_of,
    holds_table,
    input_of,
    names_of,
    warn_of_folders,
)
from spark_ext.jobs._json_lines import read_json
from spark_ext.tables._writers import TableConflict, checkpointed
from spark_ext.tables.sinks import read_table
from spark_ext.tables.table_formats import format_of_table, table_format, table_format_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NO_LIMIT = "36500d"
"""The age, before the newest file, at which a stream ignores a file in silence. Spark's default is a week."""
_LONGEST = 366 * 86_400
_HEADER = "a file with a header"
_MISSING = {"csv": _HEADER, "tsv": _HEADER, "json": "a line with a JSON object", "parquet": "a Parquet file"}
_REFUSED = rf"(?:{TableConflict.__name__}: |ValueError: (?=cannot continue from the checkpoint: ))(.*)"
"""The error of a table, or of a source that cannot continue from a checkpoint, inside one of Spark."""


def read_rows(
    spark: SparkSession,
    path: str | Files,
    format: str | None = None,
    *,
    stream: bool = False,
    schema: StructType | None = None,
    tolerant: bool = False,
    prefer: Sequence[str] = (),
    limit: BatchLimit = DEFAULT_LIMIT,
) -> DataFrame:
    """Read the rows of a file or folder, or of some of its files; as a stream, also files that arrive later.

    Each CSV or TSV file has a header, and the columns stay text. Each line of a text file is a ``value``. A line that
    does not fit its header, or is not JSON, is in the column ``_corrupt_record``, with the columns that could be read.
    A stream takes its schema from the files that exist when it starts, unless ``schema`` is passed. A tolerant stream
    skips the unreadable part of a file without an error. ``limit`` is the size of a stream's micro-batches.

    JSON keys that differ only in case are one column; ``prefer`` lists names for such columns.

    Raises:
        BadInput: if the files do not show the format or the columns.
    """
    has_log = None if format not in table_format_names() else table_format(format).has_log
    if has_log or ((format is None or has_log is False) and holds_table(input_of(path))):
        return read_logged_table(spark, path, format if has_log else None, stream=stream)
    if format is None:
        format = format_of(input_of(path))
    warn_of_folders(path)
    reader: Any = reader_of(spark, path, stream=stream, limit=limit)
    if tolerant:
        reader = reader.option("ignoreCorruptFiles", True).option("ignoreMissingFiles", True)
    now, names = partial(reader_of, spark, path), names_of(path)
    try:
        if format in SEPARATORS:
            df = read_csv(spark, names, format, reader, now, stream=stream, schema=schema)
        elif format == "json":
            df = read_json(spark, names, reader, now, schema=schema, prefer=prefer)
        else:
            if schema is None and stream:
                schema = now().format(format).load(names).schema
            df = (reader if schema is None else reader.schema(schema)).format(format).load(names)
        is_empty = set(df.columns) <= {CORRUPT}
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        is_empty = True
    if is_empty:
        raise BadInput(
            f"cannot read {input_of(path)}: {_MISSING[format]} is missing, which shows the columns"
        ) from None
    return df


def read_logged_table(
    spark: SparkSession, path: str | Files, format: str | None = None, *, stream: bool = False
) -> DataFrame:
    """Read a table that has a log: without the log, rows that were deleted would be read too.

    Raises:
        BadInput: if the folder is not such a table, for a stream, and for some of its files.
    """
    folder = input_of(path)
    found = format_of_table(folder) if holds_table(folder) else None
    if found is None or format not in {None, found}:
        kind = "a table with a log" if format is None else f"a table of the format {format!r}"
        raise BadInput(f"cannot read {folder}: it is not {kind}")
    if stream or not isinstance(path, str):
        raise BadInput(
            f"cannot read single files of {folder}: a table of the format {found!r} has a log and is read as a whole"
        )
    return read_table(spark, path)


def reader_of(
    spark: SparkSession, path: str | Files, *, stream: bool = False, limit: BatchLimit = DEFAULT_LIMIT
) -> Any:
    """Return a reader of a path or of files. Names of files are not patterns, and partition folders become columns."""
    if stream:
        return spark.readStream.options(**EVERY_FILE, **limit.options(), maxFileAge=_NO_LIMIT)
    if isinstance(path, str):
        return spark.read.options(**EVERY_FILE)
    reader = spark.read.options(**EVERY_FILE)
    return reader.option("basePath", path.input) if _is_folder(path.input) else reader


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
    """Read a table of any table format; return None if it is missing."""
    try:
        return read_table(spark, path)
    except AnalysisException as error:
        if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise


def write_table(df: DataFrame, path: str, mode: str, format: str, partition_by: tuple[str, ...] = ()) -> None:
    """Write the rows of a batch run as a table.

    Raises:
        BadInput: if a table exists and the mode is ``error``, or if a table of another format exists.
    """
    try:
        table_format(format).write_rows(df, path, mode, partition_by)
    except FileExistsError:
        raise BadInput(f"{path} holds results already; --overwrite replaces them") from None
    except TableConflict as error:
        raise BadInput(str(error)) from None


def check_output(tables: dict[str, DataFrame], format: str, checkpoint: str) -> None:
    """Check, before a stream starts, that its tables can be written.

    Args:
        tables: the rows by the path of their table.
        format: name of the table format.
        checkpoint: the checkpoint folder.

    Raises:
        BadInput: if a table cannot hold the columns, or if the checkpoint of an earlier stream is missing. Without it,
            the rows of the earlier stream would be written a second time.
    """
    known = table_format(format)
    try:
        for path, rows in tables.items():
            known.check_columns(rows, path)
    except TableConflict as error:
        raise BadInput(str(error)) from None
    if query_of_checkpoint(*filesystem(checkpoint)) is None:
        for path in tables:
            if known.is_streamed(path):
                raise BadInput(
                    f"cannot write to {path}: an earlier stream has written it, and its checkpoint {checkpoint} is "
                    "missing. Restore the checkpoint, or choose another output"
                )


def check_interval(interval: float | None) -> None:
    """Raise BadInput if an interval in seconds is not a time."""
    if interval is not None and not 0 <= interval <= _LONGEST:
        raise BadInput(f"interval must be 0 to {_LONGEST} seconds, got {interval}")


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
        BadInput: if a table belongs to another query, another kind of run or another format, if the checkpoint belongs
            to a stream of another source, or if the interval is not a time.
    """
    check_interval(interval)

    def named(batch: DataFrame, number: int) -> None:
        with checkpointed(checkpoint):
            write(batch, number)

    writer = df.writeStream.foreachBatch(named).option("checkpointLocation", checkpoint)
    if interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(interval * 1000)} milliseconds")
    query = writer.start()
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
    except StreamingQueryException as error:
        if is_other_source(error):
            raise BadInput(
                f"cannot continue from {checkpoint}: a stream of another format wrote it. Choose another output"
            ) from None
        refused = python_error_in(error, _REFUSED)
        if refused is None:
            raise
        raise BadInput(refused) from None
