"""Words of 32 numbers: a number is the word ``number >> 5`` and a bit of its mask, which is a bigint below 2**32."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

_SHIFT: Final = 5
WORD_BITS: Final = 1 << _SHIFT
_BLOCK_SHIFT: Final = 11
"""A block has 2,048 words: 65,536 numbers."""


def word_of(number: Column) -> Column:
    """Return the word of a number."""
    return F.shiftright(number, _SHIFT)


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


def _ranges(word: Column, mask: Column) -> Column:
    """Return the ranges that are missing between the numbers of a word."""

    def above(place: Column) -> Column:
        return F.call_function("shiftright", mask, place + 1)

    def is_start(place: Column) -> Column:
        return is_set(mask, place) & (above(place) > 0) & (above(place).bitwiseAND(1) == 0)

    def range_at(place: Column) -> Column:
        zeros = F.bit_count(above(place).bitwiseAND(-above(place)) - 1)
        start = word * WORD_BITS + place + 1
        return F.struct(start.alias("first"), (start + zeros - 1).alias("last"))

    return F.transform(F.filter(F.sequence(F.lit(0), F.lit(WORD_BITS - 2)), is_start), range_at)


def holes(words: DataFrame, scope: list[str]) -> DataFrame:
    """Return the ranges that are missing between the numbers of each scope: ``first`` and ``last`` are missing.

    A scope is read in blocks of 65,536 numbers. Only blocks with a deficit are read word by word.

    Args:
        words: The columns of the scope, ``word`` and ``mask``, one row per word.
        scope: The names of the columns of the scope.
    """
    word, mask = F.col("word"), F.col("mask")
    words = words.select(
        *scope, "word", "mask", F.shiftright(word, _BLOCK_SHIFT).alias("block"),
        lowest(word, mask).alias("low"), highest(word, mask).alias("high"),
    )  # fmt: skip
    blocks = words.groupBy(*scope, "block").agg(
        F.min("low").alias("low"), F.max("high").alias("high"), F.sum(bits_in(mask)).alias("held")
    )
    short = blocks.where(F.col("high") - F.col("low") + 1 > F.col("held")).select(*scope, "block")
    within = words.join(short, [*scope, "block"], "left_semi")
    torn = within.where(F.col("high") - F.col("low") + 1 > bits_in(mask))
    inside = torn.select(*scope, F.explode(_ranges(word, mask)).alias("range")).select(*scope, "range.*")
    return reduce(
        DataFrame.unionByName, [_between(blocks, scope, "block"), _between(within, [*scope, "block"], "word"), inside]
    ).select(*scope, "first", "last")


def _between(rows: DataFrame, partition: list[str], order: str) -> DataFrame:
    before = F.lag("high").over(Window.partitionBy(*partition).orderBy(order))
    gaps = rows.withColumn("before", before).where(F.col("low") - F.col("before") > 1)
    scope = [name for name in partition if name != "block"]
    return gaps.select(*scope, (F.col("before") + 1).alias("first"), (F.col("low") - 1).alias("last"))
