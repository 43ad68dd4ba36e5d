"""Input files and output tables of the jobs: file formats, columns by name, reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from spark_ext.columns._expressions import CORRUPT, quoted_name
from spark_ext.jobs._csv import SEPARATORS, read_csv
from spark_ext.jobs._formats import (
    EVERY_FILE,
    BadInput,
    format_of,
    holds_table,
    pattern_of,
    warn_of_folders,
)
from spark_ext.jobs._json_lines import read_json
from spark_ext.tables._writers import TableConflict
from spark_ext.tables.sinks import read_table
from spark_ext.tables.table_formats import format_of_table, table_format, table_format_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

_HEADER = "a file with a header"
_MISSING = {"csv": _HEADER, "tsv": _HEADER, "json": "a line with a JSON object", "parquet": "a Parquet file"}


def read_rows(spark: SparkSession, path: str, format: str | None = None, *, prefer: Sequence[str] = ()) -> DataFrame:
    """Read the rows of a file or folder.

    Each CSV or TSV file has a header, and the columns stay text. Each line of a text file is a ``value``. A line that
    does not fit its header, or is not JSON, is in the column ``_corrupt_record``, with the columns that could be read.

    JSON keys that differ only in case are one column; ``prefer`` lists names for such columns.

    Raises:
        BadInput: if the files do not show the format or the columns.
    """
    has_log = None if format not in table_format_names() else table_format(format).has_log
    if has_log or ((format is None or has_log is False) and holds_table(path)):
        return read_logged_table(spark, path, format if has_log else None)
    if format is None:
        format = format_of(path)
    warn_of_folders(path)
    reader, names = spark.read.options(**EVERY_FILE), pattern_of(path)
    try:
        if format in SEPARATORS:
            df = read_csv(spark, names, format, reader, lambda: spark.read.options(**EVERY_FILE))
        elif format == "json":
            df = read_json(spark, names, reader, lambda: spark.read.options(**EVERY_FILE), prefer=prefer)
        else:
            df = reader.format(format).load(names)
        is_empty = set(df.columns) <= {CORRUPT}
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        is_empty = True
    if is_empty:
        raise BadInput(f"cannot read {path}: {_MISSING[format]} is missing, which shows the columns") from None
    return df


def read_logged_table(spark: SparkSession, folder: str, format: str | None = None) -> DataFrame:
    """Read a table that has a log: without the log, rows that were deleted would be read too.

    Raises:
        BadInput: if the folder is not such a table.
    """
    found = format_of_table(folder) if holds_table(folder) else None
    if found is None or format not in {None, found}:
        kind = "a table with a log" if format is None else f"a table of the format {format!r}"
        raise BadInput(f"cannot read {folder}: it is not {kind}")
    return read_table(spark, folder)


def column_of(df: DataFrame, column: str) -> Column:
    """Return a column by its name; `BadInput` lists the names if it is missing."""
    if column not in df.columns or column == CORRUPT:
        raise BadInput(f"no column {column!r}; there are: {', '.join(name for name in df.columns if name != CORRUPT)}")
    return df[quoted_name(column)]


def written(spark: SparkSession, path: str) -> DataFrame | None:
    """Read a table of any table format; return None if it is missing."""
    try:
        return read_table(spark, path)
    except FileNotFoundError:
        return None
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
