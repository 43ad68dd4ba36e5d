"""Read: CSV, TSV, JSON lines and lines of text as relations of DuckDB, without guessing a type."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from msgid.audit.duck import literal
from msgid.audit.parts import Part, Source, Unreadable, plain_error, source_of
from msgid.audit.paths import CUT, FILE_COLUMN, NOT_TEXT, names_of, reading, spooled_copy
from msgid.shared.validate import quote, quote_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgid.audit.paths import File

LINE_LIMIT: Final = 2_000_000
"""Bytes of the longest row of CSV, as DuckDB sets it."""
_JSON_LINE_LIMIT: Final = 1 << 21
_NAMES_LIMIT: Final = 100_000
"""The most names that the objects of JSON lines may have in all."""
_NO_CELL: Final = "\x02no cell\x02"
"""The text that DuckDB takes for NULL, so that an empty cell differs from a missing one."""
_NO_DELIMITER: Final = "\x01\x02\x03\x04"
"""The text between two cells of a line of text, which has one cell; the longest that DuckDB takes."""
_MORE: Final = "more"
"""A column for cells that are too many."""
_CELLS_LIMIT: Final = 10_000
"""The most columns of CSV."""
_NO_QUOTED_BREAKS: Final = "does not support null_padding in conjunction with quoted new lines"


class _Header(NamedTuple):
    """The first row of a CSV file, and what its first bytes tell about the others."""

    names: tuple[str, ...]
    line_end: str
    has_breaks: bool
    """Whether a cell has a line break."""
    size: int = 0
    """The bytes of the first row, if one of its cells has a line break."""


# --- CSV -----------------------------------------------------------------------------------------------------------


def csv_source(
    duck: Any, name: str, files: Sequence[File], delimiter: str, header: bool, *, one_thread: bool = False
) -> Source:
    """Return CSV files as a source: all columns are text, and an empty cell is NULL.

    DuckDB reads a row as Python's `csv` reads it in strict mode, or refuses the file. Two rules differ: a space between
    a delimiter and a quotation mark is not part of the cell, and all lines must end alike. A file whose cells have line
    breaks is read by one thread, which does not see each fault, so that Python's `csv` checks it first.

    Args:
        duck: The connection to DuckDB.
        name: The name in errors.
        files: The files.
        delimiter: The character between two cells.
        header: Whether the first row has the names. Without it, they are ``column0``, ``column1`` and so on.
        one_thread: Whether one thread reads, as cells with line breaks need it.

    Raises:
        Unreadable: if a file does not have a header, or is malformed.
    """
    groups: dict[tuple[object, ...], list[File]] = {}
    headers: dict[tuple[object, ...], _Header] = {}
    for file in files:
        try:
            first = _header(file, delimiter, header)
        except Unreadable as error:
            raise Unreadable(_of_file(files, file, str(error))) from None
        if one_thread or first.has_breaks:
            first = first._replace(has_breaks=True)
            fault = _first_fault(file, delimiter)
            if fault is not None:
                raise Unreadable(_of_file(files, file, fault))
        has_names, readable = header, file
        if first.size:
            has_names, readable = True, _with_plain_header(duck, file, first, delimiter, header)
            first = first._replace(line_end=first.line_end or "\n")
        key = (*first[:3], has_names, readable.compression, readable.root, readable.keys)
        groups.setdefault(key, []).append(readable)
        headers[key] = first
    parts = [_csv_part(group, headers[key], delimiter, bool(key[3])) for key, group in groups.items()]

    def careful(error: Exception) -> Source | None:
        if one_thread or _NO_QUOTED_BREAKS not in str(error):
            return None
        with reading(name):
            return csv_source(duck, name, files, delimiter, header, one_thread=True)

    explained = partial(_csv_reason, files, delimiter)
    return source_of(name, parts, is_cheap=False, explained=explained, careful=careful)


def _with_plain_header(duck: Any, file: File, first: _Header, delimiter: str, has_names: bool) -> File:
    """Return a copy of a file, whose first line is a header without line breaks.

    DuckDB would take the first break in a cell for the end of each line, and loses a header behind a byte order mark.
    """
    with file.open() as stream:
        start = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        if has_names:
            stream.read(first.size - len(start))
            start = b""
        header = delimiter.join(f"cell{number}" for number in range(len(first.names))) + (first.line_end or "\n")
        return spooled_copy(duck, file, header.encode() + start, stream)


def _header(file: File, delimiter: str, has_names: bool) -> _Header:
    """Return the first row of a CSV file."""
    size = 1 << 16
    while True:
        with file.open() as stream:
            data = stream.read(size)
        is_whole = len(data) < size
        header = _header_of(_text_of(data, is_whole), delimiter, has_names, is_whole)
        if header is not None:
            return header
        if size > LINE_LIMIT:
            raise Unreadable(f"line 1 is longer than {LINE_LIMIT:,} bytes")
        size *= 8


def _text_of(data: bytes, is_whole: bool) -> str:
    if b"\0" in data[:1024]:
        raise Unreadable(NOT_TEXT)
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data, is_whole)
    except UnicodeDecodeError as error:
        line = len(data[: error.start].splitlines()) or 1
        raise Unreadable(f"{NOT_TEXT}: line {line:,}") from None


def _header_of(text: str, delimiter: str, has_names: bool, is_whole: bool) -> _Header | None:
    """Return the first row of a text; None if the text ends before the row."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    try:
        cells = next(reader)
    except StopIteration:
        raise Unreadable(f"it is empty: it must have {'a header' if has_names else 'a row'}") from None
    except csv.Error as error:
        if not is_whole:
            return None
        if len(lines[0]) > LINE_LIMIT:  # the process decides whether the reader of CSV refuses it
            raise Unreadable(f"line 1 is longer than {LINE_LIMIT:,} bytes") from None
        raise Unreadable(f"the row that begins at line 1 is not CSV: {error}") from None
    if reader.line_num == len(lines) and not is_whole:
        return None
    if not cells:
        raise Unreadable(f"line 1 is empty: it must be {'the header' if has_names else 'a row'}")
    last = lines[reader.line_num - 1]
    line_end = last[len(last.rstrip("\r\n")) :]
    if sum(map(len, lines[: reader.line_num])) > LINE_LIMIT:
        raise Unreadable(f"line 1 is longer than {LINE_LIMIT:,} bytes")
    if len(cells) > _CELLS_LIMIT:
        raise Unreadable(f"it has {len(cells):,} columns, and more than {_CELLS_LIMIT:,} are not read")
    first_lines = reader.line_num
    has_breaks, rows = first_lines > 1, 1
    try:
        for rows, _ in enumerate(reader, 2):
            has_breaks = has_breaks or reader.line_num > rows
    except csv.Error:
        pass  # DuckDB names the line, or this is the row that is cut off
    names = cells if has_names else [f"column{number}" for number in range(len(cells))]
    size = len("".join(lines[:first_lines]).encode()) if first_lines > 1 else 0
    return _Header(tuple(names), line_end, has_breaks, size)


