"""Read on after broken bytes: where the next record starts whose checksum holds.

A gap is the broken bytes before it. A part of a file goes from the record that `reach` finds for its start to the one
for its end. So each byte is in one part, also where the lengths and the contents of broken records disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgid.iggy._records.decoding import NAMES, WHOLE, later_codes
from msgid.iggy._records.rows import Stop
from msgid.iggy._records.scanning import scan
from msgid.iggy._records.searching import OFFSET_AT, OFFSET_MAX, candidates
from msgid.iggy._records.stepping import HEAD, RecordFile
from msgid.iggy._wire import AUTO, LAYOUTS
from msgid.iggy.detect import LONGEST
from msgid.iggy.index import Index
from msgid.iggy.parts import boundary, detect_file, last_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgid.iggy.index import IndexBytes


@dataclass(frozen=True)
class File:
    """The bytes of a segment."""

    read: Callable[[int, int], bytes]
    """Returns the bytes at a position."""
    size: int
    layout: Any
    """The layout of the first record, or ``auto`` if that is not known; later ones may follow."""
    first_offset: int | None
    """The number in the file's name; None for a file with another name."""
    index: IndexBytes | None = None


def reach(file: File, target: int, start: int, *, waits: bool) -> tuple[int, Any]:
    """Return the first record's start at a target or after it, as `boundary` does, also after gaps; and its layout.

    Without such a record, return where the last gap starts, or half a record whose rest may come.

    Args:
        file: The segment.
        target: A position in bytes; the size of the file for the end of its last record.
        start: Where a record starts, at the target or before it.
        waits: Whether the rest of half a record may still come, which is then no gap.
    """
    place, layout = start, file.layout
    if layout == AUTO and place < file.size:
        layout = detect_file(file.read, file.size, place=start, first_offset=file.first_offset or 0).layout or AUTO
    while place < target:
        if layout != AUTO:
            found = boundary(
                file.read, file.size, target, start=place, index=file.index, layout=layout,
                first_offset=file.first_offset or 0,
            )  # fmt: skip
            if found.found or (waits and _may_go_on(file, found.place, found.layout)):
                end = _decided(file, start, found.place, found.layout) if waits else found.place
                return end, found.layout or AUTO
            # Steps by lengths pass records that are broken within.
            place, code, _ = _records(file).decoded_to(place, target, LAYOUTS[layout].code)
            layout = NAMES[code]
        elif waits and _may_go_on(file, place, layout):
            return place, layout
        after = next_record(file, place + 1, layout)
        if after is None:
            return place, layout
        place, layout = after
    return place, layout


def next_record(file: File, start: int, layout: Any) -> tuple[int, str] | None:
    """Return the first record at a place or after it whose checksum holds, and its layout; None if all are broken.

    Its offset shows where a record may start: it is at most the file's first plus its number of bytes. So of bytes that
    happen to look like a record, few have a fitting offset.

    Args:
        file: The segment.
        start: A position in bytes, after the start of a record.
        layout: The layout of the last record; ``auto`` if it is not known.
    """
    codes = (*OFFSET_AT,) if layout == AUTO else later_codes(LAYOUTS[layout].code, upgrade=True)
    lowest = max(1, file.first_offset or 0)
    highest = OFFSET_MAX if file.first_offset is None else lowest + file.size
    records = _records(file)
    for place, code in candidates(file.read, start, file.size, codes, lowest, highest):
        if records.code_at(place, (code,), lowest) is not None:
            return place, NAMES[code]
    return None


def _may_go_on(file: File, place: int, layout: Any) -> bool:
    """Return whether half a record is at a place whose rest may come: the index does not show a record after it."""
    if not _is_half(file, place, layout):
        return False
    if file.index is None or layout == AUTO or LAYOUTS[layout].code not in WHOLE:
        return True
    index = Index(file.index, layout)
    if index.first_from(place + 1) == len(index):
        return True
    after = next_record(file, place + 1, layout)  # an index can be wrong, so it must name the end of a record
    if after is None:
        return True
    end, _, _ = _records(file).advance(after[0], LAYOUTS[after[1]].code, after[0] + 1, upgrade=True)
    number = index.first_from(end)
    return number == len(index) or index[number].position != end


def _decided(file: File, start: int, end: int, layout: Any) -> int:
    """Return an end of records, or an earlier one before messages with wrong checksums that nothing sure follows.

    What follows will tell whether such a message is torn.
    """
    if layout is None or LAYOUTS[layout].code not in WHOLE:
        return end
    records, place, codes = _records(file), end, later_codes(LAYOUTS[layout].code, upgrade=True)
    if records.code_at(place, codes, 0) is not None:
        return place
    while place > start:
        starts = last_starts(
            file.read, place, start=start, index=file.index, layout=file.layout, first_offset=file.first_offset or 0
        )
        for at in reversed(starts):
            if records.code_at(at, (*OFFSET_AT,), 0) is not None:
                return place
            place = at
        if not starts:
            return place
    return place


def _records(file: File) -> RecordFile:
    return RecordFile(file.read, file.size, LONGEST)


def _is_half(file: File, place: int, layout: Any) -> bool:
    """Return whether the file ends within the record at a place, as far as its lengths tell."""
    if layout == AUTO:
        return detect_file(file.read, file.size, place=place, first_offset=file.first_offset or 0).cut
    data = file.read(place, min(HEAD, file.size - place))
    found = scan(data, LAYOUTS[layout].code, 0, known=file.size - place, limit=LONGEST, most=1)
    return found.stop == Stop.CUT and found.value <= LONGEST
