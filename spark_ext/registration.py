"""The functions in SQL: `register` makes them temporary functions of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_ext.columns import _crc, expiry, making, message_fields, reading, v0
from spark_ext.columns._dialect import SqlText, sql_text
from spark_ext.formats.iggy_source import IggyDataSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "register"]

# Name in SQL: (the function, its parameters). A column function is written down as the text of SQL and inlined.
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    _crc.SQL_NAME: (_crc.definition, {"raw": "BINARY"}),  # the others call it
    "msgid_position": (making.position_id, {"source": "STRING", "offset": "BIGINT", "at": "TIMESTAMP"}),
    "msgid_derive": (making.derive_id, {"parent": "STRING", "name": "STRING"}),
    "msgid_derive_at": (making.derive_id, {"parent": "STRING", "name": "STRING", "at": "TIMESTAMP"}),
    "msgid_parse": (reading.parse_id, {"id": "STRING"}),
    "msgid_try_parse": (reading.try_parse_id, {"id": "STRING"}),
    "msgid_is_valid": (reading.is_valid_id, {"id": "STRING"}),
    "msgid_kind": (v0.id_kind, {"id": "STRING"}),
    "msgid_time": (reading.id_time, {"id": "STRING"}),
    "msgid_mac": (reading.id_mac, {"id": "STRING"}),
    "msgid_origin": (reading.id_origin, {"id": "STRING"}),
    "msgid_time_key": (reading.time_key, {"id": "STRING"}),
    "msgid_to_binary": (reading.id_to_binary, {"id": "STRING"}),
    "msgid_from_binary": (reading.id_from_binary, {"id": "BINARY"}),
    "msgid_to_uuid": (reading.id_to_uuid, {"id": "STRING"}),
    "msgid_from_uuid": (reading.id_from_uuid, {"uuid": "STRING"}),
    "msgid_parse_v0": (v0.parse_v0, {"id": "STRING"}),
    "msgid_try_parse_v0": (v0.try_parse_v0, {"id": "STRING"}),
    "msgid_translate_v0": (v0.translate_v0, {"id": "STRING"}),
    "msgid_try_translate_v0": (v0.try_translate_v0, {"id": "STRING"}),
    "msgid_v0_time": (v0.v0_time, {"id": "STRING", "near": "TIMESTAMP", "timezone": "STRING"}),
    "msgid_message_state": (message_fields.message_state, {"code": "BIGINT"}),
    "msgid_checksum_ok": (message_fields.checksum_ok, {"payload": "BINARY", "checksum": "BIGINT"}),
    "msgid_from_iggy_id": (message_fields.iggy_id_to_id, {"id": "BINARY"}),
    "msgid_is_expired": (expiry.is_expired, {"timestamp": "TIMESTAMP", "expiry": "BIGINT", "now": "TIMESTAMP"}),
    "msgid_to_iggy_id": (message_fields.id_to_iggy_id, {"id": "STRING"}),
}


def definition(name: str) -> str:
    """Write the statement that makes a function of that name."""
    function, parameters = FUNCTIONS[name]
    with sql_text():
        body = str(function(*(SqlText(f"{name}.{parameter}") for parameter in parameters)))
    declared = ", ".join(f"{parameter} {type}" for parameter, type in parameters.items())
    return f"CREATE OR REPLACE TEMPORARY FUNCTION {name}({declared}) RETURN {body}"


def assign_definition(run: str | None = None, at: float | None = None) -> str:
    """Write the statement that makes ``msgid_assign``, for a run as `assign_id` takes it."""
    with sql_text():
        return f"CREATE OR REPLACE TEMPORARY FUNCTION msgid_assign() RETURN {making.assign_id(run, at)}"


def register(spark: SparkSession) -> list[str]:
    """Make the functions known to a session's SQL, as ``msgid_parse``, ``msgid_position`` and so on.

    They are temporary: they belong to this session, and not to one that ``newSession()`` makes of it. All but
    ``msgid_generate`` are inlined into the query that uses them. ``msgid_assign()`` has a random lease for the session;
    ``msgid_generate(x)`` gives a new id for each row, whatever ``x`` is. ``format("iggy")`` is made known too.

    Parameters
    ----------
    spark : SparkSession
        classic or Connect.

    Returns
    -------
    list of str
        the functions' names.

    Examples
    --------
    >>> names = register(spark)
    >>> spark.sql("SELECT msgid_kind('7F0000010000238F000000000001E240') AS kind").show()
    +----------------+
    |            kind|
    +----------------+
    |v0-broker-offset|
    +----------------+
    """
    for name in FUNCTIONS:
        spark.sql(definition(name))
    spark.sql(assign_definition())
    spark.udf.register("msgid_generate", making.generator_udf())
    spark.dataSource.register(IggyDataSource)
    return [*FUNCTIONS, "msgid_assign", "msgid_generate"]
