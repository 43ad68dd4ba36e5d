"""The digest of generators: words of 32 sequence numbers, cells of words, and the blocks whose words must be read.

A digest merges with others in any order: the words of a table are the words of its parts, and masks of one word are
joined by OR. NumPy makes digests of IDs here; Spark makes the same words and cells by aggregations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit._ids import starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

WORD_SHIFT: Final = 5
BLOCK_SHIFT: Final = 16
"""A block has 65,536 sequence numbers."""
_MOST_POINTS: Final = 1 << 20
"""The number of IDs that one step reads of the words of many blocks; a block with more is one step."""


class Words(NamedTuple):
    """Words as columns: the place of the generator, Unix seconds, the word and the mask of its 32 numbers."""

    generator: NDArray[np.int64]
    seconds: NDArray[np.int64]
    word: NDArray[np.int64]
    mask: NDArray[np.int64]

    def take(self, rows: Any) -> Words:
        """Return some of the words, by their places or by a mask."""
        return Words(*(column[rows] for column in self))


class Cells(NamedTuple):
    """Cells as columns: the IDs of a generator in one block of sequence numbers and one second.

    ``low`` and ``high`` are the least and the greatest sequence number, ``ids`` the number of distinct IDs.
    """

    generator: NDArray[np.int64]
    block: NDArray[np.int64]
    seconds: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    ids: NDArray[np.int64]

    def take(self, rows: Any) -> Cells:
        """Return some of the cells, by their places or by a mask."""
        return Cells(*(column[rows] for column in self))


def words_of(generator: NDArray[np.int64], seconds: NDArray[np.int64], sequence: NDArray[np.int64]) -> Words:
    """Return the words of IDs; an ID may be there several times."""
    import numpy as np

    return merged_words(Words(generator, seconds, sequence >> WORD_SHIFT, np.left_shift(1, sequence & 31)))


def merged_words(*digests: Words) -> Words:
    """Return the words of several digests, each once, ordered by generator, seconds and word."""
    import numpy as np

    words = Words(*(np.concatenate(columns) for columns in zip(*digests, strict=True)))
    words = words.take(np.lexsort((words.word, words.seconds, words.generator)))
    first = np.flatnonzero(starts_of(words.generator, words.seconds, words.word))
    mask = np.bitwise_or.reduceat(words.mask, first) if len(first) else words.mask
    return words.take(first)._replace(mask=mask)


def cells_of(words: Words) -> Cells:
    """Return the cells of words, each of which is there once."""
    import numpy as np

    block = words.word >> (BLOCK_SHIFT - WORD_SHIFT)
    order = np.lexsort((words.seconds, block, words.generator))
    words, block = words.take(order), block[order]
    first = np.flatnonzero(starts_of(words.generator, block, words.seconds))
    low = (words.word << WORD_SHIFT) + np.bitwise_count((words.mask & -words.mask) - 1)
    high = (words.word << WORD_SHIFT) + np.frexp(words.mask.astype(np.float64))[1] - 1
    if not len(first):
        return Cells(words.generator, block, words.seconds, low, high, words.mask)
    return Cells(
        words.generator[first], block[first], words.seconds[first], np.minimum.reduceat(low, first),
        np.maximum.reduceat(high, first), np.add.reduceat(np.bitwise_count(words.mask).astype(np.int64), first),
    )  # fmt: skip


def marked(cells: Cells) -> NDArray[np.bool_]:
    """Return which cells are in a block that must be read: numbers are missing in a cell, or cells overlap."""
    import numpy as np

    order = np.lexsort((cells.low, cells.block, cells.generator))
    by_low = cells.take(order)
    found = by_low.high - by_low.low + 1 > by_low.ids
    starts = starts_of(by_low.generator, by_low.block)
    found[1:] |= ~starts[1:] & (by_low.low[1:] <= by_low.high[:-1])
    block = np.cumsum(starts) - 1
    is_marked = np.zeros(int(starts.sum()), bool)
    is_marked[block[found]] = True
    chosen = np.zeros(len(order), bool)
    chosen[order] = is_marked[block]
    return chosen


def marked_blocks(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the generators and the numbers of the blocks that must be read, and the number of IDs of each."""
    import numpy as np

    held = cells.take(marked(cells))
    held = held.take(np.lexsort((held.block, held.generator)))
    first = np.flatnonzero(starts_of(held.generator, held.block))
    ids = np.add.reduceat(held.ids, first) if len(first) else held.ids
    return held.generator[first], held.block[first], ids


def marked_words(cells: Cells, words: Words) -> Words:
    """Return the words of the blocks that must be read."""
    import numpy as np

    generator, block, _ = marked_blocks(cells)
    shift = 32 - BLOCK_SHIFT
    of_word = words.generator << shift | words.word >> (BLOCK_SHIFT - WORD_SHIFT)
    return words.take(np.isin(of_word, generator << shift | block))


class Read:
    """The IDs of the marked cells, in steps of whole blocks.

    Args:
        cells: All cells, ordered by generator, block and seconds.
        words: All words of the blocks of `marked` cells.
    """

    def __init__(self, cells: Cells, words: Words) -> None:
        import numpy as np

        places = np.flatnonzero(marked(cells))
        block = words.word >> (BLOCK_SHIFT - WORD_SHIFT)
        order = np.lexsort((words.word, words.seconds, block, words.generator))
        words, block = words.take(order), block[order]
        starts = starts_of(words.generator, block, words.seconds)
        if int(starts.sum()) != len(places):
            raise ValueError("`words` must be all words of the marked blocks")
        self._cell = places[np.cumsum(starts) - 1]
        self._word, self._mask = words.word, words.mask
        # A step ends with a block, as soon as enough IDs have come together.
        ids = np.cumsum(np.bitwise_count(words.mask), dtype=np.int64)
        ends = np.append(np.flatnonzero(starts_of(words.generator, block))[1:], len(block))[: len(block)]
        step = ids[ends - 1] // _MOST_POINTS
        self._bounds = [0, *ends[np.append(step[1:] != step[:-1], True)[: len(ends)]].tolist()]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield for each step the places of the IDs' cells and their sequence numbers."""
        import numpy as np

        bits = np.arange(1 << WORD_SHIFT, dtype=np.uint32)
        for start, end in zip(self._bounds[:-1], self._bounds[1:], strict=True):
            mask = self._mask[start:end].astype(np.uint32)
            rows, place = np.nonzero((mask[:, None] >> bits) & np.uint32(1))
            yield self._cell[start:end][rows], (self._word[start:end][rows] << WORD_SHIFT) + place
