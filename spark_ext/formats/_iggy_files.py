"""Iggy's segment files on any file system: where they are, and their bytes."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from msgid._retrying import retry, within
from msgid.iggy._gaps import File, reach
from msgid.iggy._marks import ENDING, Seen, first_offset
from msgid.iggy._wire import AUTO
from msgid.iggy.index import Blocks
from msgid.iggy.parts import detect_file, last_starts, offset_after
from spark_ext._filesystem import filesystem, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.fs as pafs

    from msgid.iggy.index import IndexBytes

_PAUSE: Final = 0.5
"""How many seconds pass between two looks at a path that is away."""


def is_segment(path: str) -> bool:
    """Return whether a file in a folder is a segment; a server keeps other ``.log`` files there, too."""
    return path.endswith(ENDING) and first_offset(path) is not None


def segments(path: str) -> list[tuple[str, int]]:
    """Return the segment files of a path or URL, with their sizes, in the order of their names.

    Raises:
        FileNotFoundError: if nothing is at the path.
    """
    folder = SegmentFolder(path)
    return sorted((folder.file(seen.name), seen.size) for seen in folder.seen())


class SegmentFolder:
    """The segments of a path or URL: of a folder with all folders in it, or one file.

    Args:
        path: The path or URL.
        layout: The layout of all segments, or ``auto``.
    """

    def __init__(self, path: str, layout: Any = AUTO) -> None:
        import pyarrow.fs as pafs

        self.layout = layout
        self._path = path
        self._files, self._inner = filesystem(path)
        self._base = _one_name(path)
        self._local = isinstance(self._files, pafs.LocalFileSystem)

    def seen(self) -> list[Seen]:
        """Return all segments.

        Raises:
            FileNotFoundError: if nothing is at the path.
        """
        import pyarrow.fs as pafs

        found = self._root()
        if found.type == pafs.FileType.File:
            return [_seen(found, self._inner.rpartition("/")[2])]
        if self._local:
            # Sizes are asked for after all names are known: a server ends a segment before it makes the next.
            return list(_stats(self._inner, _local_names(self._inner)))
        inside = self._files.get_file_info(pafs.FileSelector(self._inner, recursive=True))
        return [
            _seen(info, info.path[len(self._inner) + 1 :])
            for info in inside
            if info.type == pafs.FileType.File and is_segment(info.path)
        ]

    def _root(self) -> Any:
        import pyarrow.fs as pafs

        found = self._files.get_file_info(self._inner)
        if found.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"no file or folder {self._path}")
        return found

    def wait(self, seconds: int) -> None:
        """Wait until something is at the path, such as a mount that is away for a moment.

        Raises:
            OSError: if nothing is there after so many seconds.
        """
        try:
            retry(self._root, lambda error: isinstance(error, OSError), within(seconds, lambda: _PAUSE))
        except OSError as error:
            raise OSError(f"{error} (looked for {seconds} seconds)") from None

    def inner(self, file: str) -> str | None:
        """Return the path within the folder of a file, however the file's path is spelled; None if it is elsewhere."""
        path = os.path.abspath(file) if self._local and os.path.isabs(file) else _one_name(file)
        for root in (self._base, self._inner):  # earlier offsets name files of a mount by their place on the disk
            if path == root:
                return path.rpartition("/")[2]
            folder = f"{root.rstrip('/')}/"
            if path.startswith(folder):
                return path.removeprefix(folder)
        return None

    def file(self, name: str) -> str:
        """Return the whole path or URL of a segment."""
        return self._base if self._is_single(name) else f"{self._base.rstrip('/')}/{name}"

    def _is_single(self, name: str) -> bool:
        return self._base.endswith(f"/{name}") and self._base.endswith(ENDING)

    @contextmanager
    def open(self, name: str) -> Iterator[OpenSegment]:
        """Open a segment.

        Raises:
            FileNotFoundError: if it is gone.
        """
        path = self._inner if self._is_single(name) else f"{self._inner}/{name}"
        with self._files.open_input_file(path) as file:
            opened = OpenSegment(self._files, path, file, self.layout)
            try:
                yield opened
            finally:
                opened.close()


class OpenSegment:
    """An open segment, and its index."""

    def __init__(self, files: pafs.FileSystem, path: str, file: Any, layout: Any) -> None:
        self._files = files
        self._path = path
        self._file = file
        self._asked = layout
        self._index: Any = None
        self._layout: Any = None
        self.first_offset = first_offset(path)
        self.size = int(file.size())

    def bytes_at(self, position: int, length: int) -> bytes:
        """Return bytes of the segment, fewer at its end."""
        return bytes(self._file.read_at(length, position)) if length > 0 else b""

    @property
    def layout(self) -> Any:
        """The layout that is asked for, or else that of the first record; ``auto`` if that is not known."""
        if self._layout is None:
            found = self._asked
            if found == AUTO:
                found = detect_file(self.bytes_at, self.size, first_offset=self.first_offset or 0).layout or AUTO
            self._layout = found
        return self._layout

    def until(self, end: int) -> File:
        """Return the segment as if it ended at a position."""
        return File(self.bytes_at, end, self.layout, self.first_offset, self._index_bytes())

    def boundary(self, target: int, first: int) -> int:
        """Return the first record's start at a target or after it, or where the last whole record ends."""
        return reach(self.until(self.size), target, first, waits=True)[0]

    def starts(self, first: int, stop: int) -> list[int]:
        """Return where the last records before a place start, at least one, in their order."""
        return last_starts(
            self.bytes_at,
            stop,
            start=first,
            index=self._index_bytes(),
            layout=self.layout,
            first_offset=self.first_offset or 0,
        )

    def after(self, start: int, stop: int) -> int | None:
        """Return the offset after that of the record between two places; None if it does not end at the second one."""
        return offset_after(self.bytes_at, start, stop, layout=self.layout, first_offset=self.first_offset or 0)

    @property
    def is_indexed(self) -> bool:
        """Whether the segment has an index beside it."""
        return self._index_bytes() is not None

    def _index_bytes(self) -> IndexBytes | None:
        path = f"{self._path.removesuffix(ENDING)}.index"
        if self._index is None:
            with suppress(FileNotFoundError):
                self._index = self._files.open_input_file(path)
        if self._index is None:
            return None
        read: Callable[[int, int], bytes] = lambda position, length: bytes(self._index.read_at(length, position))  # noqa: E731
        return Blocks(read, int(self._index.size()))

    def close(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._index.close()


def _one_name(path: str) -> str:
    """Return the one name of a place, however its path is spelled."""
    path = resolve(path)
    return os.path.abspath(path) if os.path.isabs(path) else path


def _seen(info: Any, name: str) -> Seen:
    return Seen(name, int(info.size or 0), (info.mtime_ns or 0) // 1_000_000)


def _local_names(root: str) -> list[str]:
    """Return the segments within a folder of the disk; each folder once, whatever links lead to it."""
    found: list[str] = []
    visited: set[tuple[int, int]] = set()
    folders: list[str] = [root]
    links: list[str] = []
    while folders or links:
        # Links come last, so that a folder has its own name where it has one.
        folder = folders.pop() if folders else links.pop(0)
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:  # deleted since it was listed
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_symlink() and entry.is_dir():
                links.append(entry.path)
            elif is_segment(entry.name) and entry.is_file():
                found.append(entry.path)
    return found


def _stats(root: str, paths: list[str]) -> Iterator[Seen]:
    for path in paths:
        with suppress(FileNotFoundError):
            status = os.stat(path)
            yield Seen(path[len(root.rstrip("/")) + 1 :], status.st_size, status.st_mtime_ns // 1_000_000)
