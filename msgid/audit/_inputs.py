"""Audits of files: text with one ID per line, CSV, TSV, JSON lines, Parquet and Arrow files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgid._known_tables import JOB_TABLES
from msgid._validate import check_installed, is_utf8, quote
from msgid.audit._readers import FORMATS, Unreadable, decompressed, format_of, rows_of, told_by
from msgid.audit._tables import audit_table

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset as ds

    from msgid.audit._readers import Format
    from msgid.audit.report import Report


def audit_file(path: str | PathLike[str] | IO[bytes], *, format: Format | None = None, **columns: Any) -> Report:
    r"""Return the report of the lost, repeated and late messages in a file.

    Args:
        path: Text with one ID per line, CSV or TSV with a header, JSON lines, Parquet or Arrow, by its ending; or a
            folder of Parquet files, which may be the output of a job. Text is UTF-8, and ``.gz``, ``.bz2``, ``.zst`` or
            ``.lz4`` may follow its ending. A binary file that is open for reading, such as standard input, is read to
            its end; its first bytes tell the format, as those of a file without an ending.
        format: ``csv``, ``tsv``, ``json``, ``parquet``, ``arrow`` or ``text``, for a file of another ending.
        columns: The arguments of `audit_table`.

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
    table, headers = read_file(path, format)
    if table.column_names == ["value"]:
        columns = {"id": "value", **columns}
    report = audit_table(table, **columns)
    if headers:
        report.notes.append(f"Rows that repeat the header of the file: {headers:,}. They are not counted.")
    return report


def read_file(path: str | PathLike[str] | IO[bytes], format: Format | None = None) -> tuple[pa.Table, int]:
    """Return the rows of a file or folder, and the number of rows that repeat its header.

    Args:
        path: The file, as for `audit_file`.
        format: Its format. Default: by its ending or its first bytes.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file cannot be read as a table.
    """
    import pyarrow as pa

    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, got {quote(format)}")
    file = Path(path) if isinstance(path, str | os.PathLike) else path
    shown = str(file if isinstance(file, Path) else getattr(file, "name", "the open file"))
    if isinstance(file, Path) and not file.exists():
        raise FileNotFoundError(f"no file {quote(shown)}")
    try:
        return _read(file, format) if isinstance(file, Path) else _rows_of_stream(file.read(), format)
    except (pa.ArrowException, OSError, UnicodeEncodeError, Unreadable) as error:
        raise ValueError(f"cannot read {quote(shown)}: {' '.join(str(error).split())}") from None


def _rows_of_stream(data: bytes, format: Format | None) -> tuple[pa.Table, int]:
    data = decompressed(data, None)
    return rows_of(data, format or told_by(data))


def _read(file: Path, format: Format | None) -> tuple[pa.Table, int]:
    """Return the rows of a file, and the number of rows that repeat its header.

    Python opens the files, because Arrow opens no name that is not UTF-8.
    """
    import pyarrow.parquet as pq

    if file.is_dir():
        return _read_folder(file), 0
    format = format or format_of(file.name)
    if format == "parquet" and file.is_file():  # the columns are read one after another
        with file.open("rb") as stream:
            return pq.read_table(stream), 0
    data = file.read_bytes()
    if format is None:
        return _rows_of_stream(data, None)
    return rows_of(decompressed(data, file.name), format)


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
    except (pa.ArrowException, OSError, UnicodeEncodeError, Unreadable) as error:
        raise ValueError(f"cannot read {quote(str(path))}: {' '.join(str(error).split())}") from None


def _dataset(path: Path) -> ds.Dataset:
    return dataset_of_files(parquet_files(path), path)


def parquet_files(folder: Path) -> list[str]:
    """Return the Parquet files of a folder, sorted, without hidden ones.

    Raises:
        Unreadable: if there are not any, or the name of one is not UTF-8.
    """
    files = sorted(str(file) for file in folder.rglob("*.parquet") if _shown(file.relative_to(folder)))
    if not files:
        raise Unreadable("there are not any Parquet files in it")
    for name in files:
        if not is_utf8(name):
            raise Unreadable(f"the name of a file in it must be UTF-8, got {quote(name)}: rename the file")
    return files


def dataset_of_files(files: list[str], folder: Path) -> ds.Dataset:
    """Return Parquet files as a dataset; folders of values in ``folder``, such as ``day=1``, are columns."""
    import pyarrow.dataset as ds

    partitioning = ds.partitioning(flavor="hive")
    return ds.dataset(files, format="parquet", partitioning=partitioning, partition_base_dir=str(folder))


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
