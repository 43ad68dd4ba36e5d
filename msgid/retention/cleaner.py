"""The cleaner deletes expired segments from a folder of Iggy's ``.log`` files, but never the active segment.

A segment is a ``.log`` file, named by its first offset, and its index files of the same name. The cleaner renames the
log before it deletes it, so readers see the change at once. If the renamed file is not the file that was checked, it
gets its name back. The next run completes a run that was interrupted.

The last message of a segment shows that the segment has not expired, and its index shows where that message starts. So
a segment is read whole only in the round that deletes it, and if its index does not help. A segment that did not change
since the last round is not read.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple
from uuid import uuid4

from msgid._moments import last_moment
from msgid._validate import integer, quote
from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.iggy._wire import name_of
from msgid.iggy.index import split_points
from msgid.iggy.log import read_log
from msgid.retention._disk import Files, OsFiles, State
from msgid.retention.policy import MICROSECONDS, InvalidPolicy, RetentionPolicy, Segment, checked_policy, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from msgid.iggy._wire import Layout
    from msgid.retention._holders import Holder

_SEGMENT: Final = re.compile(r"(\d{20})\.log", re.ASCII)
_BESIDE: Final = re.compile(r"(\d{20})\.(?:index|timeindex)", re.ASCII)
_HIDDEN: Final = re.compile(r"\.(\d{20})\.[0-9a-f]{32}\.removing", re.ASCII)
"""A log that has been renamed and is not deleted yet."""
_STREAM: Final = "streams"
_TOPIC: Final = "topics"
_PARTITION: Final = "partitions"
"""Iggy's folders: streams/1/topics/2/partitions/3."""
_SHOWN: Final = 5
"""Maximum number of topics in an error."""
_PARTS: Final = 16
"""A log with an index is read from the start of the last of so many parts."""
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


class SegmentsInUse(OSError):
    """Another process can write to the segments: a server that runs. Nothing has been deleted."""


class _Guard:
    """The other processes that hold files open, looked for once per run, before the first deletion.

    Args:
        files: The file operations.
        folders: The folders with the names of their files.
        allow: Whether other processes may hold files open.
    """

    def __init__(self, files: Files, folders: Sequence[tuple[str, list[str]]], *, allow: bool) -> None:
        self._files = files
        self._folders = folders
        self._allow = allow
        self._held: dict[str, Holder] | None = None

    def check(self) -> None:
        """Look at the processes, at the first call.

        Raises:
            SegmentsInUse: if one of them can write to the segments.
        """
        if self._allow or self._held is not None:
            return
        paths = [os.path.join(folder, name) for folder, names in self._folders for name in names if _is_known(name)]
        found = self._files.holders(paths)
        writers = sorted(holder for holder in found if holder.writes)
        if writers:
            raise SegmentsInUse(
                f"cannot delete segments: {writers[0]}, so a server may be running; stop it, or pass allow_open=True "
                "(on the command line --allow-open)"
            )
        self._held = {holder.path: holder for holder in found}

    def reason(self, path: str) -> str | None:
        """Return why a segment is kept that a process holds open; None if it may be deleted."""
        holder = (self._held or {}).get(path)
        return None if holder is None else f"it is in use: {holder}"


class _Topic(NamedTuple):
    """A topic by its folder."""

    above: str
    """The folder of the stream's topics."""
    stream: str | None
    name: str

    @property
    def full_name(self) -> str:
        """The name with the stream, if the path has one: ``1/2`` of ``streams/1/topics/2``."""
        return self.name if self.stream is None else f"{self.stream}/{self.name}"


