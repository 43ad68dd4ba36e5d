"""Columns of a table for an audit: those that are passed or known, and Arrow columns as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid import layout
from msgid._contents import codes as codes_of_contents
from msgid._contents import places_and_values
from msgid._known_tables import Columns, chosen_columns, ids_inside
from msgid._moments import UNIX_SECONDS_MIN, check_unit, last_moment, moment_of, unix_micros
from msgid._validate import INT64_MAX, INT64_MIN, in_range, integer_of_text, quote
from msgid.audit._spans import numbered
from msgid.errors import InvalidMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from numpy.typing import NDArray

LOG = "log"
"""The name of the one log of a table without a source column."""
NEVER: Final = INT64_MAX
"""The moment of a row without one; as the last of several moments, its negative."""


def audited(table: pa.Table, named: Mapping[str, Any]) -> tuple[pa.Table, Columns]:
    """Return a table, with its IDs if another column of a known table has them, and its columns.

    Args:
        table: The table.
        named: The arguments that name columns, as `msgid.audit._options.columns_in` returns them.

    Raises:
        ValueError: if the table does not have a column, or has nothing to audit.
    """
    inside = ids_inside(table.column_names, named)
    table = table if inside is None else inside.audited_rows(table)
    columns = checked_columns(table.column_names, named)
    check_joined([_has_slash(table[name]) for name in columns.source if columns.source[1:]])
    return table, columns


def _has_slash(column: pa.ChunkedArray) -> bool | None:
    may_have = is_text(column.type) or "binary" in str(column.type)
    return may_have and pc.any(pc.match_substring(_texts(column), "/")).as_py()


def check_joined(has_slash: Sequence[bool | None]) -> None:
    """Check that the names of logs, which are the values of columns joined by a '/', differ.

    Args:
        has_slash: Whether each column of the source has a value with a '/'.

    Raises:
        ValueError: if several columns have such values.
    """
    if sum(map(bool, has_slash)) > 1:
        raise ValueError("at most one column of the source may have a '/' in its values: two logs could have one name")


def checked_columns(names: Sequence[str], named: Mapping[str, Any]) -> Columns:
    """Return the columns that a caller names, and the known ones that the caller does not name.

    Args:
        names: The columns of the table.
        named: The arguments that name columns, as `msgid.audit._options.columns_in` returns them.

    Raises:
        ValueError: if the table does not have a column, or has nothing to audit.
    """
    if list(names) == ["value"] and named["id"] in (None, "id"):  # the lines of a text
        named = {**named, "id": "value"}
    columns = chosen_columns(names, {**named, **{one: _several(named[one]) for one in ("source", "content")}})
    for argument, name in columns.names.items():
        if name not in names:
            held = list(names)
            if argument == name == "id":  # the default too
                raise ValueError(f"a column named id is missing from {held}: pass `id`, or `offset` and `source`")
            raise ValueError(f"`{argument.split()[0]}` must be a column of the table, got {quote(name)}; it has {held}")
        if list(names).count(name) > 1:
            raise ValueError(
                f"`{argument.split()[0]}` must be one column of the table, got {quote(name)} several times"
            )
    if columns.id is None and columns.offset is None:
        raise ValueError("cannot audit the table: it must have IDs, or offsets, got neither")
    if columns.source and columns.offset is None:
        raise ValueError("`offset` must be a column of the table if `source` is given, got None")
    if columns.life is not None and columns.offset is None:
        raise ValueError("`offset` must be a column of the table if `life` is given, got None")
    return columns


def _several(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return tuple(name for name in ([names] if isinstance(names, str) else names) if name != "")


# --- Arrow columns as NumPy arrays --------------------------------------------------------------------------------


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its encoding: dictionaries and views as values, and UUIDs as text."""
    return pa.chunked_array([_plain(chunk) for chunk in column.chunks or [pa.array([], column.type)]])


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name != "arrow.uuid":
            return _plain(array.storage)
        return pa.array([None if one is None else str(one) for one in array.to_pylist()], pa.string())
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_dictionary(kind):
        return _large(_plain(array.dictionary)).take(array.indices)
    return _large(array) if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) else array


def _large(array: pa.Array) -> pa.Array:
    """Return text or bytes as a type that holds more than 2 GiB."""
    if is_text(array.type):
        return array.cast(pa.large_string())
    is_bytes = pa.types.is_binary(array.type) or pa.types.is_binary_view(array.type)
    return array.cast(pa.large_binary()) if is_bytes else array


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _each(column: pa.ChunkedArray, read: Callable[[Any], int | None], default: int) -> NDArray[np.int64]:
    """Return the integer of each value, or a default for NULL and values without one; equal values are read once."""
    codes, values = factorized(column)
    numbers = (*map(read, values), None)
    return np.array([default if number is None else number for number in numbers], np.int64)[codes]


def factorized(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[Any]]:
    """Return for each row the place of its value in a list of the values; NULL is -1."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64), []
    places, values = places_and_values(column)
    return places, values.to_pylist()


def offsets(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return offsets: whole numbers of 0 to 2**48 - 1, or their digits as text; -1 for any other value."""
    if pa.types.is_decimal(column.type):  # Arrow does not encode small decimals
        return _each(column.cast(pa.decimal256(76, column.type.scale)), _offset_of, -1)
    if pa.types.is_integer(column.type):
        numbers = pc.fill_null(column, 0).to_numpy()
        is_offset = pc.is_valid(column).to_numpy() & (numbers >= 0) & (numbers <= layout.OFFSET_MAX)
        return np.where(is_offset, numbers.astype(np.int64), -1)
    if is_text(column.type) or pa.types.is_null(column.type):
        return _each(column, _offset_of, -1)
    hint = "; a column of pandas with a missing value needs the type Int64" if pa.types.is_floating(column.type) else ""
    raise ValueError(f"offset must be a column of integers, got {column.type}{hint}")


