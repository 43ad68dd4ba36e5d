"""Read bytes as integers and look up tables by a byte, with the fastest of Spark's own functions.

The last byte of the CRC-32 of one byte tells which it was, by a table of 256 entries. CRC-32 of four bytes is an affine
bijection over the bits: from the checksum, the four bytes come back as the exclusive or of four numbers, each looked up
by one byte of it. ``crc32`` and array look-ups compile to a few instructions; ``conv`` reads digits one by one and goes
through a text of decimals.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_ext.columns.building import text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

WORD_WIDTH = 4


@cache
def _inverse() -> tuple[int, list[list[int]]]:
    """Return the CRC-32 of zero, and for each byte of a checksum the table of what its 256 values mean.

    >>> zero, tables = _inverse()
    >>> crc = zlib.crc32((123456789).to_bytes(4, "big"))
    >>> tables[0][crc & 255] ^ tables[1][crc >> 8 & 255] ^ tables[2][crc >> 16 & 255] ^ tables[3][crc >> 24]
    123456789
    """
    zero = zlib.crc32(bytes(WORD_WIDTH))
    # The linear part, as (checksum bits, the bits that make them) pairs, brought to a triangle and solved.
    rows = [(zlib.crc32((1 << bit).to_bytes(WORD_WIDTH, "big")) ^ zero, 1 << bit) for bit in range(8 * WORD_WIDTH)]
    solved: dict[int, tuple[int, int]] = {}

    def reduce(checksum: int, value: int) -> tuple[int, int]:
        for top, (other, reduced) in sorted(solved.items(), reverse=True):
            if checksum >> top & 1:
                checksum, value = checksum ^ other, value ^ reduced
        return checksum, value

    for row in rows:
        rest, value = reduce(*row)
        solved[rest.bit_length() - 1] = (rest, value)

    def preimage(checksum: int) -> int:
        return reduce(checksum, 0)[1]

    tables = [[preimage(byte << 8 * index) for byte in range(256)] for index in range(WORD_WIDTH)]
    # The constant part goes into one of the tables, so that it costs nothing.
    offset = preimage(zero)
    return zero, [[entry ^ offset for entry in tables[0]], *tables[1:]]


def octet(raw: Column) -> Column:
    """Return the index, 0 to 255, by which `look_up` finds the entry of a binary of exactly one byte."""
    return F.crc32(raw).bitwiseAND(0xFF).cast("int")


def look_up(octet: Column, entries: Sequence[str]) -> Column:
    """Return the entry at a byte's value, of 256 texts."""
    table = [""] * 256
    for value, entry in enumerate(entries):
        table[zlib.crc32(bytes((value,))) & 0xFF] = entry
    return F.get(text_table(table), octet)


def word(raw: Column) -> Column:
    """Read a binary of exactly four bytes as an unsigned big-endian integer, a bigint."""
    checksum = F.crc32(raw)
    number = None
    for index in range(WORD_WIDTH):
        shifted = F.shiftright(checksum, 8 * index) if index else checksum
        entry = F.get(text_table(_inverse()[1][index], "bigint"), shifted.bitwiseAND(0xFF).cast("int"))
        number = entry if number is None else number.bitwiseXOR(entry)
    assert number is not None
    return number
