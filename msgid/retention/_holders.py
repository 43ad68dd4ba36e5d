"""The processes that hold files open, as Linux shows them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_PROCESSES: Final = "/proc"
_STREAMS: Final = "streams"
_OF_SERVER: Final = ("logs", "metadata", "state")
"""The folders beside ``streams`` in which a server has files of its own: its log and its journal."""
_GONE: Final = " (deleted)"


class Holder(NamedTuple):
    """A process that holds a file open."""

    pid: int
    name: str
    """The name of its program."""
    path: str
    """The path of the file, as it was asked for."""
    writes: bool
    """Whether the process can write to the file."""

    def __str__(self) -> str:
        """Return the process and the file."""
        verb = "can write to" if self.writes else "reads"
        return f"process {self.pid} ({self.name}) {verb} {self.path}"


def holders(paths: Collection[str]) -> list[Holder]:
    """Return the other processes that hold files open, or files of the server to which these belong.

    Only Linux shows them, and only those of the same user, or all to root. A process is looked at once.

    Args:
        paths: The paths of segments and indexes.
    """
    wanted: dict[tuple[int, int], str] = {}
    for path in (*paths, *_server_files(paths)):
        with suppress(OSError):
            status = os.stat(path)
            wanted[status.st_dev, status.st_ino] = path
    names = {os.path.basename(path) for path in wanted.values()}
    found: list[Holder] = []
    for pid in _others():
        for handle, writes in _opened(pid, names):
            path = wanted.get(handle, "")
            if path:
                found.append(Holder(pid, _name(pid), path, writes))
    return found


def _server_files(paths: Collection[str]) -> Iterator[str]:
    """Yield the files that a server has beside the folder ``streams`` of segments."""
    roots = set()
    for folder in {os.path.dirname(os.path.abspath(path)) for path in paths}:
        parts = Path(folder).parts
        roots |= {os.path.join(*parts[:place]) for place, part in enumerate(parts) if part == _STREAMS and place}
    for root in sorted(roots):
        for inner in _OF_SERVER:
            with suppress(OSError):
                yield from (entry.path for entry in os.scandir(os.path.join(root, inner)) if entry.is_file())


def _others() -> list[int]:
    """Return the other processes; none on a system that does not list them."""
    try:
        return [int(name) for name in os.listdir(_PROCESSES) if name.isdecimal() and int(name) != os.getpid()]
    except OSError:
        return []


def _opened(pid: int, names: Collection[str]) -> Iterator[tuple[tuple[int, int], bool]]:
    """Yield device and inode of a process's open files with such names, and whether it can write to them.

    Names are compared first, because the state of a file on a network may take long.
    """
    folder = f"{_PROCESSES}/{pid}/fd"
    try:
        handles = os.listdir(folder)
    except OSError:  # it has ended, or belongs to another user
        return
    for handle in handles:
        with suppress(OSError, ValueError):
            target = os.readlink(f"{folder}/{handle}")
            if os.path.basename(target.removesuffix(_GONE)) in names:
                status = os.stat(f"{folder}/{handle}")
                yield (status.st_dev, status.st_ino), _writes(pid, handle)


def _writes(pid: int, handle: str) -> bool:
    for line in Path(f"{_PROCESSES}/{pid}/fdinfo/{handle}").read_text("ascii", "replace").splitlines():
        if line.startswith("flags:"):
            return int(line.partition(":")[2], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"{_PROCESSES}/{pid}/comm").read_text("utf-8", "replace").strip()
    return "unknown"
