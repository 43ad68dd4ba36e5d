"""Message ids on Spark, a column at a time: the functions of `msgid` as PySpark columns.

Every function takes a column or its name and gives a column. They are built from Spark's own functions, so they run in
the JVM with no Python worker, the same on one machine, on a cluster and over Spark Connect; the few that are Arrow UDFs
say so.

- Make ids: `position_id`, `derive_id`, `assign_id`, `assign_ids`, `generate_id`.
- Read them: `parse_id`, `try_parse_id`, `is_valid_id`, `id_kind`, `id_time`, `id_mac`, `id_origin`, `time_key`.
- Other forms: `id_to_binary`, `id_from_binary`, `id_to_uuid`, `id_from_uuid`.
- Version 0: `parse_v0`, `try_parse_v0`, `translate_v0`, `try_translate_v0`, `v0_time`.
- Messages around ids: `iggy_message`, `iggy_messages`, `danube_message` and their ``try_``, `iggy_id_to_id`,
  `id_to_iggy_id`, `danube_id`, `message_state`, `checksum_ok`, `normalize_name`, `check_schema`; `messages` makes one
  table of them, wherever they come from.
- Retention: `is_expired`, `segment_report`, `clean`. Messages that come twice: `deduplicate`, `rows_too_late`, and
  `process` for handlers whose reprocessing changes nothing; `write_once` for their sink.
- SQL, and ``format("iggy")``: `register`.

``parse_x`` raises on what is no id, ``try_parse_x`` gives NULL, and so do those that are named after what they give.
NULL in, NULL out.
"""

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError as _missing:
    raise ImportError(f"spark_ext needs {_missing.name}: pip install 'msgid[spark]'", name=_missing.name) from None

from spark_ext.danube import danube_id, danube_message, try_danube_message
from spark_ext.deduplication import deduplicate, rows_too_late
from spark_ext.envelopes import (
    checksum_ok,
    id_to_iggy_id,
    iggy_id_to_id,
    message_state,
    normalize_name,
    try_normalize_name,
)
from spark_ext.iggy import iggy_message, iggy_messages, try_iggy_message, try_iggy_messages
from spark_ext.making import assign_id, assign_ids, derive_id, generate_id, position_id
from spark_ext.message_table import messages
from spark_ext.processing import process
from spark_ext.reading import (
    id_from_binary,
    id_from_uuid,
    id_mac,
    id_origin,
    id_time,
    id_to_binary,
    id_to_uuid,
    is_valid_id,
    parse_id,
    time_key,
    try_parse_id,
)
from spark_ext.retention import clean, is_expired, segment_report
from spark_ext.schemas import check_schema
from spark_ext.sinks import write_once
from spark_ext.sql import register
from spark_ext.v0 import id_kind, parse_v0, translate_v0, try_parse_v0, try_translate_v0, v0_time

__all__ = [
    "assign_id",
    "assign_ids",
    "check_schema",
    "checksum_ok",
    "clean",
    "danube_id",
    "danube_message",
    "deduplicate",
    "derive_id",
    "generate_id",
    "id_from_binary",
    "id_from_uuid",
    "id_kind",
    "id_mac",
    "id_origin",
    "id_time",
    "id_to_binary",
    "id_to_iggy_id",
    "id_to_uuid",
    "iggy_id_to_id",
    "iggy_message",
    "iggy_messages",
    "is_expired",
    "is_valid_id",
    "message_state",
    "messages",
    "normalize_name",
    "parse_id",
    "parse_v0",
    "position_id",
    "process",
    "register",
    "rows_too_late",
    "segment_report",
    "time_key",
    "translate_v0",
    "try_danube_message",
    "try_iggy_message",
    "try_iggy_messages",
    "try_normalize_name",
    "try_parse_id",
    "try_parse_v0",
    "try_translate_v0",
    "v0_time",
    "write_once",
]
