"""A large segment in parts that several readers decode at once, over any ``read(position, length)``.

A planner asks `split_points` where to divide a segment, and each reader calls `read_part` for its part. Neither opens a
file: ``read`` returns the bytes of a local file, of an object on S3, or of a test. It may return fewer bytes than asked
for only at the end of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgid._validate import integer
from msgid.iggy._records.decoding import LATER, NAMES, LogDecoder, without_rows_from
from msgid.iggy._wire import AUTO, BATCH24, BATCH256, LAYOUTS, M45, PREVIOUS, Layout, name_of
from msgid.iggy.detect import LONGEST, Detection, detect, probe
from msgid.iggy.index import Index, strides_of
from msgid.iggy.log import CHUNK, checked_limit
from msgid.iggy.table import table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.iggy.table import Decoded

__all__ = ["Split", "Walk", "detect_file", "read_part", "split_points", "walk"]

_FEW: Final = 3
"""How many wrong positions of an index, or wrong checksums in a row, are tolerated."""
_HEAD: Final = 1 << 16
_WINDOW: Final = 1 << 18
_FAR: Final = 1 << 12
"""A record of so many bytes is stepped over without reading it."""


class Split(NamedTuple):
    """Where a segment can be divided."""

    points: list[int]
    """Positions at which records start, rising; the first is 0."""
    layout: str | None
    """The layout of the first record; None if it is not known."""
    source: str
    """``index``, ``walk``, or ``whole`` if there is one part only."""
    dropped: int
    """How many positions of the index were wrong."""


class Walk(NamedTuple):
    """The result of `walk`."""

    points: list[int]
    """Positions at which records start, checked, at least so many bytes apart."""
    end: int
    """Where the last whole record ends."""
    layout: str | None
    """The layout of the last record."""


def detect_file(
    read: Callable[[int, int], bytes], size: int, *, place: int = 0, first_offset: int = 0, limit: int = LONGEST
) -> Detection:
    """Return which layout the record of a file has, as `detect` does, and read no more than that takes.

    Args:
        read: Returns the bytes at a position.
        size: The size of the file in bytes.
        place: Where the record starts.
        first_offset: The lowest offset that its first message can have.
        limit: The longest record that is read, in bytes.
    """
    wanted = _HEAD
    while True:
        data = read(place, min(wanted, size - place))
        found = detect(data, known=size - place, first_offset=first_offset, limit=limit)
        if found.layout is not None or not found.needed or found.needed <= len(data):
            return found
        wanted = found.needed


class _File:
    """A file that is stepped through by the lengths of its records."""

    def __init__(self, read: Callable[[int, int], bytes], size: int, limit: int) -> None:
        self.read = read
        self.size = size
        self.limit = limit
        self._held = b""
        self._base = 0
        self._far = False

    def _bytes(self, place: int, length: int) -> bytes:
        """Return bytes of the file, through a window of it while records are small."""
        at = place - self._base
        if at < 0 or at + length > len(self._held):
            wanted = length if self._far else max(length, _WINDOW)
            self._held, self._base, at = self.read(place, min(wanted, self.size - place)), place, 0
        return self._held[at : at + length]

    def _number(self, place: int, length: int = 4) -> int:
        return int.from_bytes(self._bytes(place, length), "little")

    def length(self, place: int, code: int) -> int | None:
        """Return the length of the record at a place, by its header; None if it is not whole."""
        facts = LAYOUTS[NAMES[code]]
        least = facts.batch or facts.least
        if place + least > self.size:
            return None
        if code == BATCH24:
            length = least + self._number(place + 8)
        elif code == BATCH256:
            length = self._number(place + 32, 8)
        elif code in (PREVIOUS, M45):
            payload = place + least + self._number(place + least - 8)
            length = payload - place + self._number(payload - 4) if payload <= self.size else self.size + 1
        else:
            length = least + self._number(place + 48) + self._number(place + 52)
        self._far = length >= _FAR
        return length if least <= length <= self.size - place else None

    def code_at(self, place: int, codes: tuple[int, ...], above: int) -> tuple[int, int] | None:
        """Return layout and offset of the record at a place; None if none starts there whose checksum holds."""
        for code in codes:
            wanted = _HEAD
            while True:
                data = self.read(place, min(wanted, self.size - place))
                found = probe(data, LAYOUTS[NAMES[code]], self.size - place, above, self.limit)
                if found.needed <= len(data):
                    break
                wanted = found.needed
            if found.reason is None:
                return code, found.offset
        return None

    def decoded_to(self, start: int, place: int, code: int) -> tuple[int, int] | None:
        """Decode from a record's start: return the first boundary from a place on, and its layout; None on an error."""
        decoder = LogDecoder(NAMES[code], limit=self.limit, upgrade=True)
        base, needed, held = start, 0, b""
        while base < place or decoder.within:
            end = base + len(held)
            wanted = max(needed - len(held), min(CHUNK, place - end))
            more = self.read(end, min(wanted, self.size - end))
            held += more
            found = decoder.decode(held, self.size - base if more else len(held), base)
            if found.error is not None or not more:
                return None
            held, base, needed = held[found.place :], base + found.place, found.needed
        return base, code if decoder.code is None else decoder.code


