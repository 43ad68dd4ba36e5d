"""The progress of a reader in folders of segments that grow, are purged and are deleted: the rules alone.

The state of a reader is a `Mark` for each segment that is there, by its path within the followed folder. So the
state grows with the present segments, not with history, and a folder has one state however its path is spelled. A
folder that is missing at a look keeps its marks.

A segment that was purged and begun anew under its name has another head: other first bytes. A mark counts how often
that happened. Bytes that were seen and are gone before they were read are a `Part` of their own, which is lost.

A server that recovers from a crash cuts a segment's end off, and writes on. So a mark also knows some of the records
that were read, more of the last ones: reading goes on after the last of them that is still there. Records between it
and the cut come twice; none is missed.

Segments that were made and deleted between two looks leave a jump in the offsets. The jump is a lost part, too.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from msgid.iggy._marks import (
    HEAD,
    NOTHING,
    Mark,
    Part,
    Record,
    by_folder,
    fingerprint,
    first_offset,
    folder_of,
    has_head,
    named,
)
from msgid.iggy._missing import is_begun_anew, missing_before, next_offset, to_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from msgid.iggy._marks import Marks, Seen, Segment

_MOST_PARTS: Final = 1000
_LAST: Final = 12
"""How many of the last records a mark knows, one by one."""
_MOST_MISSING: Final = 1000
"""How many segments of folders that are gone keep their marks."""
_NEAR: Final = 64 << 20
"""How many bytes are read at most to find the end of a segment without an index."""


class _Look:
    """One look at all segments: their changes, and how far each can be read."""

    def __init__(
        self, start: Mapping[str, Mark], seen: Sequence[Seen], opened: Callable[[str], Segment | None]
    ) -> None:
        self.start = start
        self.before = by_folder(start)
        self.opened = opened
        self.folders = by_folder(file.name for file in seen)
        self.closed = _closed(seen)
        self.begun_anew: set[str] = set()
        """The folders whose topics were purged or made anew."""
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
        first = there[-1].start if there else 0
        if there != mark.records:
            position = segment.boundary(first + 1, first) if there else 0
        elif now.size < mark.position:
            position, first = segment.boundary(now.size, 0), 0
        else:
            return now
        self.changed = True
        self.cut.add(file.name)
        return now._replace(
            position=position, records=there, next=_after(segment, segment.starts(first, position), position)
        )

    def advance(self, file: Seen, mark: Mark, room: int | None, *, closed: bool) -> Mark | None:
        """Return the mark after the records of at most so many bytes, of one record at least; None if it is gone.

        Of a closed segment, the last records are not read unless the next segment is to be checked.
        """
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
        if not (closed and stop == size):
            records, after = _known(mark, segment, stop)
            return mark._replace(position=stop, head=head, records=records, next=after)
        is_near = segment.is_indexed or stop - mark.position <= _NEAR
        is_asked = is_near and self.is_checked_after(file.name)
        after = _after(segment, segment.starts(mark.position, stop), stop) if is_asked else None
        return mark._replace(position=stop, head=head, records=(), next=after)

    def found(self, folder: str) -> Marks:
        """Return the marks of the segments of a folder that are there."""
        return {name: self.marks[name] for name in self.folders[folder] if name in self.marks}

    def start_of(self, folder: str) -> Marks:
        """Return the marks of a folder at the last look."""
        return {name: self.start[name] for name in self.before.get(folder, ())}

    def note_new(self, folder: str) -> None:
        """Note which segments are to be checked for missing offsets before them."""
        found, start = self.found(folder), self.start_of(folder)
        if is_begun_anew(found, start):
            self.begun_anew.add(folder)
        else:
            self.marks |= to_check(found, start)

    def is_checked_after(self, name: str) -> bool:
        """Return whether the segment after one is to be checked."""
        names = self.folders[folder_of(name)]
        later = (self.marks[other] for other in names[bisect_right(names, name) :] if other in self.marks)
        mark = next(later, None)
        return mark is not None and mark.missing is None

    def check_offsets(self, folder: str) -> None:
        """Find the offsets that are in no segment of a folder."""
        found = self.found(folder)
        if all(mark.missing is not None for mark in found.values()):
            return

        def is_ended(name: str) -> bool:
            if name not in self.closed or found[name].position < found[name].size:
                return False
            segment = self.opened(name)  # some listings have sizes from before a later segment was made
            return segment is None or segment.size <= found[name].size

        for name, first in missing_before(found, self.start_of(folder), is_ended).items():
            # A listing may lack a segment that was made while it was read; the next one has it.
            missing = first if first >= 0 and self.opened(named(folder, first)) is None else NOTHING
            self.marks[name] = found[name]._replace(missing=missing)
            self.changed |= missing >= 0


def _closed(seen: Iterable[Seen]) -> set[str]:
    """Return the segments that a later one of their folder with contents closes."""
    last: dict[str, str] = {}
    for file in sorted(seen):
        if file.size:
            last[folder_of(file.name)] = file.name
    return {file.name for file in seen if file.name < last.get(folder_of(file.name), "")}


def _after(segment: Segment, starts: Sequence[int], stop: int) -> int | None:
    """Return the offset after the last of the records before a place; None if it is not known."""
    return segment.after(starts[-1], stop) if starts else None


def _known(mark: Mark, segment: Segment, stop: int) -> tuple[tuple[Record, ...], int | None]:
    """Return the records that a mark knows after reading to a place, and the offset after them.

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
    return tuple(kept), _after(segment, starts, stop)


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
    look = _Look(start, seen, opened)
    waiting: dict[str, list[tuple[Seen, bool]]] = {}
    for file in sorted(seen):
        mark = look.mark(file)
        if mark is None:
            continue
        look.marks[file.name] = mark
        if mark.size > mark.position and file.name not in look.cut:
            waiting.setdefault(folder_of(file.name), []).append((file, file.name in look.closed))
    for folder in look.folders:
        look.note_new(folder)
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
    for folder in look.folders:
        look.check_offsets(folder)
    gone = {name: mark for name, mark in start.items() if name not in look.marks}
    changed = look.changed or any(mark.position < mark.size for mark in gone.values())
    return look.marks | _missing(gone, look) if changed else None


