"""Message IDs on Spark: the functions of `msgid` as PySpark columns.

A column function takes columns or their names, and returns a column. Most are built from Spark's own functions: they
run in the JVM without a Python worker, on one machine, on a cluster and over Spark Connect. The docstrings of the few
Arrow UDFs say that they need a Python worker.

On Spark 3.5, only `deduplicate` of a batch and the column functions run, without `check_schema`. Each other function
then raises `NotImplementedError` when it is called.

Start with `position_id`, `derive_id`, `try_parse_id`, `is_valid_id`, `deduplicate`, `write_once`, `read_table`,
`upsert_postgres`, `audit` and `compare`. All functions by task:

- Make IDs: `position_id`, `derive_id`, `assign_id`, `assign_ids`, `generate_id`.
- Read IDs: `parse_id`, `try_parse_id`, `is_valid_id`, `id_kind`, `id_time`, `id_origin`, `time_key`.
- Convert IDs: `id_to_binary`, `id_from_binary`, `id_to_uuid`, `id_from_uuid`.
- Read and translate IDs of version 0: `parse_v0`, `try_parse_v0`, `translate_v0`, `try_translate_v0`, `v0_time`.
- Read messages: `messages` makes one table of messages of any format, and `check_schema` checks their payloads.
  `id_from_iggy_id` reads the ID of an Iggy message. `register_message_format` adds a `MessageFormat` of your own.
- Duplicate messages: `deduplicate`, `rows_too_late`, and `process` for handlers with state.
- Sinks: `write_once` and `read_table` for tables of Parquet, Delta or Iceberg, `upsert_postgres` for PostgreSQL.
  `register_table_format` adds a `TableFormat` of your own.
- Retention: `is_expired`, `segment_report`.
- Find lost, duplicated and late messages: `audit` in a table, `compare` between a queue or
  producer and a table, `digest` of each side. `trace` finds the rows of one message.
- SQL functions and ``format("iggy")``: `register`.

``parse_x`` raises on an invalid ID, and ``try_parse_x`` returns NULL. A function named after a field, such as
`id_time`, also returns NULL for an invalid ID. A function of an ID returns NULL for NULL.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pkgutil import get_data
from typing import Any, Final

_IN_EVERY_VERSION: Final = ("spark_ext.columns.", "spark_ext.streaming.deduplicate")
"""The modules whose functions run on Spark 3.5 too."""
# The stub has each public name once, for type checkers and for this module. A module is imported when one of its names
# is first used (PEP 562).
_HOMES: Final = {
    alias.name: str(statement.module)
    for statement in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}
"""The module that defines each public name."""
__all__ = sorted(_HOMES, key=lambda name: (not name[0].isupper(), name))  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyspark  # noqa: F401
    except ImportError:
        from msgid.shared.validate import to_install

        raise ImportError(f"{__name__}.{name} needs pyspark: {to_install('spark')}", name="pyspark") from None
    from spark_ext._compat import WHOLE, unsupported, version

    if version() < WHOLE and name.islower() and not _HOMES[name].startswith(_IN_EVERY_VERSION):
        return unsupported(name, WHOLE)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
