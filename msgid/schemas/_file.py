"""The file of a registry: locked by one writer at a time and replaced as a whole."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgid._validate import check_installed
from msgid.schemas._errors import InvalidSchema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of a file against other processes and against other threads of this process.

    The operating system releases the lock of a process that ends.

    Raises:
        TimeoutError: if another process or thread holds the lock for more than ``timeout`` seconds.
    """
    check_installed("a registry in a file", "schemas", "filelock")
    import filelock

    # Each change has its own lock object, because two threads with the same object would both hold the lock.
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout:
        raise TimeoutError(f"cannot lock {path}: another writer holds the lock for {timeout:g} seconds") from None
    try:
        yield
    finally:
        lock.release()


def read_json(path: Path) -> Any:
    """Return the JSON value of a file, or None if the file is missing.

    Raises:
        InvalidSchema: if the content is not JSON.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"{path} is not a schema registry: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Replace a file as a whole; the caller holds its lock.

    A reader finds either the old content or the new one. The temporary file has one name, so a writer that was killed
    leaves at most one file, which the next writer overwrites.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
