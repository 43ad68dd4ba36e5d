"""The tables that the jobs write and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from spark_ext.jobs._input import BadInput
from spark_ext.tables.sinks import read_table
from spark_ext.tables.table_formats import table_format
from spark_ext.tables.writers import TableConflict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
