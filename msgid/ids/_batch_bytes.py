"""Encode many IDs: rows of 17 bytes, rows of 34 digits, or a list of texts.

These functions are the pure-Python reference; the compiled core replaces them if it is installed. ``parts`` has one
tuple for each run of IDs with the same second: second, first sequence number, step, and number of IDs.
"""

from __future__ import annotations

import sys
from array import array

from msgid.ids._native import twin
from msgid.layout import FIELDS, ID_DIGITS, ID_LENGTH, UINT32_MASK

Part = tuple[int, int, int, int]


@twin
def rows(prefix: bytes, parts: tuple[Part, ...], /) -> bytes:
    """Encode the IDs one after the other, 17 bytes each.

    >>> rows(bytes(9), ((1, 0x10, 1, 2),)).hex(" ", 17)
    '0000000000000000000000000100000010 0000000000000000000000000100000011'
    """
    out = bytearray(ID_LENGTH * sum(count for *_, count in parts))
    first = 0
    # One strided copy for each byte of the ID fills a column of all rows. This is the fastest way in plain Python.
    for second, start, step, count in parts:
        last = first + count * ID_LENGTH
        same = prefix + (second & UINT32_MASK).to_bytes(FIELDS["seconds"].width, "big")
        for index, byte in enumerate(same):
            out[first + index : last : ID_LENGTH] = bytes([byte]) * count
        numbers = array("I", range(start, start + step * count, step))
        if sys.byteorder == "little":
            numbers.byteswap()
        columns = numbers.tobytes()
        width = FIELDS["sequence"].width
        for index in range(width):
            out[first + len(same) + index : last : ID_LENGTH] = columns[index::width]
        first = last
    return bytes(out)


@twin
def hex_rows(prefix: bytes, parts: tuple[Part, ...], /) -> bytes:
    """Encode the text of the IDs one after the other, 34 ASCII digits each."""
    return rows(prefix, parts).hex().upper().encode()


@twin
def hex_list(prefix: bytes, parts: tuple[Part, ...], /) -> list[str]:
    """Encode each ID as its text."""
    text = rows(prefix, parts).hex().upper()
    return [text[start : start + ID_DIGITS] for start in range(0, len(text), ID_DIGITS)]
