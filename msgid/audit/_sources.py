"""Read: files and frames, each as one relation of DuckDB with the names and types of its columns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import duckdb

from msgid.audit._parquet_files import Only, parquet_source
from msgid.audit._text_files import csv_source, json_source, text_source
from msgid.audit.definitions import FORMATS
from msgid.audit.duck import quoted
from msgid.audit.parts import NULL_TYPE, Part, Source, Unreadable, plain_error, source_of
from msgid.audit.paths import File, files_at, job_table, open_file_object, reading
from msgid.shared.validate import quote, quote_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from msgid.audit.definitions import Format

    Input = str | PathLike[str] | IO[bytes]

_NOT_DELIMITERS: Final = '"\r\n\0\ufeff'


def open_file(
    duck: Any,
    path: Input | Sequence[Input],
    *,
    format: Format | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> Source:
    """Return a file, or several files, as a source.

    Args:
        duck: The connection to DuckDB.
        path: A path, a pattern such as ``*.parquet``, a folder, a binary file that is open for reading, or a list of
            them. A folder has Parquet, CSV, JSON lines or text, or is the output of a job; hidden files are skipped.
            Folders such as ``day=1`` below it are columns of text.
        format: The format of all files. Default: by their endings, or else by their first bytes.
        delimiter: The character between two cells of CSV. Default: a comma, or a tab for TSV.
        header: Whether the first row of CSV has the names of the columns. Without it, the names are ``column0``,
            ``column1`` and so on.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file cannot be read as a table, or an argument is wrong.
        TypeError: if ``path`` is not a path, an open file or a list of them.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {quote(format)}")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in _NOT_DELIMITERS):
        raise ValueError(f"delimiter must be one character, and not a quotation mark, got {quote(delimiter)}")
    if delimiter is not None and format is None:
        format = "csv"
    paths: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
    for one in paths:
        if not isinstance(one, str | os.PathLike) and not hasattr(one, "read"):
            raise TypeError(f"path must be the path of a file, or an open file, got {quote(one)}")
    if not paths:
        raise ValueError("path must be a path or a list of paths, got an empty list")
    shown = [
        str(one) if isinstance(one, str | os.PathLike) else str(getattr(one, "name", "the open file")) for one in paths
    ]
    name = shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} others"
    if len(paths) == 1 and isinstance(paths[0], str | os.PathLike):
        folder = Path(paths[0])
        with reading(name):
            written = job_table(folder) if folder.is_dir() else None
            if written is not None:
                only = None if written.only is None else Only(*written.only)
                aside = folder / (written.aside or "")
                has_aside = written.aside is not None and any(aside.rglob("*.parquet"))
                return parquet_source(
                    duck,
                    name,
                    files_at(duck, str(folder / written.folder), "parquet"),
                    only=only,
                    aside=files_at(duck, str(aside), "parquet") if has_aside else (),
                )
    with reading(name):
        files: list[File] = []
        for one in paths:
            if isinstance(one, str | os.PathLike):
                with reading(str(one)):
                    files += files_at(duck, os.fspath(one), format)
            else:
                files.append(open_file_object(duck, one, format))
        return _source_of_files(duck, name, files, delimiter, header)


def _source_of_files(duck: Any, name: str, files: Sequence[File], delimiter: str | None, header: bool) -> Source:
    formats = dict.fromkeys(file.format for file in files)
    if len(formats) > 1:
        raise Unreadable(f"the files must have one format, got {' and '.join(formats)}")
    (format,) = formats
    if format in ("csv", "tsv"):
        return csv_source(duck, name, files, delimiter or ("," if format == "csv" else "\t"), header)
    if format == "json":
        return json_source(duck, name, files)
    if format == "text":
        return text_source(name, files)
    if format == "parquet":
        return parquet_source(duck, name, files)
    from msgid.audit._frames import arrow_files

    return arrow_files(duck, name, files)


def open_frame(duck: Any, table: Any, columns: Iterable[str] | None = None) -> Source:
    """Return a table in memory, or a list of IDs, as a source; see `msgid.audit._frames.frame_source`."""
    from msgid.audit._frames import frame_source

    return frame_source(duck, table, columns)


def read_error(source: Source, error: Exception) -> ValueError:
    """Return the error of a scan as one line that names the file, and the line where the fault is."""
    return ValueError(f"cannot read {quote_path(source.name)}: {source.explained(error) or plain_error(error)}")


def keep(duck: Any, source: Source, columns: Iterable[str]) -> Source:
    """Read some columns of a source once, and return them as a source in a temporary table.

    The columns of JSON lines have the types that all their values have: text, integers, doubles or truth values. A
    column of several kinds is text.

    Raises:
        ValueError: if a file cannot be read whole.
    """
    names = list(dict.fromkeys(columns))
    text = source.scan(names)  # checks the names
    table = duck.new_name("rows")
    has_kinds = any(part.kinds for part in source.parts)
    if has_kinds:
        text = " UNION ALL ".join(part.select(names, source.columns, with_kinds=True) for part in source.parts)
    try:
        duck.run(f"CREATE TEMP TABLE {table} AS {text}")
    except duckdb.Error as error:
        other = source.careful(error)
        if other is None:
            raise read_error(source, error) from None
        return keep(duck, other, columns)
    types = {name: source.columns[name] for name in names}
    values = {name: quoted(name) for name in names}
    numbers: set[str] = set()
    if has_kinds and names:
        for name, kinds in zip(names, _kinds(duck, table, names), strict=True):
            types[name] = _type_of_json(duck, table, name, kinds)
            if types[name] == NULL_TYPE:
                values[name] = "NULL"
            elif types[name] != "VARCHAR":
                values[name] = f"CAST({quoted(name)} AS {types[name]})"
            elif "DOUBLE" in kinds or (kinds and kinds <= {"BIGINT", "UBIGINT"}):  # of more than 64 bits, too
                numbers.add(name)
    kept = source_of(source.name, [Part(types, values, table)], is_cheap=True, explained=source.explained)
    return Source(**{**vars(kept), "numbers": frozenset(numbers)})


def _kinds(duck: Any, table: str, names: Sequence[str]) -> list[set[str]]:
    """Return the kinds of the values of JSON in each column, without NULL."""
    lists = ", ".join(f"list(DISTINCT CAST(kind_{index} AS VARCHAR))" for index in range(len(names)))
    (row,) = duck.rows(f"SELECT {lists} FROM {table}")
    return [{kind for kind in kinds or () if kind not in (None, "NULL")} for kinds in row]


def _type_of_json(duck: Any, table: str, name: str, kinds: set[str]) -> str:
    """Return the type that has all values of a column of JSON exactly."""
    if not kinds:
        return NULL_TYPE
    if kinds == {"BOOLEAN"}:
        return "BOOLEAN"
    type = "BIGINT" if kinds <= {"BIGINT", "UBIGINT"} else "DOUBLE" if kinds == {"DOUBLE"} else None
    if type is None:
        return "VARCHAR"
    value = quoted(name)
    rounded = f"CAST(TRY_CAST({value} AS {type}) AS VARCHAR) IS DISTINCT FROM {value}"
    return "VARCHAR" if duck.rows(f"SELECT 1 FROM {table} WHERE {rounded} LIMIT 1") else type
