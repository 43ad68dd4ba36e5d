"""Read: the files that a path names, their formats and compressions, each as a file that DuckDB opens."""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import io
import os
import re
import shutil
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, cast

from msgid.audit.definitions import FORMATS
from msgid.audit.duck import OutOfRoom, literal
from msgid.audit.parts import Unreadable
from msgid.shared.known_tables import JOB_TABLES, beside_job_tables, is_hidden
from msgid.shared.validate import is_utf8, quote, quote_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from msgid.audit.definitions import Format
    from msgid.shared.known_tables import JobTable

_ENDINGS: Final[dict[str, Format]] = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".txt": "text", ".text": "text", ".ids": "text",
    ".log": "text", ".list": "text",
}  # fmt: skip
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4")
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_HEAD: Final = 1 << 16
"""Bytes at the start of a file that tell its format."""
_STEP: Final = 1 << 20
NOT_TEXT: Final = "it is not text in UTF-8"
EMPTY: Final = "it is empty, and so cut off"
FILE_COLUMN: Final = "file"
"""The column of DuckDB's readers with the path of the file of a row."""


@dataclass(frozen=True)
class File:
    """A file that DuckDB opens.

    Attributes:
        path: The path for DuckDB.
        shown: The path in errors.
        compression: ``none``, ``gzip`` or ``zstd``.
        format: The format.
        root: The folder below which the names of folders are values, with a slash at its end.
        keys: The names of the columns whose values are names of folders, such as ``day`` for ``day=1``.
    """

    path: str
    shown: str
    compression: str
    format: Format
    root: str = ""
    keys: tuple[str, ...] = ()

    def open(self) -> IO[bytes]:
        """Open the file, without its compression."""
        return _opened(self.path, self.compression)

    def values(self, file_column: str = FILE_COLUMN) -> dict[str, str]:
        """Return for each column of `keys` its expression, over the column with the path of the file."""
        below = f"substr({file_column}, {len(self.root) + 1})"
        values = {}
        for key in self.keys:
            folder = literal(f"(^|/){re.escape(key)}=([^/]*)/")
            text = f"url_decode(regexp_extract({below}, {folder}, 2))"
            values[key] = f"nullif(nullif({text}, ''), '__HIVE_DEFAULT_PARTITION__')"
        return values


def names_of(files: Iterable[File]) -> str:
    """Return the paths of files as DuckDB takes them: a list of patterns that fit one file each."""
    patterns = (re.sub(r"([\[*?])", r"[\1]", file.path) for file in files)
    return f"[{', '.join(map(literal, patterns))}]"


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Make an error of a reader one line that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        if error.errno is None:  # of a path that the caller has passed
            raise
        raise ValueError(f"cannot read {quote_path(name)}: {_reason(error)}") from None
    except OutOfRoom:
        raise
    except _ERRORS as error:
        raise ValueError(f"cannot read {quote_path(name)}: {_reason(error)}") from None


_ERRORS: Final = (Unreadable, OSError, EOFError, zlib.error)


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())


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


def sniffed_format(data: bytes) -> Format:
    """Return the format that the first bytes tell: text with one ID per line does not have a comma or a tab.

    >>> sniffed_format(b"id,n"), sniffed_format(b' {"id": 1}'), sniffed_format(b"0156F7E71C361B21BC024CCDBE00000007")
    ('csv', 'json', 'text')
    """
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"ARROW1"):
        return "arrow"
    text = data.removeprefix(codecs.BOM_UTF8).lstrip()
    first = text.partition(b"\n")[0]
    return "json" if text.startswith(b"{") else "tsv" if b"\t" in first else "csv" if b"," in first else "text"


# --- From a path to files -------------------------------------------------------------------------------------------


def files_at(duck: Any, path: str, format: Format | None) -> list[File]:
    """Return the files that a path names: a file, a folder, or a pattern such as ``*.parquet`` or ``day=*/a.csv``.

    Raises:
        FileNotFoundError: if there is not any.
        Unreadable: if a folder has files of several formats.
    """
    if Path(path).is_dir():
        return _files_in(duck, Path(path), format)
    if Path(path).exists():
        return [_file(duck, Path(path), path, format)]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    parts = PurePath(path).parts
    root = Path(*parts[: next((n for n, part in enumerate(parts) if glob.has_magic(part)), 0)])
    files = []
    for match in map(Path, matches):
        if is_hidden(*_below(match, root).parts):
            continue
        if match.is_dir():
            files += _files_in(duck, match, format, root)
        else:
            files.append(_file(duck, match, str(match), format, root))
    if not files:
        raise FileNotFoundError(f"no file {quote_path(path)}")
    return files


