"""The report of an audit with its lists as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.audit.facts import Difference, Finding, Gap, GeneratorRow, KindRow, LogRow, NodeRow, NotChecked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from msgid.audit.report import Report

_ROWS: Final[dict[str, Any]] = {
    "findings": Finding, "differences": Difference, "not_checked": NotChecked, "gaps": Gap, "logs": LogRow,
    "generators": GeneratorRow, "nodes": NodeRow, "kinds": KindRow,
}  # fmt: skip
"""The rows of each list."""
_TEXTS: Final = {
    "check", "severity", "scope", "example", "meaning", "fault", "id", "reason", "kind", "source", "node", "origin",
    "shared",
}  # fmt: skip
"""The fields that are text; ``first_time`` and ``last_time`` are times, and the others numbers."""


def _field(name: str) -> str:
    kind = "string" if name in _TEXTS else "timestamp" if name.endswith("_time") else "bigint"
    return f"{name} {kind}"


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
        if name not in _ROWS:
            return value
        return self._spark.createDataFrame([tuple(row) for row in value], ", ".join(map(_field, _ROWS[name]._fields)))

    def __str__(self) -> str:
        return str(self.local)

    def __repr__(self) -> str:
        return repr(self.local)