def _csv_part(files: Sequence[File], header: _Header, delimiter: str, has_names: bool) -> Part:
    cells = [f"cell{number}" for number in range(len(header.names))]
    types: dict[str, str] = {}
    values: dict[str, str] = {}
    refused: dict[str, str] = {}
    for name, cell in zip(header.names, cells, strict=True):
        if name in types:
            refused[name] = f"it has several columns {quote(name)}"
        types[name], values[name] = "VARCHAR", f"nullif({cell}, '')"
    for name, value in files[0].values().items():
        if name not in types:
            types[name], values[name] = "VARCHAR", value
    columns = ", ".join(f"{literal(one)}: 'VARCHAR'" for one in [*cells, _MORE])
    options = {
        "auto_detect": False,
        "header": has_names,
        "delim": delimiter,
        "quote": '"',
        "escape": '"',
        "strict_mode": True,
        "null_padding": True,
        "nullstr": _NO_CELL,
        "parallel": not header.has_breaks,
        "compression": files[0].compression,
        "filename": FILE_COLUMN,
        "hive_partitioning": False,
    }
    read = _reader("read_csv", files, options, columns)
    has_nul = " OR ".join(f"contains({cell}, chr(0))" for cell in cells)
    # The text of an error has the path of the file after the words.
    checked = (
        f"CASE WHEN {_MORE} IS NOT NULL OR {cells[-1]} IS NULL THEN error('{_CELLS} ' || {FILE_COLUMN}) "
        f"WHEN {has_nul} THEN error('{_NUL} ' || {FILE_COLUMN}) ELSE true END"
    )
    return Part(types, values, f"{read} WHERE {checked}", refused)


