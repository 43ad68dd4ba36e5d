"""A file of records that is stepped through by their lengths, and checked at chosen places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgid.iggy._records.decoding import NAMES, WHOLE, LogDecoder, later_codes, without_rows_from
from msgid.iggy._records.rows import ROW, Row
from msgid.iggy._records.scanning import steps
from msgid.iggy._wire import LAYOUTS
from msgid.iggy.detect import probe

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD: Final = 1 << 16
"""How many bytes are read first to check a record."""
_CHUNK: Final = 1 << 20
_WINDOW: Final = 1 << 18
_FAR: Final = 1 << 15
"""A record of so many bytes is stepped over without reading it."""


class RecordFile:
    """Step through a file by the lengths of its records.

    Args:
        read: Returns the bytes at a position.
        size: The size of the file in bytes.
        limit: The longest record in bytes.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int, limit: int) -> None:
        self.read = read
        self.size = size
        self.limit = limit
        self._held = b""
        self._base = 0

    def to(self, place: int, code: int, target: int) -> tuple[int, int]:
        """Step from a record's start to the first start at a target or after it.

        Returns:
            That start, and the start before it; -1 if no record was passed. The steps end early where the next
            record is not whole.
        """
        last, far = -1, False
        while place < target:
            at = place - self._base
            if not 0 <= at <= len(self._held):
                self._held, self._base, at = b"", place, 0
            found, before, needed = steps(self._held, code, at, target - self._base, self.size - self._base)
            if before >= 0:
                last = self._base + before
                far = found - before >= _FAR
            place = self._base + found
            if not needed or needed > self.limit:
                break
            wanted = needed if far else max(needed, _WINDOW)
            self._held, self._base = self.read(place, min(wanted, self.size - place)), place
            if len(self._held) < needed:
                break
        return place, last

    def code_at(self, place: int, codes: tuple[int, ...], above: int) -> tuple[int, int] | None:
        """Return layout and offset of the record at a place; None if none starts there whose checksum holds.

        The place may be behind the end of the file, as an index may be newer than the size of its log.
        """
        if place >= self.size:
            return None
        for code in codes:
            wanted = HEAD
            while True:
                data = self.read(place, min(wanted, self.size - place))
                found = probe(data, LAYOUTS[NAMES[code]], self.size - place, above, self.limit)
                if found.needed <= len(data) or len(data) < min(wanted, self.size - place):  # the file has been cut
                    break
                wanted = found.needed
            if found.reason is None:
                return code, found.offset
        return None

    def decoded_to(self, start: int, place: int, code: int) -> tuple[int, int, bool]:
        """Decode from a record's start to the first record's start at a place or after it.

        Returns:
            That start and its layout, with True; or the end of the last whole record, with False.
        """
        decoder = LogDecoder(NAMES[code], limit=self.limit, upgrade=True)
        base, needed, held = start, 0, b""
        while base < place or decoder.within:
            end = base + len(held)
            # The last batch goes on after the place, and is decoded a message at a time, but nothing after it.
            ahead = place - end if end < place else decoder.within - len(held)
            wanted = max(needed - len(held), min(_CHUNK, ahead))
            more = self.read(end, min(wanted, self.size - end))
            held += more
            found = decoder.decode(held, self.size - base if more else len(held), base)
            kept = without_rows_from(found, place - base).rows
            if len(kept) < len(found.rows):
                after = Row._make(ROW.unpack_from(found.rows, len(kept)))
                return base + (after.batch if after.batch >= 0 else after.position), after.layout, True
            base, held, needed = base + found.place, held[found.place :], found.needed
            if (base < place or decoder.within) and (found.error is not None or not more):
                return base, code if decoder.code is None else decoder.code, False
            if not more:
                break
        return base, code if decoder.code is None else decoder.code, True

    def advance(self, start: int, code: int, target: int, *, upgrade: bool) -> tuple[int, int, bool]:
        """Go from a record's start to the first record's start at a target or after it, and be sure of it.

        Steps by lengths go astray where a server went on in another layout, and after a broken length. So the record
        where they end is checked. If the check fails, the records are decoded.

        Returns:
            That start and its layout, with True; or the end of the last whole record, with False.
        """
        place = start
        while True:
            place, last = self.to(place, code, target)
            codes = later_codes(code, upgrade=upgrade)
            if target <= place < self.size:
                starts = self.code_at(place, codes, 0)
                if starts is not None:
                    return place, starts[0], True
                return self.decoded_to(start, target, code)
            if code not in WHOLE or last < start or self.code_at(last, (code,), 0):
                return place, code, place >= target
            sure, at, whole = self.decoded_to(start, place, code)
            if not whole or (sure, at) == (place, code):
                return sure, at, whole and sure >= target
            start, place, code = sure, sure, at
