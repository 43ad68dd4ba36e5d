"""The reference scanner of Iggy's bytes in Python: records of every layout, with their checksums.

The compiled scanner returns the same, bit for bit; the tests hold the two equal.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from msgid.iggy.records.checksums import crc32, reference_xxh3
from msgid.iggy.records.producers import FIELDS_AT, LARGEST, SECTION, SECTION_AT, covered, producer_of
from msgid.iggy.records.rows import NO_SUM, ROW, Scan, Stop
from msgid.iggy.wire import BATCH24, BATCH256, H56_CRC, H64, HAS_ORIGIN, PREVIOUS
from msgid.shared.validate import UINT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

_U32: Final = struct.Struct("<I")
_PREVIOUS: Final = struct.Struct("<QQ16sI")
_M45: Final = struct.Struct("<QBQ16sII")
_BATCH24: Final = struct.Struct("<QIIQ")
_H56: Final = struct.Struct("<Q16sQQQII")
_H64: Final = struct.Struct("<Q16sQQQIIQ")
_BATCH256: Final = struct.Struct("<QQQQQQI")
_FRAME: Final = struct.Struct("<Q16sIIIIQ")
_BATCH256_SIZE: Final = 256
_STATES: Final = frozenset((1, 10, 20, 30))
_CHECKED: Final = 8
"""Where the bytes start that a checksum of XXH3's time covers."""


class _Stopped(Exception):
    def __init__(self, stop: Stop, at: int, value: int = 0) -> None:
        super().__init__(stop, at, value)
        self.stop, self.at, self.value = stop, at, value


