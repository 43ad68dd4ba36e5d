"""A disk in memory, as the sinks use it; each operation of a process is one step of the scheduler."""

from __future__ import annotations

import io
import posixpath
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simulation.processes import Process
    from simulation.scheduler import Scheduler


class Disk:
    """Files by their paths, and the folders that exist."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders = {"/"}

    def create(self, path: str, content: bytes = b"") -> None:
        """Create or replace a file."""
        self.files[path] = content
        self.add_folder(posixpath.dirname(path))

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


class TableFiles:
    """The part of Arrow's file systems that the sinks use, as one process sees the disk.

    Each operation is a step, and may fail before or after it is done.

    Args:
        kind: ``local`` (a rename fails if the folder exists), ``hdfs`` (a rename moves into it), or ``s3``.
    """

    def __init__(self, disk: Disk, process: Process, scheduler: Scheduler, faults: float, kind: str) -> None:
        self.disk = disk
        self._process = process
        self._scheduler = scheduler
        self._faults = faults
        self.type_name = kind

    def _do(self, name: str, operation: Callable[[], Any]) -> Any:
        self._process.step(name)
        if self._scheduler.fault(self._faults):
            raise OSError(f"before {name}")
        result = operation()
        if self._scheduler.fault(self._faults):
            raise OSError(f"after {name}")
        return result

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
            return io.BytesIO(self.disk.files[path])

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
            return pafs.FileInfo(path, pafs.FileType.File, size=len(self.disk.files[path]))
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