def _offset_of(value: str | Decimal) -> int | None:
    number = integer_of_text(value) if isinstance(value, str) else int(value) if value % 1 == 0 else None
    return number if in_range(number, 0, layout.OFFSET_MAX) else None


def micros(name: str, column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return moments as microseconds since 1970, and `NEVER` for rows without one.

    A moment is a timestamp, a date, an integer of milliseconds since 1970 or its digits, or text that names its offset
    from UTC. A timestamp without time zone and a date are in UTC. A moment outside the years 1 to 9999 is not read.

    Raises:
        ValueError: if the column has another type, or its latest number is a time of our years in seconds.
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    if pa.types.is_timestamp(column.type):
        per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[column.type.unit]
        first, last = max(UNIX_SECONDS_MIN * per_second, INT64_MIN), min(last_moment(per_second), INT64_MAX)
        numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
        known = pc.is_valid(column).to_numpy() & (numbers >= first) & (numbers <= last)
        numbers = np.where(known, numbers, 0)
        moments = numbers // 1_000 if per_second > 1_000_000 else numbers * (1_000_000 // per_second)  # noqa: PLR2004
        return np.where(known, moments, NEVER)
    if pa.types.is_integer(column.type) or is_text(column.type) or pa.types.is_null(column.type):
        numbers_read: list[int] = []
        found = _each(column, lambda value: _moment(name, value, numbers_read), NEVER)
        check_unit(f"`{name}`", max(numbers_read, default=0), 1_000)
        return found
    raise ValueError(f"{name} must be a column of timestamps, of integers or of text, got {column.type}")


def _moment(name: str, value: Any, numbers: list[int]) -> int | None:
    """Return a moment in microseconds, or None; a number of milliseconds is added to the list."""
    try:
        micros = unix_micros(moment_of(name, value))
    except InvalidMessage:
        return None
    if not isinstance(value, str) or integer_of_text(value) is not None:
        numbers.append(micros // 1_000)
    return micros


def kind_of(type: pa.DataType) -> str:
    """Return the kind of a type: ``text`` for bytes too, one kind for all nested types, or the name of the type."""
    kinds = pa.types
    if is_text(type) or kinds.is_binary(type) or kinds.is_large_binary(type) or kinds.is_fixed_size_binary(type):
        return "text"
    tests = {"integer": kinds.is_integer, "decimal": kinds.is_decimal, "null": kinds.is_null, "nested": kinds.is_nested}
    zone = " with a time zone" if kinds.is_timestamp(type) and type.tz is not None else ""
    return next((kind for kind, test in tests.items() if test(type)), f"{str(type).partition('[')[0]}{zone}")


def check_named_by(name: str, kind: str, type: object) -> None:
    """Raise ValueError if values of a type do not name a log or a life: their text depends on the engine.

    Args:
        name: The column.
        kind: The kind of its type, of Arrow or of Spark.
        type: The type, for the error.
    """
    if kind not in ("text", "integer", "null", "date32", "date", "bool", "boolean"):
        words = f"got {quote(name)} of {type}: cast it to text"
        raise ValueError(f"`source` and `life` must be columns of text, integers or dates, {words}")


def sorted_places(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[Any]]:
    """Return for each row the place of its value in the sorted list of the values, and the list; NULL is -1."""
    codes, values = factorized(column)
    order = sorted(range(len(values)), key=values.__getitem__)
    return np.append(np.argsort(order), -1).astype(np.int64)[codes], [values[one] for one in order]


def sources(table: pa.Table, columns: Columns) -> tuple[NDArray[np.int64], list[str]]:
    """Return for each row the place of its log in a sorted list of the logs' names; -1 if a part is NULL.

    Each life of a log is a log of its own; rows whose life is NULL have the name of the log alone.
    """
    names = [*columns.source, *([] if columns.life is None else [columns.life])]
    if not names:
        return np.zeros(table.num_rows, np.int64), [LOG]
    text, values = pa.large_string(), {name: plain_column(table[name]) for name in names}
    for name, column in values.items():
        check_named_by(name, kind_of(column.type), column.type)
    slash, none, at = (pa.scalar(one, text) for one in ("/", "", "@"))
    log = pa.chunked_array([pa.repeat(pa.scalar(LOG, text), table.num_rows)])
    parts = [_texts(values[name]) for name in columns.source] or [log]
    log = pc.binary_join_element_wise(pa.scalar(columns.prefix, text), pc.binary_join_element_wise(*parts, slash), none)
    if columns.life is not None:
        suffix = pc.fill_null(pc.binary_join_element_wise(at, _texts(values[columns.life]), none), "")
        log = pc.binary_join_element_wise(log, suffix, none)
    return sorted_places(log)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column as text, as Spark writes them; bytes that are not UTF-8 become U+FFFD."""
    if not (is_text(column.type) or pa.types.is_null(column.type)) and "binary" in str(column.type):
        values = (None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist())
        return pa.chunked_array([pa.array(values, pa.large_string())])
    return column.cast(pa.large_string())


def content_codes(columns: list[pa.ChunkedArray], number: int) -> NDArray[np.int64]:
    """Return a number for each of some rows: equal if and only if the values of all columns are equal."""
    return numbered(*map(codes_of_contents, columns)) if columns else np.zeros(number, np.int64)
