"""The functions in SQL: `register` makes them temporary functions of a session."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from spark_ext.columns import _crc, expiry, making, message_fields, reading, v0
from spark_ext.columns._dialect import SqlText, sql_text
from spark_ext.formats.iggy_source import IggyDataSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "register"]

_AT: Final = "BIGINT"
"""The type of a moment: a timestamp becomes Unix seconds, and Spark refuses a date or a `timestamp_ntz`."""
_WORDS: Final = {"first": "BIGINT", "second": "BIGINT", "third": "BIGINT"}
# Spark keeps these for a function: neither the session's ANSI mode nor its time zone changes what the function returns.
_CREATED_UNDER: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}

# Name in SQL: (the function, its parameters). A column function is written as SQL text, which Spark inlines.
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "msgid_position": (making.position_id, {"source": "STRING", "offset": "DOUBLE", "at": _AT}),
    "msgid_derive": (making.derive_id, {"parent": "STRING", "name": "STRING"}),
    "msgid_derive_at": (making.derive_id, {"parent": "STRING", "name": "STRING", "at": _AT}),
    "msgid_parse": (reading.parse_id, {"id": "STRING"}),
    "msgid_try_parse": (reading.try_parse_id, {"id": "STRING"}),
    "msgid_is_valid": (reading.is_valid_id, {"id": "STRING"}),
    "msgid_kind": (v0.id_kind, {"id": "STRING"}),
    "msgid_time": (reading.id_time, {"id": "STRING"}),
    "msgid_mac": (reading.id_mac, {"id": "STRING"}),
    "msgid_origin": (reading.id_origin, {"id": "STRING"}),
    "msgid_time_key": (reading.time_key, {"id": "STRING"}),
    "msgid_to_binary": (reading.id_to_binary, {"id": "STRING"}),
    "msgid_from_binary": (reading.id_from_binary, {"id": "STRING"}),
    "msgid_to_uuid": (reading.id_to_uuid, {"id": "STRING"}),
    "msgid_from_uuid": (reading.id_from_uuid, {"uuid": "STRING"}),
    "msgid_parse_v0": (v0.parse_v0, {"id": "STRING"}),
    "msgid_try_parse_v0": (v0.try_parse_v0, {"id": "STRING"}),
    "msgid_translate_v0": (v0.translate_v0, {"id": "STRING"}),
    "msgid_try_translate_v0": (v0.try_translate_v0, {"id": "STRING"}),
    "msgid_v0_time": (v0.v0_time, {"id": "STRING", "near": "TIMESTAMP_LTZ", "timezone": "STRING"}),
    "msgid_message_state": (message_fields.message_state, {"code": "BIGINT"}),
    "msgid_checksum_ok": (message_fields.checksum_ok, {"payload": "BINARY", "checksum": "BIGINT"}),
    "msgid_from_iggy_id": (message_fields.iggy_id_to_id, {"id": "BINARY"}),
    "msgid_is_expired": (
        expiry.is_expired,
        {"timestamp": "TIMESTAMP_LTZ", "expiry": "BIGINT", "now": "TIMESTAMP_LTZ"},
    ),
    "msgid_to_iggy_id": (message_fields.id_to_iggy_id, {"id": "STRING"}),
}
# The functions that the others call.
_SHARED: Final[dict[str, tuple[Callable[..., Any], dict[str, str]]]] = {
    _crc.SQL_NAME: (_crc.definition, {"raw": "BINARY"}),
    v0.KIND_NAME: (v0.kind_of, _WORDS),
    v0.FIELDS_NAME: (v0.fields_struct, {"text": "STRING", **_WORDS}),
}


def definition(name: str) -> str:
    """Write the statement that creates a function."""
    function, parameters = {**_SHARED, **FUNCTIONS}[name]
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
    with _settings(spark, _CREATED_UNDER):
        for name in (*_SHARED, *FUNCTIONS):
            spark.sql(definition(name))
        spark.sql(assign_definition())
    spark.udf.register("msgid_generate", making.generator_udf())
    _register_source(spark)
    return [*FUNCTIONS, "msgid_assign", "msgid_generate"]


def _register_source(spark: SparkSession) -> None:
    """Make ``format("iggy")`` known. Sessions of one application share it, and Spark refuses it the second time."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(IggyDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change a session's settings while the context lasts."""
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, earlier)
