"""The progress of a reader in folders of segments that grow, are purged and are deleted: the rules alone.

The state of a reader is a `Mark` for each segment that is there, by its path within the followed folder. So the
state grows with the present segments, not with history, and a folder has one state however its path is spelled. A
folder that is missing at a look keeps its marks.

A segment that was purged and begun anew under its name has another head: other first bytes. A mark counts how often
that happened. Bytes that were seen and are gone before they were read are a `Part` of their own, which is lost.

A server that recovers from a crash cuts a segment's end off, and writes on. So a mark also knows some of the records
that were read, more of the last ones: reading goes on after the last of them that is still there. Records between it
and the cut come twice; none is missed.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgid._validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

HEAD: Final = 256
"""How many of a segment's first bytes tell it from another of its name."""
_VERSION: Final = 3
_FORMER: Final = 2
"""The version before marks had records."""
_MOST_PARTS: Final = 1000
_LAST: Final = 12
"""How many of the last records a mark knows, one by one."""
_MOST_MISSING: Final = 1000
"""How many segments of folders that are gone keep their marks."""


class Seen(NamedTuple):
    """A segment as a listing shows it."""

    name: str
    """Its path within the followed folder."""
    size: int
    modified: int
    """Milliseconds since 1970."""


class Record(NamedTuple):
    """A record that was read."""

    start: int
    head: str
    """The `fingerprint` of its first bytes."""


class Mark(NamedTuple):
    """How far one segment has been read."""

    position: int
    """Records before this byte have been read."""
    size: int
    """The size when the segment was last looked at."""
    modified: int
    head: str = ""
    """The `fingerprint` of the first bytes; empty as long as nothing was read."""
    generation: int = 0
    """How often the segment was begun anew."""
    records: tuple[Record, ...] = ()
    """Some of the records that were read, in their order; none of a segment that will not grow."""


Marks = dict[str, Mark]


class Part(NamedTuple):
    """Bytes of a segment that one reader reads: the records that start in them."""

    name: str
    start: int
    stop: int
    first: int = 0
    """Where a record starts, at ``start`` or before it."""
    end: int = 0
    """Where the last record ends at most: the end of what all parts read."""
    head: str = ""
    """The fingerprint that the segment must have; empty for any."""
    lost: bool = False
    """Whether the bytes are known to be gone."""


