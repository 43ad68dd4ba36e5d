"""The job ``audit``: the report of a table, or of the output folder of another job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_ext.auditing.table_audit import audit
from spark_ext.jobs._files import BadInput, guess_format, read_rows, written
from spark_ext.jobs.ids_job import IDS, QUARANTINE
from spark_ext.jobs.messages_job import MESSAGES
from spark_ext.jobs.process_job import OUTPUTS
from spark_ext.streaming.process import NEW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.auditing.spark_report import AuditReport

__all__ = ["read_input", "run"]


def run(spark: SparkSession, input: str, *, format: str | None = None, **columns: Any) -> AuditReport:
    """Return the report of a table.

    Args:
        spark: the session.
        input: a file or folder of rows, or the output folder of the job ``ids``, ``messages`` or ``process``.
        format: one of `spark_ext.jobs._files.FORMATS`, or ``delta``. Default: found by the input.
        columns: the arguments of `spark_ext.audit`.

    Raises:
        BadInput: if the input does not have a column.
    """
    df = read_input(spark, input, format)
    if df.columns == ["value"] and columns.get("id") is None and not columns.get("offset"):
        columns["id"] = "value"
    elif columns.get("id") is None:
        columns["id"] = "id"
    try:
        return audit(df, **columns)
    except ValueError as error:
        raise BadInput(str(error)) from None


def read_input(spark: SparkSession, input: str, format: str | None = None) -> DataFrame:
    """Return the rows of a table, or of the table that a job has written to its output folder."""
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
    if format in (None, "delta") and guess_format(input) == "text":
        table = _table(spark, input)
        if table is not None:
            return table
    return read_rows(spark, input, format)


def _table(spark: SparkSession, path: str) -> DataFrame | None:
    """Return a table of Parquet or Delta, or None if the path is not one."""
    from pyspark.errors import PySparkException

    try:
        found = written(spark, path)
        return found if found is not None and found.columns else None
    except PySparkException:
        return None
