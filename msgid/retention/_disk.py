"""The file operations of the cleaner. A test replaces them to stop the cleaner at any operation."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

State = tuple[int, int, int, int]
"""Device, inode, size and modification time: they differ between a file and a later file of the same name."""


class OsFiles:
    """File operations of the operating system."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Return the folders in a folder, itself included, each with the names of its files.

        Links to folders are not followed. A folder that is deleted during the call is left out.

        Raises:
            FileNotFoundError: if the folder is missing.
            OSError: if a folder cannot be read.
        """
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"no folder {folder}")
        return [(inner, sorted(names)) for inner, _, names in sorted(os.walk(folder, onerror=_unless_gone))]

    def state(self, path: str) -> State | None:
        """Return the state of a file; None if the path is a link, a pipe or a folder."""
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode):
            return None
        return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return open(path, "rb")  # the caller closes it

    def remove(self, path: str) -> None:
        """Delete a file."""
        os.unlink(path)

    def sync(self, folder: str) -> None:
        """Write the deletions in a folder to the disk, if the system supports it."""
        if os.name == "posix":
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