class _Looked(NamedTuple):
    """The result of reading a ``.log`` file, or its last messages."""

    first: int
    name: str
    state: State | None
    starts: bool
    """Whether the file is empty, or starts with a complete message whose offset is not before the file's name."""
    last: int | None
    latest: int | None
    size: int
    reason: str | None
    cut: bool
    """Whether the file ends within a message."""
    whole: bool = True
    """Whether all messages were read."""


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
            the topic in ``streams/1/topics/2``. A server gives these folders numbers, also if the topics have names;
            pass ``names`` then.
        layout: Layout of the messages. Default: found by checksum.
        files: File operations.
        clock: Returns the current time in microseconds since 1970.
        allow_gaps: Whether a later segment closes a segment even if offsets between the two are missing. Some servers
            leave such gaps after a recovery. The default is False, because the later segment may be a stray copy.
        names: Numbers of topics by the names that the policy uses, such as ``{"shop/orders": "1/2"}``. Default: the
            policy uses the names of folders.
        allow_open: Whether files are deleted that another process holds open. The default is False: a server that runs
            does not notice the deletion. Only Linux shows these processes.

    Raises:
        TypeError: if ``policy`` is not a `RetentionPolicy`, or ``names`` is not a mapping of strings to strings.
        InvalidPolicy: if the policy has been changed to a value that is not allowed.

    >>> import tempfile
    >>> from msgid.iggy import Message, encode
    >>> from msgid.retention import RetentionPolicy
    >>> folder = tempfile.mkdtemp()
    >>> for offset in (0, 1):
    ...     _ = Path(folder, f"{offset:020d}.log").write_bytes(encode(Message.new(b"a", id=1, offset=offset), "h64"))
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
        files: Files | None = None,
        clock: Callable[[], int] = now_in_microseconds,
        allow_gaps: bool = False,
        names: Mapping[str, str] | None = None,
        allow_open: bool = False,
    ) -> None:
        if isinstance(folder, RetentionPolicy):
            raise TypeError(f"folder must be the path of a folder, got {quote(folder)}: folder and policy are swapped")
        self.folder = os.fspath(folder)
        self.policy = checked_policy(policy)
        name_of(layout, auto=True)
        self.layout: Layout = layout
        self.allow_gaps = allow_gaps
        self.allow_open = allow_open
        self.names = _checked_names(names)
        self._files: Files = OsFiles() if files is None else files
        self._clock = clock
        self._known: dict[str, _Looked] = {}
        """The segments of the last round, by their paths."""

    def clean(self, *, apply: bool = False) -> list[SegmentFile]:
        """Report on each segment; with ``apply``, delete the expired segments.

        A run that is interrupted leaves each segment complete or deleted, and the next run continues. A segment that
        cannot be read or deleted, or that another process reads, is kept and reported with the reason. A segment that
        another process deletes during the run is not reported.

        Args:
            apply: Whether to delete. Default: a dry run, which only reports.

        Returns:
            All segments, folder by folder, in the order of their offsets.

        Raises:
            FileNotFoundError: if the folder is missing.
            OSError: if a folder cannot be read.
            SegmentsInUse: if another process can write to segments in the folder, or to the log or the journal of
                their server, unless ``allow_open``. Nothing has been deleted then.
            InvalidPolicy: if the policy has been changed to a value that is not allowed, or if an entry of its topics
                does not match exactly one topic in the folder. Nothing has been deleted then.
            ValueError: if the clock's time is not in microseconds since 1970, before the year 10000.
        """
        policy = checked_policy(self.policy)
        if not policy.enabled:
            return []
        now = integer("the clock's time in microseconds", self._clock(), 0, last_moment(MICROSECONDS))
        report: list[SegmentFile] = []
        known: dict[str, _Looked] = {}
        folders = self._files.walk(self.folder)
        topics = {folder: _topic_of(folder) for folder, _ in folders}
        present = {topic for topic in topics.values() if topic is not None}
        entries = _entries(policy.topics, present, self.folder, self.names)
        guard = _Guard(self._files, folders, allow=self.allow_open) if apply else None
        for folder, names in folders:
            if any(_SEGMENT.fullmatch(name) or _HIDDEN.fullmatch(name) for name in names):
                try:
                    with self._files.lock(folder) if apply else nullcontext():
                        report += self._clean(folder, names, topics[folder], entries, now, guard, known)
                except FileNotFoundError:
                    continue  # another process deleted the topic
        self._known = known
        return report

    def run(self, stop: threading.Event, *, report: Callable[[list[SegmentFile]], object] | None = None) -> None:
        """Clean now and then once per interval, until ``stop`` is set. A disabled policy ends the loop.

        A round that fails is logged by the logger ``msgid.retention``, and the loop goes on. A topic of the policy that
        is missing ends the loop in the first round alone, because a topic may be deleted later.

        Args:
            stop: Ends the loop after the current round.
            report: Called with the report of each round.

        Raises:
            InvalidPolicy: as for `clean`.
            ValueError: as for `clean`.
        """
        checked = False
        while checked_policy(self.policy).enabled:
            try:
                found = self.clean(apply=True)
            except (OSError, InvalidPolicy) as error:
                if isinstance(error, InvalidPolicy) and not checked:
                    raise
                _log.exception("cannot clean %s; the next try is in %g seconds", self.folder, self.policy.interval)
            else:
                checked = True
                for kept in found:
                    if kept.reason is not None:
                        _log.warning("cannot remove %s: %s", kept.path, kept.reason)
                if report is not None:
                    report(found)
            if stop.wait(min(self.policy.interval, threading.TIMEOUT_MAX)):
                return

    def _clean(
        self,
        folder: str,
        names: Sequence[str],
        topic: _Topic | None,
        entries: Mapping[_Topic, str],
        now: int,
        guard: _Guard | None,
        known: dict[str, _Looked],
    ) -> list[SegmentFile]:
        """Clean one folder, and add its segments to those that are known in the next round.

        Without a guard, it is a dry run.
        """
        apply = guard is not None
        logs = {name for name in names if _SEGMENT.fullmatch(name)}
        if apply:
            logs |= self._put_back(folder, names)
        looked = [found for found in (self._seen(folder, name) for name in sorted(logs)) if found is not None]
        name, entry = (None, None) if topic is None else (topic.name, entries.get(topic))
        while True:
            report = self._judged(folder, looked, name, entry, now)
            if guard is not None and any(found.expired for found in report):
                guard.check()  # before segments are read whole, which takes long
            unsure = [each for each in zip(looked, report, strict=True) if self._is_unsure(*each, apply=apply)]
            if not unsure:
                break
            again = {each.name: self._look(folder, each.name) for each, _ in unsure}
            current = [again.get(each.name, each) for each in looked]
            looked = [each for each in current if each is not None]
        known |= {found.path: each for each, found in zip(looked, report, strict=True)}
        if guard is None:
            return report
        for place, found in enumerate(report):
            if found.expired:
                reason = guard.reason(found.path) or self._remove(folder, looked[place])
                report[place] = found._replace(reason=reason, removed=reason is None)
        kept = {looked[place].first for place, found in enumerate(report) if not found.removed}
        closed = max((looked[place].first for place, found in enumerate(report) if found.segment.closed), default=-1)
        for match in filter(None, map(_BESIDE.fullmatch, names)):
            # Also indexes of logs that an earlier run deleted. Indexes of the active segment stay: its log may follow.
            if int(match[1]) <= closed and int(match[1]) not in kept:
                guard.check()
                self._remove_beside(os.path.join(folder, match[0]))
        return report

    def _put_back(self, folder: str, names: Sequence[str]) -> set[str]:
        """Restore the names of logs that an earlier run renamed and did not delete; return the names."""
        back = set()
        for match in filter(None, map(_HIDDEN.fullmatch, names)):
            hidden, name = os.path.join(folder, match[0]), f"{match[1]}.log"
            if self._files.restore(hidden, os.path.join(folder, name)):
                back.add(name)
        return back

    def _remove(self, folder: str, looked: _Looked) -> str | None:
        """Delete the log that was checked; return the reason if it is kept, or None."""
        path = os.path.join(folder, looked.name)
        hidden = os.path.join(folder, f".{looked.first:020d}.{uuid4().hex}.removing")
        try:
            self._files.rename(path, hidden)
            if self._files.state(hidden) != looked.state:
                if self._files.restore(hidden, path):
                    return "the file has changed since it was read"
                return f"the file has changed since it was read, and is now {hidden}: its old name is taken"
            self._files.remove(hidden)
            self._files.sync(folder)  # before the indexes, so that a crash never leaves a log without its indexes
        except FileNotFoundError:
            return "the file was removed by another process"
        except OSError as error:
            return f"cannot remove it: {error}"
        return None

    def _remove_beside(self, path: str) -> None:
        try:
            self._files.remove(path)
        except OSError as error:
            _log.warning("cannot remove %s: %s", path, error)

    def _is_unsure(self, looked: _Looked, found: SegmentFile, *, apply: bool) -> bool:
        """Return whether a log must be read whole before its verdict counts."""
        if found.expired and apply:
            return not looked.whole or self._known.get(found.path) is looked
        return not looked.whole and (found.expired or found.reason is not None or (found.segment.closed and looked.cut))

    def _seen(self, folder: str, name: str) -> _Looked | None:
        """Return the messages of a log, and read no more of it than necessary; return None if it is missing."""
        path, first = os.path.join(folder, name), int(name[:20])
        known = self._known.get(path)
        try:
            state = self._files.state(path)
            if known is not None and state is not None and known.state == state:
                return known
            with suppress(InvalidMessage):  # the log is read whole, which gives the reason
                last = None if state is None else self._last_messages(path, name, state, known)
                if last is not None:
                    return last
        except FileNotFoundError:
            return None
        except OSError as error:
            return _unreadable(first, name, error)
        return self._look(folder, name)

    def _last_messages(self, path: str, name: str, state: State, known: _Looked | None) -> _Looked | None:
        """Read the messages since the last round, or from the index's last entry on; return None if that fails."""
        first, size, last, latest, cut = int(name[:20]), state[2], -1, 0, False
        with self._files.open(path) as file:
            start: int | None
            starts = True  # an index helps only if the first record is valid
            if known is not None and _grew(known, state):
                start, starts, last, latest = known.size, known.starts, known.last or 0, known.latest or 0
            else:
                start = self._last_entry(path, file, first, size)
            if start is None:
                return None
            file.seek(start)
            try:
                for message in read_log(file, self.layout, first_offset=first, length=size - start):
                    if message.checksum_ok is False:
                        return None
                    last, latest = max(last, message.offset), max(latest, message.timestamp)
            except TruncatedMessage:
                cut = True
        return None if last < 0 else _Looked(first, name, state, starts, last, latest, size, None, cut, False)

    def _last_entry(self, path: str, file: BinaryIO, first: int, size: int) -> int | None:
        """Return where a record near the end of a log starts; None without an index that helps."""
        beside = f"{path.removesuffix('.log')}.index"
        try:
            state = self._files.state(beside)
            if state is None:
                return None
            with self._files.open(beside) as index:
                points = split_points(
                    _read_of(file), size, _read_of(index), state[2], _PARTS, layout=self.layout, first_offset=first
                )
                return points[-1].position or None
        except FileNotFoundError:
            return None

    def _look(self, folder: str, name: str) -> _Looked | None:
        """Read a log; return None if it is missing."""
        path, first = os.path.join(folder, name), int(name[:20])
        state: State | None = None
        last = latest = reason = None
        starts = cut = False
        wrong = 0
        try:
            state = self._files.state(path)
            if state is None:
                return _Looked(first, name, None, False, None, None, 0, "not a regular file", False)
            with self._files.open(path) as file:
                starts = state[2] == 0
                for message in read_log(file, self.layout, first_offset=first):
                    wrong += message.checksum_ok is False
                    if last is None:
                        starts = message.offset >= first and not wrong
                    last = message.offset if last is None else max(last, message.offset)
                    latest = message.timestamp if latest is None else max(latest, message.timestamp)
            if wrong:  # the timestamps may be wrong as well
                reason = f"wrong checksums of {wrong} messages"
            elif self._files.state(path) != state:
                reason = "the file changed while it was read"
        except InvalidMessage as error:
            reason, cut = str(error), isinstance(error, TruncatedMessage)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _unreadable(first, name, error)
        return _Looked(first, name, state, starts, last, latest, 0 if state is None else state[2], reason, cut)

    def _judged(
        self, folder: str, looked: Sequence[_Looked], topic: str | None, entry: str | None, now: int
    ) -> list[SegmentFile]:
        report = []
        segments = [Segment(found.first, found.last, found.size, False, found.latest, found.starts) for found in looked]
        decided = decide(segments, self.policy, now, topic=entry, allow_gaps=self.allow_gaps)
        for found, segment, (closed, expired, gap) in zip(looked, segments, decided, strict=True):
            reason = found.reason or gap
            if not closed and gap is None and (found.cut or found.starts):
                reason = None  # the active segment is being written
            path = os.path.join(folder, found.name)
            report.append(SegmentFile(path, topic, segment._replace(closed=closed), expired and reason is None, reason))
        return report


