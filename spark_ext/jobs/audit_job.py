"""The job ``audit``: the report of a table, or of the output folder of another job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_ext.auditing.table_audit import audit
from spark_ext.jobs._files import read_rows, written
from spark_ext.jobs._formats import BadInput, is_table
from spark_ext.jobs.ids_job import IDS, QUARANTINE
from spark_ext.jobs.messages_job import MESSAGES
from spark_ext.jobs.process_job import OUTPUTS
from spark_ext.streaming._processing.handling import NEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.auditing.spark_report import AuditReport


def run(spark: SparkSession, input: str, *, format: str | None = None, **columns: Any) -> AuditReport:
    """Return the report of a table.

    Args:
        spark: the session.
        input: a file or folder of rows, or the output folder of the job ``ids``, ``messages`` or ``process``.
        format: one of `spark_ext.jobs._formats.FORMATS`, or ``delta``. Default: found by the input.
        columns: the arguments of `spark_ext.audit`.

    Raises:
        BadInput: if the input does not have a column.
    """
    named = [name for value in columns.values() for name in ((value,) if isinstance(value, str) else value or ())]
    df = read_input(spark, input, format, ["id", *named])
    if df.columns == ["value"] and columns.get("id") is None and not columns.get("offset"):
        columns["id"] = "value"
    elif columns.get("id") is None:
        columns["id"] = "id"
    try:
        return audit(df, **columns)
    except ValueError as error:
        raise BadInput(str(error)) from None


def read_input(spark: SparkSession, input: str, format: str | None = None, prefer: Sequence[str] = ()) -> DataFrame:
    """Return the rows of a table, or of the table that a job has written to its output folder.

    ``prefer`` lists names for columns of JSON whose spellings differ in case.
    """
    if format is None:
        ids = _table(spark, f"{input}/{IDS}")
        if ids is not None:
            # Rows without a valid ID are in quarantine: they are rows of the table too.
            aside = _table(spark, f"{input}/{QUARANTINE}")
            return ids if aside is None else ids.unionByName(aside, allowMissingColumns=True)
        messages = _table(spark, f"{input}/{MESSAGES}")
        if messages is not None:
            return messages
        outputs = _table(spark, f"{input}/{OUTPUTS}")
        if outputs is not None:
            return outputs.where(outputs["kind"] == NEW)
    return read_rows(spark, input, format, prefer=prefer)


def _table(spark: SparkSession, path: str) -> DataFrame | None:
    """Return a table of Parquet or Delta, or None if the path is not one."""
    return written(spark, path) if is_table(path) else None
