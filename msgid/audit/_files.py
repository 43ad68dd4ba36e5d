"""Audits of files: text with one ID per line, CSV, TSV, JSON lines, Parquet and Arrow files, and folders of Parquet.

A side of a comparison is such a file, a table, or an iterable of IDs or positions.

No type is guessed: a cell of CSV is text, and a value of JSON keeps its kind. The endings or first bytes of a file tell
its format.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from numbers import Integral
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from msgid import layout
from msgid._known_tables import JOB_TABLES, beside_job_tables, is_hidden, known_columns
from msgid._validate import in_range, is_utf8, quote
from msgid.audit._columns import audited
from msgid.audit._options import COLUMNS, columns_in
from msgid.audit._tables import arrow_table, audit_table, id_column
from msgid.audit.definitions import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from os import PathLike

    from typing_extensions import Unpack

    from msgid._known_tables import Columns, JobTable
    from msgid.audit._options import AuditOptions
    from msgid.audit.definitions import Format
    from msgid.audit.report import Report

_ENDINGS: Final[dict[str, Format]] = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".txt": "text", ".text": "text", ".ids": "text",
    ".log": "text", ".list": "text",
}  # fmt: skip
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_STEP: Final = 1 << 16
"""The number of rows of CSV that are Python's values at one time."""
_NOT_TEXT: Final = "it is not text in UTF-8"


class Unreadable(ValueError):
    """A file that is not what its ending says, or whose format is not known."""


def format_of(name: str) -> Format | None:
    """Return the format of a file by its ending, without that of a compression; None if it does not have an ending.

    Raises:
        Unreadable: if the ending is unknown.

    >>> format_of("ids.CSV.gz"), format_of("ids")
    ('csv', None)
    """
    ending = next((one for one in map(str.lower, reversed(PurePath(name).suffixes)) if one not in _COMPRESSED), "")
    if ending and ending not in _ENDINGS:
        raise Unreadable(f"files that end with {ending!a} are not known; pass the format: {', '.join(FORMATS)}")
    return _ENDINGS.get(ending)


def decompressed(data: bytes) -> bytes:
    """Return the bytes of a file without the compression that its first bytes tell."""
    compression = next((one for magic, one in _MAGIC.items() if data.startswith(magic)), None)
    if compression is None:
        return data
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
    text = data.removeprefix(codecs.BOM_UTF8).lstrip()
    first = text.partition(b"\n")[0]
    return "json" if text.startswith(b"{") else "tsv" if b"\t" in first else "csv" if b"," in first else "text"


def rows_of(data: bytes, format: Format | None) -> pa.Table:
    """Return the rows of a file. Text has one column, ``value``; a file that cannot be read whole is refused.

    Args:
        data: The bytes of the file, which may be compressed.
        format: The format. Default: by the first bytes.

    Raises:
        Unreadable, pyarrow.ArrowException: if the bytes are not of the format.
    """
    data = decompressed(data)
    format = format or told_by(data)
    if format == "parquet":
        return pq.read_table(pa.BufferReader(data))
    if format == "arrow":
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
        return table
    if b"\0" in data[:1024]:
        raise Unreadable(_NOT_TEXT)
    try:
        if format in ("csv", "tsv"):
            return _read_csv(data, "," if format == "csv" else "\t")
        if format == "json":
            return _read_json(data)
    except UnicodeDecodeError:
        raise Unreadable(_NOT_TEXT) from None
    lines = (line.removeprefix(codecs.BOM_UTF8) for line in data.splitlines())
    return pa.table({"value": pa.array([line.decode("utf-8", "backslashreplace") for line in lines], pa.string())})