def _reader(function: str, files: Sequence[File], options: dict[str, Any], columns: str) -> str:
    settings = ", ".join(f"{name}={literal(value)}" for name, value in options.items())
    return f"{function}({names_of(files)}, {settings}, columns={{{columns}}})"


_CELLS: Final = "msgid: wrong number of cells:"
_NUL: Final = "msgid: NUL:"
_OF_FILE: Final = re.compile(rf"^\s*file = (.*)$|(?:{_CELLS}|{_NUL}) (.*)$", re.MULTILINE)
_AT_LINE: Final = re.compile(r"CSV Error on Line: (\d+)")


def _of_compression(text: str) -> str | None:
    return CUT if "GZIP" in text else None


def _named_file(files: Sequence[File], text: str) -> File | None:
    """Return the file that an error names, or the only one."""
    match = _OF_FILE.search(text)
    path = None if match is None else match[1] or match[2]
    return next((file for file in files if file.path == path), files[0] if len(files) == 1 else None)


def _of_file(files: Sequence[File], file: File | None, reason: str) -> str:
    return reason if file is None or len(files) == 1 else f"{quote_path(file.shown)}: {reason}"


def _csv_reason(files: Sequence[File], delimiter: str, error: Exception) -> str | None:
    text = str(error)
    if _of_compression(text):
        return _of_compression(text)
    file = _named_file(files, text)
    line = _AT_LINE.search(text)
    if line is not None and file is not None and _has_lines(file, int(line[1])):
        reason = _line_reason(text, int(line[1]))
        if reason is not None:
            return _of_file(files, file, reason)
    for one in files if file is None else [file]:
        reason = _first_fault(one, delimiter)
        if reason is not None:
            return _of_file(files, one, reason)
    return None if line is None or file is None else _of_file(files, file, _line_reason(text, int(line[1])) or "")


def _has_lines(file: File, number: int) -> bool:
    """Return whether no row before a line has a line break in a cell: DuckDB counts such a row as one line."""
    with file.open() as stream:
        return not any(line.count(b'"') & 1 for line in islice(stream, number - 1))


def _line_reason(text: str, line: int) -> str | None:
    """Return the reason of an error of DuckDB that has the number of the line."""
    row = f"the row that begins at line {line:,}"
    expected = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if "unterminated quote" in text:
        return f"{row} is not CSV: a quotation mark is not closed, or text follows it"
    if "Invalid unicode" in text:
        return f"{NOT_TEXT}: line {line:,}"
    if expected is not None:
        return f"{row} must have {int(expected[1]) - 1:,} cells, got more"
    if "aximum line size" in text:
        return f"{row} is longer than {LINE_LIMIT:,} bytes"
    return None


def _first_fault(file: File, delimiter: str) -> str | None:
    """Return the first fault of a CSV file that DuckDB has refused, as Python's `csv` finds it; None without one."""
    ends: list[str] = []

    def lines(stream: IO[bytes]) -> Iterator[str]:
        for line in io.TextIOWrapper(stream, "utf-8-sig", "replace", newline=""):
            ends[:] = [line[len(line.rstrip("\r\n")) :]]
            yield line

    width, line_end, limit = 0, "", csv.field_size_limit(2 * LINE_LIMIT)
    try:
        with file.open() as stream:
            reader = csv.reader(lines(stream), delimiter=delimiter, strict=True)
            while True:
                line = reader.line_num + 1
                row = next(reader, None)
                if row is None:
                    return None
                width, line_end = width or len(row), line_end or ends[0]
                where = f"the row that begins at line {line:,}"
                if row and len(row) != width:
                    return f"{where} must have {width:,} cells, got {len(row):,}"
                if any("\0" in cell for cell in row):
                    return f"{where} has a NUL character"
                if ends[0] not in ("", line_end):
                    return f"{where} ends with {ends[0]!a}, and the first one with {line_end!a}"
    except csv.Error as error:
        return f"the row that begins at line {line:,} is not CSV: {error}"
    finally:
        csv.field_size_limit(limit)


# --- Lines of text, and of JSON --------------------------------------------------------------------------------------


