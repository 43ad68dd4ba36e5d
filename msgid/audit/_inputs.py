"""Audits of files: text with one ID per line, CSV, TSV, JSON lines, Parquet and Arrow files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgid._known_tables import JOB_TABLES
from msgid._validate import check_installed, is_utf8, quote
from msgid.audit._readers import FORMATS, Unreadable, decompressed, format_of, rows_of, told_by
from msgid.audit._tables import audit_table
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from os import PathLike

    import pyarrow as pa
    import pyarrow.dataset as ds

    from msgid.audit._readers import Format
    from msgid.audit.definitions import Holes
    from msgid.audit.report import Report


def audit_file(
    path: str | PathLike[str] | IO[bytes],
    *,
    format: Format | None = None,
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
            ``.lz4`` may follow its ending. A binary file that is open for reading, such as standard input, is read to
            its end; its first bytes tell the format, as those of a file without an ending.
        format: ``csv``, ``tsv``, ``json``, ``parquet``, ``arrow`` or ``text``, for a file of another ending.
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
    table, headers = read_file(path, format)
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
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "read"):
        raise TypeError(f"path must be the path of a file, or an open file, got {quote(path)}")
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


def dataset_of(table: Any) -> ds.Dataset | None:
    """Return a dataset, a Parquet file or a folder of such files as a dataset; None for any other table.

    The output folder of a job is not a dataset, because its rows stand in several folders.

    Raises:
        ValueError: if the files cannot be read.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(table, ds.Dataset):
        return table
    if not isinstance(table, str | os.PathLike):
        return None
    file = Path(table)
    is_job = any((file / known.folder).is_dir() for known in JOB_TABLES)
    if not file.exists() or is_job or not (file.is_dir() or file.suffix.lower() == ".parquet"):
        return None
    try:
        return _dataset(file) if file.is_dir() else ds.dataset(str(file), format="parquet")
    except (pa.ArrowException, OSError, UnicodeEncodeError, Unreadable) as error:
        raise ValueError(f"cannot read {quote(str(file))}: {' '.join(str(error).split())}") from None


def _dataset(folder: Path) -> ds.Dataset:
    """Return the Parquet files of a folder as a dataset; folders of values, such as ``day=1``, are columns."""
    import pyarrow.dataset as ds

    partitioning = ds.partitioning(flavor="hive")
    files = _parquet_files(folder)
    return ds.dataset(files, format="parquet", partitioning=partitioning, partition_base_dir=str(folder))


def _parquet_files(folder: Path) -> list[str]:
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
