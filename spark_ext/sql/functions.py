"""The definitions of the SQL functions: their parameters, types and text. `register` creates them in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spark_ext.columns import _crc, _v1_fields, expiry, making, message_fields, reading, v0
from spark_ext.columns._dialect import F, SqlText, sql_text
from spark_ext.columns._expressions import sql_id_text
from spark_ext.columns._moments import SECONDS
from spark_ext.sql.examples import example_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ID: Final = "ID"
"""The type of a parameter that takes an ID, as text or binary."""
_AT: Final = SECONDS
"""The type of a time: a timestamp becomes Unix seconds, and Spark rejects a date or a `timestamp_ntz`.

Spark casts an argument to the type of its parameter. Spark would read text as a timestamp in the session's time zone,
but a cast of that text to a number fails.
"""
_V1: Final = (
    "STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP, sequence: BIGINT, "
    "origin: STRING>"
)
_V0: Final = (
    "STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, "
    "counter: INT>"
)


class SqlFunction(NamedTuple):
    """An SQL function as a column function: the name in SQL is the key of `FUNCTIONS`.

    Attributes:
        function: The column function. Its text as SQL is the body, which Spark inlines.
        parameters: Type of each parameter by name.
        returns: Type of the result.
    """

    function: Callable[..., Any]
    parameters: dict[str, str]
    returns: str


class Definition(NamedTuple):
    """The parts from which Spark creates one function.

    Attributes:
        name: Name of the function.
        parameters: Names and types, as in SQL.
        body: An SQL expression of the parameters.
        comment: The first sentence of the column function's docstring, and an example, for ``DESCRIBE FUNCTION``.
        returns: Type of the result, which Spark finds in the body too.
        deterministic: Whether the same arguments always give the same result. Spark finds that in the body too.
    """

    name: str
    parameters: str
    body: str
    returns: str
    deterministic: bool = True
    comment: str = ""

    @property
    def statement(self) -> str:
        """The SQL statement that creates the function."""
        comment = self.comment.replace("\\", r"\\").replace("'", r"\'")
        head = f"CREATE OR REPLACE TEMPORARY FUNCTION {self.name}({self.parameters})"
        return f"{head} COMMENT '{comment}' RETURN {self.body}"


FUNCTIONS: Final = {
    "msgid_position": SqlFunction(
        making.position_id, {"source": "STRING", "offset": "DOUBLE", "at": _AT}, returns="STRING"
    ),
    "msgid_derive": SqlFunction(making.derive_id, {"parent": _ID, "name": "STRING"}, "STRING"),
    "msgid_derive_at": SqlFunction(making.derive_id, {"parent": _ID, "name": "STRING", "at": _AT}, "STRING"),
    "msgid_parse": SqlFunction(reading.parse_id, {"id": _ID}, _V1),
    "msgid_try_parse": SqlFunction(reading.try_parse_id, {"id": _ID}, _V1),
    "msgid_is_valid": SqlFunction(reading.is_valid_id, {"id": _ID}, "BOOLEAN"),
    "msgid_kind": SqlFunction(v0.id_kind, {"id": _ID}, "STRING"),
    "msgid_time": SqlFunction(reading.id_time, {"id": _ID}, "TIMESTAMP"),
    "msgid_mac": SqlFunction(reading.id_mac, {"id": _ID}, "STRING"),
    "msgid_origin": SqlFunction(reading.id_origin, {"id": _ID}, "STRING"),
    "msgid_time_key": SqlFunction(reading.time_key, {"id": _ID}, "BINARY"),
    "msgid_to_binary": SqlFunction(reading.id_to_binary, {"id": _ID}, "BINARY"),
    "msgid_from_binary": SqlFunction(reading.id_from_binary, {"id": _ID}, "STRING"),
    "msgid_to_uuid": SqlFunction(reading.id_to_uuid, {"id": _ID}, "STRING"),
    "msgid_from_uuid": SqlFunction(reading.id_from_uuid, {"uuid": "STRING"}, "STRING"),
    "msgid_parse_v0": SqlFunction(v0.parse_v0, {"id": _ID}, _V0),
    "msgid_try_parse_v0": SqlFunction(v0.try_parse_v0, {"id": _ID}, _V0),
    "msgid_translate_v0": SqlFunction(v0.translate_v0, {"id": _ID}, "STRING"),
    "msgid_try_translate_v0": SqlFunction(v0.try_translate_v0, {"id": _ID}, "STRING"),
    "msgid_v0_time": SqlFunction(v0.v0_time, {"id": _ID, "near": _AT, "timezone": "STRING"}, "TIMESTAMP"),
    "msgid_message_state": SqlFunction(message_fields.message_state, {"code": "BIGINT"}, "STRING"),
    "msgid_checksum_ok": SqlFunction(
        message_fields.checksum_ok, {"payload": "BINARY", "checksum": "BIGINT"}, returns="BOOLEAN"
    ),
    "msgid_from_iggy_id": SqlFunction(message_fields.id_from_iggy_id, {"id": "BINARY"}, "STRING"),
    "msgid_is_expired": SqlFunction(
        expiry.is_expired, {"timestamp": _AT, "expiry": "BIGINT", "now": _AT}, returns="BOOLEAN"
    ),
    "msgid_to_iggy_id": SqlFunction(message_fields.id_to_iggy_id, {"id": _ID}, "BINARY"),
}
# Functions that other functions call. `SHOW FUNCTIONS LIKE 'msgid*'` leaves them out.
_SHARED: Final = {
    _crc.SQL_NAME: SqlFunction(_crc.definition, {"raw": "BINARY"}, "BIGINT"),
    _v1_fields.SQL_NAME: SqlFunction(_v1_fields.fields_struct, _v1_fields.SQL_PARAMETERS, _V1),
    _v1_fields.SQL_OF_BYTES: SqlFunction(_v1_fields.struct_of_bytes, {"raw": "BINARY"}, _V1),
    v0.SQL_NAME: SqlFunction(v0.fields_struct, v0.SQL_PARAMETERS, _V0),
    v0.SQL_NAME_OF_TIME: SqlFunction(
        v0.time_of_month, {"elapsed": "BIGINT", "latest": "BIGINT", "zone": "STRING"}, "BIGINT"
    ),
}


def definitions() -> Iterator[Definition]:
    """Return the definition of each function, after those of the functions that it calls; ``msgid_assign`` is last.

    A function of an ID becomes two functions: the second converts its argument to text once, and calls the first.
    """
    for name, (function, parameters, returns) in {**_SHARED, **FUNCTIONS}.items():
        if _ID in parameters.values():
            yield from _of_ids(name, function, parameters, returns)
        else:
            yield _define(name, function, parameters, returns)
    with sql_text():
        body = str(making.assign_id_of_query())
    yield Definition("msgid_assign", "", body, "STRING", deterministic=False, comment=said_of(making.assign_id))


def _of_ids(
    name: str, function: Callable[..., Any], parameters: Mapping[str, str], returns: str
) -> tuple[Definition, Definition]:
    of_text, kinds = f"_{name}_of_text", list(parameters.values())
    declared = {parameter: "STRING" if kind == _ID else kind for parameter, kind in parameters.items()}

    def with_text(*arguments: Any) -> Any:
        texts = [sql_id_text(one) if kind == _ID else one for one, kind in zip(arguments, kinds, strict=True)]
        return F.call_function(of_text, *texts)

    return _define(of_text, function, declared, returns), _define(name, with_text, declared, returns)


def _define(name: str, function: Callable[..., Any], parameters: Mapping[str, str], returns: str) -> Definition:
    with sql_text():
        body = str(function(*(SqlText(f"{name}.{parameter}") for parameter in parameters)))
    declared = ", ".join(f"{parameter} {type}" for parameter, type in parameters.items())
    described = FUNCTIONS.get(name)
    comment = said_of(described.function if described else function)
    example = example_of(name)
    return Definition(name, declared, body, returns, comment=f"{comment} Example: {example}" if example else comment)


def said_of(function: Callable[..., Any]) -> str:
    """Return the first sentence of a function's docstring."""
    return (function.__doc__ or "").split("\n\n")[0].strip().replace("\n    ", " ")
