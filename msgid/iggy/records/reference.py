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

    def __init__(self, data: memoryview, position: int, known: int, within: int, limit: int, strict: int) -> None:
        self.data = data
        self.position = position
        self.end = len(data)
        self.known = known
        self.within = within
        self.batch = -1
        self.limit = limit
        self.strict = strict
        self.rows: list[bytes] = []

    def need(self, length: int, position: int | None = None) -> None:
        """Stop the scan unless so many bytes are there."""
        position = self.position if position is None else position
        if length > self.end - position:
            if self.known >= 0 and length > self.known - position:
                raise _Stopped(Stop.CUT, position, length)
            raise _Stopped(Stop.LONG if length > self.limit else Stop.MORE, position, length)

    def old(self, layout: int) -> None:
        """Read a message of the layout ``previous`` or ``m45``."""
        position, fixed = self.position, _PREVIOUS if layout == PREVIOUS else _M45
        self.need(fixed.size + 4)
        if layout == PREVIOUS:
            offset, timestamp, id, headers = _PREVIOUS.unpack_from(self.data, position)
            state, checksum = 0, 0
        else:
            offset, state, timestamp, id, checksum, headers = _M45.unpack_from(self.data, position)
            if state not in _STATES:
                raise _Stopped(Stop.STATE, position + 8, state)
        self.need(fixed.size + 4 + headers)
        payload = position + fixed.size + headers + 4
        (length,) = _U32.unpack_from(self.data, payload - 4)
        end = payload + length
        self.need(end - position)
        sum = NO_SUM if layout == PREVIOUS else int(crc32(self.data[payload:end]) == checksum)
        first = position + fixed.size
        self.rows.append(
            ROW.pack(
                *(position, end, first, payload, -1, headers, length, offset, timestamp, 0, id, checksum),
                *(state, sum, NO_SUM, layout),
            )
        )
        self.position = end

    def in_batch24(self, layout: int) -> None:
        """Read the header of a batch, or a message of it."""
        position = self.position
        if position >= self.within:
            self.need(_BATCH24.size)
            _, length, _, _ = _BATCH24.unpack_from(self.data, position)
            size = _BATCH24.size + length
            # A batch of a known file is read a message at a time, so that a large one is not held.
            if self.known < 0 or size > self.known - position:
                self.need(size)
            self.batch, self.within, self.position = position, position + size, position + _BATCH24.size
            return
        room = self.within - position
        if room < _U32.size:
            raise _Stopped(Stop.FRAME, position, 4)
        self.need(4)
        size = 4 + _U32.unpack_from(self.data, position)[0]
        if size < 4 + _M45.size:
            raise _Stopped(Stop.SIZE, position, size - 4)
        if size > room:
            raise _Stopped(Stop.FRAME, position, size)
        self.need(size)
        offset, state, timestamp, id, checksum, headers = _M45.unpack_from(self.data, position + 4)
        if state not in _STATES:
            raise _Stopped(Stop.STATE, position + 12, state)
        first, end = position + 4 + _M45.size, position + size
        if headers > end - first:
            raise _Stopped(Stop.SIZE, position, size - 4)
        payload = first + headers
        sum = int(crc32(self.data[payload:end]) == checksum)
        self.rows.append(
            ROW.pack(
                *(
                    position,
                    end,
                    first,
                    payload,
                    self.batch,
                    headers,
                    end - payload,
                    offset,
                    timestamp,
                    0,
                    id,
                    checksum,
                ),
                *(state, sum, NO_SUM, layout),
            )
        )
        self.position = end

    def new(self, layout: int) -> None:
        """Read a message of the layout ``h56-crc``, ``h56-xxh3`` or ``h64``."""
        position, fixed = self.position, _H64 if layout == H64 else _H56
        self.need(fixed.size)
        checksum, id, offset, timestamp, origin, headers, length = _H56.unpack_from(self.data, position)
        if layout == H64 and any(self.data[position + _H56.size : position + _H64.size]):
            raise _Stopped(Stop.RESERVED, position + _H56.size)
        size = fixed.size + headers + length
        self.need(size)
        end, payload = position + size, position + fixed.size
        digest: Callable[[memoryview], int] = crc32 if layout == H56_CRC else reference_xxh3
        sum = int(digest(self.data[position + _CHECKED : end]) == checksum)
        if not sum and self.strict >= 0 and position != self.strict:
            raise _Stopped(Stop.SUM, position)
        self.rows.append(
            ROW.pack(
                *(
                    position,
                    end,
                    payload + length,
                    payload,
                    -1,
                    headers,
                    length,
                    offset,
                    timestamp,
                    origin,
                    id,
                    checksum,
                ),
                *(0, sum, NO_SUM, layout),
            )
        )
        self.position = end

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
        batch, data = self.position, self.data
        self.need(_BATCH256_SIZE)
        _, base_offset, base_time, base_origin, length, checksum, count = _BATCH256.unpack_from(data, batch)
        producer = self.producer(batch)
        if length < _BATCH256_SIZE:
            raise _Stopped(Stop.BATCH, batch + 32, length)
        self.need(length)
        position, end = batch + _BATCH256_SIZE, batch + length
        frames, sums = [], []
        while position < end:
            if end - position < _FRAME.size:
                raise _Stopped(Stop.FRAME, position, _FRAME.size)
            stored_sum, id, offset, time, headers, payload_length, reserved = _FRAME.unpack_from(data, position)
            size = _FRAME.size + headers + payload_length
            if size > end - position:
                raise _Stopped(Stop.FRAME, position, size)
            if reserved:
                raise _Stopped(Stop.RESERVED, position + 40)
            frames.append((position, position + size, id, offset, time, headers, payload_length, stored_sum))
            sums.append(bytes(data[position : position + 8]))
            position += size
        if len(frames) != count:
            raise _Stopped(Stop.COUNT, batch + 48, len(frames))
        whole = b"".join((data[batch : batch + 40], data[batch + 48 : batch + 52], producer, *sums))
        batch_sum = int(reference_xxh3(whole) == checksum)
        for position, after, id, offset, time, headers, payload_length, stored_sum in frames:
            payload = position + _FRAME.size
            sum = int(reference_xxh3(data[position + _CHECKED : after]) == stored_sum)
            self.rows.append(
                ROW.pack(
                    *(position, after, payload + payload_length, payload, batch, headers, payload_length),
                    *(
                        (base_offset + offset) & UINT64_MAX,
                        base_time,
                        (base_origin + time) & UINT64_MAX,
                        id,
                        stored_sum,
                    ),
                    *(0, sum, batch_sum, layout),
                )
            )
        self.position = end


