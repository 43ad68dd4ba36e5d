# The public names of the package, by the modules that define them. `__init__.py` reads this file too.

from spark_ext.auditing.comparison import compare as compare
from spark_ext.auditing.comparison import digest as digest
from spark_ext.auditing.table_audit import audit as audit
from spark_ext.auditing.tracing import trace as trace
from spark_ext.columns.expiry import is_expired as is_expired
from spark_ext.columns.making import (
    assign_id as assign_id,
    assign_ids as assign_ids,
    derive_id as derive_id,
    generate_id as generate_id,
    position_id as position_id,
)
from spark_ext.columns.reading import (
    id_from_binary as id_from_binary,
    id_from_iggy_id as id_from_iggy_id,
    id_from_uuid as id_from_uuid,
    id_origin as id_origin,
    id_time as id_time,
    id_to_binary as id_to_binary,
    id_to_uuid as id_to_uuid,
    is_valid_id as is_valid_id,
    parse_id as parse_id,
    time_key as time_key,
    try_parse_id as try_parse_id,
)
from spark_ext.columns.v0 import (
    id_kind as id_kind,
    parse_v0 as parse_v0,
    translate_v0 as translate_v0,
    try_parse_v0 as try_parse_v0,
    try_translate_v0 as try_translate_v0,
    v0_time as v0_time,
)
from spark_ext.formats.message_formats import (
    FormatOption as FormatOption,
    MessageFormat as MessageFormat,
    register_message_format as register_message_format,
)
from spark_ext.formats.message_table import check_schema as check_schema
from spark_ext.formats.message_table import messages as messages
from spark_ext.sql.registration import register as register
from spark_ext.streaming.deduplicate import (
    deduplicate as deduplicate,
    rows_too_late as rows_too_late,
)
from spark_ext.streaming.process import process as process
from spark_ext.tables.writers import TableConflict as TableConflict
from spark_ext.tables.segments import segment_report as segment_report
from spark_ext.tables.sinks import (
    read_table as read_table,
    write_once as write_once,
)
from spark_ext.tables.table_formats import (
    TableFormat as TableFormat,
    register_table_format as register_table_format,
)
from spark_ext.tables.upsert import (
    PostgresError as PostgresError,
    upsert_postgres as upsert_postgres,
)
