"""The folders of segments in a message table of Parquet files, which a clean-up deletes or marks as a whole.

A writer or another clean-up may change a folder at any step: only files that were read and judged are deleted.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import uuid4

from spark_ext._filesystem import filesystem
from spark_ext._private import FILE_SINK_LOG
from spark_ext.tables._folder_values import NO_VALUE, bytes_of_folder
from spark_ext.tables.table_formats import MARKED, TableBusy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow.fs as pafs

RENAMES: Final = ("local", "hdfs")
"""Arrow's names of the file systems that rename a folder in one step."""
State = frozenset[tuple[str, int, Any]]
"""The data files of a folder, each with its size and modification time."""

_REMOVING: Final = ".removing-"
"""Prefix of a folder that has been renamed, and must be compared with the files that were checked."""
_REMOVED: Final = ".removed-"
"""Prefix of a folder that has been compared, and is being deleted."""
_OURS: Final = re.compile(rf"(?:{re.escape(_REMOVING)}|{re.escape(_REMOVED)})(?:[0-9a-f]{{32}}-)?(.+)")
_MARKING: Final = ".marking-"
BUSY: Final = ("_temporary", ".spark-staging")
"""Entries in a table's folder while Spark writes to it."""
_FOLDER: Final = re.compile(r"(\w+)=([^/]*)")
_LOGS: Final = {
    "_delta_log": "it is part of a Delta table; pass format='delta'",
    FILE_SINK_LOG: "Spark's own file sink manages it",
    ".hoodie": "it is part of a Hudi table",
}
_ICEBERG: Final = "it is part of an Iceberg table"


