"""The report of an audit with its lists as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgid.audit.facts import Difference, Finding, Gap, GeneratorRow, KindRow, LogRow, NodeRow, NotChecked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession

    from msgid.audit.definitions import Severity
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


class _Frame:
    """A list of the report as a DataFrame."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, report: AuditReport | None, owner: type) -> DataFrame:
        if report is None:
            raise AttributeError(self._name)
        rows: list[Any] = [tuple(row) for row in getattr(report.local, self._name)]
        return report._spark.createDataFrame(rows, ", ".join(map(_field, _ROWS[self._name]._fields)))


class AuditReport:
    """The lost, repeated and late messages of a table, by their IDs and positions.

    The lists are DataFrames of bounded size: ``findings``, ``differences``, ``gaps``, ``logs``, ``generators``,
    ``nodes``, ``kinds`` and ``not_checked``. Their columns are those of `msgid.audit.Report`, which ``local`` holds.

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

    findings = _Frame()
    """The faults: ``check``, ``severity``, ``scope``, ``count``, ``example``, ``meaning``."""
    gaps = _Frame()
    """The missing ranges, largest first: ``kind``, ``scope``, ``first``, ``last``, ``count``."""
    logs = _Frame()
    """The logs, those with most faults first."""
    generators = _Frame()
    """The runs of generators, those with most missing numbers first."""
    nodes = _Frame()
    """The nodes: ``node``, ``origin``, ``generators``, ``shared``."""
    kinds = _Frame()
    """The rows by ``kind`` and ``origin``."""
    differences = _Frame()
    """The messages in which two sides differ, the lost ones first."""
    not_checked = _Frame()
    """The checks that were not made, and the reasons."""

    def __init__(self, spark: SparkSession, local: Report) -> None:
        self._spark = spark
        self.local = local
        """The report as Python values."""

    @property
    def rows(self) -> int:
        """The number of rows in the table."""
        return self.local.rows

    @property
    def notes(self) -> list[str]:
        """The limits of the table and of the report."""
        return self.local.notes

    @property
    def summary(self) -> str:
        """The numbers of findings of each severity, and of rows."""
        return self.local.summary

    def counts(self) -> dict[str, int]:
        """Return the number of findings of each severity."""
        return self.local.counts()

    @property
    def complete_until(self) -> datetime | None:
        """The moment before which all sent messages have landed; None if it is not known."""
        return self.local.complete_until

    def failures(self, fail_on: Severity = "error", allow: Mapping[str, int] | None = None) -> list[Finding]:
        """Return the findings that are at least as severe and more than allowed, largest count first."""
        return self.local.failures(fail_on, allow)

    def failure(self, fail_on: Severity = "error", allow: Mapping[str, int] | None = None) -> str | None:
        """Return one line with the number of such findings and the three largest; None without findings."""
        return self.local.failure(fail_on, allow)

    def to_openmetrics(self) -> str:
        """Return the numbers of rows and of each check as OpenMetrics text."""
        return self.local.to_openmetrics()

    def to_json(self) -> str:
        """Return the report as JSON."""
        return self.local.to_json()

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to a file of the driver if a path is given."""
        return self.local.to_html(path)

    def _repr_html_(self) -> str:
        return self.local._repr_html_()

    def __str__(self) -> str:
        return str(self.local)

    def __repr__(self) -> str:
        return repr(self.local)
