"""Audits of files: text with one ID per line, CSV, TSV, JSON lines, Parquet and Arrow files."""

from __future__ import annotations

import codecs
import re
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgid._known_tables import JOB_TABLES
from msgid._validate import check_installed, quote
from msgid.audit._tables import audit_table
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset as ds

    from msgid.audit.definitions import Holes
    from msgid.audit.report import Report


_COMPRESSIONS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_DEEPEST: Final = 1_000
"""The most levels of nested JSON that are read: Arrow's reader ends the process at some 20,000."""
_LONGEST_ROW: Final = 1 << 26
"""The bytes of the longest row of CSV or JSON that is read."""
_JSON_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.?)*"?|[\[{]|[\]}]', re.DOTALL)


def audit_file(
    path: str | PathLike[str],
    *,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    landed: str | None = None,
    content: str | Sequence[str] | None = None,
    parent: str | None = None,
    life: str | datetime | Sequence[datetime] | None = None,
    holes: Holes | None = None,
    without: Sequence[str] = (),
    not_before: datetime | None = None,
    clock_jump: timedelta | str = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
) -> Report:
    r"""Return the report of the lost, repeated and late messages in a file.

    Args:
        path: Text with one ID per line, CSV or TSV with a header, JSON lines, Parquet or Arrow, by its ending; or a
            folder of Parquet files, which may be the output of a job. Text is UTF-8, and ``.gz``, ``.bz2``, ``.zst`` or
            ``.lz4`` may follow its ending.
        id: Column of IDs, as for `audit_table`. Text with one ID per line does not need it.
        source: Columns that name the log, as for `audit_table`; so are all other arguments.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times.
        landed: Column of the times at which the rows were written.
        content: Columns by which rows of one ID or offset are compared.
        parent: Column of the IDs from which derived IDs were made.
        life: Column that names the life of a log, or the times at which logs were created again.
        holes: Offsets that are missing without a loss: ``markers``, ``committed`` or ``compacted``.
        without: Names of checks that are not made.
        not_before: Earliest time of an ID that is not a finding, an aware datetime.
        clock_jump: Time between two IDs of a generator beyond which its clock has jumped forward, as a timedelta or as
            text such as ``"1 day"``.
        max_gaps: Number of missing ranges that the report lists; the findings count all.

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
    check_installed("an audit in Python", "arrow", "numpy", "pyarrow")
    table, headers = read_file(path)
    report = audit_table(
        table,
        id="value" if id == "id" and table.column_names == ["value"] else id,
        source=source,
        offset=offset,
        timestamp=timestamp,
        landed=landed,
        content=content,
        parent=parent,
        life=life,
        holes=holes,
        without=without,
        not_before=not_before,
        clock_jump=clock_jump,
        max_gaps=max_gaps,
    )
    if headers:
        report.notes.append(f"Rows that repeat the header of the file: {headers:,}. They are not counted.")
    return report


def read_file(path: str | PathLike[str]) -> tuple[pa.Table, int]:
    """Return the rows of a file or folder, and the number of rows that repeat its header.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file cannot be read as a table.
    """
    import pyarrow as pa

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"no file {quote(str(path))}")
    try:
        return _read(file)
    except (pa.ArrowException, OSError, UnicodeEncodeError, _Unreadable) as error:
        raise ValueError(f"cannot read {quote(str(path))}: {' '.join(str(error).split())}") from None


class _Unreadable(Exception):
    """A file that is not what its ending says."""


def _read(file: Path) -> tuple[pa.Table, int]:
    """Return the rows of a file, and the number of rows that repeat its header. Text has one column, ``value``.

    Python opens the files, because Arrow opens no name that is not UTF-8.
    """
    import pyarrow as pa
    import pyarrow.json as pajson
    import pyarrow.parquet as pq

    ending = next((one for one in map(str.lower, reversed(file.suffixes)) if one not in _COMPRESSIONS), "")
    if file.is_dir():
        return _read_folder(file), 0
    if ending == ".parquet":
        with file.open("rb") as stream:
            return pq.read_table(stream), 0
    if ending in (".arrow", ".feather", ".ipc"):
        with file.open("rb") as stream:
            table = pa.ipc.open_file(stream).read_all()
        table.validate(full=True)
        return table, 0
    text = _read_text(file)
    if ending in (".csv", ".tsv"):
        return _read_csv(text, "," if ending == ".csv" else "\t")
    if ending in (".json", ".jsonl", ".ndjson"):
        _check_depth(text)
        options = pajson.ReadOptions(block_size=_LONGEST_ROW)
        return pajson.read_json(pa.BufferReader(text), read_options=options), 0
    lines = (line.removeprefix(codecs.BOM_UTF8) for line in text.splitlines())
    return pa.table({"value": pa.array([line.decode("utf-8", "backslashreplace") for line in lines], pa.string())}), 0


def _read_text(file: Path) -> bytes:
    """Return the bytes of a file of text, decompressed."""
    import pyarrow as pa

    compression = _COMPRESSIONS.get(file.suffix.lower())
    with file.open("rb") as opened, pa.input_stream(opened, compression=compression) as stream:
        text: bytes = stream.read()
    if compression is not None and not file.stat().st_size:
        raise _Unreadable("it is empty, and so cut off")
    if b"\0" in text[:1024]:
        raise _Unreadable("it is not text in UTF-8")
    return text


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
            raise _Unreadable(f"line {line:,} is nested in more than {_DEEPEST:,} levels")


def _is_shallow(line: bytes) -> bool:
    """Return whether a line is empty, or an object that is not deep because it does not have many brackets."""
    few = len(line) <= _DEEPEST or line.count(b"[") + line.count(b"{") <= _DEEPEST
    return not line or (few and line.startswith(b"{") and line.endswith(b"}"))


def dataset_of(path: str | PathLike[str]) -> ds.Dataset | None:
    """Return a Parquet file, or a folder of such files, as a dataset; None for any other file, or the output of a job.

    Raises:
        ValueError: if the files cannot be read.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    file = Path(path)
    is_job = any((file / known.folder).is_dir() for known in JOB_TABLES)
    if not file.exists() or is_job or not (file.is_dir() or file.suffix.lower() == ".parquet"):
        return None
    try:
        return _dataset(file) if file.is_dir() else ds.dataset(str(file), format="parquet")
    except (pa.ArrowException, OSError, UnicodeEncodeError, _Unreadable) as error:
        raise ValueError(f"cannot read {quote(str(path))}: {' '.join(str(error).split())}") from None


def _dataset(path: Path) -> ds.Dataset:
    import pyarrow.dataset as ds

    files = sorted(str(file) for file in path.rglob("*.parquet") if _shown(file.relative_to(path)))
    if not files:
        raise _Unreadable("there are not any Parquet files in it")
    partitioning = ds.partitioning(flavor="hive")
    return ds.dataset(files, format="parquet", partitioning=partitioning, partition_base_dir=str(path))


def _read_folder(folder: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    def read(path: Path) -> pa.Table:
        return _dataset(path).to_table()

    written = next((known for known in JOB_TABLES if (folder / known.folder).is_dir()), None)
    if written is None:
        return read(folder)
    table = read(folder / written.folder)
    if written.only is not None:
        name, value = written.only
        table = table.filter(pc.equal(table[name].cast(pa.string()), value))
    aside = folder / (written.aside or "")
    if written.aside is not None and any(aside.rglob("*.parquet")):
        table = pa.concat_tables([table, read(aside)], promote_options="default")
    return table


def _shown(path: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.parts)