class Segment(Protocol):
    """An open segment, as `latest` uses it."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def bytes_at(self, position: int, length: int) -> bytes:
        """Return bytes of the segment."""

    def boundary(self, target: int, first: int) -> int:
        """Return the first record's start at a target or after it, or where the last whole record ends.

        Args:
            target: A position in bytes.
            first: Where a record starts, at the target or before it.
        """

    def starts(self, first: int, stop: int) -> list[int]:
        """Return where the last records before a place start, at least one, in their order.

        Args:
            first: Where a record starts, before the place.
            stop: Where a record ends.
        """


def fingerprint(data: bytes) -> str:
    """Return the number and a hash of a segment's first bytes.

    >>> fingerprint(b"first bytes")
    '11-e2bc6c6bd4f7cdca'
    """
    return f"{len(data)}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"


def has_head(head: str, read: Callable[[int, int], bytes], start: int = 0) -> bool:
    """Return whether a segment has the bytes of a fingerprint at a place; every segment has those of an empty one."""
    return not head or fingerprint(read(start, int(head.partition("-")[0]))) == head


def to_json(marks: Mapping[str, Mark]) -> dict[str, Any]:
    """Return marks as a value that JSON can hold.

    >>> to_json({"a/0.log": Mark(9, 10, 1)})
    {'version': 3, 'segments': {'a/0.log': [9, 10, 1, '', 0, ()]}}
    """
    return {"version": _VERSION, "segments": {name: list(mark) for name, mark in sorted(marks.items())}}


def from_json(held: Mapping[str, Any], inner: Callable[[str], str | None]) -> Marks:
    """Return the marks of a value of `to_json`, or of its form before: a position for each file's whole path.

    Args:
        held: The value.
        inner: Returns a file's path within the followed folder; None for a file elsewhere.

    Raises:
        ValueError: if the value is of a later form, or names files elsewhere.

    >>> from_json({"/logs/a/0.log": 9}, lambda name: name.removeprefix("/logs/"))
    {'a/0.log': Mark(position=9, size=9, modified=0, head='', generation=0, records=())}
    """
    version = held.get("version")
    if isinstance(version, int) and isinstance(held.get("segments"), dict):
        if version not in (_FORMER, _VERSION):
            raise ValueError(
                f"cannot continue from the checkpoint: version of its offset must be {_VERSION}, got {version}"
            )
        return {name: _mark(*mark) for name, mark in held["segments"].items()}
    marks = {}
    for name, position in held.items():
        found = inner(name)
        if found is None or not isinstance(position, int):
            raise ValueError(
                f"cannot continue from the checkpoint: its offset names {quote(name)}, which is not in the path "
                "that is read; use the path of the first run, or a new checkpoint"
            )
        marks[found] = Mark(position, position, 0)
    return marks


def _mark(
    position: int, size: int, modified: int, head: str, generation: int, records: Iterable[tuple[int, str]] = ()
) -> Mark:
    return Mark(position, size, modified, head, generation, tuple(Record(*record) for record in records))


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _by_folder(seen: Iterable[Seen]) -> dict[str, list[Seen]]:
    folders: dict[str, list[Seen]] = {}
    for file in sorted(seen):
        folders.setdefault(_folder(file.name), []).append(file)
    return folders


class _Look:
    """One look at all segments: their changes, and how far each can be read."""

    def __init__(self, start: Mapping[str, Mark], opened: Callable[[str], Segment | None]) -> None:
        self.start = start
        self.opened = opened
        self.marks: Marks = {}
        self.changed = False
        self.cut: set[str] = set()
        """The segments whose end was cut off. The next batch reads on, because no part goes back."""

    def mark(self, file: Seen) -> Mark | None:
        """Return the mark of a segment as it is now; None if it is gone since the listing."""
        mark = self.start.get(file.name)
        if mark is None:
            return Mark(0, file.size, file.modified)
        if (mark.size, mark.modified) == (file.size, file.modified):
            return mark
        segment = self.opened(file.name)
        if segment is None:
            return None
        now = mark._replace(size=min(file.size, segment.size), modified=file.modified)
        if not has_head(mark.head, segment.bytes_at) or (not mark.head and now.size < mark.position):
            self.changed = True
            return Mark(0, now.size, now.modified, "", mark.generation + 1)
        there = mark.records
        while there and not has_head(there[-1].head, segment.bytes_at, there[-1].start):
            there = there[:-1]
        if there != mark.records:
            position = segment.boundary(there[-1].start + 1, there[-1].start) if there else 0
        elif now.size < mark.position:
            position = segment.boundary(now.size, 0)
        else:
            return now
        self.changed = True
        self.cut.add(file.name)
        return now._replace(position=position, records=there)

    def advance(self, file: Seen, mark: Mark, room: int | None, *, closed: bool) -> Mark | None:
        """Return the mark after the records of at most so many bytes, of one record at least; None if it is gone."""
        segment = self.opened(file.name)
        if segment is None:
            return None
        size = min(mark.size, segment.size)
        if room is not None and size - mark.position > room:
            stop = segment.boundary(mark.position + room, mark.position)
        else:
            stop = size if closed else segment.boundary(size, mark.position)
        if closed and stop <= mark.position:  # a broken record, whose rest will not come
            stop = size
        stop = min(stop, size)
        if stop <= mark.position:
            return mark
        head = mark.head
        if not (mark.position and head):  # of the first record alone, because those after it may be cut off
            head = fingerprint(segment.bytes_at(0, min(HEAD, stop if closed else segment.boundary(1, 0))))
        records = () if closed and stop == size else _known(mark, segment, stop)
        return mark._replace(position=stop, head=head, records=records)


def _known(mark: Mark, segment: Segment, stop: int) -> tuple[Record, ...]:
    """Return the records that a mark knows after reading to a place.

    Before the last ones, each is about twice as far from the place as the next. So their number grows with the
    logarithm of the size.
    """
    known = {record.start: record for record in mark.records}
    starts = segment.starts(mark.position, stop)
    data = segment.bytes_at(starts[0], stop - starts[0]) if starts else b""
    for start, end in itertools.pairwise([*starts, stop]):
        first = start - starts[0]
        known[start] = Record(start, fingerprint(data[first : first + min(HEAD, end - start)]))
    records = sorted(known.values())
    kept = records[-_LAST:]
    for record in reversed(records[:-_LAST]):
        if stop - record.start >= 2 * (stop - kept[0].start):
            kept.insert(0, record)
    return tuple(kept)


def latest(
    start: Mapping[str, Mark],
    seen: Sequence[Seen],
    opened: Callable[[str], Segment | None],
    *,
    max_bytes: int | None = None,
    max_files: int | None = None,
) -> Marks | None:
    """Return how far segments can be read in the next batch; None if there is nothing to do.

    Segments of one folder are read in the order of their names. Of several folders, the segment that was written to the
    longest time ago is next. Half a record at the end of a folder's last segment is left; a later segment with
    contents shows that no rest of it will come.

    Args:
        start: How far they have been read.
        seen: The segments that are there.
        opened: Returns a segment; None if it is gone.
        max_bytes: About how many bytes are read; one record at least, so that every batch gets on.
        max_files: How many segments are read.
    """
    look = _Look(start, opened)
    folders = _by_folder(seen)
    waiting: dict[str, list[tuple[Seen, bool]]] = {}
    for folder, files in folders.items():
        last = max((number for number, file in enumerate(files) if file.size), default=0)
        for number, file in enumerate(files):
            mark = look.mark(file)
            if mark is None:
                continue
            look.marks[file.name] = mark
            if mark.size > mark.position and file.name not in look.cut:
                waiting.setdefault(folder, []).append((file, number < last))
    room, count = max_bytes, 0
    while waiting and (room is None or room > 0) and (max_files is None or count < max_files):
        folder = min(waiting, key=lambda one: (waiting[one][0][0].modified, one))
        file, closed = waiting[folder].pop(0)
        if not waiting[folder]:
            del waiting[folder]
        before = look.marks[file.name]
        after = look.advance(file, before, room, closed=closed)
        if after is None:
            del look.marks[file.name]
            continue
        look.marks[file.name] = after
        if after.position > before.position:
            count += 1
            look.changed = True
            room = None if room is None else room - (after.position - before.position)
        if after.position < after.size:
            waiting.pop(folder, None)
    gone = {name: mark for name, mark in start.items() if name not in look.marks}
    changed = look.changed or any(mark.position < mark.size for mark in gone.values())
    return look.marks | _missing(gone, {_folder(name) for name in look.marks}) if changed else None


def _missing(gone: Marks, present: set[str]) -> Marks:
    """Return the marks to keep: those of folders that are empty or missing now, and may come back, as a mount does.

    The rest of such a segment is reported as lost, so its mark ends where reading ended. Its time is negative.
    """
    kept = {
        name: mark._replace(size=mark.position, modified=-abs(mark.modified) or -1)
        for name, mark in gone.items()
        if mark.head and _folder(name) not in present
    }
    return dict(sorted(kept.items(), key=lambda one: one[1].modified)[:_MOST_MISSING])


def parts(
    start: Mapping[str, Mark],
    end: Mapping[str, Mark],
    every: int,
    resumed: Callable[[str, int], int],
) -> list[Part]:
    """Return the parts between two states, of about so many bytes, and the lost parts.

    Args:
        start: How far segments had been read.
        end: How far they are read.
        every: The size of a part in bytes.
        resumed: Returns where the last whole record before a position of a segment ends.
    """
    later = {
        folder: files[-1].name for folder, files in _by_folder(Seen(n, m.size, 0) for n, m in start.items()).items()
    }
    made = []
    for name in sorted({**start, **end}):
        old, new = start.get(name), end.get(name)
        same = old is not None and new is not None and old.generation == new.generation
        is_gone = new is None or new.modified < 0
        if old is not None and (is_gone or not same) and old.position < old.size:
            made.append(Part(name, old.position, old.size, lost=True))
        begin = old.position if old is not None and same else 0
        if new is None or new.position <= begin:
            continue
        if old is not None and 0 < begin == old.size and later[_folder(name)] != name:
            # It was read to its end as closed, perhaps to the end of half a record, and has grown since.
            begin = resumed(name, begin)
        made += divided(name, begin, new.position, every, new.head)
    return made


def divided(name: str, start: int, end: int, every: int, head: str = "") -> list[Part]:
    """Return parts of a segment of about so many bytes, from a record's start to an end.

    >>> [part[1:3] for part in divided("0.log", 10, 100, 50)]
    [(10, 55), (55, 100)]
    """
    count = min(-(-(end - start) // every), _MOST_PARTS)
    edges = [start + (end - start) * number // count for number in range(count + 1)] if count else []
    return [Part(name, low, high, start, end, head) for low, high in itertools.pairwise(edges) if low < high]
