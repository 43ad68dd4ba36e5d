"""The cleaner deletes expired segments from a folder of Iggy's ``.log`` files, but never the active segment.

A segment is a ``.log`` file, named by its first offset, and its index files of the same name. Right before a file is
deleted, it is compared with the file that was read. The log goes before its indexes, because a server does not start
with a log that lacks them. The next run deletes the indexes that an interrupted run left.

A segment that did not change since the last round is not read again, and of the newest one only the first message is.
"""

from __future__ import annotations

import logging
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy.log import read_log
from msgid.iggy.wire import name_of
from msgid.retention._disk import OsFiles, State
from msgid.retention.policy import (
    MICROSECONDS,
    NEVER,
    OPEN,
    InvalidPolicy,
    RetentionPolicy,
    Segment,
    checked_policy,
    decide,
    is_expired,
)
from msgid.shared.moments import last_moment
from msgid.shared.validate import integer, quote

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from msgid.iggy.wire import Layout

__all__ = ["SegmentFile"]

_SEGMENT: Final = re.compile(r"(\d{20})\.log", re.ASCII)
_BESIDE: Final = re.compile(r"(\d{20})\.(?:index|timeindex)", re.ASCII)
_PARTITION: Final = re.compile(
    r"(?P<folder>(?:.*/streams/(?P<stream>[^/]+)/|.*/)topics/(?P<name>[^/]+))/partitions/[^/]+"
)
"""A folder of a server: streams/1/topics/2/partitions/3."""
_SHOWN: Final = 5
"""Maximum number of topics in an error."""
_log: Final = logging.getLogger("msgid.retention")


class SegmentFile(NamedTuple):
    """A segment, its path, and whether it has expired."""

    path: str
    topic: str | None
    segment: Segment
    expired: bool
    """Whether the segment is closed and all of its messages have expired."""
    reason: str | None = None
    """Why the segment is kept although it is closed or has expired."""
    removed: bool = False
    """Whether this run deleted the segment; False in a dry run."""


class _Topic(NamedTuple):
    """A topic by its folder."""

    folder: str
    stream: str | None
    name: str

    @property
    def full_name(self) -> str:
        """The name with the stream, if the path has one: ``1/2`` of ``streams/1/topics/2``."""
        return self.name if self.stream is None else f"{self.stream}/{self.name}"


class _LogFolder(NamedTuple):
    """The result of reading a ``.log`` file."""

    segment: Segment
    state: State | None
    """The state of the file when it was read; None if it could not be read."""
    whole: bool
    reason: str | None = None
    cut: bool = False
    """Whether the file ends within a message."""


def now_in_microseconds() -> int:
    """Return the current time in microseconds since 1970."""
    return time.time_ns() // 1000