def _below(path: Path, root: Path) -> PurePath:
    return path.relative_to(root) if root != Path() else path


def _files_in(duck: Any, folder: Path, format: Format | None, root: Path | None = None) -> list[File]:
    """Return the files of a folder, sorted, without hidden ones.

    Raises:
        OSError: if a folder in it cannot be read.
        Unreadable: if there are not any, their formats differ, there are other links, or a name is not UTF-8.
    """
    entries = (Path(at, name) for at, folders, names in os.walk(folder, onerror=_raised) for name in folders + names)
    paths = []
    for entry in sorted(entries):
        if is_hidden(*entry.relative_to(folder).parts):
            continue
        if entry.is_file():
            paths.append(entry)
        elif entry.is_symlink():
            raise Unreadable(f"{quote(str(entry.relative_to(folder)))} in it links to a folder, or to nothing")
    if not paths:
        raise Unreadable("there are not any files in it, such as Parquet or CSV")
    formats: dict[Format | None, Path] = {}
    for path in paths:
        if not is_utf8(str(path)):
            raise Unreadable(f"the name of a file in it must be UTF-8, got {quote(str(path))}: rename the file")
        formats.setdefault(format or _ending_in_folder(path), path.relative_to(folder))
    if None in formats or len(formats) > 1:
        if "parquet" in formats:
            formats.pop("parquet")
            raise Unreadable(f"its files must be Parquet, got {quote(str(next(iter(formats.values()))))}")
        raise Unreadable(
            f"its files must have one format, got {' and '.join(quote(str(one)) for one in formats.values())}"
        )
    (only_format,) = formats
    return [_file(duck, path, str(path.relative_to(folder)), only_format, root or folder) for path in paths]


def _ending_in_folder(path: Path) -> Format | None:
    try:
        return format_of(path.name)
    except Unreadable:
        return None


def _raised(error: OSError) -> None:
    raise error


def job_table(folder: Path) -> JobTable | None:
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


def _file(duck: Any, path: Path, shown: str, format: Format | None, root: Path | None = None) -> File:
    """Return a file as DuckDB opens it: a pipe, or a compression that DuckDB does not read, becomes a file first."""
    keys: tuple[str, ...] = ()
    if root is not None:
        folders = _below(path, root).parts[:-1]
        keys = tuple(dict.fromkeys(name for name, equal, _ in (one.partition("=") for one in folders) if equal))
    try:
        if not path.is_file():
            with path.open("rb") as stream:
                path = spooled(duck, stream)
        return _as_file(duck, path, shown, format or format_of(Path(shown).name), root, keys)
    except _ERRORS as error:
        raise Unreadable(_reason(error) if root is None else f"{quote(shown)}: {_reason(error)}") from None


def open_file_object(duck: Any, stream: IO[bytes], format: Format | None) -> File:
    """Return the rest of an open file as a file."""
    shown = str(getattr(stream, "name", "the open file"))
    with reading(shown):
        return _as_file(duck, spooled(duck, stream), shown, format, None, ())


def _as_file(
    duck: Any, path: Path, shown: str, format: Format | None, root: Path | None, keys: tuple[str, ...]
) -> File:
    absolute = path.absolute().as_posix()
    base = "" if root is None else f"{root.absolute().as_posix().rstrip('/')}/"
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head and Path(shown).suffix.lower() in _COMPRESSED:
        raise Unreadable(EMPTY)
    compression = next((one for magic, one in _MAGIC.items() if head.startswith(magic)), "none")
    if compression != "none":
        with _opened(absolute, compression) as stream:
            head = stream.read(_HEAD)
    format = format or sniffed_format(head)
    if compression == "zstd":
        _check_zstd(path)
    if compression in ("bz2", "lz4") or (compression != "none" and format in ("parquet", "arrow")):
        folder = _new_folder(duck)
        new = folder / (PurePath(absolute).relative_to(base) if base else "data")
        new.parent.mkdir(parents=True, exist_ok=True)
        with _opened(absolute, compression) as stream, new.open("wb") as copy:
            shutil.copyfileobj(stream, copy, _STEP)
        absolute, compression, base = new.as_posix(), "none", f"{folder.as_posix()}/" if base else ""
    elif not is_utf8(absolute) or "\\" in absolute:
        link = _new_folder(duck) / "data"
        link.symlink_to(path.absolute())
        absolute, base = link.as_posix(), ""
    return File(absolute, shown, compression, format, base, keys)