def _read_csv(data: bytes, delimiter: str) -> pa.Table:
    """Return the rows of a CSV file, all as text; an empty cell is NULL."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""), delimiter=delimiter, strict=True)
    rows = _csv_rows(reader)
    names = next(rows, None)
    if names is None:
        raise Unreadable("it is empty: it must have a header")
    parts = [pa.table([pa.array([], pa.string()) for _ in names], names=names)]
    while step := list(itertools.islice(rows, _STEP)):
        columns = (pa.array(cells, pa.string()) for cells in zip(*step, strict=True))
        nulls = [pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells) for cells in columns]
        parts.append(pa.table(nulls, names=names))
    return pa.concat_tables(parts)


def _csv_rows(reader: Any) -> Iterator[list[str]]:
    """Yield the rows of a CSV file but the empty ones, all with as many cells as the first."""
    width = 0
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Unreadable(f"the row that begins at line {line:,} is not CSV: {error}") from None
        width = width or len(row)
        if len(row) == width:
            yield row
        elif row:
            raise Unreadable(f"the row that begins at line {line:,} must have {width:,} cells, got {len(row):,}")


def _read_json(data: bytes) -> pa.Table:
    """Return the rows of JSON lines, one object per line.

    A column of text, integers of 64 bits, other numbers or truth values has these values. A column of several kinds,
    and objects and arrays, are JSON text, so no value is guessed or rounded.
    """
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode())
            rows.append({name: json.dumps(one) if isinstance(one, dict | list) else one for name, one in row.items()})
        except UnicodeDecodeError:
            raise
        except AttributeError:
            raise Unreadable(f"line {number:,} is not a JSON object") from None
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"line {number:,} is not JSON: {error}") from None
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _json_column([row.get(name) for row in rows]) for name in names})


def _json_column(values: list[Any]) -> pa.Array:
    """Return the values of a column as Arrow holds them exactly, or as text."""
    if len({type(value) for value in values if value is not None}) <= 1:
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(values)
    return pa.array([one if one is None or isinstance(one, str) else json.dumps(one) for one in values], pa.string())


def audit_file(
    path: str | PathLike[str] | IO[bytes], *, format: Format | None = None, **options: Unpack[AuditOptions]
) -> Report:
    r"""Return the report of the lost, repeated and late messages in a file.

    Args:
        path: Text with one ID per line, CSV or TSV with a header, JSON lines, Parquet or Arrow, by its ending; or a
            folder of Parquet files, which may be the output of a job. Text is UTF-8, and ``.gz``, ``.bz2``, ``.zst`` or
            ``.lz4`` may follow its ending. A binary file that is open for reading, such as standard input, is read to
            its end; its first bytes tell the format, as those of a file without an ending.
        format: ``csv``, ``tsv``, ``json``, ``parquet``, ``arrow`` or ``text``, for a file of another ending.
        **options: The columns and the rules, as `AuditOptions` explains. Text with one ID per line needs no column.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file does not have a column, or cannot be read as a table.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/ids.txt"
    >>> with open(path, "w") as file:
    ...     print("0156F7E71C361B21BC024CCDBE00000007", "not an ID", sep="\\n", file=file)
    >>> audit_file(path).findings[0].check
    'malformed_ids'
    """
    columns_in("audit_file", options, is_audit=True)
    return audit_table(read_file(path, format), **options)


def read_file(path: str | PathLike[str] | IO[bytes], format: Format | None = None) -> pa.Table:
    """Return the rows of a file or folder.

    Args:
        path: The file, as for `audit_file`.
        format: Its format. Default: by its ending or its first bytes.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file cannot be read as a table.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {quote(format)}")
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "read"):
        raise TypeError(f"path must be the path of a file, or an open file, got {quote(path)}")
    if not isinstance(path, str | os.PathLike):
        with _reading(str(getattr(path, "name", "the open file"))):
            return rows_of(path.read(), format)
    if not Path(path).exists():
        raise FileNotFoundError(f"no file {quote(str(path))}")
    with _reading(str(path)):
        return _read(Path(path), format)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Make an error of a reader one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeEncodeError, Unreadable) as error:
        raise ValueError(f"cannot read {quote(name)}: {' '.join(str(error).split())}") from None


def _read(file: Path, format: Format | None) -> pa.Table:
    """Return the rows of a file. Python opens it, because Arrow opens no name that is not UTF-8."""
    if file.is_dir():
        return _read_folder(file)
    format = format or format_of(file.name)
    if format == "parquet" and file.is_file():  # the columns are read one after another
        with file.open("rb") as stream:
            return pq.read_table(stream)
    data = file.read_bytes()
    if not data and file.suffix.lower() in _COMPRESSED:
        raise Unreadable("it is empty, and so cut off")
    return rows_of(data, format)


