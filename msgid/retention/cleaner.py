"""The cleaner: removes the expired segments of a folder of Iggy's ``.log`` files, whole ones and never the open one.

A segment is its ``.log`` file, named by its first offset, with the indexes of the same name beside it. It is there as
long as the ``.log`` file is, and that file goes first and at once; what is left beside it when a run was cut short goes
in the next.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from msgid.errors import InvalidMessage
from msgid.iggy.log import read_log
from msgid.retention.policy import Segment, is_removable

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from msgid.iggy._wire import Layout
    from msgid.retention.policy import RetentionPolicy

__all__ = ["Cleaner", "Files", "SegmentFile", "now_in_microseconds"]

_SEGMENT: Final = re.compile(r"(\d{20})\.log", re.ASCII)
_BESIDE: Final = re.compile(r"(\d{20})\.(?:index|timeindex)", re.ASCII)
_TOPIC: Final = "topics"
"""Iggy's folders: streams/1/topics/2/partitions/3."""


class SegmentFile(NamedTuple):
    """A segment, where it is, and what the policy says of it."""

    path: str
    topic: str | None
    segment: Segment
    expired: bool
    """Closed, and all of its messages have expired: it goes."""
    reason: str | None = None
    """Why it stays although it is closed: it does not decode to its end."""


class Files(Protocol):
    """What the cleaner does to files: `OsFiles`, or what a test puts in its place."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Give the folders in a folder, itself included, each with the names of its files."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def sync(self, folder: str) -> None:
        """Have what was removed from a folder written to the disk."""


class OsFiles:
    """The files of the machine."""

    def walk(self, folder: str) -> list[tuple[str, list[str]]]:
        """Give the folders in a folder, each with the names of its files; FileNotFoundError if it is none."""
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"no folder {folder}")
        return [(inner, sorted(names)) for inner, _, names in sorted(os.walk(folder))]

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return open(path, "rb")  # whoever asked for it closes it

    def remove(self, path: str) -> None:
        """Remove a file, which may be gone already."""
        Path(path).unlink(missing_ok=True)

    def sync(self, folder: str) -> None:
        """Have what was removed from a folder written to the disk, where the system can do that."""
        if os.name == "posix":
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def now_in_microseconds() -> int:
    """Give the time, microseconds since 1970."""
    return time.time_ns() // 1000


class Cleaner:
    """Finds and removes what has expired.

    Args:
        folder: in which the segments are, at any depth.
        policy: how long what is kept, by topic; the topic is read from the folder ``topics/NAME``.
        layout: of the messages.
        files: what works on the files.
        clock: gives the time, microseconds since 1970.

    >>> import tempfile
    >>> from msgid.iggy import Message, encode
    >>> from msgid.retention import RetentionPolicy
    >>> folder = tempfile.mkdtemp()
    >>> for offset in (0, 1):
    ...     _ = Path(folder, f"{offset:020d}.log").write_bytes(encode(Message.new(b"", id=1, offset=offset)))
    >>> cleaner = Cleaner(folder, RetentionPolicy(default_expiry=60))
    >>> [(Path(found.path).name, found.segment.closed, found.expired) for found in cleaner.clean()]
    [('00000000000000000000.log', True, True), ('00000000000000000001.log', False, False)]
    >>> _ = cleaner.clean(dry_run=False)
    >>> os.listdir(folder)
    ['00000000000000000001.log']
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        policy: RetentionPolicy,
        *,
        layout: Layout = "current",
        files: Files | None = None,
        clock: Callable[[], int] = now_in_microseconds,
    ) -> None:
        self.folder = os.fspath(folder)
        self.policy = policy
        self.layout: Layout = layout
        self._files: Files = OsFiles() if files is None else files
        self._clock = clock

    def clean(self, *, dry_run: bool = True) -> list[SegmentFile]:
        """Say what each segment is and whether it has expired, and unless it is a dry run remove those.

        Whatever happens in between, a segment is whole or gone, and the next run does what is left to do.

        Args:
            dry_run: remove nothing.

        Returns:
            all segments that were there, folder by folder, in the order of their offsets.

        Raises:
            FileNotFoundError: there is no such folder.
        """
        if not self.policy.enabled:
            return []
        now = self._clock()
        report: list[SegmentFile] = []
        for folder, names in self._files.walk(self.folder):
            firsts = [match[1] for match in map(_SEGMENT.fullmatch, names) if match]
            found = [self._look(folder, first, first != firsts[-1], now) for first in firsts]
            report += found
            if dry_run or not firsts:
                continue
            for segment in found:
                if segment.expired:
                    self._files.remove(segment.path)
                    self._files.sync(folder)  # before the indexes: the disk never has them without the log
            gone = {first for first, segment in zip(firsts, found, strict=True) if segment.expired}
            # Also of what a run before this one removed; not after the open one, whose log may be yet to come.
            for match in filter(None, map(_BESIDE.fullmatch, names)):
                if match[1] in gone or (match[1] not in firsts and match[1] < firsts[-1]):
                    self._files.remove(os.path.join(folder, match[0]))
        return report

    def run(self, stop: threading.Event) -> None:
        """Clean at once and then at every interval, until ``stop`` is set; not at all where the policy is disabled."""
        while self.policy.enabled:
            self.clean(dry_run=False)
            if stop.wait(self.policy.interval):
                return

    def _look(self, folder: str, first: str, closed: bool, now: int) -> SegmentFile:
        path = os.path.join(folder, f"{first}.log")
        topic = _topic_of(folder)
        last = latest = reason = None
        with self._files.open(path) as file:
            try:
                for message in read_log(file, self.layout):
                    last = message.offset
                    latest = message.timestamp if latest is None else max(latest, message.timestamp)
            except InvalidMessage as error:
                reason = str(error)
            size = file.seek(0, os.SEEK_END)
        segment = Segment(int(first), last, size, closed, latest)
        expired = reason is None and is_removable(segment, self.policy.expiry_of(topic), now)
        return SegmentFile(path, topic, segment, expired, reason if closed else None)


def _topic_of(folder: str) -> str | None:
    """Give the name after the last folder ``topics``."""
    parts = Path(folder).parts
    places = [place for place, part in enumerate(parts[:-1]) if part == _TOPIC]
    return parts[places[-1] + 1] if places else None
