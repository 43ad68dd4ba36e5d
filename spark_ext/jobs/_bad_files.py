"""Input files that cannot be read: find them, and list them until they are repaired."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from spark_ext._filesystem import filesystem
from spark_ext._private import cause_of, conditions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

UNREADABLE: Final = "unreadable"
"""The folder, in a job's output, that lists the files."""
_CONDITIONS: Final = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "PARQUET_TYPE_")
_MISSING: Final = ("FILE_NOT_EXIST", "PATH_NOT_FOUND")
_REASON_LENGTH: Final = 300
_GONE: Final = "missing"
_NO_FILE: Final = "the file does not exist"


class BadFile(NamedTuple):
    """A file that cannot be read, and why."""

    path: str
    reason: str


class Entry(NamedTuple):
    """One file of the list of unreadable files."""

    name: str
    path: str
    reason: str
    batch: int | None
    """The micro-batch from which the file was left out; None if a batch run left it out."""
    tables: list[str]
    """The tables that lack the file's rows."""
    seen: str
    """The size and modification time of the file when it could not be read."""
    found_at: str
    read_at: str | None = None
    """The time when a later run read the file; None as long as its rows are missing."""


def is_unreadable(error: Exception) -> bool:
    """Check whether Spark raised an error because it cannot read a file."""
    return any(condition.startswith(_CONDITIONS) for condition in conditions_of(error))


def reason_of(error: Exception) -> str:
    """Return the cause of an error of Spark in one line."""
    if any(condition.endswith(_MISSING) for condition in conditions_of(error)):
        return _NO_FILE
    return cause_of(error)[:_REASON_LENGTH]


def list_files(spark: SparkSession, path: str) -> list[str]:
    """Return the files that Spark finds at a path, without reading them."""
    return sorted(map(unquote, spark.read.format("binaryFile").load(path).inputFiles()))


def split_files(files: list[str], read: Callable[[list[str]], DataFrame]) -> tuple[list[str], list[BadFile]]:
    """Split files into those that can be read to their end and the others, by bisection.

    Parameters
    ----------
    files : list of str
        the files.
    read : function
        returns the rows of some files.
    """
    # Spark ignores a missing file in a list of files.
    gone = {file for file in files if _state(file) == _GONE}
    good, bad = _split([file for file in files if file not in gone], read)
    return good, [BadFile(file, _NO_FILE) for file in files if file in gone] + bad


def _split(files: list[str], read: Callable[[list[str]], DataFrame]) -> tuple[list[str], list[BadFile]]:
    if not files:
        return [], []
    try:
        read(files).write.format("noop").mode("overwrite").save()
    except Exception as error:
        if not is_unreadable(error):
            raise
        if len(files) == 1:
            return [], [BadFile(files[0], reason_of(error))]
    else:
        return files, []
    middle = len(files) // 2
    good, bad = _split(files[:middle], read)
    other_good, other_bad = _split(files[middle:], read)
    return good + other_good, bad + other_bad


class Ledger:
    """The list of a job's files that could not be read: a folder of JSON files, which Spark reads as a table.

    Parameters
    ----------
    output : str
        the job's output folder.
    """

    def __init__(self, output: str) -> None:
        self._output = output

    def _place(self) -> tuple[pafs.FileSystem, str]:
        # Resolved at each call: Spark Connect pickles this object with the function of `foreachBatch`.
        files, base = filesystem(self._output)
        return files, f"{base}/{UNREADABLE}"

    def entries(self) -> list[Entry]:
        """Return all entries, also entries of files that were read later."""
        import pyarrow.fs as pafs

        files, folder = self._place()
        infos = files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        names = sorted(info.base_name for info in infos if info.base_name.endswith(".json"))
        return [Entry(**json.loads(_read(files, f"{folder}/{name}"))) for name in names]

    def waiting(self) -> list[Entry]:
        """Return the entries whose rows are missing."""
        return [entry for entry in self.entries() if entry.read_at is None]

    def left_out(self, batch: int, table: str) -> set[str]:
        """Return the files of a micro-batch whose rows are missing in a table."""
        return {entry.path for entry in self.entries() if entry.batch == batch and table in entry.tables}

    def add(self, bad: Iterable[BadFile], batch: int | None, tables: list[str]) -> None:
        """List files. Call it before the other rows are written, so that a crash loses no file."""
        for file in bad:
            name = f"{'run' if batch is None else batch}-{sha256(file.path.encode()).hexdigest()[:16]}"
            entry = Entry(name, file.path, file.reason, batch, tables, _state(file.path), _now())
            self._put(entry)

    def has_changed(self, entry: Entry) -> bool:
        """Check whether a file has changed since it could not be read."""
        return _state(entry.path) != entry.seen

    def still(self, entry: Entry, reason: str) -> None:
        """Record that a file still cannot be read."""
        self._put(entry._replace(reason=reason, seen=_state(entry.path)))

    def done(self, entry: Entry) -> None:
        """Record that a file was read."""
        self._put(entry._replace(read_at=_now()))

    def clear(self) -> None:
        """Delete the list, when a run replaces the output."""
        files, folder = self._place()
        with suppress(FileNotFoundError):
            files.delete_dir(folder)

    def _put(self, entry: Entry) -> None:
        files, folder = self._place()
        files.create_dir(folder, recursive=True)
        partial = f"{folder}/.{entry.name}"
        with files.open_output_stream(partial) as out:
            out.write(json.dumps(entry._asdict()).encode())
        files.move(partial, f"{folder}/{entry.name}.json")


def _read(files: pafs.FileSystem, path: str) -> bytes:
    with files.open_input_file(path) as file:
        content: bytes = file.read()
    return content


def _state(path: str) -> str:
    files, inner = filesystem(path)
    info = files.get_file_info(inner)
    return f"{info.size} bytes, {info.mtime_ns}" if info.is_file else _GONE


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