def _codes(code: int, *, upgrade: bool) -> tuple[int, ...]:
    """Return the layouts that records can have after a record of a layout."""
    return (code, *LATER.get(code, ())) if upgrade else (code,)


def walk(
    read: Callable[[int, int], bytes],
    start: int,
    size: int,
    layout: Layout = "auto",
    *,
    every: int | None = None,
    first_offset: int = 0,
    limit: int = LONGEST,
    upgrade: bool = False,
) -> Walk:
    """Step over whole records by their headers, and check the checksum of those that become split points.

    Args:
        read: Returns the bytes at a position.
        start: Where a record starts.
        size: The size of the file in bytes, or how much of it is walked.
        layout: A layout's name. Default: found by the checksum of the first record.
        every: The least distance of split points in bytes. Default: no points.
        first_offset: The number in the file's name.
        limit: The longest record in bytes.
        upgrade: Whether later layouts may follow the named one, as they may with ``auto``.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)], "h64") + b"half"
    >>> walk(lambda place, length: log[place : place + length], 0, len(log), every=500)
    Walk(points=[656, 1312], end=1640, layout='h64')
    """
    name = name_of(layout, auto=True)
    upgrade = upgrade or name == AUTO
    found = name if name != AUTO else detect_file(read, size, place=start, first_offset=first_offset).layout
    if found is None:
        return Walk([], start, None)
    file = _File(read, size, checked_limit(limit))
    code, place, last, checked, misses = LAYOUTS[found].code, start, start, start, 0
    points: list[int] = []
    above = first_offset
    target = size if every is None else start + integer("every", every, 1, 1 << 62)
    while True:
        length = file.length(place, code)
        if length is None:
            if last <= checked or len(_codes(code, upgrade=upgrade)) == 1 or file.code_at(last, (code,), 0):
                return Walk(points, place, NAMES[code])
            # The walk may have gone astray where a server went on in another layout: decode to be sure.
            sure = file.decoded_to(checked, place, code)
            if sure is None or sure == (place, code):
                return Walk(points, place, NAMES[code])
            place, code = sure
            last = checked = place
            continue
        if place >= target:
            starts = file.code_at(place, _codes(code, upgrade=upgrade), above)
            if starts is not None:
                code, offset = starts
                points.append(place)
                checked, above, target, misses = place, offset + 1, place + (every or 0), 0
                length = file.length(place, code)
                if length is None:
                    continue
            elif misses < _FEW:
                misses += 1
                sure = file.decoded_to(checked, place, code)
                if sure is None:
                    return Walk(points, checked, NAMES[code])
                if sure[0] != place:
                    place, code = sure
                    continue
            else:
                misses, target = 0, place + (every or 0)
        last, place = place, place + length


def _from_index(
    file: _File, index: Index, codes: tuple[int, ...], every: int, first_offset: int
) -> tuple[list[int], int]:
    """Return the split points that an index gives and the log confirms, and how many it does not confirm."""
    points, wrong, target, above = [0], 0, every, first_offset
    while target < file.size and wrong <= _FEW:
        number = index.first_from(target)
        if number == len(index):
            break
        entry = index[number]
        place, least = entry.position, above
        if index.ends and entry.offset is not None:  # the message after the one of the entry
            least = max(least, first_offset + entry.offset + 1)
        if place >= file.size:
            break
        starts = file.code_at(place, codes, least) if place > points[-1] else None
        if starts is None:
            wrong += 1
            target = max(target, place) + 1
        else:
            points.append(place)
            target, above = place + every, starts[1] + 1
    return points, wrong


