"""Find where records may start in bytes that are not known to be records: by the offset that each record has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgid.iggy._wire import BATCH24, BATCH256, H56_CRC, H56_XXH3, H64, M45

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OFFSET_AT: Final = {M45: 0, BATCH24: 0, BATCH256: 8, H56_CRC: 24, H56_XXH3: 24, H64: 24}
"""The place of the offset in a record; records of the layout ``previous``, without checksums, are never sure."""
OFFSET_SIZE: Final = 8
OFFSET_MAX: Final = 1 << 40
"""More offsets than a partition has."""
_CHUNK: Final = 1 << 20


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


def candidates(
    read: Callable[[int, int], bytes | memoryview],
    start: int,
    stop: int,
    codes: Iterable[int],
    lowest: int,
    highest: int = OFFSET_MAX,
) -> Iterator[tuple[int, int]]:
    """Yield the places from a start to a stop where a record may start, and its layout, in their order.

    Args:
        read: Returns the bytes at a position, fewer only at the end of the file.
        start: The first place.
        stop: The place after the last one.
        codes: The layouts that records can have.
        lowest: The lowest offset of a record; above 0, because bytes of 0 are frequent.
        highest: The highest offset of a record.
    """
    known = [code for code in codes if code in OFFSET_AT]
    for base in range(start, stop, _CHUNK):
        length = min(_CHUNK, stop - base)
        data = read(base, length + max(OFFSET_AT.values()) + OFFSET_SIZE)
        found = sorted((at - OFFSET_AT[code], code) for at in _fitting(data, lowest, highest) for code in known)
        yield from ((base + place, code) for place, code in found if 0 <= place < length)
