"""The digest of generators: words of 32 sequence numbers, cells of words, and the blocks whose words must be read.

A digest merges with others in any order: the words of a table are the words of its parts, and masks of one word are
joined by OR. NumPy makes digests of IDs here; Spark makes the same words and cells by aggregations.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit.definitions import PART_STEP
from msgid.audit.facts import Counted, Gap

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

WORD_SHIFT: Final = 5
BLOCK_SHIFT: Final = 16
"""A block has 65,536 sequence numbers."""
_MOST_POINTS: Final = 1 << 20
"""The number of IDs that one step reads of the words of many blocks; a block with more is one step."""


def starts_of(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where sorted keys change; the first place is one."""
    import numpy as np

    changed = np.ones(len(keys[0]), bool)
    if len(changed):
        changed[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return changed


def is_short(low: Any, high: Any, count: Any) -> Any:
    """Return where a range of numbers has less than all of them: of NumPy's arrays, or of columns on Spark."""
    return high - low + 1 > count


class Words(NamedTuple):
    """Words as columns: the place of the generator, Unix seconds, the word and the mask of its 32 numbers."""

    generator: NDArray[np.int64]
    seconds: NDArray[np.int64]
    word: NDArray[np.int64]
    mask: NDArray[np.int64]

    @property
    def block(self) -> NDArray[np.int64]:
        """The block of each word."""
        return self.word >> (BLOCK_SHIFT - WORD_SHIFT)

    def take(self, rows: Any) -> Words:
        """Return some of the words, by their places or by a mask."""
        return Words(*(column[rows] for column in self))

    def of_blocks(self, generator: NDArray[np.int64], block: NDArray[np.int64]) -> Words:
        """Return the words of some blocks."""
        import numpy as np

        return self.take(np.isin(self.generator << 32 | self.block, generator << 32 | block))


class Cells(NamedTuple):
    """Cells as columns: the IDs of a generator in one block of sequence numbers and one second.

    A cell may be divided where its numbers step by more than `PART_STEP`. ``low`` and ``high`` are the least and the
    greatest sequence number, ``ids`` the number of distinct IDs.
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
    """Return the cells of words, divided. Each word must be there once."""
    return _divided(_by_block(words))[0]


def _by_block(words: Words) -> Words:
    import numpy as np

    return words.take(np.lexsort((words.word, words.seconds, words.block, words.generator)))


def _divided(words: Words) -> tuple[Cells, NDArray[np.int64]]:
    """Return the cells of words, ordered by block, seconds and word, and the place of the cell of each word."""
    import numpy as np

    low = (words.word << WORD_SHIFT) + np.bitwise_count((words.mask & -words.mask) - 1)
    high = (words.word << WORD_SHIFT) + np.frexp(words.mask.astype(np.float64))[1] - 1
    starts = starts_of(words.generator, words.block, words.seconds)
    starts[1:] |= low[1:] - high[:-1] > PART_STEP
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(starts)) - 1
    ids = np.append(0, np.cumsum(np.bitwise_count(words.mask), dtype=np.int64))
    held = words.take(first)
    cells = Cells(
        held.generator, held.block, held.seconds, low[first], high[last[: len(first)]], ids[last + 1] - ids[first]
    )
    return cells, np.cumsum(starts) - 1


def marked(cells: Cells) -> NDArray[np.bool_]:
    """Return which cells are in a block that must be read: numbers are missing in a cell, or cells overlap."""
    import numpy as np

    order = np.lexsort((cells.low, cells.block, cells.generator))
    by_low = cells.take(order)
    found = is_short(by_low.low, by_low.high, by_low.ids)
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
    return words.of_blocks(*marked_blocks(cells)[:2])


def in_steps(words: Words) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the numbers of words, each with the place of its word, in steps that end with a block.

    Args:
        words: Words, ordered by generator and block.
    """
    import numpy as np

    if not len(words.word):
        return
    ids = np.cumsum(np.bitwise_count(words.mask), dtype=np.int64)
    ends = np.append(np.flatnonzero(starts_of(words.generator, words.block))[1:], len(ids))
    step = ids[ends - 1] // _MOST_POINTS
    bounds = [0, *ends[np.append(step[1:] != step[:-1], True)].tolist()]
    bits = np.arange(1 << WORD_SHIFT, dtype=np.uint32)
    for start, end in itertools.pairwise(bounds):
        rows, place = np.nonzero((words.mask[start:end].astype(np.uint32)[:, None] >> bits) & np.uint32(1))
        yield rows + start, (words.word[start:end][rows] << WORD_SHIFT) + place


class Read:
    """The IDs of the marked cells, in steps of whole blocks.

    Args:
        cells: All cells.
        words: All words of the blocks of `marked` cells.

    Attributes:
        cells: The cells; those that are marked are divided.
        is_read: Which of them are marked.
    """

    def __init__(self, cells: Cells, words: Words) -> None:
        import numpy as np

        is_marked = marked(cells)
        self._words = _by_block(words)
        divided, cell = _divided(self._words)
        if divided.ids.sum() != cells.ids[is_marked].sum():
            raise ValueError("`words` must be all words of the marked blocks")
        whole = cells.take(~is_marked)
        self.cells = Cells(*(np.concatenate(pair) for pair in zip(whole, divided, strict=True)))
        self.is_read = np.arange(len(self.cells.ids)) >= len(whole.ids)
        self._cell = cell + len(whole.ids)

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield for each step the places of the IDs' cells and their sequence numbers."""
        for place, number in in_steps(self._words):
            yield self._cell[place], number


class Gaps:
    """Missing ranges of scopes, as they are found: of many, the largest and the largest of each scope.

    Args:
        most: Number of ranges to list.
        shortest: Numbers of the shortest range; shorter ones are holes, which are only counted.

    Attributes:
        holes: The missing numbers of each scope that are holes.
    """

    def __init__(self, most: int, shortest: int = 1) -> None:
        import numpy as np

        self._most, self._shortest = most, shortest
        self.holes: dict[int, int] = {}
        self.scope = self.first = self.last = np.zeros(0, np.int64)
        self.total = 0

    def add(self, scope: NDArray[np.int64], before: NDArray[np.int64], number: NDArray[np.int64]) -> None:
        """Add neighbours: two numbers of a scope, between which all numbers are missing."""
        found = number - before > self._shortest
        if self._shortest > 1:
            is_hole = (number - before > 1) & ~found
            self.add_holes(scope[is_hole], (number - before - 1)[is_hole])
        self.add_ranges(scope[found], before[found] + 1, number[found] - 1, int(found.sum()))

    def add_holes(self, scope: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        """Add missing numbers that are not findings."""
        for one, number in zip(scope.tolist(), count.tolist(), strict=True):
            self.holes[one] = self.holes.get(one, 0) + number

    def holes_of(self, scope: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the holes of some scopes."""
        import numpy as np

        return np.array([self.holes.get(one, 0) for one in scope.tolist()] if self.holes else 0 * scope, np.int64)

    def add_ranges(
        self, scope: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], total: int
    ) -> None:
        """Add ranges: the largest of ``total`` ranges, and the largest of each scope."""
        import numpy as np

        self.total += total
        scope, first, last = (
            np.concatenate(pair) for pair in zip((self.scope, self.first, self.last), (scope, first, last), strict=True)
        )
        order = np.lexsort((first, scope, first - last))
        if len(order) > self._most:
            kept = np.arange(len(order)) < self._most
            kept[np.unique(scope[order], return_index=True)[1]] = True
            order = order[kept]
        self.scope, self.first, self.last = scope[order], first[order], last[order]

    def counted(
        self, check: str, names: list[str], scope: NDArray[np.int64], missing: NDArray[np.int64]
    ) -> list[Counted]:
        """Return the number of missing numbers of each scope, with its largest range."""
        import numpy as np

        place = dict(zip(*(part.tolist() for part in np.unique(self.scope, return_index=True)), strict=True))
        return [
            Counted(check, names[one], count, int(self.first[place[one]]), int(self.last[place[one]]))
            for one, count in zip(scope.tolist(), missing.tolist(), strict=True)
            if count
        ]

    def listed(self, kind: str, names: list[str]) -> list[Gap]:
        """Return the ranges, largest first."""
        columns = (self.scope.tolist(), self.first.tolist(), self.last.tolist())
        return [Gap(kind, names[one], low, high, high - low + 1) for one, low, high in zip(*columns, strict=True)]
