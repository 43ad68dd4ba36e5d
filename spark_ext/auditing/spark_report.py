"""The report of an audit with its lists as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.audit.facts import LISTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from msgid.audit.report import Report

__all__ = ["AuditReport"]

_TYPES: Final = {"str": "string", "Severity": "string", "int": "bigint", "datetime": "timestamp"}
"""The types of the fields of a report's rows, by their annotation."""


def _schema(row: Any) -> str:
    kinds = {name: hint.__forward_arg__.partition(" |")[0] for name, hint in row.__annotations__.items()}
    return ", ".join(f"{name} {_TYPES[kind]}" for name, kind in kinds.items())


class AuditReport:
    """The lost, repeated and late messages of a table, by their IDs and positions.

    The lists are DataFrames of bounded size: ``findings``, ``differences``, ``gaps``, ``logs``, ``generators``,
    ``nodes``, ``kinds`` and ``not_checked``. Their columns are those of `msgid.audit.Report`. All other attributes and
    methods are those of that report, which ``local`` holds: ``summary``, ``notes``, ``failure``, ``to_json``,
    ``to_html`` and ``to_openmetrics`` among them.

    Examples
    --------
    >>> from spark_ext import audit
    >>> df = spark.createDataFrame([("0156F7E71C361B21BC024CCDBE00000007",)] * 2, ["id"])
    >>> report = audit(df)
    >>> print(report)  # doctest: +ELLIPSIS
    1 ID repeated in 2 rows
    not checked: missing_offsets and 4 others (without offsets); conflicting_ids (without content); ...
    severity  check          scope  count  example
    error     duplicate_ids  table      1  0156F7E71C361B21BC024CCDBE00000007
    >>> report.generators.select("node", "pid", "run", "ids").show()
    +-----------------+----+---+---+
    |             node| pid|run|ids|
    +-----------------+----+---+---+
    |56:f7:e7:1c:36:1b|8636|  1|  1|
    +-----------------+----+---+---+
    """

    findings: DataFrame
    """The faults: ``check``, ``severity``, ``scope``, ``count``, ``example``, ``meaning``."""
    gaps: DataFrame
    """The missing ranges, largest first: ``kind``, ``scope``, ``first``, ``last``, ``count``."""
    logs: DataFrame
    """The logs, those with most faults first."""
    generators: DataFrame
    """The runs of generators, those with most missing numbers first."""
    nodes: DataFrame
    """The nodes: ``node``, ``origin``, ``generators``, ``shared``."""
    kinds: DataFrame
    """The rows by ``kind`` and ``origin``."""
    differences: DataFrame
    """The messages in which two sides differ, the lost ones first."""
    not_checked: DataFrame
    """The checks that were not made, and the reasons."""

    def __init__(self, spark: SparkSession, local: Report) -> None:
        self._spark = spark
        self.local = local
        """The report as Python values."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.local, name)
        if name not in LISTS:
            return value
        return self._spark.createDataFrame([tuple(row) for row in value], _schema(LISTS[name]))

    def __str__(self) -> str:
        return str(self.local)

    def __repr__(self) -> str:
        return repr(self.local)