def _new_folder(duck: Any) -> Path:
    folder = Path(duck.folder(), duck.new_name("input"))
    folder.mkdir(parents=True)
    return folder


def spooled(duck: Any, stream: IO[bytes]) -> Path:
    """Return a new file with the rest of an open file, which is read in steps."""
    path = _new_folder(duck) / "data"
    with path.open("wb") as copy:
        _copy(stream, copy)
    return path


def _copy(stream: IO[bytes], copy: IO[bytes]) -> None:
    """Copy a stream in steps. A read of a whole step from a pipe would not end at Ctrl-C."""
    read = getattr(stream, "read1", stream.read)
    while data := read(_STEP):
        copy.write(data)


def spooled_copy(duck: Any, file: File, start: bytes, stream: IO[bytes]) -> File:
    """Return a copy of a file that has some bytes and the rest of a stream; the names of its folders stay."""
    folder = _new_folder(duck)
    new = folder / (PurePath(file.path).relative_to(file.root) if file.root else "data")
    new.parent.mkdir(parents=True, exist_ok=True)
    with new.open("wb") as copy:
        copy.write(start)
        _copy(stream, copy)
    return replace(file, path=new.as_posix(), compression="none", root=f"{folder.as_posix()}/" if file.root else "")


def _opened(path: str, compression: str) -> IO[bytes]:
    if compression == "none":
        return open(path, "rb")
    if compression == "gzip":
        return cast(IO[bytes], gzip.open(path))
    if compression == "bz2":
        return bz2.open(path)
    import pyarrow as pa

    return cast(IO[bytes], io.BufferedReader(_Raw(pa.input_stream(path, compression=compression))))


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python, which raises its errors as `Unreadable`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import pyarrow as pa

        try:
            data = self._stream.read(len(buffer))
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(f"its compressed data is damaged: {error}") from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


_ZSTD_FRAME: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPED: Final = [bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)]
_ZSTD_BLOCK_HEADER: Final = 3
CUT: Final = "its compressed data is cut off"


def _check_zstd(path: Path) -> None:
    """Check that the last frame of a file is whole: DuckDB reads the rows before the cut, and does not raise an error.

    RFC 8878 has the format. The blocks are skipped, not decompressed.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        while magic := file.read(4):
            if magic == _ZSTD_FRAME:
                _skip_zstd_frame(file)
            elif magic in _ZSTD_SKIPPED:
                file.seek(int.from_bytes(file.read(4), "little"), os.SEEK_CUR)
            else:
                raise Unreadable(f"{CUT}, or has other bytes at its end")
            if file.tell() > size:
                raise Unreadable(CUT)


def _skip_zstd_frame(file: IO[bytes]) -> None:
    described = file.read(1)
    flags = described[0] if described else 0
    is_single, has_checksum = flags >> 5 & 1, flags >> 2 & 1
    dictionary_length, size_length = (0, 1, 2, 4)[flags & 3], (is_single, 2, 4, 8)[flags >> 6]
    file.seek((not is_single) + dictionary_length + size_length, os.SEEK_CUR)
    is_last = False
    while not is_last:
        header = file.read(_ZSTD_BLOCK_HEADER)
        if len(header) < _ZSTD_BLOCK_HEADER:
            raise Unreadable(CUT)
        bits = int.from_bytes(header, "little")
        is_last, is_repeated = bool(bits & 1), bits >> 1 & 3 == 1
        file.seek(1 if is_repeated else bits >> 3, os.SEEK_CUR)
    file.seek(4 * has_checksum, os.SEEK_CUR)
