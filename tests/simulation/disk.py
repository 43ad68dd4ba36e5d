"""A disk in memory, as the cleaner and the sinks use it; each operation of a process is one step of the scheduler."""

from __future__ import annotations

import io
import itertools
import posixpath
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulation.processes import Process
    from simulation.scheduler import Scheduler


class Inode:
    """The content of a file, whatever its name is."""

    def __init__(self, number: int, content: bytes, changed: int) -> None:
        self.number, self.content, self.changed = number, content, changed


class Disk:
    """Files by their paths, and the folders that exist."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._numbers = itertools.count(1)
        self.files: dict[str, Inode] = {}
        self.folders = {"/"}

    def create(self, path: str, content: bytes = b"") -> Inode:
        """Create or replace a file."""
        inode = self.files[path] = Inode(next(self._numbers), content, self._scheduler.now)
        self.add_folder(posixpath.dirname(path))
        return inode

    def write(self, inode: Inode, content: bytes) -> None:
        """Replace the content of a file; its time of change rises, as the numbers of a clock with fine steps do."""
        inode.content, inode.changed = content, max(self._scheduler.now, inode.changed + 1)

    def add_folder(self, path: str) -> None:
        """Create a folder and the folders above it."""
        while path not in self.folders:
            self.folders.add(path)
            path = posixpath.dirname(path)

    def inside(self, folder: str) -> list[str]:
        """Return the paths of all files and folders below a folder."""
        prefix = folder.rstrip("/") + "/"
        return sorted(path for path in (*self.files, *self.folders) if path.startswith(prefix))

    def remove_tree(self, folder: str) -> None:
        """Delete a folder with all that is in it."""
        for path in (*self.inside(folder), folder):
            self.files.pop(path, None)
            self.folders.discard(path)

    def move_tree(self, folder: str, to: str) -> None:
        """Rename a folder."""
        for path in (*self.inside(folder), folder):
            new = to + path[len(folder) :]
            if path in self.files:
                self.files[new] = self.files.pop(path)
            else:
                self.folders.discard(path)
                self.folders.add(new)


class _Seen:
    """The disk as one process sees it: each operation is a step, and may fail before or after it is done."""

    def __init__(self, disk: Disk, process: Process, scheduler: Scheduler, faults: float) -> None:
        self.disk = disk
        self._process = process
        self._scheduler = scheduler
        self._faults = faults

    def _do(self, name: str, operation: Callable[[], Any]) -> Any:
        self._process.step(name)
        if self._scheduler.fault(self._faults):
            raise OSError(f"before {name}")
        result = operation()
        if self._scheduler.fault(self._faults):
            raise OSError(f"after {name}")
        return result


class CleanerFiles(_Seen):
    """The file operations of the cleaner, `msgid.retention`."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Return the folders in a folder, each with the names of its files."""

        def walk() -> list[tuple[str, list[str]]]:
            if folder not in self.disk.folders:
                raise FileNotFoundError(folder)
            found = [path for path in (folder, *self.disk.inside(folder)) if path in self.disk.folders]
            return [
                (path, sorted(posixpath.basename(file) for file in self.disk.files if posixpath.dirname(file) == path))
                for path in found
            ]

        return self._do(f"walk {folder}", walk)  # type: ignore[no-any-return]

    def state(self, path: str) -> tuple[int, int, int, int]:
        """Return the state of a file."""

        def state() -> tuple[int, int, int, int]:
            inode = self._inode(path)
            return 1, inode.number, len(inode.content), inode.changed

        return self._do(f"state {path}", state)  # type: ignore[no-any-return]

    def open(self, path: str) -> io.BytesIO:
        """Open a file for reading."""
        return self._do(f"open {path}", lambda: io.BytesIO(self._inode(path).content))  # type: ignore[no-any-return]

    def remove(self, path: str) -> None:
        """Delete a file."""

        def remove() -> None:
            self._inode(path)
            del self.disk.files[path]

        self._do(f"remove {path}", remove)

    def sync(self, folder: str) -> None:
        """Write the deletions in a folder to the disk."""
        self._do(f"sync {folder}", lambda: None)

    def _inode(self, path: str) -> Inode:
        if path not in self.disk.files:
            raise FileNotFoundError(path)
        return self.disk.files[path]


