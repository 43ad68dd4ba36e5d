"""The formats of files that an audit reads: bytes as tables. Their endings or first bytes tell the format."""

from __future__ import annotations

import codecs
import json
import re
from functools import reduce
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

from msgid._validate import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

Format = Literal["csv", "tsv", "json", "parquet", "arrow", "text"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "tsv", "json", "parquet", "arrow", "text")
_ENDINGS: Final[dict[str, Format]] = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".txt": "text", ".text": "text", ".ids": "text",
    ".log": "text", ".list": "text",
}  # fmt: skip
_COMPRESSIONS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_DEEPEST: Final = 1_000
"""The most levels of nested JSON that are read: Arrow's reader ends the process at some 20,000."""
_LONGEST_ROW: Final = 1 << 26
"""The bytes of the longest row of CSV or JSON that is read."""
_JSON_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.?)*"?|[\[{]|[\]}]', re.DOTALL)
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_INEXACT: Final = ("changed from", "Number too big")
"""Words of Arrow's errors about values that one column cannot hold."""
_SPACES: Final = re.compile(r"[ \t\r\n]*")


class Unreadable(ValueError):
    """A file that is not what its ending says, or whose format is not known."""


def format_of(name: str) -> Format | None:
    """Return the format of a file by its ending, without that of a compression; None if it does not have an ending.

    Raises:
        Unreadable: if the ending is unknown.

    >>> format_of("ids.CSV.gz"), format_of("ids")
    ('csv', None)
    """
    ending = next((one for one in map(str.lower, reversed(PurePath(name).suffixes)) if one not in _COMPRESSIONS), "")
    if ending and ending not in _ENDINGS:
        raise Unreadable(f"files that end with {ending!a} are not known; pass the format: {', '.join(FORMATS)}")
    return _ENDINGS.get(ending)


def decompressed(data: bytes, name: str | None) -> bytes:
    """Return the bytes of a file without the compression that its ending names.

    Args:
        data: The bytes.
        name: The name of the file; None if the first bytes tell the compression.
    """
    import pyarrow as pa

    if name is None:
        compression = next((one for magic, one in _MAGIC.items() if data.startswith(magic)), None)
    else:
        compression = _COMPRESSIONS.get(PurePath(name).suffix.lower())
    if compression is None:
        return data
    if not data:
        raise Unreadable("it is empty, and so cut off")
    with pa.input_stream(pa.BufferReader(data), compression=compression) as stream:
        text: bytes = stream.read()
    return text


def told_by(data: bytes) -> Format:
    """Return the format that the first bytes tell: text with one ID per line does not have a comma or a tab.

    >>> told_by(b"id,n"), told_by(b' {"id": 1}'), told_by(b"0156F7E71C361B21BC024CCDBE00000007")
    ('csv', 'json', 'text')
    """
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"ARROW1"):
        return "arrow"
    text = data[:_LONGEST_ROW].removeprefix(codecs.BOM_UTF8).lstrip()
    first = text.partition(b"\n")[0]
    return "json" if text.startswith(b"{") else "tsv" if b"\t" in first else "csv" if b"," in first else "text"


def rows_of(data: bytes, format: Format) -> tuple[pa.Table, int]:
    """Return the rows of a file, and the number of rows that repeat its header. Text has one column, ``value``.

    Raises:
        Unreadable, pyarrow.ArrowException: if the bytes are not of the format.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if format == "parquet":
        return pq.read_table(pa.BufferReader(data)), 0
    if format == "arrow":
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
        return table, 0
    if b"\0" in data[:1024]:
        raise Unreadable("it is not text in UTF-8")
    if format in ("csv", "tsv"):
        return _read_csv(data, "," if format == "csv" else "\t")
    if format == "json":
        return _read_json(data), 0
    lines = (line.removeprefix(codecs.BOM_UTF8) for line in data.splitlines())
    return pa.table({"value": pa.array([line.decode("utf-8", "backslashreplace") for line in lines], pa.string())}), 0


def _read_csv(text: bytes, delimiter: str) -> tuple[pa.Table, int]:
    """Return the rows of a CSV file, all as text, without those that repeat the header; and the number of these."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv

    read, parse = pacsv.ReadOptions(block_size=_LONGEST_ROW), pacsv.ParseOptions(delimiter=delimiter)
    with pacsv.open_csv(pa.BufferReader(text), read, parse) as reader:
        names = reader.schema.names
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    table = pacsv.read_csv(pa.BufferReader(text), read, parse, convert)
    same = [pc.equal(column, name) for name, column in zip(names, table.columns, strict=True)]
    same[0] = pc.or_(same[0], pc.equal(table.column(0), f"\ufeff{names[0]}"))
    is_header = pc.fill_null(reduce(pc.and_kleene, same), False)
    return table.filter(pc.invert(is_header)), pc.sum(is_header).as_py() or 0


def _read_json(text: bytes) -> pa.Table:
    """Return the rows of JSON lines. A column whose values Arrow does not hold exactly is text.

    Those are integers of more than 64 bits, which Arrow rounds, and values of several types.
    """
    import pyarrow as pa
    import pyarrow.json as pajson

    _check_depth(text)
    try:
        options = pajson.ReadOptions(block_size=_LONGEST_ROW)
        table = pajson.read_json(pa.BufferReader(text), read_options=options)
    except pa.ArrowInvalid as error:
        if not any(words in str(error) for words in _INEXACT):
            raise
    else:
        if not any(pa.types.is_floating(column.type) for column in table.columns) or not _LONG_NUMBER.search(text):
            return table
    rows = list(_json_values(text))
    return pa.table({name: _json_column([row.get(name) for row in rows]) for row in rows for name in row})


def _json_values(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines."""
    decoder, place = json.JSONDecoder(), 0
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("it is not text in UTF-8") from None
    while place < len(decoded):
        start = _SPACES.match(decoded, place)
        assert start is not None
        place = start.end()
        if place == len(decoded):
            return
        try:
            value, place = decoder.raw_decode(decoded, place)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"line {decoded.count(chr(10), 0, place) + 1:,} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise Unreadable(f"line {decoded.count(chr(10), 0, place) + 1:,} is not a JSON object")
        yield value


def _json_column(values: list[Any]) -> pa.Array:
    """Return the values of a column as Arrow holds them, or as text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    is_long = any(isinstance(value, int | float) and not INT64_MIN <= value <= INT64_MAX for value in values)
    if kinds == {int, float} and not is_long:
        return pa.array(values, pa.float64())
    try:
        if not is_long:
            return pa.array(values)
    except pa.ArrowException:
        pass
    return pa.array([one if one is None or isinstance(one, str) else json.dumps(one) for one in values], pa.string())


def _check_depth(text: bytes) -> None:
    """Raise an error if JSON is nested too deeply for Arrow's reader."""
    if text.count(b"[") + text.count(b"{") <= _DEEPEST:
        return
    if all(map(_is_shallow, text.splitlines())):
        return
    depth = 0
    for token in _JSON_TOKEN.finditer(text):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth > _DEEPEST:
            line = text.count(b"\n", 0, token.start()) + 1
            raise Unreadable(f"line {line:,} is nested in more than {_DEEPEST:,} levels")


def _is_shallow(line: bytes) -> bool:
    """Return whether a line is empty, or an object that is not deep because it does not have many brackets."""
    few = len(line) <= _DEEPEST or line.count(b"[") + line.count(b"{") <= _DEEPEST
    return not line or (few and line.startswith(b"{") and line.endswith(b"}"))
