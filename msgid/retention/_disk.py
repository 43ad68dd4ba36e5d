"""The file operations of the cleaner. A test replaces them to stop the cleaner at any operation."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from msgid.retention._holders import holders

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from msgid.retention._holders import Holder

State = tuple[int, int, int, int]
"""Device, inode, size and modification time: they differ between a file and a later file of the same name."""


class Files(Protocol):
    """File operations of the cleaner: `OsFiles`, or those of a test."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Return the folders in a folder, itself included, each with the names of its files."""

    def lock(self, folder: str) -> AbstractContextManager[None]:
        """Lock a folder against other cleaners, if the system supports it."""

    def state(self, path: str) -> State | None:
        """Return the state of a file; None if the path is not a regular file."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file."""

    def restore(self, path: str, to: str) -> bool:
        """Rename a file unless the new name is taken; return whether it was renamed."""

    def remove(self, path: str) -> None:
        """Delete a file."""

    def sync(self, folder: str) -> None:
        """Write the deletions in a folder to the disk."""

    def holders(self, paths: Collection[str]) -> list[Holder]:
        """Return the other processes that hold files open, or files of the server to which these belong."""


class OsFiles:
    """File operations of the operating system."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Return the folders in a folder, each with the names of its files.

        Links to folders are not followed. A folder that is deleted during the call is left out.

        Raises:
            FileNotFoundError: if the folder is missing.
            OSError: if a folder cannot be read.
        """
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"no folder {folder}")
        return [(inner, sorted(names)) for inner, _, names in sorted(os.walk(folder, onerror=_unless_gone))]

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Lock a folder against other cleaners. Windows and some network file systems do not support the lock."""
        if fcntl is None:
            yield
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def state(self, path: str) -> State | None:
        """Return the state of a file; None if the path is a link, a pipe or a folder."""
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return open(path, "rb")  # the caller closes it

    def rename(self, path: str, to: str) -> None:
        """Rename a file."""
        os.rename(path, to)

    def restore(self, path: str, to: str) -> bool:
        """Rename a file unless the new name is taken; return whether it was renamed."""
        try:
            os.link(path, to)  # unlike a rename, it never replaces a file
        except FileNotFoundError:
            return False
        except FileExistsError:
            if not os.path.samefile(path, to):
                return False
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK) and os.name == "posix":
                raise
            if os.path.lexists(to):  # a file system without links
                return False
            os.rename(path, to)
            return True
        self.remove(path)
        return True

    def remove(self, path: str) -> None:
        """Delete a file; a missing file is not an error."""
        Path(path).unlink(missing_ok=True)

    def sync(self, folder: str) -> None:
        """Write the deletions in a folder to the disk, if the system supports it."""
        if os.name == "posix":
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def holders(self, paths: Collection[str]) -> list[Holder]:
        """Return the other processes that hold files open; only Linux shows them, and only those of the same user."""
        return holders(paths)


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
