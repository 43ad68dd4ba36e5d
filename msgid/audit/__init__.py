"""Audits: the lost, duplicated, conflicting and late messages of a table, by their IDs and positions.

>>> import pyarrow as pa
>>> from msgid.audit import audit_table
>>> table = pa.table({"topic": ["a"] * 3, "partition": [0] * 3, "offset": [4, 5, 9]})
>>> print(audit_table(table))  # doctest: +ELLIPSIS
3 messages lost in 3 rows
re-read these ranges: kafka:kafka/a/0 6 to 8
not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
severity  check            scope            count  example
error     missing_offsets  kafka:kafka/a/0      3  6 to 8

`audit_table` audits an Arrow table, `audit_file` a file and `audit_ids` IDs alone. `compare` names the messages that
were sent and did not land, and `digest` lets it read only the blocks that differ. `trace` tells the story of one
message. All need the extra ``arrow``.
`spark_ext.audit` makes the same report of a DataFrame of any size. The checks are in `CHECKS`.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgid.audit._doctor import collision_risk, doctor
    from msgid.audit._run import audit_file, audit_ids, audit_table
    from msgid.audit.comparison import compare
    from msgid.audit.definitions import CHECKS
    from msgid.audit.digests import digest, merge_digests
    from msgid.audit.options import AuditOptions, ColumnNames
    from msgid.audit.report import Report
    from msgid.audit.tracing import trace

__all__ = [
    "CHECKS",
    "AuditOptions",
    "ColumnNames",
    "Report",
    "audit_file",
    "audit_ids",
    "audit_table",
    "collision_risk",
    "compare",
    "doctor",
    "digest",
    "merge_digests",
    "trace",
]

# A module is imported when one of its names is first used (PEP 562).
_HOMES = {
    "AuditOptions": "options", "CHECKS": "definitions", "ColumnNames": "options", "Report": "report",
    "collision_risk": "_doctor", "doctor": "_doctor",
}  # fmt: skip
_OF_DUCKDB = {
    "audit_file": "_run", "audit_ids": "_run", "audit_table": "_run", "compare": "comparison",
    "digest": "digests", "merge_digests": "digests", "trace": "tracing",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name not in _OF_DUCKDB:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.version_info < (3, 11):
        raise ImportError(f"{__name__}.{name} needs Python 3.11 or later, because DuckDB 2 does")
    # A file of positions needs DuckDB alone; the import of the others takes as long as a small audit.
    needed = ("duckdb",) if name == "audit_file" else ("duckdb", "numpy", "pyarrow")
    from msgid.shared.validate import check_installed

    check_installed(f"{__name__}.{name}", "arrow", *needed)
    return getattr(import_module(f"{__name__}.{_OF_DUCKDB[name]}"), name)