class TableFiles(_Seen):
    """The part of Arrow's file systems that the sinks use.

    Args:
        kind: ``local`` (a rename fails if the folder exists), ``hdfs`` (a rename moves into it), or ``s3``.
    """

    def __init__(self, disk: Disk, process: Process, scheduler: Scheduler, faults: float, kind: str) -> None:
        super().__init__(disk, process, scheduler, faults)
        self.type_name = kind

    def get_file_info(self, asked: Any) -> Any:
        """Return the entry at a path, or those in the folder of a selector."""
        if isinstance(asked, str):
            return self._do(f"look at {asked}", lambda: self._info(asked))
        folder = asked.base_dir.rstrip("/")
        return self._do(
            f"list {folder}",
            lambda: [
                self._info(path)
                for path in self.disk.inside(folder)
                if asked.recursive or posixpath.dirname(path) == folder
            ],
        )

    def create_dir(self, path: str, *, recursive: bool = True) -> None:
        """Create a folder."""
        self._do(f"create {path}", lambda: self.disk.add_folder(path))

    def open_input_file(self, path: str) -> io.BytesIO:
        """Open a file for reading."""

        def opened() -> io.BytesIO:
            if path not in self.disk.files:
                raise FileNotFoundError(path)
            return io.BytesIO(self.disk.files[path].content)

        return self._do(f"read {path}", opened)  # type: ignore[no-any-return]

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[io.BytesIO]:
        """Write a file: a killed process leaves an empty one, except on S3."""
        if self.type_name != "s3":
            self._do(f"create {path}", lambda: self.disk.create(path))
        buffer = io.BytesIO()
        yield buffer
        self._do(f"write {path}", lambda: self.disk.create(path, buffer.getvalue()))

    def move(self, path: str, to: str) -> None:
        """Rename a file or folder."""
        self._do(f"move {path} to {to}", lambda: self._move(path, to))

    def delete_file(self, path: str) -> None:
        """Delete a file."""

        def delete() -> None:
            if path not in self.disk.files:
                raise FileNotFoundError(path)
            del self.disk.files[path]

        self._do(f"delete {path}", delete)

    def delete_dir(self, path: str) -> None:
        """Delete a folder file by file, as every store does."""
        if path not in self.disk.folders:
            raise FileNotFoundError(path)
        for inner in self.disk.inside(path):
            if inner in self.disk.files:
                self._do(f"delete {inner}", lambda inner=inner: self.disk.files.pop(inner, None))
        self._do(f"delete {path}", lambda: self.disk.remove_tree(path))

    def write_part(self, path: str, content: bytes) -> None:
        """Write a file as a task of Spark does."""
        self._do(f"task writes {path}", lambda: self.disk.create(path, content))

    def _info(self, path: str) -> pafs.FileInfo:
        if path in self.disk.files:
            inode = self.disk.files[path]
            return pafs.FileInfo(path, pafs.FileType.File, size=len(inode.content), mtime_ns=inode.changed)
        found = path in self.disk.folders
        return pafs.FileInfo(path, pafs.FileType.Directory if found else pafs.FileType.NotFound)

    def _move(self, path: str, to: str) -> None:
        if path in self.disk.files:
            if self.type_name == "hdfs" and to in self.disk.files:
                raise FileExistsError(to)
            self.disk.files[to] = self.disk.files.pop(path)
            return
        if path not in self.disk.folders or posixpath.dirname(to) not in self.disk.folders:
            raise FileNotFoundError(path)
        if to in self.disk.folders:
            if self.type_name == "hdfs":
                to = f"{to}/{posixpath.basename(path)}"
            elif self.disk.inside(to):
                raise FileExistsError(to)
        self.disk.move_tree(path, to)