class Cleaner:
    """Finds and deletes expired segments.

    A segment is closed if the folder has its successor: a segment that starts at the offset after its last message, and
    is empty or begins with a valid message. A stray file of a higher number does not close the active segment. Several
    cleaners may work on one folder.

    Args:
        folder: Folder of the segments, at any depth.
        policy: Retention by topic. The topic is the name of its folder, with or without the stream: ``2`` or ``1/2`` is
            the topic in ``streams/1/topics/2``. A server gives these folders numbers, also if the topics have names.
        layout: Layout of the messages. Default: found by checksum.
        clock: Returns the current time in microseconds since 1970.
        allow_gaps: Whether a later segment closes a segment even if offsets between the two are missing. Some servers
            leave such gaps after a recovery. The default is False, because the later segment may be a stray copy.

    Raises:
        TypeError: if ``policy`` is not a `RetentionPolicy`.
        InvalidPolicy: if the policy has been changed to a value that is not allowed.

    >>> import tempfile
    >>> from msgid.iggy import Message, encode
    >>> from msgid.retention import RetentionPolicy
    >>> folder = tempfile.mkdtemp()
    >>> for offset in (0, 1):
    ...     message = Message.new(b"a", id=1, offset=offset, timestamp=1_700_000_000_000_000)
    ...     _ = Path(folder, f"{offset:020d}.log").write_bytes(encode(message, "h64"))
    >>> cleaner = Cleaner(folder, RetentionPolicy(default_expiry=60))
    >>> [(Path(found.path).name, found.segment.closed, found.expired) for found in cleaner.clean()]
    [('00000000000000000000.log', True, True), ('00000000000000000001.log', False, False)]
    >>> [found.removed for found in cleaner.clean(apply=True)]
    [True, False]
    >>> os.listdir(folder)
    ['00000000000000000001.log']
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        policy: RetentionPolicy,
        *,
        layout: Layout = "auto",
        clock: Callable[[], int] = now_in_microseconds,
        allow_gaps: bool = False,
        _files: OsFiles | None = None,
    ) -> None:
        self.policy = checked_policy(policy)
        self.folder = os.fspath(folder)
        name_of(layout, auto=True)
        self.layout: Layout = layout
        self.allow_gaps = allow_gaps
        self._files = OsFiles() if _files is None else _files
        self._clock = clock
        self._known: dict[str, _LogFolder] = {}
        """The segments of the last round, by their paths."""

    def clean(self, *, apply: bool = False) -> list[SegmentFile]:
        """Report on each segment; with ``apply``, delete the expired segments.

        A run that is interrupted leaves each segment complete or deleted, and the next run continues. A segment that
        cannot be read or deleted, or whose times do not tell its age, is kept and reported with the reason. A segment
        that another process deletes during the run is not reported. Stop the server first: it keeps deleted files open.

        Args:
            apply: Whether to delete. Default: a dry run, which only reports.

        Returns:
            All segments, folder by folder, in the order of their offsets.

        Raises:
            FileNotFoundError: if the folder is missing.
            OSError: if a folder cannot be read.
            InvalidPolicy: if the policy has been changed to a value that is not allowed, or if an entry of its topics
                does not match exactly one topic in the folder. Nothing has been deleted then.
            ValueError: if the clock's time is not in microseconds since 1970, before the year 10000.
        """
        policy = checked_policy(self.policy)
        if not policy.enabled:
            return []
        now = integer("the clock's time in microseconds", self._clock(), 0, last_moment(MICROSECONDS))
        folders = self._files.walk(self.folder)
        topics = {folder: _topic_of(folder) for folder, _ in folders}
        entries = _entries(policy.topics, {topic for topic in topics.values() if topic is not None}, self.folder)
        report: list[SegmentFile] = []
        known: dict[str, _LogFolder] = {}
        for folder, names in folders:
            topic, entry = topics[folder], entries.get(topics[folder])
            logs = self._read_folder(folder, sorted(filter(_SEGMENT.fullmatch, names)))
            known |= logs
            judged = self._judged(logs, topic, entry, now)
            if apply and policy.expiry_of(entry) != NEVER:
                judged = [self._deleted(each, logs[each.path]) if each.expired else each for each in judged]
                self._delete_indexes(folder, names, judged)
            report += judged
        self._known = known
        return report

    def run(self, stop: threading.Event, *, report: Callable[[list[SegmentFile]], object] | None = None) -> None:
        """Clean now and then once per interval, until ``stop`` is set. A disabled policy ends the loop.

        A round that fails is logged by the logger ``msgid.retention``, and the loop goes on. A segment that stays for a
        reason is logged once for each reason. A topic of the policy that is missing ends the loop in the first round
        alone, because a topic may be deleted later.

        Args:
            stop: Ends the loop after the current round.
            report: Called with the report of each round.

        Raises:
            InvalidPolicy: as for `clean`.
            ValueError: as for `clean`.
        """
        checked, logged = False, dict[str, str]()
        while checked_policy(self.policy).enabled:
            try:
                judged = self.clean(apply=True)
            except (OSError, InvalidPolicy) as error:
                if isinstance(error, InvalidPolicy) and not checked:
                    raise
                _log.exception("cannot clean %s; the next try is in %g seconds", self.folder, self.policy.interval)
            else:
                checked = True
                reasons = {kept.path: kept.reason for kept in judged if kept.reason is not None}
                for path, reason in sorted(reasons.items() - logged.items()):
                    _log.warning("did not delete %s: %s", path, reason)
                logged = reasons
                if report is not None:
                    report(judged)
            if stop.wait(self.policy.interval):
                return

    def _read_folder(self, folder: str, names: Sequence[str]) -> dict[str, _LogFolder]:
        """Read the logs of a folder, by their paths; a log that is gone is left out."""
        logs = {}
        for name in names:
            path = os.path.join(folder, name)
            try:
                state, known = self._files.state(path), self._known.get(path)
                whole = name != names[-1]
                if known is None or known.state != state or known.whole < whole:
                    known = self._read(path, int(name[:20]), state, whole)
                logs[path] = known
            except FileNotFoundError:
                continue
            except OSError as error:
                logs[path] = _LogFolder(_unread(int(name[:20])), None, True, f"cannot read it: {error}")
        return logs

    def _read(self, path: str, first: int, state: State | None, whole: bool) -> _LogFolder:
        """Read a log, or its first message."""
        if state is None:
            return _LogFolder(_unread(first), None, True, "not a regular file")
        starts, last, earliest, latest = state[2] == 0, None, None, None
        reason, cut, wrong = None, False, 0
        try:
            with self._files.open(path) as file:
                for message in read_log(file, self.layout, first_offset=first):
                    wrong += message.checksum_ok is False
                    if last is None:
                        starts, last = message.offset >= first and not wrong, message.offset
                        earliest = latest = message.timestamp
                        if not whole:
                            break
                    last = max(last, message.offset)
                    earliest, latest = min(earliest, message.timestamp), max(latest, message.timestamp)  # type: ignore[type-var]
            if wrong:  # the timestamps may be wrong as well
                reason = f"wrong checksums of {wrong} messages"
            elif self._files.state(path) != state and whole:
                reason = "the file changed while it was read"
        except InvalidMessage as error:
            reason, cut = str(error), isinstance(error, TruncatedMessage)
        segment = Segment(first, last, state[2], False, earliest, latest, starts)
        return _LogFolder(segment if whole else segment._replace(earliest=None, latest=None), state, whole, reason, cut)

    def _judged(
        self, logs: Mapping[str, _LogFolder], topic: _Topic | None, entry: str | None, now: int
    ) -> list[SegmentFile]:
        report, name = [], None if topic is None else topic.name
        segments = [log.segment for log in logs.values()]
        decided = decide(segments, self.policy, now, topic=entry, allow_gaps=self.allow_gaps)
        for (path, log), (closed, expired, doubt) in zip(logs.items(), decided, strict=True):
            reason = log.reason or doubt
            if not closed and doubt is None and (log.cut or log.segment.follows):
                reason = None  # the active segment is being written
            if reason is None and not closed and not log.whole and log.state is not None and log.segment.size:
                # Of the last segment, only the first message is read: the time of its file tells that it is idle.
                is_idle = self.policy.expiry_of(entry) != NEVER
                is_idle = is_idle and is_expired(log.state[3] // 1000, self.policy.expiry_of(entry), now)
                reason = OPEN if is_idle else None
            segment = log.segment._replace(closed=closed)
            report.append(SegmentFile(path, name, segment, expired and log.whole and reason is None, reason))
        return report

    def _deleted(self, file: SegmentFile, log: _LogFolder) -> SegmentFile:
        """Delete a log if it is still the file that was read; return the row of the report."""
        try:
            if self._files.state(file.path) != log.state:
                return file._replace(reason="the file has changed since it was read")
            self._files.remove(file.path)
            self._files.sync(os.path.dirname(file.path))  # before the indexes: no crash leaves a log without them
        except FileNotFoundError:
            return file._replace(reason="the file was removed by another process")
        except OSError as error:
            return file._replace(reason=f"cannot remove it: {error}")
        return file._replace(removed=True)

    def _delete_indexes(self, folder: str, names: Sequence[str], report: Sequence[SegmentFile]) -> None:
        """Delete the indexes of logs that this run or an earlier one deleted; those of the active segment stay."""
        kept = {file.segment.first_offset for file in report if not file.removed}
        closed = max((file.segment.first_offset for file in report if file.segment.closed), default=-1)
        for match in filter(None, map(_BESIDE.fullmatch, names)):
            if int(match[1]) <= closed and int(match[1]) not in kept:
                try:
                    self._files.remove(os.path.join(folder, match[0]))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    _log.warning("cannot remove %s: %s", os.path.join(folder, match[0]), error)


def _unread(first: int) -> Segment:
    """Return the segment of a log that cannot be read."""
    return Segment(first, None, 0, False, None, None, follows=False)


def _topic_of(folder: str) -> _Topic | None:
    """Return the topic of a folder, by its path, or else by the path without symbolic links."""
    for path in (os.path.abspath(folder), os.path.realpath(folder)):
        if match := _PARTITION.fullmatch(Path(path).as_posix()):
            return _Topic(**match.groupdict())
    return None


def _entries(entries: Iterable[str], topics: Collection[_Topic], folder: str) -> dict[_Topic | None, str]:
    """Return the entry of each topic that has one, or raise `InvalidPolicy` if an entry is not for one topic."""
    by_topic: dict[_Topic | None, str] = {}
    for entry in entries:
        matches = sorted(topic for topic in topics if entry in (topic.name, topic.full_name))
        if not matches:
            raise InvalidPolicy(f"topics must name folders of topics in {folder} ({_some(topics)}), got {quote(entry)}")
        if len(matches) > 1:
            several = _some(matches, " and ")
            raise InvalidPolicy(f"topics must name one topic per entry, got {quote(entry)} for {several}")
        if matches[0] in by_topic:
            both = f"{quote(by_topic[matches[0]])} and {quote(entry)}"
            raise InvalidPolicy(f"topics must name each topic once, got {both} for {matches[0].full_name}")
        by_topic[matches[0]] = entry
    return by_topic


def _some(topics: Collection[_Topic], between: str = ", ") -> str:
    """Return the names of some topics."""
    known = sorted((topic.full_name for topic in topics), key=lambda name: (len(name), name))
    return between.join(known[:_SHOWN]) + (f"{between}..." if len(known) > _SHOWN else "") or "none"