def dataset_of(table: Any) -> ds.Dataset | None:
    """Return a Parquet file or a folder of such files as a dataset; None for any other table.

    The output folder of a job is not a dataset, because its rows stand in several folders.

    Raises:
        ValueError: if the files cannot be read.
    """
    if not isinstance(table, str | os.PathLike):
        return None
    file = Path(table)
    if not file.exists() or not (file.is_dir() or file.suffix.lower() == ".parquet"):
        return None
    with _reading(str(file)):
        if file.is_dir():
            return None if _job_table(file) else _dataset(file)
        return ds.dataset(str(file), format="parquet")


def _dataset(folder: Path) -> ds.Dataset:
    """Return the Parquet files of a folder as a dataset; folders of values, such as ``day=1``, are columns of text.

    Raises:
        Unreadable: if files do not have the same columns. Arrow would read those of the first file alone.
    """
    files = _parquet_files(folder)
    parts = (part.partition("=") for file in files for part in Path(file).relative_to(folder).parts[:-1])
    values = dict.fromkeys(name for name, equal, _ in parts if equal)
    partitioning = ds.partitioning(pa.schema([(name, pa.string()) for name in values]), flavor="hive")
    dataset = ds.dataset(files, format="parquet", partitioning=partitioning, partition_base_dir=str(folder))
    first: list[str] = []
    for fragment in dataset.get_fragments():
        names = sorted(fragment.physical_schema.names)
        first = first or names
        if names != first:
            raise Unreadable(f"its files must have the same columns, got {first} and {names}")
    return dataset


def _parquet_files(folder: Path) -> list[str]:
    """Return the Parquet files of a folder, sorted, without hidden ones.

    Raises:
        OSError: if a folder in it cannot be read.
        Unreadable: if there are not any, there are other files or links, or the name of one is not UTF-8.
    """
    entries = (Path(at, name) for at, folders, names in os.walk(folder, onerror=_raised) for name in folders + names)
    files = []
    for entry in sorted(entries):
        if is_hidden(*entry.relative_to(folder).parts):
            continue
        if entry.is_file():
            files.append(entry)
        elif entry.is_symlink():
            raise Unreadable(f"{quote(str(entry.relative_to(folder)))} in it links to a folder, or to nothing")
    if not files:
        raise Unreadable("there are not any Parquet files in it")
    for file in files:
        if not is_utf8(str(file)):
            raise Unreadable(f"the name of a file in it must be UTF-8, got {quote(str(file))}: rename the file")
        if file.suffix.lower() != ".parquet":
            raise Unreadable(f"its files must be Parquet, got {quote(str(file.relative_to(folder)))}")
    return list(map(str, files))


def _raised(error: OSError) -> None:
    raise error


def _job_table(folder: Path) -> JobTable | None:
    """Return the table of the job whose output folder this is, or None.

    Raises:
        Unreadable: if the folder has such a table and other files, such as the folders of several topics.
    """
    written = next((known for known in JOB_TABLES if (folder / known.folder).is_dir()), None)
    if written is not None:
        files = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        other = beside_job_tables(files)
        if other is not None:
            raise Unreadable(f"it has the table {written.folder!r} of a job and {quote(other)}: pass one of them")
    return written


def _read_folder(folder: Path) -> pa.Table:
    written = _job_table(folder)
    if written is None:
        return _dataset(folder).to_table()
    table = _dataset(folder / written.folder).to_table()
    if written.only is not None:
        name, value = written.only
        table = table.filter(pc.equal(table[name].cast(pa.string()), value))
    aside = folder / (written.aside or "")
    if written.aside is not None and any(aside.rglob("*.parquet")):
        table = pa.concat_tables([table, _dataset(aside).to_table()], promote_options="default")
    return table


# --- The sides of a comparison ---


class Side(NamedTuple):
    """The rows of a side, which are an Arrow table or a DataFrame of Spark, and their columns.

    Positions that were listed take the prefix of the other side's logs.
    """

    table: Any
    columns: Columns
    is_listed: bool = False