def _lines(files: Sequence[File], null: str) -> str:
    """Return the text of a table expression with one row per line: the column ``line``."""
    options = {
        "auto_detect": False,
        "header": False,
        "delim": _NO_DELIMITER,
        "quote": "",
        "escape": "",
        "strict_mode": True,
        "nullstr": null,
        "max_line_size": _JSON_LINE_LIMIT,
        "compression": files[0].compression,
        "filename": FILE_COLUMN,
        "hive_partitioning": False,
    }
    return _reader("read_csv", files, options, "'line': 'VARCHAR'")


def text_source(name: str, files: Sequence[File]) -> Source:
    """Return text with one ID per line as a source with the column ``value``."""
    parts = []
    for group in _groups(files):
        checked = f"CASE WHEN contains(line, chr(0)) THEN error('{_NUL} ' || {FILE_COLUMN}) ELSE true END"
        rows = f"{_lines(group, '')} WHERE {checked}"
        values = {
            "value": "coalesce(line, '')",
            **{key: one for key, one in group[0].values().items() if key != "value"},
        }
        parts.append(Part(dict.fromkeys(values, "VARCHAR"), values, rows))
    return source_of(name, parts, is_cheap=False, explained=partial(_text_reason, files))


def _groups(files: Sequence[File]) -> list[list[File]]:
    """Return the files that one call of DuckDB's reader reads: they have one compression, and end their lines alike."""
    groups: dict[tuple[object, ...], list[File]] = {}
    for file in files:
        with file.open() as stream:
            head = stream.read(1 << 16)
        _text_of(head, is_whole=False)
        line_end = re.search(rb"\r\n?|\n", head)
        groups.setdefault((line_end and line_end[0], file.compression, file.root, file.keys), []).append(file)
    return list(groups.values())


def _text_reason(files: Sequence[File], error: Exception) -> str | None:
    text = str(error)
    if _of_compression(text):
        return _of_compression(text)
    file = _named_file(files, text)
    line = _AT_LINE.search(text)
    if line is not None and file is not None:
        number = int(line[1])
        if "Invalid unicode" in text:
            return _of_file(files, file, f"{NOT_TEXT}: line {number:,}")
        if "Expected Number of Columns" in text:
            return _of_file(files, file, f"line {number:,} has the control characters U+0001 to U+0004")
        if "aximum line size" in text:
            return _of_file(files, file, f"line {number:,} is longer than {_JSON_LINE_LIMIT:,} bytes")
    for one in files if file is None else [file]:
        reason = _first_bad_line(one)
        if reason is not None:
            return _of_file(files, one, reason)
    return None


def _first_bad_line(file: File) -> str | None:
    first = ""
    with file.open() as stream:
        for number, line in enumerate(io.TextIOWrapper(stream, "utf-8-sig", "replace", newline=""), 1):
            end = line[len(line.rstrip("\r\n")) :]
            first = first or end
            if "\0" in line:
                return f"line {number:,} has a NUL character"
            if end not in ("", first):
                return f"line {number:,} ends with {end!a}, and the first one with {first!a}"
    return None


@dataclass(frozen=True)
class JsonPart(Part):
    """Rows of JSON lines, where each line is parsed once for all columns of a query.

    Attributes:
        pointers: The JSON pointer of each column, as a literal of SQL.
    """

    pointers: dict[str, str] = field(default_factory=dict)

    def rows_of(self, names: Sequence[str], *, with_kinds: bool) -> str:
        """Return the text of a table expression with the value of each column, its kind, and the path of the file."""
        extracted = [name for name in names if name in self.pointers]
        if not extracted:
            return self.rows
        pointers = ", ".join(self.pointers[name] for name in extracted)
        functions = (
            {"value": "json_extract_string", "kind": "json_type"} if with_kinds else {"value": "json_extract_string"}
        )
        parsed = ", ".join(f"{function}(line, [{pointers}]) AS {each}s" for each, function in functions.items())
        indexes = {name: index for index, name in enumerate(self.pointers)}
        members = ", ".join(
            f"{each}s[{n}] AS {_member(each, indexes[name])}"
            for each in functions
            for n, name in enumerate(extracted, 1)
        )
        return f"(SELECT {members}, {FILE_COLUMN} FROM (SELECT {parsed}, {FILE_COLUMN} FROM {self.rows}))"


