"""Many ids written out: rows of 17 bytes, rows of 34 digits, a list of texts.

The pure-Python reference, and its compiled twin where there is one. An argument ``parts`` has, for each run of ids that
share a second, that second, and the first sequence number, the step to the next, and how many there are.
"""

from __future__ import annotations

import sys
from array import array

from msgid.ids._native import twin
from msgid.layout import FIELDS, ID_DIGITS, ID_LENGTH, UINT32_MASK

__all__ = ["Part", "hex_list", "hex_rows", "rows"]

Part = tuple[int, int, int, int]


@twin
def rows(prefix: bytes, parts: tuple[Part, ...], /) -> bytes:
    """Write the ids out back to back, 17 bytes each.

    >>> rows(bytes(9), ((1, 0x10, 1, 2),)).hex(" ", 17)
    '0000000000000000000000000100000010 0000000000000000000000000100000011'
    """
    out = bytearray(ID_LENGTH * sum(count for *_, count in parts))
    first = 0
    # Column by column, one strided copy a byte of the id: as fast as plain Python gets.
    for second, start, step, count in parts:
        last = first + count * ID_LENGTH
        same = prefix + (second & UINT32_MASK).to_bytes(FIELDS["seconds"].width, "big")
        for place, byte in enumerate(same):
            out[first + place : last : ID_LENGTH] = bytes([byte]) * count
        numbers = array("I", range(start, start + step * count, step))
        if sys.byteorder == "little":
            numbers.byteswap()
        columns = numbers.tobytes()
        width = FIELDS["sequence"].width
        for place in range(width):
            out[first + len(same) + place : last : ID_LENGTH] = columns[place::width]
        first = last
    return bytes(out)


@twin
def hex_rows(prefix: bytes, parts: tuple[Part, ...], /) -> bytes:
    """Write the ids' text out back to back, 34 ASCII digits each."""
    return rows(prefix, parts).hex().upper().encode()


@twin
def hex_list(prefix: bytes, parts: tuple[Part, ...], /) -> list[str]:
    """Write each id out as a text of its own."""
    text = rows(prefix, parts).hex().upper()
    return [text[start : start + ID_DIGITS] for start in range(0, len(text), ID_DIGITS)]