def split_points(
    read: Callable[[int, int], bytes],
    size: int,
    every: int,
    *,
    index: bytes | memoryview | None = None,
    layout: Layout = "auto",
    first_offset: int = 0,
    limit: int = LONGEST,
) -> Split:
    """Return where a segment can be divided into parts of about so many bytes.

    Each point is checked in the log: a record starts there, its checksum holds and its offset rises. A point of the
    index that fails is dropped. If more than a few fail, the index is not used. Without an index, and where it lacks
    points, the headers of the records are walked.

    Args:
        read: Returns the bytes of the log at a position.
        size: The size of the log in bytes.
        every: The least distance of two points in bytes.
        index: The bytes of the ``.index`` file, or anything with their interface, such as `mmap.mmap`.
        layout: A layout's name. Default: found by the checksum of the first record.
        first_offset: The number in the file's name.
        limit: The longest record in bytes.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)])
    >>> index = b"".join((145 * n).to_bytes(4, "little") for n in range(10))
    >>> split_points(lambda place, length: log[place : place + length], len(log), 500, index=index)
    Split(points=[0, 580, 1160], layout='m45', source='index', dropped=0)
    """
    every = integer("every", every, 1, 1 << 62)
    name = name_of(layout, auto=True)
    found = name if name != AUTO else detect_file(read, size, first_offset=first_offset, limit=limit).layout
    if found is None or size <= every:
        return Split([0], found, "whole", 0)
    file, code = _File(read, size, checked_limit(limit)), LAYOUTS[found].code
    points, dropped = [0], 0
    if index is not None and code != PREVIOUS:
        tries = [
            _from_index(file, Index(index, found, stride), _codes(code, upgrade=name == AUTO), every, first_offset)
            for stride in strides_of(found)
        ]
        points, dropped = max(tries, key=lambda tried: len(tried[0]) - tried[1])
        if dropped > _FEW or dropped >= len(points):
            points = [0]
    source = "index" if len(points) > 1 else "whole"
    whole: list[int] = []
    for start, stop in zip(points, [*points[1:], size], strict=True):
        whole.append(start)
        if stop - start > 2 * every:
            walked = walk(read, start, stop, layout, every=every, first_offset=first_offset, limit=limit)
            whole += walked.points
            source = "walk" if walked.points and source == "whole" else source
    return Split(whole, found, source, dropped)


def read_part(
    read: Callable[[int, int], bytes],
    start: int,
    stop: int,
    size: int,
    layout: Layout = "auto",
    *,
    first_offset: int = 0,
    chunk: int = CHUNK,
    limit: int = LONGEST,
    upgrade: bool = False,
) -> Iterator[Decoded]:
    """Read one part of a segment to Arrow tables: the records that start in it, each to its end.

    Args:
        read: Returns the bytes at a position.
        start: Where a record starts: a point of `split_points`.
        stop: The start of the next part, or the size of the file.
        size: The size of the file in bytes.
        layout: A layout's name: that of `Split`, with ``upgrade``. Default: found by the checksum of the part's first
            record, which is not possible for a part whose payloads are all empty.
        first_offset: The number in the file's name.
        chunk: The number of bytes that are read at once; more are held only for a record that is longer.
        limit: The longest record in bytes; one that claims more is an error and is not waited for.
        upgrade: Whether later layouts may follow the named one, as they may with ``auto``.

    Yields:
        What `read_tables` yields; positions and the places of errors count from the start of the file.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)])
    >>> parts = [(0, 580), (580, 1160), (1160, 1450)]
    >>> read = lambda place, length: log[place : place + length]
    >>> [sum(found.table.num_rows for found in read_part(read, *part, len(log))) for part in parts]
    [4, 4, 2]
    """
    decoder = LogDecoder(
        name_of(layout, auto=True), first_offset=first_offset, limit=checked_limit(limit), upgrade=upgrade
    )
    held, base, needed = b"", start, 0
    while base < stop or decoder.within:
        end = base + len(held)
        wanted = max(needed - len(held), min(chunk, stop - end))
        more = read(end, min(wanted, size - end))
        held += more
        found = decoder.decode(held, size - base if more else len(held), base)
        kept = without_rows_from(found, stop - base)
        decoded = table_of(held, kept, base)
        if decoded.table.num_rows or decoded.error is not None:
            yield decoded
        if decoded.error is not None or not more or kept is not found:
            return
        held, base, needed = held[found.place :], base + found.place, found.needed
