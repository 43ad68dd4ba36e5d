"""Read on after broken bytes: where the next record starts whose checksum holds.

A gap is the broken bytes before it. A part of a file goes from the record that `reach` finds for its start to the one
for its end. So each byte is in one part, also where the lengths and the contents of broken records disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgid.iggy._records.decoding import NAMES
from msgid.iggy._records.rows import Stop
from msgid.iggy._records.scanning import scan
from msgid.iggy._records.stepping import HEAD, RecordFile, later_codes
from msgid.iggy._wire import AUTO, BATCH24, BATCH256, H56_CRC, H56_XXH3, H64, LAYOUTS, M45
from msgid.iggy.detect import LONGEST
from msgid.iggy.parts import boundary, detect_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.iggy.index import IndexBytes

_OFFSET_AT: Final = {M45: 0, BATCH24: 0, BATCH256: 8, H56_CRC: 24, H56_XXH3: 24, H64: 24}
"""The place of the offset in a record; records of the layout ``previous``, without checksums, are never sure."""
_OFFSET_SIZE: Final = 8
_MOST: Final = 1 << 40
"""More offsets than a partition has."""
_CHUNK: Final = 1 << 20


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
            if found.found or (waits and _is_half(file, found.place, found.layout)):
                return found.place, found.layout or AUTO
            # Steps by lengths pass records that are broken within.
            place, code, _ = _records(file).decoded_to(place, target, LAYOUTS[layout].code)
            layout = NAMES[code]
        elif waits and _is_half(file, place, layout):
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
    codes = (*_OFFSET_AT,) if layout == AUTO else later_codes(LAYOUTS[layout].code, upgrade=True)
    codes = tuple(code for code in codes if code in _OFFSET_AT)
    lowest = (file.first_offset or 0) + 1
    highest = _MOST if file.first_offset is None else lowest + file.size
    records = _records(file)
    for place, code in _candidates(file, start, codes, lowest, highest):
        if records.code_at(place, (code,), lowest) is not None:
            return place, NAMES[code]
    return None


def _candidates(file: File, start: int, codes: tuple[int, ...], lowest: int, highest: int) -> Iterator[tuple[int, int]]:
    """Return the places where a record of a fitting offset may start, in their order, with its layout."""
    import numpy as np

    more = max((_OFFSET_AT[code] for code in codes), default=0) + _OFFSET_SIZE
    for base in range(start, file.size, _CHUNK):
        data = file.read(base, min(_CHUNK + more, file.size - base))
        count = len(data) - _OFFSET_SIZE + 1
        if count <= 0 or not codes:
            return
        numbers = np.ndarray(count, "<u8", data, strides=(1,))
        fitting = np.flatnonzero((numbers >= lowest) & (numbers <= highest))
        found = sorted((int(at) - _OFFSET_AT[code], code) for at in fitting for code in codes)
        yield from ((base + place, code) for place, code in found if 0 <= place < _CHUNK)


def _records(file: File) -> RecordFile:
    return RecordFile(file.read, file.size, LONGEST)


def _is_half(file: File, place: int, layout: Any) -> bool:
    """Return whether the file ends within the record at a place, as far as its lengths tell."""
    if layout == AUTO:
        return detect_file(file.read, file.size, place=place, first_offset=file.first_offset or 0).cut
    data = file.read(place, min(HEAD, file.size - place))
    found = scan(data, LAYOUTS[layout].code, 0, known=file.size - place, limit=LONGEST, most=1)
    return found.stop == Stop.CUT and found.value <= LONGEST