def scan(
    data: bytes | memoryview, layout: int, position: int, known: int, within: int, limit: int, most: int, strict: int
) -> Scan:
    """Find the messages of bytes.

    Args:
        data: the bytes of a file, or of a part of it.
        layout: the number of the layout.
        position: where in the bytes to start.
        known: where the file ends, counted as positions are; -1 if that is not known, and then more bytes may follow.
        within: where the batch ends in which the scan starts; 0 outside of a batch.
        limit: the longest record, in bytes, that is waited for.
        most: the number of rows after which the scan ends; a ``batch256`` batch is never divided.
        strict: if it is 0 or more, the scan stops at a wrong checksum of a layout without batches, unless the message
            starts at this position.
    """
    view = memoryview(data).cast("B")
    scanner = _Scanner(view, position, known, within, limit, strict)
    step = {BATCH24: scanner.in_batch24, BATCH256: scanner.in_batch256}.get(layout)
    if step is None:
        step = scanner.new if HAS_ORIGIN[layout] else scanner.old
    stop, at, value = Stop.END, 0, 0
    try:
        while scanner.position < scanner.end and len(scanner.rows) < most:
            step(layout)
    except _Stopped as stopped:
        stop, at, value = stopped.stop, stopped.at, stopped.value
    inside = scanner.within if scanner.position < scanner.within else 0
    return Scan(b"".join(scanner.rows), scanner.position, inside, int(stop), at, value)
