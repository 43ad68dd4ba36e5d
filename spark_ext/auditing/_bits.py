"""Words of 32 numbers: a number is the word ``number >> 5`` and a bit of its mask, which is a bigint below 2**32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid.audit._digests import BLOCK_SHIFT, WORD_SHIFT

if TYPE_CHECKING:
    from pyspark.sql import Column

WORD_BITS: Final = 1 << WORD_SHIFT


def word_of(number: Column) -> Column:
    """Return the word of a number."""
    return F.shiftright(number, WORD_SHIFT)


def block_of(word: Column) -> Column:
    """Return the block of a word."""
    return F.shiftright(word, BLOCK_SHIFT - WORD_SHIFT)


def bit_of(number: Column) -> Column:
    """Return the mask of one number: a single bit."""
    place = number.bitwiseAND(WORD_BITS - 1).cast("int")
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), place)


def bits_in(mask: Column) -> Column:
    """Return how many numbers a mask has."""
    return F.bit_count(mask).cast("bigint")


def lowest(word: Column, mask: Column) -> Column:
    """Return the lowest number of a word."""
    return word * WORD_BITS + F.bit_count(mask.bitwiseAND(-mask) - 1)


def highest(word: Column, mask: Column) -> Column:
    """Return the highest number of a word."""
    return word * WORD_BITS + F.length(F.bin(mask)) - 1


def is_set(mask: Column, place: Column) -> Column:
    """Return whether a mask has the bit of a place of 0 to 31."""
    return mask.bitwiseAND(F.call_function("shiftleft", F.lit(1).cast("bigint"), place.cast("int"))) != 0
