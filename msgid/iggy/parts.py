"""A large segment in parts that several readers decode at once, over any ``read(position, length)``.

A planner asks `split_points` where to divide a segment, and each reader calls `read_part` for its part. Neither opens a
file: ``read`` returns the bytes of a local file, of an object on S3, or of a test. It may return fewer bytes than asked
for only at the end of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgid._validate import integer
from msgid.iggy._records.decoding import NAMES, LogDecoder, later_codes, without_rows_from
from msgid.iggy._records.rows import ROW, SUM_WRONG, Row
from msgid.iggy._records.stepping import HEAD, RecordFile
from msgid.iggy._wire import AUTO, LAYOUTS, PREVIOUS, Layout, name_of
from msgid.iggy.detect import LONGEST, Detection, detect
from msgid.iggy.index import Index, strides_of
from msgid.iggy.log import CHUNK, checked_limit
from msgid.iggy.table import table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.iggy.index import IndexBytes
    from msgid.iggy.table import Decoded

_WINDOW: Final = 1 << 14
"""How many bytes are searched first for the last records."""
_FEW: Final = 3
"""How many wrong positions of an index, or wrong checksums in a row, are tolerated."""


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


class Boundary(NamedTuple):
    """The result of `boundary`."""

    place: int
    """Where a record starts, or the last whole one ends."""
    layout: str | None
    """The layout of the record; None if it is not known."""
    found: bool
    """Whether the place is at the target or after it."""


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
    wanted, rest = HEAD, max(size - place, 0)
    while True:
        data = read(place, min(wanted, rest))
        found = detect(data, known=rest, first_offset=first_offset, limit=limit)
        is_cut = len(data) < min(wanted, rest)  # since its size was read
        if found.layout is not None or found.needed <= len(data) or is_cut:
            return found
        wanted = found.needed


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
    file = RecordFile(read, size, checked_limit(limit))
    code, place, misses, above = LAYOUTS[found].code, start, 0, first_offset
    points: list[int] = []
    target = size if every is None else start + integer("every", every, 1, 1 << 62)
    while True:
        place, code, whole = file.advance(place, code, target, upgrade=upgrade)
        if not whole or place >= size:
            return Walk(points, place, NAMES[code])
        starts = file.code_at(place, later_codes(code, upgrade=upgrade), above)
        if starts is not None:
            code, above = starts[0], starts[1] + 1
            points.append(place)
        misses = 0 if starts is not None else misses + 1
        target = place + 1 if 0 < misses <= _FEW else place + (every or 0)


def _from_index(
    file: RecordFile, index: Index, codes: tuple[int, ...], every: int, first_offset: int
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


def _last_entry(
    file: RecordFile, index: Index, codes: tuple[int, ...], low: int, high: int, first_offset: int
) -> tuple[int, int] | None:
    """Return the last record that an index has between two places and the log confirms, and its layout."""
    number, back = index.first_from(high + 1) - 1, 1
    for _ in range(_FEW):
        if number < 0 or index[number].position <= low:
            return None
        entry = index[number]
        least = first_offset + (entry.offset + 1 if index.ends and entry.offset is not None else 0)
        starts = file.code_at(entry.position, codes, least)
        if starts is not None:
            return entry.position, starts[0]
        number, back = number - back, 2 * back
    return None


def _indexed(
    file: RecordFile, index: IndexBytes, layout: str, low: int, high: int, first_offset: int
) -> tuple[int, int] | None:
    """Return the result of `_last_entry` for the first stride that has one; the layout is that of the first record."""
    code = LAYOUTS[layout].code
    if code == PREVIOUS:
        return None
    codes = later_codes(code, upgrade=True)
    strides = (Index(index, layout, stride) for stride in strides_of(layout))
    found = (_last_entry(file, entries, codes, low, high, first_offset) for entries in strides)
    return next(filter(None, found), None)


def last_record(
    read: Callable[[int, int], bytes],
    size: int,
    index: IndexBytes,
    layout: Layout = "auto",
    *,
    first_offset: int = 0,
) -> int | None:
    """Return the start of the last record that an index has and the log confirms; None without such a record.

    The first record is checked, too.

    Args:
        read: Returns the bytes of the log at a position.
        size: The size of the log in bytes.
        index: As for `split_points`.
        layout: The layout of the file's first record; later ones may follow. Default: found by checksum.
        first_offset: The number in the file's name.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n, layout="m45") for n in range(10)], "m45")
    >>> index = b"".join((145 * n).to_bytes(4, "little") for n in range(10))
    >>> last_record(lambda place, length: log[place : place + length], len(log), index)
    1305
    """
    found = detect_file(read, size, first_offset=first_offset).layout
    if found is None or name_of(layout, auto=True) not in (AUTO, found):
        return None
    entry = _indexed(RecordFile(read, size, LONGEST), index, found, 0, size, first_offset)
    return None if entry is None else entry[0]


def boundary(
    read: Callable[[int, int], bytes],
    size: int,
    target: int,
    *,
    start: int = 0,
    index: IndexBytes | None = None,
    layout: Layout = "auto",
    first_offset: int = 0,
    limit: int = LONGEST,
) -> Boundary:
    """Return the first record's start at a target or after it, without decoding the records before it.

    Two readers that divide a file at any byte agree on where the second one begins. The search starts at the last
    position of the index before the target that the log confirms. From there, the headers of the records are read.

    Args:
        read: Returns the bytes of the log at a position.
        size: The size of the log in bytes.
        target: A position in bytes; the size of the log to find the end of its last whole record.
        start: Where a record starts, before the target.
        index: As for `split_points`.
        layout: The layout of the file's first record; later ones may follow. Default: found by checksum at the start.
        first_offset: The number in the file's name.
        limit: The longest record in bytes.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)], "h64") + b"half"
    >>> boundary(lambda place, length: log[place : place + length], len(log), 500)
    Boundary(place=656, layout='h64', found=True)
    >>> boundary(lambda place, length: log[place : place + length], len(log), len(log))
    Boundary(place=1640, layout='h64', found=False)
    """
    name = name_of(layout, auto=True)
    if name == AUTO:
        found = detect_file(read, size, place=start, first_offset=first_offset, limit=limit).layout
        if found is None:
            return Boundary(start, None, start >= target)
        name = found
    file, code = RecordFile(read, size, checked_limit(limit)), LAYOUTS[name].code
    if index is not None and target > start:
        start, code = _indexed(file, index, name, start, min(target, size), first_offset) or (start, code)
    place, code, whole = file.advance(start, code, target, upgrade=True)
    return Boundary(place, NAMES[code], whole)


def last_starts(
    read: Callable[[int, int], bytes],
    stop: int,
    *,
    start: int = 0,
    index: IndexBytes | None = None,
    layout: Layout = "auto",
    first_offset: int = 0,
) -> list[int]:
    """Return where the last records before a place start, in their order; at least one if there is one.

    Args:
        read: Returns the bytes of the log at a position.
        stop: Where a record ends.
        start: Where a record starts, before the place.
        index: As for `split_points`.
        layout: As for `boundary`.
        first_offset: The number in the file's name.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 9000, id=n, offset=n) for n in range(10)], "h64")
    >>> last_starts(lambda place, length: log[place : place + length], len(log))
    [81576]
    """
    window = _WINDOW
    while True:
        low, name = start, name_of(layout, auto=True)
        if stop - window > start:
            reached = boundary(
                read, stop, stop - window, start=start, index=index, layout=layout, first_offset=first_offset
            )
            low, name = reached.place, reached.layout or name
        data = read(low, stop - low)
        decoder = LogDecoder(name, first_offset=first_offset, upgrade=True)
        starts: set[int] = set()
        at, after = 0, 1
        while after:  # also behind a torn record
            found = decoder.decode(data[at:], len(data) - at)
            rows = map(Row._make, ROW.iter_unpack(found.rows))
            starts |= {at + (row.position if row.batch < 0 else row.batch) for row in rows}
            at, after = at + found.after, found.after
        if starts or low <= start:
            return [low + place for place in sorted(starts)]
        window *= 16


def offset_after(
    read: Callable[[int, int], bytes], start: int, stop: int, *, layout: Layout = "auto", first_offset: int = 0
) -> int | None:
    """Return the offset after that of the last message between two places; None if none ends at the second.

    Args:
        read: Returns the bytes of the log at a position.
        start: Where a record starts.
        stop: Where a record ends.
        layout: As for `boundary`.
        first_offset: The number in the file's name.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a", id=n, offset=n) for n in (5, 8)], "h64")
    >>> offset_after(lambda place, length: log[place : place + length], 0, len(log))
    9
    """
    decoder = LogDecoder(name_of(layout, auto=True), first_offset=first_offset, upgrade=True)
    found = decoder.decode(read(start, stop - start), stop - start)
    if not found.rows or found.place < stop - start:
        return None
    last = Row._make(ROW.unpack_from(found.rows, len(found.rows) - ROW.size))
    return None if last.sum == SUM_WRONG else last.offset + 1


def split_points(
    read: Callable[[int, int], bytes],
    size: int,
    every: int,
    *,
    index: IndexBytes | None = None,
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
        index: The bytes of the ``.index`` file: bytes, a `mmap.mmap`, or `Blocks` of a file.
        layout: A layout's name. Default: found by the checksum of the first record.
        first_offset: The number in the file's name.
        limit: The longest record in bytes.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n, layout="m45") for n in range(10)], "m45")
    >>> index = b"".join((145 * n).to_bytes(4, "little") for n in range(10))
    >>> split_points(lambda place, length: log[place : place + length], len(log), 500, index=index)
    Split(points=[0, 580, 1160], layout='m45', source='index', dropped=0)
    """
    every = integer("every", every, 1, 1 << 62)
    name = name_of(layout, auto=True)
    found = name if name != AUTO else detect_file(read, size, first_offset=first_offset, limit=limit).layout
    if found is None or size <= every:
        return Split([0], found, "whole", 0)
    file, code = RecordFile(read, size, checked_limit(limit)), LAYOUTS[found].code
    points, dropped = [0], 0
    if index is not None and code != PREVIOUS:
        tries = [
            _from_index(file, Index(index, found, stride), later_codes(code, upgrade=name == AUTO), every, first_offset)
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
        stop: The place from which on the next part's records start, or the size of the file.
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
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)], "h64")
    >>> parts = [(0, 656), (656, 1312), (1312, 1640)]
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
        # The last batch goes on after the part, and is read a message at a time, but nothing after it.
        ahead = stop - end if end < stop else decoder.within - len(held)
        wanted = max(needed - len(held), min(chunk, ahead))
        before = len(held)
        held += read(end, min(wanted, size - end))  # without a name: a long record is kept once
        more = len(held) > before
        found = decoder.decode(held, size - base if more else len(held), base)
        # What is wrong within a batch belongs to the part of the batch.
        kept = found if found.error is not None and decoder.within else without_rows_from(found, stop - base)
        decoded = table_of(held, kept, base)
        if decoded.table.num_rows or decoded.error is not None:
            yield decoded
        if decoded.error is not None or not more or kept is not found:
            return
        held, base, needed = held[found.place :], base + found.place, found.needed