def _unreadable(first: int, name: str, error: OSError) -> _Looked:
    """Return the result for a log that cannot be read; without a state, so that the next round tries again."""
    return _Looked(first, name, None, False, None, None, 0, f"cannot read it: {error}", False)


def _grew(known: _Looked, state: State) -> bool:
    """Return whether a log that ended with a complete message has become longer."""
    complete = known.last is not None and known.reason is None and not known.cut
    return complete and known.state is not None and known.state[:2] == state[:2] and known.size < state[2]


def _read_of(file: BinaryIO) -> Callable[[int, int], bytes]:
    """Return a function that reads bytes of a file at a position."""

    def read(position: int, length: int) -> bytes:
        file.seek(position)
        return file.read(length)

    return read


def _topic_of(folder: str) -> _Topic | None:
    """Return the topic of a folder, by its path, or else by the path without symbolic links."""
    return _topic_in(os.path.abspath(folder)) or _topic_in(os.path.realpath(folder))


def _topic_in(path: str) -> _Topic | None:
    parts = Path(path).parts
    places = [place for place, part in enumerate(parts[:-1]) if part == _TOPIC]
    whole = [place for place in places if parts[place + 2 : place + 3] == (_PARTITION,) and len(parts) > place + 3]
    if not whole:
        # Without a folder of partitions: the name after the last "topics", or after the first of several in a row.
        whole = [place for place in places if place - 1 not in places]
    if not whole:
        return None
    place = whole[-1]
    stream = parts[place - 1] if place > 1 and parts[place - 2] == _STREAM else None
    return _Topic(os.path.join(*parts[: place + 1]), stream, parts[place + 1])


