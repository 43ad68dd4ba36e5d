"""SQL functions: `register` creates them as temporary functions of a session."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from spark_ext.columns import _crc, expiry, making, message_fields, reading, v0
from spark_ext.columns._dialect import F, SqlText, sql_text
from spark_ext.columns._expressions import sql_id_text
from spark_ext.formats.iggy_source import IggyDataSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "register"]

_ID: Final = "ID"
"""The type of a parameter that takes an ID, as text or binary."""
_AT: Final = "BIGINT"
"""The type of a time: a timestamp becomes Unix seconds, and Spark rejects a date or a `timestamp_ntz`.

Spark casts an argument to the type of its parameter. Spark would read text as a timestamp in the session's time zone,
but a cast of that text to a number fails.
"""
_AT_MICROS: Final = "DECIMAL(20, 6)"
"""The type of a time whose fraction of a second counts: Unix seconds, for the same reason."""
# Spark stores these settings with a function: the session's ANSI mode and time zone do not change its results.
_CREATED_UNDER: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}

# Name in SQL: (the function, its parameters). A column function is written as SQL text, which Spark inlines.
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "msgid_position": (making.position_id, {"source": "STRING", "offset": "DOUBLE", "at": _AT}),
    "msgid_derive": (making.derive_id, {"parent": _ID, "name": "STRING"}),
    "msgid_derive_at": (making.derive_id, {"parent": _ID, "name": "STRING", "at": _AT}),
    "msgid_parse": (reading.parse_id, {"id": _ID}),
    "msgid_try_parse": (reading.try_parse_id, {"id": _ID}),
    "msgid_is_valid": (reading.is_valid_id, {"id": _ID}),
    "msgid_kind": (v0.id_kind, {"id": _ID}),
    "msgid_time": (reading.id_time, {"id": _ID}),
    "msgid_mac": (reading.id_mac, {"id": _ID}),
    "msgid_origin": (reading.id_origin, {"id": _ID}),
    "msgid_time_key": (reading.time_key, {"id": _ID}),
    "msgid_to_binary": (reading.id_to_binary, {"id": _ID}),
    "msgid_from_binary": (reading.id_from_binary, {"id": _ID}),
    "msgid_to_uuid": (reading.id_to_uuid, {"id": _ID}),
    "msgid_from_uuid": (reading.id_from_uuid, {"uuid": "STRING"}),
    "msgid_parse_v0": (v0.parse_v0, {"id": _ID}),
    "msgid_try_parse_v0": (v0.try_parse_v0, {"id": _ID}),
    "msgid_translate_v0": (v0.translate_v0, {"id": _ID}),
    "msgid_try_translate_v0": (v0.try_translate_v0, {"id": _ID}),
    "msgid_v0_time": (v0.v0_time, {"id": _ID, "near": _AT_MICROS, "timezone": "STRING"}),
    "msgid_message_state": (message_fields.message_state, {"code": "BIGINT"}),
    "msgid_checksum_ok": (message_fields.checksum_ok, {"payload": "BINARY", "checksum": "BIGINT"}),
    "msgid_from_iggy_id": (message_fields.iggy_id_to_id, {"id": "BINARY"}),
    "msgid_is_expired": (
        expiry.is_expired,
        {"timestamp": _AT_MICROS, "expiry": "BIGINT", "now": _AT_MICROS},
    ),
    "msgid_to_iggy_id": (message_fields.id_to_iggy_id, {"id": _ID}),
}
# Functions that other functions call.
_SHARED: Final[dict[str, tuple[Callable[..., Any], dict[str, str]]]] = {
    _crc.SQL_NAME: (_crc.definition, {"raw": "BINARY"}),
    reading.SQL_NAME: (reading.fields_struct, reading.SQL_PARAMETERS),
    v0.SQL_NAME: (v0.fields_struct, v0.SQL_PARAMETERS),
}


def definitions(name: str) -> list[str]:
    """Return the SQL statements that create a function.

    A function of an ID becomes two functions: the second converts its argument to text once, and calls the first.
    """
    function, parameters = {**_SHARED, **FUNCTIONS}[name]
    if _ID not in parameters.values():
        return [_create(name, function, parameters)]
    of_text, kinds = f"{name}_of_text", list(parameters.values())
    declared = {parameter: "STRING" if kind == _ID else kind for parameter, kind in parameters.items()}

    def with_text(*arguments: Any) -> Any:
        texts = [sql_id_text(one) if kind == _ID else one for one, kind in zip(arguments, kinds, strict=True)]
        return F.call_function(of_text, *texts)

    return [_create(of_text, function, declared), _create(name, with_text, declared)]


def _create(name: str, function: Callable[..., Any], parameters: Mapping[str, str]) -> str:
    with sql_text():
        body = str(function(*(SqlText(f"{name}.{parameter}") for parameter in parameters)))
    declared = ", ".join(f"{parameter} {type}" for parameter, type in parameters.items())
    return f"CREATE OR REPLACE TEMPORARY FUNCTION {name}({declared}) RETURN {body}"


def assign_definition(run: str | None = None, at: float | None = None) -> str:
    """Return the SQL statement that creates ``msgid_assign``; the arguments are those of `assign_id`."""
    with sql_text():
        return f"CREATE OR REPLACE TEMPORARY FUNCTION msgid_assign() RETURN {making.assign_id(run, at)}"


def register(spark: SparkSession) -> list[str]:
    """Create the SQL functions ``msgid_parse``, ``msgid_position`` and so on in a session, and register ``iggy``.

    The functions are temporary: they belong to this session, and not to one that ``newSession()`` returns. All but
    ``msgid_generate`` are inlined into the query that uses them. ``msgid_assign()`` has a random lease for the session.
    ``msgid_generate(x)`` returns a new ID for each row, for any ``x``. Afterwards ``spark.read.format("iggy")`` works.

    A time is a timestamp or Unix seconds. A date or a ``timestamp_ntz`` is rejected before the query runs, the text of
    a timestamp when it is read. An ID is text or binary. Binary values of 16 or 28 printable characters are read as
    text, so convert the bytes of such version-0 IDs with ``hex``.

    Parameters
    ----------
    spark : SparkSession
        classic session, or session of Spark Connect.

    Returns
    -------
    list of str
        names of the functions.

    Raises
    ------
    NotImplementedError
        If PySpark is older than 4.0, whose SQL cannot create such functions.

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
            for statement in definitions(name):
                spark.sql(statement)
        spark.sql(assign_definition())
    spark.udf.register("msgid_generate", making.generator_udf())
    _register_source(spark)
    return [*FUNCTIONS, "msgid_assign", "msgid_generate"]


def _register_source(spark: SparkSession) -> None:
    """Register ``format("iggy")``. The sessions of an application share it, and Spark rejects a second registration."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(IggyDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for the duration of the context."""
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
