"""Message IDs on Spark: the functions of `msgid` as PySpark columns.

A column function takes columns or their names, and returns a column. Most are built from Spark's own functions: they
run in the JVM without a Python worker, on one machine, on a cluster and over Spark Connect. The docstrings of the few
Arrow UDFs say that they need a Python worker.

On Spark 3.5, only `deduplicate` of a batch and the column functions run, without those of Iggy and Danube messages and
`check_schema`. Each other function then raises `NotImplementedError` when it is called.

- Make IDs: `position_id`, `derive_id`, `assign_id`, `assign_ids`, `generate_id`.
- Read IDs: `parse_id`, `try_parse_id`, `is_valid_id`, `id_kind`, `id_time`, `id_origin`, `time_key`.
- Convert IDs: `id_to_binary`, `id_from_binary`, `id_to_uuid`, `id_from_uuid`.
- Read and translate IDs of version 0: `parse_v0`, `try_parse_v0`, `translate_v0`, `try_translate_v0`, `v0_time`.
- Read messages and their fields: `iggy_message`, `iggy_messages` and `danube_message`, each with a variant ``try_``;
  `id_from_iggy_id`, `id_to_iggy_id`, `danube_id`, `check_schema`.
  `messages` makes one table of messages of any format; `register_message_format` adds a `MessageFormat` of your own.
- Duplicate messages: `deduplicate`, `rows_too_late`, and `process` for handlers with state. `check_checkpoint` checks
  that this release can continue a checkpoint.
- Sinks: `write_once` and `read_table` for tables of Parquet or Delta, `upsert_postgres` for PostgreSQL.
  `MissingRows` is raised if the driver does not see all written rows.
  `register_table_format` adds a `TableFormat` of your own.
- Retention: `is_expired`, `segment_report`.
- Python workers of a cluster: `WorkerError` if they lack packages, and the warning `CoreNote`.
- Find lost, duplicated and late messages: `audit` in a table, `audit_batches` in a stream, `compare` between a queue or
  producer and a table, `digest` of each side.
- SQL functions and ``format("iggy")``: `register`.

``parse_x`` raises on an invalid ID, and ``try_parse_x`` returns NULL. A function named after a field, such as
`id_time`, also returns NULL for an invalid ID. A function of an ID returns NULL for NULL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spark_ext._shipping import CoreNote, WorkerError
    from spark_ext.auditing.comparison import compare
    from spark_ext.auditing.digests import digest
    from spark_ext.auditing.spark_report import AuditReport
    from spark_ext.auditing.stream_audit import audit_batches
    from spark_ext.auditing.table_audit import audit
    from spark_ext.columns.expiry import is_expired
    from spark_ext.columns.making import assign_id, assign_ids, derive_id, generate_id, position_id
    from spark_ext.columns.message_fields import (
        id_from_iggy_id,
        id_to_iggy_id,
    )
    from spark_ext.columns.reading import (
        id_from_binary,
        id_from_uuid,
        id_origin,
        id_time,
        id_to_binary,
        id_to_uuid,
        is_valid_id,
        parse_id,
        time_key,
        try_parse_id,
    )
    from spark_ext.columns.v0 import id_kind, parse_v0, translate_v0, try_parse_v0, try_translate_v0, v0_time
    from spark_ext.formats.danube import danube_id, danube_message, try_danube_message
    from spark_ext.formats.iggy import iggy_message, iggy_messages, try_iggy_message, try_iggy_messages
    from spark_ext.formats.message_formats import FormatOption, MessageFormat, register_message_format
    from spark_ext.formats.message_table import messages
    from spark_ext.formats.schema_check import check_schema
    from spark_ext.sql.registration import register
    from spark_ext.streaming.checkpoint import OldCheckpoint, check_checkpoint
    from spark_ext.streaming.deduplicate import deduplicate, rows_too_late
    from spark_ext.streaming.process import process
    from spark_ext.tables._row_counts import MissingRows
    from spark_ext.tables._writers import TableConflict, Writer
    from spark_ext.tables.segments import segment_report
    from spark_ext.tables.sinks import read_table, write_once
    from spark_ext.tables.table_formats import TableFormat, register_table_format
    from spark_ext.tables.upsert import PostgresError, Upserted, upsert_postgres

__all__ = [
    "AuditReport",
    "CoreNote",
    "FormatOption",
    "MessageFormat",
    "MissingRows",
    "OldCheckpoint",
    "PostgresError",
    "TableConflict",
    "TableFormat",
    "Upserted",
    "WorkerError",
    "Writer",
    "assign_id",
    "assign_ids",
    "audit",
    "audit_batches",
    "check_checkpoint",
    "check_schema",
    "compare",
    "danube_id",
    "danube_message",
    "deduplicate",
    "derive_id",
    "digest",
    "generate_id",
    "id_from_binary",
    "id_from_iggy_id",
    "id_from_uuid",
    "id_kind",
    "id_origin",
    "id_time",
    "id_to_binary",
    "id_to_iggy_id",
    "id_to_uuid",
    "iggy_message",
    "iggy_messages",
    "is_expired",
    "is_valid_id",
    "messages",
    "parse_id",
    "parse_v0",
    "position_id",
    "process",
    "read_table",
    "register",
    "register_message_format",
    "register_table_format",
    "rows_too_late",
    "segment_report",
    "time_key",
    "translate_v0",
    "try_danube_message",
    "try_iggy_message",
    "try_iggy_messages",
    "try_parse_id",
    "try_parse_v0",
    "try_translate_v0",
    "upsert_postgres",
    "v0_time",
    "write_once",
]

_MODULES: Final = {
    "_shipping": "CoreNote WorkerError",
    "auditing.comparison": "compare",
    "auditing.digests": "digest",
    "auditing.spark_report": "AuditReport",
    "auditing.stream_audit": "audit_batches",
    "auditing.table_audit": "audit",
    "columns.making": "assign_id assign_ids derive_id generate_id position_id",
    "columns.reading": (
        "id_from_binary id_from_uuid id_origin id_time id_to_binary "
        "id_to_uuid is_valid_id parse_id time_key try_parse_id"
    ),
    "columns.v0": "id_kind parse_v0 translate_v0 try_parse_v0 try_translate_v0 v0_time",
    "columns.message_fields": "id_from_iggy_id id_to_iggy_id",
    "columns.expiry": "is_expired",
    "formats.iggy": "iggy_message iggy_messages try_iggy_message try_iggy_messages",
    "formats.danube": "danube_id danube_message try_danube_message",
    "formats.schema_check": "check_schema",
    "formats.message_formats": "FormatOption MessageFormat register_message_format",
    "formats.message_table": "messages",
    "streaming.checkpoint": "OldCheckpoint check_checkpoint",
    "streaming.deduplicate": "deduplicate rows_too_late",
    "streaming.process": "process",
    "tables.upsert": "PostgresError Upserted upsert_postgres",
    "tables._row_counts": "MissingRows",
    "tables._writers": "TableConflict Writer",
    "tables.segments": "segment_report",
    "tables.sinks": "read_table write_once",
    "tables.table_formats": "TableFormat register_table_format",
    "sql.registration": "register",
}
"""The module that defines each public name. A module is imported when one of its names is first used (PEP 562)."""
_IN_EVERY_VERSION: Final = ("columns.", "streaming.deduplicate")
"""The modules whose functions run on Spark 3.5 too."""
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise ImportError(f"{__name__}.{name} needs pyspark: pip install 'msgid[spark]'", name="pyspark") from None
    from spark_ext._compat import WHOLE, unsupported, version

    if version() < WHOLE and name.islower() and not _HOMES[name].startswith(_IN_EVERY_VERSION):
        return unsupported(name, WHOLE)
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