def _member(each: str, index: int) -> str:
    return f"{each}_{index}"


def json_source(duck: Any, name: str, files: Sequence[File]) -> Source:
    """Return JSON lines as a source, one object per line; its columns are text until `msgid.audit._sources.keep`.

    Raises:
        Unreadable: if a line is not one object, or has a name twice, or there are too many names.
    """
    parts = []
    for group in _groups(files):
        lines = f"{_lines(group, _NO_CELL)} WHERE trim(line, ' \t') <> ''"
        names = _names_of_objects(duck, group, lines)
        pointers = {one: literal("/" + one.replace("~", "~0").replace("/", "~1")) for one in names}
        values = {one: _member("value", index) for index, one in enumerate(names)}
        values |= {key: one for key, one in group[0].values().items() if key not in values}
        kinds = {one: _member("kind", index) for index, one in enumerate(names)}
        parts.append(JsonPart(dict.fromkeys(values, "VARCHAR"), values, lines, kinds=kinds, pointers=pointers))
    return source_of(name, parts, is_cheap=False, lacking_is_null=True, explained=partial(_json_reason, files))


def _names_of_objects(duck: Any, files: Sequence[File], lines: str) -> list[str]:
    """Return the names of the objects of JSON lines: those of the first object in its order, and then the others."""
    keys = duck.new_name("names")
    try:
        duck.run(f"CREATE TEMP TABLE {keys} AS SELECT DISTINCT json_keys(line) AS names FROM {lines}")
    except duckdb.Error as error:
        raise Unreadable(_json_reason(files, error) or plain_error(error)) from None
    names = duck.rows(f"SELECT DISTINCT unnest(names) AS name FROM {keys} ORDER BY name LIMIT {_NAMES_LIMIT + 1}")
    ((has_repeated, has_empty),) = duck.rows(
        f"SELECT coalesce(bool_or(len(list_distinct(names)) <> len(names)), false), "
        f"coalesce(bool_or(len(names) = 0), false) FROM {keys}"
    )
    duck.run(f"DROP TABLE {keys}")
    if has_empty:  # an empty object, or another value
        has_empty = bool(duck.rows(f"SELECT 1 FROM {lines} AND json_type(line) <> 'OBJECT' LIMIT 1"))
    if has_repeated or has_empty:
        raise Unreadable(_json_reason(files, None) or "a line is not one JSON object")
    if len(names) > _NAMES_LIMIT:
        raise Unreadable(f"its objects have more than {_NAMES_LIMIT:,} different names")
    distinct = dict.fromkeys(name for (name,) in names)
    first = [name for name in _first_names(files[0]) if name in distinct]
    return list(dict.fromkeys([*first, *distinct]))


def _first_names(file: File) -> list[str]:
    with file.open() as stream:
        head = stream.read(1 << 16)
    for line in _text_of(head, is_whole=False).splitlines():
        if line.strip():
            try:
                return list(json.loads(line))
            except (ValueError, RecursionError):
                return []
    return []


def _json_reason(files: Sequence[File], error: Exception | None) -> str | None:
    text = str(error)
    if error is not None and ("Invalid unicode" in text or "aximum line size" in text or _of_compression(text)):
        return _text_reason(files, error)
    for file in files:
        reason = _first_bad_object(file) or _first_bad_line(file)
        if reason is not None:
            return _of_file(files, file, reason)
    return None


def _first_bad_object(file: File) -> str | None:
    """Return the first line that is not one object with different names, as Python reads it; None without one."""
    with file.open() as stream:
        for number, line in enumerate(io.TextIOWrapper(stream, "utf-8-sig", "replace", newline=""), 1):
            if not line.strip():
                continue
            try:
                members = json.loads(line, object_pairs_hook=_Members)
                json.dumps(members, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                return f"line {number:,} has half of a surrogate pair"
            except (ValueError, RecursionError) as error:
                return f"line {number:,} is not JSON: {getattr(error, 'msg', error)}"
            if not isinstance(members, _Members):
                return f"line {number:,} is not a JSON object"
            names = [name for name, _ in members]
            twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
            if twice is not None:
                return f"line {number:,} has the name {quote(twice)} twice"
    return None


class _Members(list[Any]):
    """The names and values of a JSON object, with repeated names."""
