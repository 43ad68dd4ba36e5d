"""Write ``spark_ext/sql/functions.sql``, the SQL functions: the text of the column functions. A test compares the file.

python scripts/sql_functions.py

The column functions are the source. Here, the text of SQL takes the place of ``pyspark.sql.functions`` in their
modules. A few of their parts are replaced, because an SQL function gets its arguments in other types.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

from pyspark.sql import functions as pyspark_functions
from sql_layout import file_of
from sql_text import Functions, SqlText

from msgid import layout
from spark_ext.columns import (
    building,
    column_types,
    crc,
    expiry,
    id_text,
    identity,
    making,
    moment_columns,
    reading,
    reasons,
    v0,
)
from spark_ext.sql.registration import Definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FILE: Final = Path(__file__).parents[1] / "spark_ext" / "sql" / "functions.sql"
F: Final = Functions()
_MODULES: Final = (building, column_types, crc, expiry, id_text, identity, making, moment_columns, reading, reasons, v0)
_ID: Final = "ID"
"""The type of a parameter that takes an ID, as text or binary."""
_AT: Final = moment_columns.SECONDS
"""The type of a time: a timestamp becomes Unix seconds, and Spark rejects a date or a `timestamp_ntz`.

Spark casts an argument to the type of its parameter. Spark would read text as a timestamp in the session's time zone,
but a cast of that text to a number fails.
"""
_V1: Final = (
    "STRUCT<version: INT NOT NULL, mac: STRING, pid: INT, seconds: BIGINT, time: TIMESTAMP_LTZ, sequence: BIGINT, "
    "origin: STRING>"
)
_V0: Final = (
    "STRUCT<kind: STRING, host: STRING, port: INT, offset: BIGINT, pid: INT, loader_hash: BIGINT, elapsed_ms: BIGINT, "
    "counter: INT>"
)
_ID_LENGTHS: Final = sorted({layout.ID_LENGTH, *layout.V0_LENGTHS, *(1 + length for length in layout.V0_LENGTHS)})


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


@wraps(making.derive_id)
def _derive_at(parent: Any, name: Any, at: Any) -> Any:
    return making.derive_id(parent, name, at=at)


FUNCTIONS: Final = {
    "msgid_position": SqlFunction(
        making.position_id, {"source": "STRING", "offset": "DOUBLE", "at": _AT}, returns="STRING"
    ),
    "msgid_derive": SqlFunction(making.derive_id, {"parent": _ID, "name": "STRING"}, "STRING"),
    "msgid_derive_at": SqlFunction(_derive_at, {"parent": _ID, "name": "STRING", "at": _AT}, "STRING"),
    "msgid_parse": SqlFunction(reading.parse_id, {"id": _ID}, _V1),
    "msgid_try_parse": SqlFunction(reading.try_parse_id, {"id": _ID}, _V1),
    "msgid_is_valid": SqlFunction(reading.is_valid_id, {"id": _ID}, "BOOLEAN"),
    "msgid_kind": SqlFunction(v0.id_kind, {"id": _ID}, "STRING"),
    "msgid_time": SqlFunction(reading.id_time, {"id": _ID}, "TIMESTAMP_LTZ"),
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
    "msgid_v0_time": SqlFunction(v0.v0_time, {"id": _ID, "near": _AT, "timezone": "STRING"}, "TIMESTAMP_LTZ"),
    "msgid_from_iggy_id": SqlFunction(reading.id_from_iggy_id, {"id": "BINARY"}, "STRING"),
    "msgid_is_expired": SqlFunction(
        expiry.is_expired, {"timestamp": _AT, "expiry": "BIGINT", "now": _AT}, returns="BOOLEAN"
    ),
}
EXAMPLES: Final = {
    "msgid_position": ("msgid_position('kafka://orders/3', 1234, 1648047038)", "013B0121EF30BE0000024CCDBE000004D2"),
    "msgid_derive": (
        "msgid_derive('0156F7E71C361B21BC024CCDBE00000007', 'invoice')",
        "014FC1DBF6558F1AE2024CCDBE24D71D0F",
    ),
    "msgid_derive_at": (
        "msgid_derive_at('74b158ca-ddb3-498f-b0a9-9eec1c6197ae', 'invoice', 1648047038)",
        "01DF2BEBB496D4B448024CCDBEF5D12B8E",
    ),
    "msgid_parse": ("msgid_parse('0156F7E71C361B21BC024CCDBE00000007').pid", "8636"),
    "msgid_try_parse": ("msgid_try_parse('n/a')", None),
    "msgid_is_valid": ("msgid_is_valid('7F0000010000238F000000000001E240')", "true"),
    "msgid_kind": ("msgid_kind('7F0000010000238F000000000001E240')", "v0-broker-offset"),
    "msgid_time": ("msgid_time('0156F7E71C361B21BC024CCDBE00000007')", "2022-03-23 14:50:38"),
    "msgid_origin": ("msgid_origin('0156F7E71C361B21BC024CCDBE00000007')", "mac"),
    "msgid_time_key": ("hex(msgid_time_key('0156F7E71C361B21BC024CCDBE00000007'))", "024CCDBE0000000756F7E71C361B21BC"),
    "msgid_to_binary": (
        "hex(msgid_to_binary('0156F7E71C361B21BC024CCDBE00000007'))",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_from_binary": (
        "msgid_from_binary(X'0156F7E71C361B21BC024CCDBE00000007')",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_to_uuid": ("msgid_to_uuid('0156F7E71C361B21BC024CCDBE00000007')", "56f7e71c-361b-21bc-024c-cdbe00000007"),
    "msgid_from_uuid": (
        "msgid_from_uuid('56f7e71c-361b-21bc-024c-cdbe00000007')",
        "0156F7E71C361B21BC024CCDBE00000007",
    ),
    "msgid_parse_v0": ("msgid_parse_v0('7F0000010000238F000000000001E240').host", "127.0.0.1"),
    "msgid_try_parse_v0": ("msgid_try_parse_v0('0156F7E71C361B21BC024CCDBE00000007')", None),
    "msgid_translate_v0": (
        "msgid_translate_v0('7F0000010000238F000000000001E240')",
        "007F0000010000238F000000000001E240",
    ),
    "msgid_try_translate_v0": ("msgid_try_translate_v0('0156F7E71C361B21BC024CCDBE00000007')", None),
    "msgid_v0_time": (
        "msgid_v0_time('C0A8F001103E214D29547ACFD6E30000', 1648047038, 'UTC')",
        "2022-02-24 20:20:41.315",
    ),
    "msgid_from_iggy_id": (
        "msgid_from_iggy_id(X'AE97611CEC9EA9B08F49B3DDCA58B174')",
        "ae97611c-ec9e-a9b0-8f49-b3ddca58b174",
    ),
    "msgid_is_expired": ("msgid_is_expired(1648047038, 3600, 1648060000)", "true"),
}
"""The call and its result by the name of the function; None is NULL."""


def fields_of_v1(*parts: Any) -> Any:
    """Return the fields of a version-1 ID as a struct."""
    fields = reading.fields_of(dict(zip(reading.PARTS, parts, strict=True)))
    # A parameter alone has metadata, which makes another type of the struct: Spark would then convert each row.
    alone = ("seconds", "sequence")
    return _struct({name: field.bitwiseOR(0) if name in alone else field for name, field in fields.items()})


def fields_of_v1_bytes(raw: Any) -> Any:
    """Return the fields of the 17 bytes of an ID; NULL for NULL."""
    return F.when(raw.isNotNull(), F.call_function("_msgid_v1_fields", *reading.parts_of(raw).values()))


def fields_of_v0(*parts: Any) -> Any:
    """Return the fields of a version-0 ID as a struct."""
    return _struct({name: field for name, (field, _) in v0.fields_of(*parts).items()})


# Functions that other functions call, so that Spark computes their arguments once. `SHOW FUNCTIONS LIKE 'msgid*'`
# leaves them out.
_SHARED: Final = {
    "_msgid_word": SqlFunction(crc.word, {"raw": "BINARY"}, "BIGINT"),
    "_msgid_v1_fields": SqlFunction(fields_of_v1, reading.PARTS, _V1),
    "_msgid_v1_of_bytes": SqlFunction(fields_of_v1_bytes, {"raw": "BINARY"}, _V1),
    "_msgid_v0_fields": SqlFunction(
        fields_of_v0,
        {
            "host": "STRING",
            "kind": "STRING",
            "is_broker": "BOOLEAN",
            **dict.fromkeys(("port", "high", "low"), "BIGINT"),
        },
        _V0,
    ),
    "_msgid_time_of_month": SqlFunction(
        v0.time_of_month, {"elapsed": "BIGINT", "latest": "BIGINT", "zone": "STRING"}, "BIGINT"
    ),
}


@contextmanager
def writing_sql() -> Iterator[None]:
    """Let the column functions write SQL during the context."""
    with ExitStack() as stack:
        for module in _MODULES:
            for name, value in list(vars(module).items()):
                if isinstance(value, FunctionType | ModuleType) and value in _PARTS:
                    stack.enter_context(mock.patch.object(module, name, _PARTS[value]))
        yield


def definitions() -> Iterator[Definition]:
    """Return the definition of each function, after those of the functions that it calls.

    A function of an ID becomes two functions: the second converts its argument to text once, and calls the first.
    """
    for name, (function, parameters, returns) in {**_SHARED, **FUNCTIONS}.items():
        if _ID in parameters.values():
            yield from _of_ids(name, function, parameters, returns)
        else:
            yield _define(name, function, parameters, returns)
    for name, body, function in (
        ("msgid_assign", _assign_id_of_query, making.assign_id),
        ("msgid_generate", lambda: F.call_function("_msgid_generate", 0), making.generate_id),
    ):
        with writing_sql():
            yield Definition(name, "", str(body()), "STRING", deterministic=False, comment=said_of(function))


def _of_ids(
    name: str, function: Callable[..., Any], parameters: Mapping[str, str], returns: str
) -> tuple[Definition, Definition]:
    of_text, kinds = f"_{name}_of_text", list(parameters.values())
    declared = {parameter: "STRING" if kind == _ID else kind for parameter, kind in parameters.items()}

    def with_text(*arguments: Any) -> Any:
        texts = [_id_text(one) if kind == _ID else one for one, kind in zip(arguments, kinds, strict=True)]
        return F.call_function(of_text, *texts)

    return _define(of_text, function, declared, returns), _define(name, with_text, declared, returns)


def _define(name: str, function: Callable[..., Any], parameters: Mapping[str, str], returns: str) -> Definition:
    with writing_sql():
        body = str(function(*(SqlText(f"{name}.{parameter}") for parameter in parameters)))
    declared = ", ".join(f"{parameter} {type}" for parameter, type in parameters.items())
    described = FUNCTIONS.get(name)
    comment = said_of(described.function if described else function)
    example = example_of(name)
    return Definition(name, declared, body, returns, comment=f"{comment} Example: {example}" if example else comment)


def said_of(function: Callable[..., Any]) -> str:
    """Return the first sentence of a function's docstring."""
    return (function.__doc__ or "").split("\n\n")[0].strip().replace("\n    ", " ")


