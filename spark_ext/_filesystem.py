"""Files, wherever they are: a path or URL to the Arrow filesystem that it is on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.fs as pafs

__all__ = ["filesystem"]


def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
    """Give the filesystem that a path or URL is on, and the path in it."""
    import pyarrow.fs as pafs

    if "://" in path or path.startswith("file:"):
        if path.startswith("s3a://"):  # Hadoop's name of the same
            path = f"s3{path[3:]}"
        files, inner = pafs.FileSystem.from_uri(path)
        return files, inner
    return pafs.LocalFileSystem(), str(Path(path).absolute())
