"""The job ``audit``: the report of a table, or of the output folder of another job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from msgid.shared.known_tables import JOB_TABLES, beside_job_tables
from spark_ext.auditing.comparison import compare
from spark_ext.auditing.table_audit import audit
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.reasons import CORRUPT, CORRUPT_REASON
from spark_ext.jobs._input import BadInput, check_ending, files_in, is_table, read_rows
from spark_ext.jobs._output import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.auditing.spark_report import AuditReport


def run(
    spark: SparkSession,
    input: str,
    sent: str | None = None,
    *,
    format: str | None = None,
    digests: tuple[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    **columns: Any,
) -> AuditReport:
    """Return the report of a table, or of its comparison with another.

    Args:
        spark: the session.
        input: a file or folder of rows, or the output folder of the job ``ids`` or ``messages``.
        sent: a table of the messages that were sent, with which the input is compared.
        format: one of `spark_ext.jobs._input.FORMATS`, or ``delta``. Default: found by the input.
        digests: the folders of the digests of ``sent`` and of the input.
        options: options of Spark's reader of CSV.
        columns: the arguments of `spark_ext.audit` or `spark_ext.compare`.

    Raises:
        BadInput: if the input does not have a column.
    """
    df = read_input(spark, input, format, options=options)
    columns["id"] = columns.get("id") or "id"
    try:
        if sent is None:
            return audit(df, **columns)
        both_digests = None if digests is None else (read_input(spark, digests[0]), read_input(spark, digests[1]))
        return compare(read_input(spark, sent, options=options), df, digests=both_digests, **columns)
    except ValueError as error:
        raise BadInput(str(error)) from None


def read_input(
    spark: SparkSession, input: str, format: str | None = None, *, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the rows of a table, or of the table that a job has written to its output folder."""
    for known in JOB_TABLES if format is None else ():
        rows = _table(spark, f"{input}/{known.folder}")
        if rows is None:
            continue
        other = beside_job_tables(files_in(input) or ())
        if other is not None:
            raise BadInput(
                f"cannot read {input}: it has the table {known.folder!r} of a job and {other!r}: pass one of them"
            )
        if known.only is not None:
            rows = rows.where(rows[known.only[0]] == known.only[1])
        aside = None if known.aside is None else _table(spark, f"{input}/{known.aside}")
        return rows if aside is None else rows.unionByName(aside, allowMissingColumns=True)
    if format is None:
        check_ending(input)
    return _whole_rows(read_rows(spark, input, format, options))


def _whole_rows(df: DataFrame) -> DataFrame:
    """Return the rows of files; a line that does not fit the format is one row without values, but for its text."""
    if CORRUPT not in df.columns:
        return df
    is_whole = F.col(CORRUPT).isNull()
    cells = [name for name in df.columns if name not in (CORRUPT, CORRUPT_REASON)]
    return df.withColumns({name: F.when(is_whole, F.col(quoted_name(name))) for name in cells})


def _table(spark: SparkSession, path: str) -> DataFrame | None:
    """Return a table of Parquet or Delta, or None if the path is not one."""
    return written(spark, path) if is_table(path) else None