def example_of(name: str) -> str:
    """Return the example of a function in one line; nothing for a function without one."""
    if name not in EXAMPLES:
        return ""
    call, result = EXAMPLES[name]
    return f"{call} = {'NULL' if result is None else result}"


def _id_text(id: Any) -> Any:
    """Return the text of an ID that a SQL function got as a STRING, to which Spark gives the bytes of a binary value.

    Bytes and text of IDs differ in length. A text may have as many characters as an ID has bytes, but of the control
    characters it has at most tabs and line ends. Nearly all IDs' bytes have another one, or are not UTF-8: a regular
    expression reads such bytes as U+FFFD.
    """
    is_binary = F.octet_length(id).isin(*_ID_LENGTHS) & F.regexp_like(id, F.lit(r"[\x00-\x08\x0E-\x1F\x7F\uFFFD]"))
    return F.when(is_binary, F.hex(id)).otherwise(id)


def _offset(offset: Any) -> tuple[Any, Any, Any]:
    """Return an offset as a bigint, whether it is in range, and its text.

    The parameter is a DOUBLE, which keeps the fraction of an offset that is not an integer.
    """
    whole = offset.try_cast("bigint")
    shown = F.coalesce(F.when(offset == whole, whole.cast("string")), offset.cast("string"))
    return whole, whole.between(0, layout.OFFSET_MAX) & (offset == whole), shown.cast("string")