class _Scanner:
    """The state of one scan."""

    def __init__(self, data: memoryview, place: int, known: int, within: int, limit: int, strict: int) -> None:
        self.data = data
        self.place = place
        self.end = len(data)
        self.known = known
        self.within = within
        self.batch = -1
        self.limit = limit
        self.strict = strict
        self.rows: list[bytes] = []

    def need(self, length: int, place: int | None = None) -> None:
        """Stop the scan unless so many bytes are there."""
        place = self.place if place is None else place
        if length > self.end - place:
            if self.known >= 0 and length > self.known - place:
                raise _Stopped(Stop.CUT, place, length)
            raise _Stopped(Stop.LONG if length > self.limit else Stop.MORE, place, length)

    def old(self, layout: int) -> None:
        """Read a message of the layout ``previous`` or ``m45``."""
        place, fixed = self.place, _PREVIOUS if layout == PREVIOUS else _M45
        self.need(fixed.size + 4)
        if layout == PREVIOUS:
            offset, timestamp, id, headers = _PREVIOUS.unpack_from(self.data, place)
            state, checksum = 0, 0
        else:
            offset, state, timestamp, id, checksum, headers = _M45.unpack_from(self.data, place)
            if state not in _STATES:
                raise _Stopped(Stop.STATE, place + 8, state)
        self.need(fixed.size + 4 + headers)
        payload = place + fixed.size + headers + 4
        (length,) = _U32.unpack_from(self.data, payload - 4)
        end = payload + length
        self.need(end - place)
        sum = NO_SUM if layout == PREVIOUS else int(crc32(self.data[payload:end]) == checksum)
        first = place + fixed.size
        self.rows.append(
            ROW.pack(
                *(place, end, first, payload, -1, headers, length, offset, timestamp, 0, id, checksum),
                *(state, sum, NO_SUM, layout),
            )
        )
        self.place = end

    def in_batch24(self, layout: int) -> None:
        """Read the header of a batch, or a message of it."""
        place = self.place
        if place >= self.within:
            self.need(_BATCH24.size)
            _, length, _, _ = _BATCH24.unpack_from(self.data, place)
            size = _BATCH24.size + length
            # A batch of a known file is read a message at a time, so that a large one is not held.
            if self.known < 0 or size > self.known - place:
                self.need(size)
            self.batch, self.within, self.place = place, place + size, place + _BATCH24.size
            return
        room = self.within - place
        if room < _U32.size:
            raise _Stopped(Stop.FRAME, place, 4)
        self.need(4)
        size = 4 + _U32.unpack_from(self.data, place)[0]
        if size < 4 + _M45.size:
            raise _Stopped(Stop.SIZE, place, size - 4)
        if size > room:
            raise _Stopped(Stop.FRAME, place, size)
        self.need(size)
        offset, state, timestamp, id, checksum, headers = _M45.unpack_from(self.data, place + 4)
        if state not in _STATES:
            raise _Stopped(Stop.STATE, place + 12, state)
        first, end = place + 4 + _M45.size, place + size
        if headers > end - first:
            raise _Stopped(Stop.SIZE, place, size - 4)
        payload = first + headers
        sum = int(crc32(self.data[payload:end]) == checksum)
        self.rows.append(
            ROW.pack(
                *(place, end, first, payload, self.batch, headers, end - payload, offset, timestamp, 0, id, checksum),
                *(state, sum, NO_SUM, layout),
            )
        )
        self.place = end

    def new(self, layout: int) -> None:
        """Read a message of the layout ``h56-crc``, ``h56-xxh3`` or ``h64``."""
        place, fixed = self.place, _H64 if layout == H64 else _H56
        self.need(fixed.size)
        checksum, id, offset, timestamp, origin, headers, length = _H56.unpack_from(self.data, place)
        if layout == H64 and any(self.data[place + _H56.size : place + _H64.size]):
            raise _Stopped(Stop.RESERVED, place + _H56.size)
        size = fixed.size + headers + length
        self.need(size)
        end, payload = place + size, place + fixed.size
        digest: Callable[[memoryview], int] = crc32 if layout == H56_CRC else reference_xxh3
        sum = int(digest(self.data[place + _CHECKED : end]) == checksum)
        if not sum and self.strict >= 0 and place != self.strict:
            raise _Stopped(Stop.SUM, place)
        self.rows.append(
            ROW.pack(
                *(place, end, payload + length, payload, -1, headers, length, offset, timestamp, origin, id, checksum),
                *(0, sum, NO_SUM, layout),
            )
        )
        self.place = end

    def producer(self, batch: int) -> bytes:
        """Check the flags and the producer section of a batch; return what of them the checksum of the batch covers."""
        header = bytes(self.data[batch : batch + _BATCH256_SIZE])
        flags, *fields = SECTION.unpack_from(header, SECTION_AT)
        if flags > 1:
            raise _Stopped(Stop.FLAGS, batch + SECTION_AT, flags)
        allowed = SECTION.pack(flags, *fields) if flags else bytes(SECTION.size)
        for at, byte in enumerate(allowed, SECTION_AT):
            if header[at] != byte:
                raise _Stopped(Stop.RESERVED, batch + at)
        for at, number, most in zip(FIELDS_AT, fields, LARGEST, strict=True):
            if number > most:
                raise _Stopped(Stop.PRODUCER, batch + at, number)
        return covered(producer_of(header))

    def in_batch256(self, layout: int) -> None:
        """Read a batch with all its frames."""
        batch, data = self.place, self.data
        self.need(_BATCH256_SIZE)
        _, base_offset, base_time, base_origin, length, checksum, count = _BATCH256.unpack_from(data, batch)
        producer = self.producer(batch)
        if length < _BATCH256_SIZE:
            raise _Stopped(Stop.BATCH, batch + 32, length)
        self.need(length)
        place, end = batch + _BATCH256_SIZE, batch + length
        frames, sums = [], []
        while place < end:
            if end - place < _FRAME.size:
                raise _Stopped(Stop.FRAME, place, _FRAME.size)
            found, id, offset, time, headers, payload_length, reserved = _FRAME.unpack_from(data, place)
            size = _FRAME.size + headers + payload_length
            if size > end - place:
                raise _Stopped(Stop.FRAME, place, size)
            if reserved:
                raise _Stopped(Stop.RESERVED, place + 40)
            frames.append((place, place + size, id, offset, time, headers, payload_length, found))
            sums.append(bytes(data[place : place + 8]))
            place += size
        if len(frames) != count:
            raise _Stopped(Stop.COUNT, batch + 48, len(frames))
        whole = b"".join((data[batch : batch + 40], data[batch + 48 : batch + 52], producer, *sums))
        batch_sum = int(reference_xxh3(whole) == checksum)
        for place, after, id, offset, time, headers, payload_length, found in frames:
            payload = place + _FRAME.size
            sum = int(reference_xxh3(data[place + _CHECKED : after]) == found)
            self.rows.append(
                ROW.pack(
                    *(place, after, payload + payload_length, payload, batch, headers, payload_length),
                    *((base_offset + offset) & UINT64_MAX, base_time, (base_origin + time) & UINT64_MAX, id, found),
                    *(0, sum, batch_sum, layout),
                )
            )
        self.place = end


def scan(
    data: bytes | memoryview, layout: int, place: int, known: int, within: int, limit: int, most: int, strict: int
) -> Scan:
    """Find the messages of bytes.

    Args:
        data: the bytes of a file, or of a part of it.
        layout: the number of the layout.
        place: where in the bytes to start.
        known: where the file ends, counted as places are; -1 if that is not known, and then more bytes may follow.
        within: where the batch ends in which the scan starts; 0 outside of a batch.
        limit: the longest record, in bytes, that is waited for.
        most: the number of rows after which the scan ends; a ``batch256`` batch is never divided.
        strict: if it is 0 or more, the scan stops at a wrong checksum of a layout without batches, unless the message
            starts at this place.
    """
    view = memoryview(data).cast("B")
    scanner = _Scanner(view, place, known, within, limit, strict)
    step = {BATCH24: scanner.in_batch24, BATCH256: scanner.in_batch256}.get(layout)
    if step is None:
        step = scanner.new if HAS_ORIGIN[layout] else scanner.old
    stop, at, value = Stop.END, 0, 0
    try:
        while scanner.place < scanner.end and len(scanner.rows) < most:
            step(layout)
    except _Stopped as stopped:
        stop, at, value = stopped.stop, stopped.at, stopped.value
    inside = scanner.within if scanner.place < scanner.within else 0
    return Scan(b"".join(scanner.rows), scanner.place, inside, int(stop), at, value)