def names_in_sent(
    names: Sequence[str], named: Mapping[str, Any], sent_columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments that name columns for the side of ``sent``.

    Args:
        names: The columns of ``sent``.
        named: The arguments for the table.
        sent_columns: The arguments of the caller for ``sent``, or None.
    """
    if sent_columns is None:

        def kept(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value if not value or value in names else None
            return [name for name in value if name in names] or None

        found = {argument: kept(value) for argument, value in named.items()}
        known = known_columns(names) if named["offset"] is None else None
        lacks_offset = found["offset"] is None and (known is None or known.offset is None)
        source = named["source"]
        if lacks_offset or (source is not None and list(source) != list(kept(source) or ())):
            found["source"] = found["offset"] = None
        return {**found, "id": found["id"] or "id"}
    wrong = sorted(set(sent_columns) - set(COLUMNS))
    if wrong:
        raise ValueError(f"sent_columns must name {', '.join(COLUMNS)}, got {quote(wrong[0])}")
    return columns_in("compare", sent_columns)


def _read_side(which: str, value: Any) -> tuple[pa.Table, bool]:
    """Return a path, a table, or an iterable of IDs or positions as a table, and whether it is such an iterable."""
    if isinstance(value, str | os.PathLike) or hasattr(value, "read"):
        return read_file(value), False
    if isinstance(value, pa.Table | Mapping) or hasattr(value, "__dataframe__"):
        return arrow_table(value), False
    if isinstance(value, bytes | bytearray | memoryview) or not hasattr(value, "__iter__"):
        raise TypeError(f"{which} must be a path, a table or an iterable of IDs or positions, got {quote(value)}")
    return pa.table(_listed(which, value)), True


def _listed(which: str, value: Any) -> dict[str, Any]:
    """Return the columns of an iterable of IDs or positions."""
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return {"offset" if pa.types.is_integer(value.type) else "value": value}
    if type(value).__module__.partition(".")[0] == "numpy" and (value.dtype.kind not in "iu" or value.ndim > 1):
        return {"value": id_column(value)}
    items = list(value)
    if items and all(map(_is_offset, items)):
        return {"offset": offset_column(items)}
    if not items:  # of either kind
        return {"id": pa.array([], pa.string()), "offset": pa.array([], pa.int64())}
    positions = [_position(item) for item in items]
    if not any(positions):
        return {"value": id_column(items)}
    if not all(positions):
        wrong = quote(items[positions.index(None)])
        raise TypeError(f"{which} must have IDs alone or positions alone, got {wrong} among positions")
    source, offset = zip(*(pair for pair in positions if pair is not None), strict=True)
    return {"source": pa.array(source), "offset": offset_column(offset)}


def offset_column(items: Iterable[Any]) -> pa.Array:
    """Return offsets as a column; one that is None or out of range is NULL, as Arrow does not hold every integer."""
    valid = (int(number) if in_range(number, 0, layout.OFFSET_MAX) else None for number in items)
    return pa.array(valid, pa.int64())


def _is_offset(item: object) -> bool:
    return isinstance(item, Integral) and not isinstance(item, bool)


def _position(item: Any) -> tuple[str, int] | None:
    """Return the log and the offset of a position; None for any other value."""
    if all(hasattr(item, name) and not callable(getattr(item, name)) for name in ("topic", "partition", "offset")):
        item = (item.topic, item.partition, item.offset)
    is_pair = isinstance(item, tuple | list) and len(item) > 1 and _is_offset(item[-1])
    return ("/".join(map(str, item[:-1])), int(item[-1])) if is_pair else None


def side_of(which: str, value: Any, named: Callable[[Sequence[str]], dict[str, Any]]) -> Side:
    """Return a side with its columns.

    Args:
        which: The name of the side.
        value: The side, as `compare` takes it.
        named: Returns the arguments that name columns, of the columns of the side.
    """
    table, is_listed = _read_side(which, value)
    arguments = named(table.column_names)
    if is_listed:
        arguments = columns_in(which, {"id": None})
        if "offset" in table.column_names:
            source = "source" if "source" in table.column_names else None
            arguments |= {"offset": "offset", "id": "id", "source": source}
    try:
        return Side(*audited(table, arguments), is_listed)
    except ValueError as error:
        raise ValueError(f"cannot compare {which}: {error}") from None