class SegmentFolders:
    """The folders of a message table.

    Raises
    ------
    ValueError
        if another system manages the folder, or it holds a symbolic link.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._files, base = filesystem(path)
        self._base = base.rstrip("/")
        self._check_unmanaged()
        self._keys: dict[tuple[Any, ...], str] = {}
        self._columns: tuple[str, ...] = ()

    def folder_of(self, values: Mapping[str, Any]) -> str:
        """Return the folder of a segment for the values of its columns."""
        return self._keys[tuple(values[name] for name in self._columns)]

    def list(self) -> dict[str, State]:
        """Return the folders of all segments, each with its data files.

        Raises
        ------
        TableBusy
            if the table is being written to.
        ValueError
            if a file is outside the segments' folders, or the files of a segment are in several folders.
        """
        found: dict[str, set[tuple[str, int, Any]]] = {}
        keys: dict[tuple[Any, ...], str] = {}
        self._check_links()
        for inner, info in self._entries(self._base):
            parts = inner.split("/")
            if any(part.startswith(BUSY) for part in parts):
                raise TableBusy(f"{self.path} is being written to: there is {inner}")
            for part in parts:
                if part in _LOGS:
                    raise ValueError(f"cannot clean {self.path}: there is {inner}, and {_LOGS[part]}")
            if not info.is_file or any(map(is_hidden, parts)):
                continue
            folder = inner.rpartition("/")[0]
            values = dict(_FOLDER.findall(folder))
            numbers = [values.get(name, NO_VALUE) for name in ("partition", "segment")]
            if not {"topic", "segment"} <= values.keys() or not all(map(_is_number, numbers)):
                raise ValueError(f"{self.path} is not partitioned by topic and segment: there is {inner}")
            self._columns = tuple(name for name in ("source", "topic", "partition", "segment") if name in values)
            key = tuple(_value(name, values[name]) for name in self._columns)
            if keys.setdefault(key, folder) != folder:
                raise ValueError(
                    f"segment {values['segment']} of topic {values['topic']!r} is in both {keys[key]} and {folder}"
                )
            found.setdefault(folder, set()).add((info.base_name, info.size, info.mtime_ns))
        self._keys = keys
        return {folder: frozenset(files) for folder, files in found.items()}

    def complete_removals(self) -> None:
        """Restore the folders that an earlier run renamed and did not compare, and delete the compared folders."""
        import pyarrow.fs as pafs

        for _, info in self._entries(self._base):
            match = _OURS.fullmatch(info.base_name)
            if match is None or info.type != pafs.FileType.Directory:
                continue
            if info.base_name.startswith(_REMOVED):
                with suppress(FileNotFoundError):  # another clean-up was first
                    self._files.delete_dir(info.path)
            else:
                self._put_back(info.path, f"{info.path.rpartition('/')[0]}/{match[1]}")

    def remove(self, folder: str, judged: State) -> str | None:
        """Delete a segment's folder if it still holds the checked files; return the reason if it is kept, or None."""
        path = f"{self._base}/{folder}"
        try:
            if self._files.type_name not in RENAMES:
                return self._remove_files(path, judged)
            parent, _, name = path.rpartition("/")
            unique = uuid4().hex
            hidden, gone = f"{parent}/{_REMOVING}{unique}-{name}", f"{parent}/{_REMOVED}{unique}-{name}"
            self._files.move(path, hidden)
            if self._state(hidden) != judged:
                self._put_back(hidden, path)
                return "its files have changed since they were read"
            self._files.move(hidden, gone)
        except FileNotFoundError:
            return "another process has removed it or put it back"
        except OSError as error:
            return f"cannot delete it: {error}"
        with suppress(OSError):  # readers skip it, and the next run deletes the rest
            self._files.delete_dir(gone)
        return None

    def mark(self, folder: str, judged: State) -> str | None:
        """Set the state in the checked files, and replace each as a whole; return the reason if they stay, or None."""
        try:
            for info in self._files.get_file_info([f"{self._base}/{folder}/{name}" for name, _, _ in sorted(judged)]):
                if (info.base_name, info.size, info.mtime_ns) not in judged:
                    return "its files have changed since they were read"
                self._mark(info)
        except OSError as error:
            return f"cannot mark it: {error}"
        return None

    def _mark(self, info: pafs.FileInfo) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.fs as pafs
        import pyarrow.parquet as pq

        with self._files.open_input_file(info.path) as file:
            held = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
            old_times = any(held.schema.column(n).physical_type == "INT96" for n in range(len(held.schema)))
            rows = held.read()
        if pc.all(pc.fill_null(pc.equal(rows["state"], MARKED), False)).as_py():
            return
        place = rows.column_names.index("state")
        marked = rows.set_column(place, rows.field(place), pa.repeat(pa.scalar(MARKED), rows.num_rows))
        parent = info.path.rpartition("/")[0]
        partial, sums = f"{parent}/{_MARKING}{info.base_name}", f"{parent}/.{info.base_name}.crc"
        with self._files.open_output_stream(partial) as out:
            pq.write_table(marked, out, use_deprecated_int96_timestamps=old_times)  # with the types that Spark wrote
        if self._files.get_file_info(sums).type == pafs.FileType.File:
            self._files.delete_file(sums)  # on a local disk, Hadoop's checksum of the old file
        self._files.move(partial, info.path)

    def _entries(self, folder: str) -> Iterator[tuple[str, pafs.FileInfo]]:
        """Yield the entries of a folder at any depth, each with its path in the folder."""
        import pyarrow.fs as pafs

        for info in self._files.get_file_info(pafs.FileSelector(folder, recursive=True)):
            yield info.path[len(folder) + 1 :], info

    def _state(self, folder: str) -> State:
        """Return the data files of a folder, at any depth."""
        return frozenset(
            (inner, info.size, info.mtime_ns)
            for inner, info in self._entries(folder)
            if info.is_file and not any(map(is_hidden, inner.split("/")))
        )

    def _remove_files(self, path: str, judged: State) -> str | None:
        """Delete only the files that were checked, on a store that cannot rename folders."""
        if self._state(path) != judged:
            return "its files have changed since they were read"
        for name, _, _ in judged:
            with suppress(FileNotFoundError):
                self._files.delete_file(f"{path}/{name}")
        return None

    def _put_back(self, hidden: str, path: str) -> None:
        """Restore the name of a folder; if a writer has created a new folder of that name, move the files into it."""
        import pyarrow.fs as pafs

        with suppress(FileNotFoundError):  # another clean-up has restored it
            if self._files.get_file_info(path).type == pafs.FileType.NotFound:
                with suppress(OSError):
                    self._files.move(hidden, path)
                    hidden = f"{path}/{hidden.rpartition('/')[2]}"  # HDFS moves a folder into one that is there
            if self._files.get_file_info(hidden).type == pafs.FileType.NotFound:
                return
            for inner, info in self._entries(hidden):
                if info.is_file and self._files.get_file_info(f"{path}/{inner}").type == pafs.FileType.NotFound:
                    self._files.create_dir(f"{path}/{inner}".rpartition("/")[0], recursive=True)
                    self._files.move(info.path, f"{path}/{inner}")
            if not self._state(hidden):
                self._files.delete_dir(hidden)

    def _check_unmanaged(self) -> None:
        """Check that the folder and its parents do not belong to a system that keeps its own list of files."""
        parts = self._base.split("/")
        around = ["/".join(parts[: number + 1]) for number in range(len(parts)) if parts[number]]
        for folder in reversed(around):
            try:
                found = self._manager_of(folder)
            except OSError:
                if folder == self._base:
                    raise
                break  # a parent folder without read permission
            if found is not None:
                raise ValueError(f"cannot clean {self.path}: there is {found[0]}, and {found[1]}")

    def _manager_of(self, folder: str) -> tuple[str, str] | None:
        """Return the name of an entry that shows that another system manages a folder, and the system."""
        import pyarrow.fs as pafs

        infos = self._files.get_file_info([f"{folder}/{name}" for name in (*_LOGS, "metadata")])
        found = [info for info in infos if info.type != pafs.FileType.NotFound]
        for info in found:
            if info.base_name in _LOGS:
                return info.path, _LOGS[info.base_name]
            if folder == self._base:
                return info.path, _ICEBERG
            if info.type == pafs.FileType.Directory:
                inside = self._files.get_file_info(pafs.FileSelector(info.path))
                if any(entry.base_name.endswith((".metadata.json", "version-hint.text")) for entry in inside):
                    return info.path, _ICEBERG
        return None

    def _check_links(self) -> None:
        """Check that a local table does not hold symbolic links: their targets may belong to another table."""
        if self._files.type_name != "local":
            return
        for folder, folders, files in os.walk(self._base):
            for name in (*folders, *files):
                if os.path.islink(os.path.join(folder, name)):
                    raise ValueError(f"cannot clean {self.path}: {os.path.join(folder, name)} is a symbolic link")


def is_hidden(name: str) -> bool:
    """Return whether Spark's readers skip a file or folder of this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _is_number(text: str) -> bool:
    return text == NO_VALUE or (text.isascii() and text.isdigit())


def _value(name: str, text: str) -> str | int | None:
    if text == NO_VALUE:
        return None
    return int(text) if name in ("partition", "segment") else bytes_of_folder(unquote(text)).decode(errors="replace")
