"""Read: Parquet files as a relation of DuckDB, whose types have the values of all files exactly."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from msgid.audit.duck import literal, quoted
from msgid.audit.parts import Part, Source, Unreadable, plain_error, source_of
from msgid.audit.paths import FILE_COLUMN, names_of
from msgid.shared.arrow_schema import UUID, arrow_types
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgid.audit.paths import File

_DECIMAL_DIGITS: Final = 38
_BYTES_OF_UUID: Final = "BLOB of UUID"


class Only(NamedTuple):
    """The column and the value of the rows to read."""

    name: str
    value: str


def parquet_source(
    duck: Any, name: str, files: Sequence[File], *, only: Only | None = None, aside: Sequence[File] = ()
) -> Source:
    """Return Parquet files as a source.

    Args:
        duck: The connection to DuckDB.
        name: The name in errors.
        files: The files.
        only: The column and the value of the rows to read. Default: all rows.
        aside: Further files, which may lack columns.

    Raises:
        Unreadable: if a file is not whole.
    """
    schemas = _schemas(duck, [*files, *aside])
    parts = _parts(duck, files, schemas, only)
    lacking = _parts(duck, aside, schemas, None)
    explained = partial(_reason, [*files, *aside])
    return source_of(name, parts, is_cheap=True, lacking=lacking, explained=explained)


class _Element(NamedTuple):
    """An element of a Parquet schema, which has its children behind it."""

    name: str
    type: str
    children: int
    digits: int


class _Column(NamedTuple):
    """A column of a Parquet file, and the reason why it is refused, or an empty text."""

    name: str
    type: str
    reason: str


_Schema = tuple[_Column, ...]


def _schemas(duck: Any, files: Sequence[File]) -> dict[str, _Schema]:
    """Return the columns of each file, by its path."""
    if not files:
        return {}
    text = (
        "SELECT file_name, name, duckdb_type, coalesce(num_children, 0), coalesce(precision, 0) "
        "FROM parquet_schema({}) ORDER BY file_name, column_id"
    )
    try:
        rows = duck.rows(text.format(names_of(files)))
    except duckdb.Error as error:
        raise Unreadable(_first_damaged(duck, files, text) or plain_error(error)) from None
    by_file: dict[str, list[_Element]] = {}
    for path, *cells in rows:
        by_file.setdefault(path, []).append(_Element(*cells))
    with_bytes = [file for file in files if any(one.type == "BLOB" for one in by_file[file.path])]
    arrow = _arrow_types(duck, with_bytes)
    return {path: tuple(_columns(iter(rows), arrow.get(path, {}))) for path, rows in by_file.items()}


def _first_damaged(duck: Any, files: Sequence[File], text: str) -> str | None:
    """Return the name of the first file whose end DuckDB does not read, and the reason."""
    for file in files:
        try:
            duck.rows(text.format(names_of([file])))
        except duckdb.Error as error:
            reason = _words(str(error)) or plain_error(error)
            return reason if len(files) == 1 else f"{quote(file.shown)}: {reason}"
    return None


def _columns(elements: Iterator[_Element], arrow: dict[str, str]) -> Iterator[_Column]:
    """Yield the columns of a file; ``arrow`` has the types that Parquet does not have."""
    for _ in range(next(elements).children):
        column = next(elements)
        digits, pending, reason, type = column.digits, column.children, "", column.type
        while pending:
            inner = next(elements)
            digits = max(digits, inner.digits)
            pending += inner.children - 1
        if digits > _DECIMAL_DIGITS:
            type = type if column.children else f"DECIMAL({digits})"
            reason = f"the column {quote(column.name)} is a decimal of {digits} digits: cast it to text"
        elif type == "BLOB" and arrow.get(column.name) == UUID:
            type = _BYTES_OF_UUID
        elif type == "BLOB" and column.name in arrow:
            type = arrow[column.name]
            reason = f"the column {quote(column.name)} is of {type}, which Parquet does not have: cast it to text"
        yield _Column(column.name, type, reason)


def _parts(duck: Any, files: Sequence[File], schemas: dict[str, _Schema], only: Only | None) -> list[Part]:
    groups: dict[tuple[object, ...], list[File]] = {}
    for file in files:
        groups.setdefault((schemas[file.path], file.root, file.keys), []).append(file)
    return [_part(duck, group, schemas[group[0].path], only) for group in groups.values()]


def _part(duck: Any, files: Sequence[File], schema: _Schema, only: Only | None) -> Part:
    own = FILE_COLUMN
    while own.lower() in {name.lower() for name, _, _ in schema}:
        own += "_"
    rows = f"read_parquet({names_of(files)}, filename={literal(own)}, hive_partitioning=false)"
    types: dict[str, str] = {}
    values: dict[str, str] = {}
    refused: dict[str, str] = {}
    # DuckDB renames a column whose name is empty, or that of another one in any case of letters.
    described = [name for name, *_ in duck.rows(f"DESCRIBE SELECT * FROM {rows}")]
    for (name, type, reason), known_as in zip(schema, described, strict=False):
        if reason or name in types:
            refused[name] = reason or f"it has several columns {quote(name)}"
        types[name], values[name] = type, quoted(known_as)
        if type == _BYTES_OF_UUID:
            types[name], values[name] = "UUID", f"CAST(hex({quoted(known_as)}) AS UUID)"
    for name, value in files[0].values(own).items():
        if name not in types:
            types[name], values[name] = "VARCHAR", value
    if only is not None and only.name in types:
        rows = f"{rows} WHERE CAST({values[only.name]} AS VARCHAR) = {literal(only.value)}"
    return Part(types, values, rows, refused, files=names_of(files), file=own)


def _words(text: str) -> str | None:
    """Return the reason of an error of DuckDB about a file as a whole."""
    if "too small to be a Parquet file" in text or "No magic bytes" in text or "no magic bytes" in text:
        return "it is not a Parquet file, or it is cut off"
    return None


def _reason(files: Sequence[File], error: Exception) -> str | None:
    """Return the reason of an error of DuckDB during a scan."""
    text = str(error)
    if isinstance(error, duckdb.ConversionException) and "UUID" in text:
        return "a value in a column of UUIDs is not a UUID: the files of a column must have one type"
    file = next((file for file in files if file.path in text), files[0] if len(files) == 1 else None)
    reason = _words(text) or f"it is damaged: {plain_error(error)}"
    return reason if file is None or len(files) == 1 else f"{quote(file.shown)}: {reason}"


def _arrow_types(duck: Any, files: Sequence[File]) -> dict[str, dict[str, str]]:
    """Return for each file the columns whose Arrow type is ``arrow.uuid`` or an integer of 128 bits."""
    if not files:
        return {}
    pairs = f"parquet_kv_metadata({names_of(files)})"
    rows = duck.rows(f"SELECT file_name, value FROM {pairs} WHERE key = 'ARROW:schema'::BLOB")
    return {path: arrow_types(base64.b64decode(value)) for path, value in rows}