def _checked_names(names: Mapping[str, str] | None) -> dict[str, str]:
    """Return the numbers of topics by name, or raise TypeError."""
    if names is None:
        return {}
    if not isinstance(names, Mapping) or not all(isinstance(text, str) for pair in names.items() for text in pair):
        raise TypeError(f"names must be a mapping of names to numbers such as '1/2', got {quote(names)}")
    return dict(names)


def _entries(
    entries: Iterable[str], topics: Collection[_Topic], folder: str, names: Mapping[str, str]
) -> dict[_Topic, str]:
    """Return the entry of each topic that has one, or raise `InvalidPolicy` if an entry is not for one topic."""
    found: dict[_Topic, str] = {}
    outer = {str(path) for topic in topics for path in Path(topic.above, topic.name).parents}
    # The folder of a stream "topics" looks like a topic, but it has topics in it.
    topics = [topic for topic in topics if os.path.join(topic.above, topic.name) not in outer]
    for entry in entries:
        number = names.get(entry, entry)
        shown = quote(entry) if entry not in names else f"{quote(entry)} (in names {quote(number)})"
        matches = sorted(topic for topic in topics if number in (topic.name, topic.full_name))
        if not matches:
            raise InvalidPolicy(f"topics must name folders of topics in {folder} ({_some(topics)}), got {shown}")
        if len(matches) > 1:
            raise InvalidPolicy(f"topics must name one topic per entry, got {shown} for {_some(matches, ' and ')}")
        if matches[0] in found:
            both = f"{quote(found[matches[0]])} and {shown}"
            raise InvalidPolicy(f"topics must name each topic once, got {both} for {matches[0].full_name}")
        found[matches[0]] = entry
    return found


def _some(topics: Collection[_Topic], between: str = ", ") -> str:
    """Return the names of some topics."""
    known = sorted((topic.full_name for topic in topics), key=lambda name: (len(name), name))
    return between.join(known[:_SHOWN]) + (f"{between}..." if len(known) > _SHOWN else "") or "none"


def _is_known(name: str) -> bool:
    """Return whether a file is a segment or an index."""
    return _SEGMENT.fullmatch(name) is not None or _BESIDE.fullmatch(name) is not None