def _struct(fields: Mapping[str, Any]) -> Any:
    return F.named_struct(*(part for name, field in fields.items() for part in (F.lit(name), field)))


def _or(whole: Any, text: Any, otherwise: Any) -> Any:
    """Return a struct, NULL where ``text`` is NULL, and ``otherwise`` where the struct alone is.

    SQL cannot add a field to a struct, as the column functions do.
    """
    return whole if otherwise is None else F.coalesce(whole, F.when(text.isNotNull(), otherwise))


def _assign_id_of_query() -> Any:
    """Return `assign_id` with a node and time of their own in each call of each query.

    Spark evaluates the subquery once per query, before any task runs, so that a retried task has the same node. Each
    analysis of a query gives ``uuid()`` another seed, and each run another time.
    """
    digest = "sha2(concat(uuid(), CAST(unix_micros(now()) AS STRING)), 256)"
    origin, rest = f"{layout.ORIGINS['assigned']:X}", layout.SYNTHETIC_BITS // 4 - 1
    text = f"concat('{id_text.VERSION_1_DIGITS}', left(digest, 1), '{origin}', substring(digest, 2, {rest}))"
    node = F.expr(f"(SELECT upper({text}) FROM (SELECT {digest} AS digest FROM VALUES (0)))")
    seconds = F.expr("unix_seconds(now())") - layout.EPOCH_UNIX
    # Spark computes the text of the seconds once.
    at = building.padded_digits(seconds.bitwiseAND(layout.UINT32_MASK), 8).cast("string")
    row = lambda: building.padded_digits(making._row(), 8).cast("string")  # noqa: E731
    return F.concat(node, making._numbered(lambda: F.concat(at, row())))


_PARTS: Final[dict[Any, Any]] = {
    pyspark_functions: F,
    identity.hex_text: lambda id: id,  # the function around it converts the argument to text
    column_types.of_types: lambda *_: lambda result: result,  # the parameters have types
    moment_columns.micros_of: lambda at: F.floor(at * F.lit(moment_columns.MICROSECONDS)).try_cast("bigint"),
    moment_columns.unix_seconds_of: lambda at: F.floor(at).try_cast("bigint"),
    moment_columns.shown_moment: lambda at: F.floor(at).cast("string"),
    crc.word: lambda raw: F.call_function("_msgid_word", raw),
    v0.time_of_month: lambda *parts: F.call_function("_msgid_time_of_month", *parts),
    making._offset: _offset,
    reading._parsed: lambda text, otherwise: _or(
        F.call_function("_msgid_v1_of_bytes", id_text.v1_bytes(text)), text, otherwise
    ),
    v0._parsed: lambda text, otherwise: _or(
        F.when(id_text.is_v0(text), F.call_function("_msgid_v0_fields", *v0.parts_of(text))), text, otherwise
    ),
}
"""The parts of the column functions that SQL writes in another way."""

if __name__ == "__main__":
    FILE.write_text(file_of(definitions()), encoding="ascii")
