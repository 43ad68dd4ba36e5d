"""Find the next record in bytes that are not records: by the offset that each record has, and by its checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.iggy._wire import BATCH24, BATCH256, H56_CRC, H56_XXH3, H64, LAYOUTS, M45
from msgid.iggy.detect import probe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OFFSET_AT: Final = {M45: 0, BATCH24: 0, BATCH256: 8, H56_CRC: 24, H56_XXH3: 24, H64: 24}
"""The place of the offset in a record; records of the layout ``previous``, without checksums, are never sure."""
OFFSET_SIZE: Final = 8
SPAN: Final = max(OFFSET_AT.values()) + OFFSET_SIZE
"""How many bytes show whether a record may start at the first of them."""
OFFSET_MAX: Final = 1 << 40
"""More offsets than a partition has."""
_BLOCK: Final = 1 << 20
_HEAD: Final = 1 << 12
"""How many bytes of a record are free to check."""
_NAMES: Final = list(LAYOUTS)


class Credit:
    """How many bytes of long records a search may check, so that its cost is linear in the bytes that it passes.

    Bytes that are not records can claim millions of long records. A record that costs more than the credit is passed.
    """

    def __init__(self, start: int) -> None:
        self.left = start

    def pay(self, cost: int) -> bool:
        """Return whether a record of so many bytes is checked."""
        if cost > self.left:
            return False
        self.left -= cost
        return True


class Place(NamedTuple):
    """The result of `find`."""

    at: int
    """Where the record starts; -1 without a record."""
    code: int = -1
    needed: int = 0
    """How many bytes must be there to know more; 0 if they are there."""


def _fitting(data: bytes | memoryview, lowest: int, highest: int) -> Iterable[int]:
    """Return the places of 8-byte numbers within a range."""
    count = len(data) - OFFSET_SIZE + 1
    if count <= 0:
        return ()
    try:
        import numpy as np
    except ImportError:
        return (at for at in range(count) if lowest <= int.from_bytes(data[at : at + OFFSET_SIZE], "little") <= highest)
    numbers = np.ndarray(count, "<u8", data, strides=(1,))
    return map(int, np.flatnonzero((numbers >= lowest) & (numbers <= highest)))


def _candidates(
    data: memoryview, start: int, stop: int, codes: Iterable[int], lowest: int, highest: int
) -> Iterator[tuple[int, int]]:
    """Yield the places from a start to a stop where a record may start, and its layout, in their order."""
    known = [code for code in codes if code in OFFSET_AT]
    for base in range(start, stop, _BLOCK):
        length = min(_BLOCK, stop - base)
        block = data[base : base + length + SPAN]
        fitting = sorted((at - OFFSET_AT[code], code) for at in _fitting(block, lowest, highest) for code in known)
        yield from ((base + place, code) for place, code in fitting if 0 <= place < length)


def find(
    data: memoryview,
    start: int,
    stop: int,
    codes: Iterable[int],
    *,
    known: int,
    limit: int,
    lowest: int,
    credit: Credit,
    base: int = 0,
) -> Place:
    """Return the first record from a start to a stop whose checksum holds.

    Args:
        data: Bytes of a file.
        start: The first place.
        stop: The place after the last one.
        codes: The layouts that the record can have.
        known: Where the file ends, counted from the start of ``data``; -1 if that is not known.
        limit: The longest record in bytes.
        lowest: The lowest offset of the record, 0 if it is not known. Offset 0 is never found, because bytes of 0 are
            frequent.
        credit: The credit of the search.
        base: The position of the first byte in its file. No offset is higher than the lowest plus the size of the file.
    """
    highest = lowest + base + known if lowest and known >= 0 else OFFSET_MAX
    for at, code in _candidates(data, start, stop, codes, max(lowest, 1), highest):
        tried = probe(data[at : at + _HEAD], LAYOUTS[_NAMES[code]], max(known - at, -1), lowest, limit)
        if tried.needed > _HEAD:
            if tried.needed > len(data) - at:
                if tried.needed > credit.left:
                    continue
                return Place(at, code, at + tried.needed)
            if not credit.pay(tried.needed):
                continue
            tried = probe(data[at:], LAYOUTS[_NAMES[code]], max(known - at, -1), lowest, limit)
        if tried.needed:
            return Place(at, code, at + tried.needed)
        if tried.reason is None:
            return Place(at, code)
    return Place(-1)
