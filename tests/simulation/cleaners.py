"""The world of cleaners: a server that writes, rotates, recovers and recreates a partition, and two cleaners.

The shadow state has each segment of the server. A segment may be missing only if it was closed and all of its messages
had expired, or if the server itself deleted it.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, NamedTuple

from msgid.iggy import Message, encode
from msgid.retention import Cleaner, RetentionPolicy
from simulation.disk import CleanerFiles, Disk, Inode
from simulation.processes import Process
from simulation.scheduler import SECOND, Operation, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulation.scheduler import Scheduler

PARTITION = "/data/streams/1/topics/2/partitions/3"
EXPIRY = 3600
POLICY = RetentionPolicy(default_expiry=EXPIRY)
BESIDE = (".index", ".timeindex")


class Written(NamedTuple):
    """A segment of the server."""

    first: int
    inode: Inode
    times: list[int]
    """The times of its messages."""
    names: set[str]
    """The names under which the server created its files."""


class Cleaners:
    """A server and two cleaners on one partition."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.disk = Disk(scheduler)
        self.latest = scheduler.now
        """The latest time that a cleaner may have read."""
        self.segments: list[Written] = []
        self.torn = False
        faults = 0.02 if scheduler.chance(0.5) else 0.0
        self.cleaners = [Process(f"cleaner {number}", scheduler) for number in range(2)]
        self._files = [CleanerFiles(self.disk, process, scheduler, faults) for process in self.cleaners]
        self._known: list[Cleaner | None] = [None, None]
        self._create(0)

    def operations(self) -> Sequence[Operation]:
        """Return the operations that are possible now."""
        found = [Operation(4, "move the clock", self._move_clock)]
        if self.torn:
            found.append(Operation(6, "server recovers", self._recover))
        else:
            found += [
                Operation(12, "server appends", self._append),
                Operation(4, "server rotates", self._rotate),
                Operation(1, "server crashes within a message", self._tear),
                Operation(1, "server deletes its oldest segment", self._delete),
            ]
        if self.scheduler.mode == "any":
            # Between the last look at a file and its deletion, a server must not create another file of this name.
            is_checked = any(each.is_running and each.next_step.startswith("remove ") for each in self.cleaners)
            if not is_checked:
                found.append(Operation(1, "server recreates the partition", self._recreate))
        for place, cleaner in enumerate(self.cleaners):
            found += cleaner.operations(lambda place=place: self._clean(place))
        return found

    def check(self) -> None:
        """Each segment that must exist has its bytes somewhere, and its name unless a cleaner is at work."""
        held = {id(inode) for inode in self.disk.files.values()}
        for segment in self.segments:
            if id(segment.inode) not in held and not self._may_go(segment, self.latest):
                raise Violation(f"the segment {segment.first} was deleted: {len(segment.times)} messages")

    def finish(self) -> None:
        """Expired segments are gone or reported with a reason; all others are whole under their names."""
        if self.torn:
            self._recover()
        self._append()  # an empty last segment does not show that offsets before it are missing
        while any(cleaner.is_running for cleaner in self.cleaners):
            for cleaner in self.cleaners:
                if cleaner.is_running:
                    cleaner.go_on()
        for place, cleaner in enumerate(self.cleaners):
            self._clean(place)
            cleaner.finish()
            self.check()
            reported = {found.path for found in cleaner.result[1] if found.reason}
        self._check_names(reported)
        self._check_segments(reported)

    def _check_names(self, reported: set[str]) -> None:
        active = self.segments[-1].first
        for path in self.disk.files:
            name = posixpath.basename(path)
            is_known = any(name in segment.names for segment in self.segments) or path in reported
            if name.endswith(".log") and not is_known and int(name[:20]) < active:
                raise Violation(f"{name} belongs to no segment")

    def _check_segments(self, reported: set[str]) -> None:
        for segment in self.segments:
            path = self._path(segment.first)
            if self._may_go(segment, self.scheduler.now) and path in self.disk.files and path not in reported:
                raise Violation(f"{path} has expired, and is still there without a reason")
            if not self._may_go(segment, self.latest):
                if self.disk.files.get(path) is not segment.inode:
                    raise Violation(f"{path} is not the segment that the server wrote")
                lost = [name for name in segment.names if f"{PARTITION}/{name}" not in self.disk.files]
                if lost:
                    raise Violation(f"{path} is kept without {lost}")

    def close(self) -> None:
        """End the processes."""
        for cleaner in self.cleaners:
            if cleaner.is_running:
                cleaner.kill()

    def _may_go(self, segment: Written, now: int) -> bool:
        is_active = segment is self.segments[-1]
        return not is_active and all(time + EXPIRY * SECOND <= now for time in segment.times)

    def _path(self, first: int) -> str:
        return f"{PARTITION}/{first:020d}.log"

    def _move_clock(self) -> None:
        self.scheduler.move_clock()
        self.scheduler.now = max(self.scheduler.now, 0)

    def _clean(self, place: int) -> None:
        def now() -> int:
            self.latest = max(self.latest, self.scheduler.now)
            return self.scheduler.now

        cleaner = self._known[place]
        if cleaner is None or self.cleaners[place].error is not None or self.scheduler.chance(0.3):  # a new process
            cleaner = Cleaner("/data", POLICY, layout="m45", _files=self._files[place], clock=now)
        self._known[place] = cleaner

        def call() -> Any:
            try:
                return cleaner.clean(apply=True)
            except OSError as error:
                return error

        self.cleaners[place].start(call)

    def _create(self, first: int) -> None:
        inode = self.disk.create(self._path(first))
        names = {posixpath.basename(self._path(first)), *(f"{first:020d}{ending}" for ending in BESIDE)}
        for name in names - {posixpath.basename(self._path(first))}:
            self.disk.create(f"{PARTITION}/{name}")
        self.segments.append(Written(first, inode, [], names))

    def _message(self) -> bytes:
        active = self.segments[-1]
        offset = active.first + len(active.times)
        return encode(
            Message.new(b"order", id=offset + 1, offset=offset, timestamp=self.scheduler.now, layout="m45"),
            layout="m45",
        )

    def _append(self) -> None:
        active = self.segments[-1]
        for _ in range(self.scheduler.random.randrange(1, 4)):
            index = self.disk.files.get(f"{PARTITION}/{active.first:020d}.index")
            if index is not None:
                self.disk.write(index, index.content + len(active.inode.content).to_bytes(4, "little"))
            self.disk.write(active.inode, active.inode.content + self._message())
            active.times.append(self.scheduler.now)

    def _rotate(self) -> None:
        active = self.segments[-1]
        if active.times:
            self._create(active.first + len(active.times))

    def _tear(self) -> None:
        active = self.segments[-1]
        message = self._message()
        cut = self.scheduler.random.randrange(1, len(message))
        self.whole = active.inode.content
        self.disk.write(active.inode, active.inode.content + message[:cut])
        self.torn = True

    def _recover(self) -> None:
        self.disk.write(self.segments[-1].inode, self.whole)
        self.torn = False

    def _delete(self) -> None:
        if len(self.segments) > 1 and self._path(self.segments[0].first) in self.disk.files:
            for name in self.segments.pop(0).names:
                self.disk.files.pop(f"{PARTITION}/{name}", None)

    def _recreate(self) -> None:
        self.torn = False
        self.disk.remove_tree(PARTITION)
        self.segments = []
        self._create(0)
