"""Input files that cannot be read: find them, and list them until they are repaired."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "UNREADABLE",
    "BadFile",
    "Ledger",
    "files_of_batch",
    "is_unreadable",
    "last_batch",
    "list_files",
    "reason_of",
    "split_files",
]

UNREADABLE: Final = "unreadable"
"""The folder, in a job's output, that lists the files."""
_CONDITIONS: Final = ("FAILED_READ_FILE", "PATH_NOT_FOUND")
_MISSING: Final = ("FILE_NOT_EXIST", "PATH_NOT_FOUND")
_CAUSE: Final = re.compile(r"^(?:Caused by)?: (?:[\w.$]*\.)?(\w+(?:: .*)?)$", re.MULTILINE)
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
    return any(condition in str(error) for condition in _CONDITIONS)


def reason_of(error: Exception) -> str:
    """Return the cause of an error of Spark in one line."""
    text = str(error)
    if any(condition in text for condition in _MISSING):
        return _NO_FILE
    causes = _CAUSE.findall(text)
    return (causes[-1] if causes else text.strip().split("\n")[0])[:_REASON_LENGTH]


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


def files_of_batch(checkpoint: str, batch: int) -> list[str]:
    """Return the files of a micro-batch of Spark's file source, as its checkpoint lists them."""
    files, folder = filesystem(checkpoint)
    last = _source_offset(files, folder, batch)
    before = _source_offset(files, folder, batch - 1) if batch else -1
    logs = {int(name.removesuffix(".compact")): name for name in _names(files, f"{folder}/sources/0")}
    found = []
    # A compacted file repeats the entries of all files before it.
    for number in sorted(logs):
        entries = map(json.loads, _lines(files, f"{folder}/sources/0/{logs[number]}")[1:])
        found += [unquote(entry["path"]) for entry in entries if before < entry["batchId"] <= last]
    return sorted(set(found))


def last_batch(checkpoint: str) -> int:
    """Return the number of the last micro-batch that a query has started."""
    files, folder = filesystem(checkpoint)
    return max(map(int, _names(files, f"{folder}/offsets")))


def _source_offset(files: Any, folder: str, batch: int) -> int:
    offset: int = json.loads(_lines(files, f"{folder}/offsets/{batch}")[2])["logOffset"]
    return offset


def _names(files: Any, folder: str) -> list[str]:
    import pyarrow.fs as pafs

    names = [info.base_name for info in files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))]
    return [name for name in names if name.removesuffix(".compact").isdigit()]


def _lines(files: Any, path: str) -> list[str]:
    with files.open_input_file(path) as file:
        text: str = file.read().decode()
    return text.splitlines()


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
        return [Entry(**json.loads(_lines(files, f"{folder}/{name}")[0])) for name in names]

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


def _state(path: str) -> str:
    files, inner = filesystem(path)
    info = files.get_file_info(inner)
    return f"{info.size} bytes, {info.mtime_ns}" if info.is_file else _GONE


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