def _missing(gone: Marks, look: _Look) -> Marks:
    """Return the marks to keep of segments that are gone.

    They are those of folders that are empty or missing now, and may come back, as a mount does. The last one of another
    folder is kept, too, because the name of the next segment is compared with its end.

    The rest of such a segment is reported as lost, so its mark ends where reading ended. Its time is negative.
    """
    last = {folder: max(names) for folder in look.folders if (names := look.found(folder))}
    kept = {
        name: mark._replace(size=mark.position, modified=-abs(mark.modified) or -1)
        for name, mark in gone.items()
        if mark.head and name > last.get(folder_of(name), "") and folder_of(name) not in look.begun_anew
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
    later = {folder: names[-1] for folder, names in by_folder(start).items()}
    gaps = {name: mark for name, mark in end.items() if _is_new_gap(start.get(name), mark)}
    made = []
    for name in sorted({**start, **end}):
        old, new = start.get(name), end.get(name)
        same = old is not None and new is not None and old.generation == new.generation
        is_gone = new is None or new.modified < 0
        if name in gaps:
            made.append(Part(name, 0, 0, lost=True, offsets=(gaps[name].missing or 0, (first_offset(name) or 0) - 1)))
        if old is not None and (is_gone or not same) and old.position < old.size and not _is_in(gaps, name, old):
            made.append(Part(name, old.position, old.size, lost=True))
        begin = old.position if old is not None and same else 0
        if new is None or new.position <= begin:
            continue
        if old is not None and 0 < begin == old.size and later[folder_of(name)] != name:
            # It was read to its end as closed, perhaps to the end of half a record, and has grown since.
            begin = resumed(name, begin)
        made += divided(name, begin, new.position, every, new.head)
    return made


def _is_in(gaps: Mapping[str, Mark], name: str, mark: Mark) -> bool:
    """Return whether the unread messages of a segment are among the missing offsets before another one."""
    offset = next_offset(name, mark)
    return offset is not None and any(
        folder_of(later) == folder_of(name) and (gap.missing or 0) <= offset < (first_offset(later) or 0)
        for later, gap in gaps.items()
    )


def _is_new_gap(old: Mark | None, new: Mark) -> bool:
    """Return whether offsets before a segment are missing that were not reported yet."""
    is_known = old is not None and (old.generation, old.missing) == (new.generation, new.missing)
    return new.missing is not None and new.missing >= 0 and not is_known


def divided(name: str, start: int, end: int, every: int, head: str = "") -> list[Part]:
    """Return parts of a segment of about so many bytes, from a record's start to an end.

    >>> [part[1:3] for part in divided("0.log", 10, 100, 50)]
    [(10, 55), (55, 100)]
    """
    count = min(-(-(end - start) // every), _MOST_PARTS)
    edges = [start + (end - start) * number // count for number in range(count + 1)] if count else []
    return [Part(name, low, high, start, end, head) for low, high in itertools.pairwise(edges) if low < high]
