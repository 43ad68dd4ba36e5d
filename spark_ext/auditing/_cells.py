"""Generators from cells, in NumPy: a cell is the IDs of a generator in one second and one block of sequence numbers.

A generator whose sequence only grows follows from its cells. The cells of the others, and those in which numbers are
missing, are named, so that their numbers can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgid.audit._ids import starts_of
from msgid.audit._logs import Holes, holes
from msgid.audit._runs import Points, Runs, Shown, Steps, shown_by
from msgid.audit.definitions import RUN_STEP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Cells(NamedTuple):
    """Cells as columns: the place of the generator, the block, Unix seconds, and the sequence numbers of the IDs."""

    generator: NDArray[np.int64]
    block: NDArray[np.int64]
    seconds: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    ids: NDArray[np.int64]


class Words(NamedTuple):
    """Words as columns: the place of the generator, Unix seconds, the word and the mask of its 32 numbers."""

    generator: NDArray[np.int64]
    seconds: NDArray[np.int64]
    word: NDArray[np.int64]
    mask: NDArray[np.int64]


class Simple(NamedTuple):
    """The runs that follow from cells, and the blocks whose numbers must be read.

    Attributes:
        shown: The runs, gaps and steps of the parts of generators whose sequence only grows.
        torn: The generator and the block of cells in parts whose sequence goes back, each pair once.
        short: The same of blocks in the other parts in which numbers are missing.
        ids: The number of IDs in the blocks of ``torn`` and ``short``.
    """

    shown: Shown
    torn: NDArray[np.int64]
    short: NDArray[np.int64]
    ids: int


def shown_by_cells(cells: Cells, clock_jump: int) -> Simple:
    """Return what cells show.

    Args:
        cells: At least one cell.
        clock_jump: Seconds between neighbours of a run beyond which the clock has jumped forward.
    """
    import numpy as np

    # Blocks, and the parts of generators in which no step between neighbours is above the limit.
    cells = Cells(*(column[np.lexsort((cells.seconds, cells.block, cells.generator))] for column in cells))
    starts = np.flatnonzero(starts_of(cells.generator, cells.block))
    generator, block = cells.generator[starts], cells.block[starts]
    low, high = np.minimum.reduceat(cells.low, starts), np.maximum.reduceat(cells.high, starts)
    held = np.add.reduceat(cells.ids, starts)
    apart = starts_of(generator)
    apart[1:] |= low[1:] - high[:-1] > RUN_STEP
    part = np.cumsum(apart) - 1
    part_of_cell = np.repeat(part, np.diff(np.append(starts, len(cells.block))))
    # Seconds of parts, by time.
    order = np.lexsort((cells.seconds, part_of_cell))
    seconds, parts = cells.seconds[order], part_of_cell[order]
    first = np.flatnonzero(starts_of(parts, seconds))
    at, of = seconds[first], parts[first]
    begin, end = np.minimum.reduceat(cells.low[order], first), np.maximum.reduceat(cells.high[order], first)
    back = np.zeros(len(of), bool)
    back[1:] = (of[1:] == of[:-1]) & (begin[1:] <= end[:-1])
    torn = np.zeros(int(part[-1]) + 1, bool)
    torn[of[back]] = True
    # The runs, gaps and steps of parts that are not torn.
    heads = np.flatnonzero(apart)
    whole = ~torn
    sums = np.bincount(part, held).astype(np.int64)
    tails = np.append(heads[1:], len(part)) - 1
    of_part = np.flatnonzero(starts_of(of))
    last_second = np.append(of_part[1:], len(of)) - 1
    columns = (generator[heads], sums, at[of_part], at[last_second], low[heads], high[tails])
    jump = np.flatnonzero((of[1:] == of[:-1]) & (at[1:] - at[:-1] > clock_jump) & whole[of[1:]]) + 1
    steps = Steps(generator[heads][of[jump]], begin[jump], at[jump] - at[jump - 1])
    between = np.flatnonzero((part[1:] == part[:-1]) & (low[1:] - high[:-1] > 1) & whole[part[1:]])
    gaps = Holes(generator[between], high[between] + 1, low[between + 1] - 1)
    is_torn = torn[part]
    is_short = ~is_torn & (high - low + 1 > held)
    return Simple(
        Shown(Runs(*(column[whole] for column in columns)), gaps, steps),
        np.stack([generator[is_torn], block[is_torn]], axis=1),
        np.stack([generator[is_short], block[is_short]], axis=1),
        int(held[is_torn | is_short].sum()),
    )


def points_of(words: Words) -> Points:
    """Return the IDs of words, each once."""
    import numpy as np

    places = np.arange(32, dtype=np.uint32)
    rows, place = np.nonzero((words.mask.astype(np.uint32)[:, None] >> places) & np.uint32(1))
    return Points(words.generator[rows], words.seconds[rows], words.word[rows] * 32 + place)


def shown_by_words(torn: Words, short: Words, clock_jump: int) -> Shown:
    """Return what the words of torn and of short blocks show: of short blocks, the missing ranges alone."""
    import numpy as np

    nothing = np.zeros(0, np.int64)
    shown = Shown(Runs(*[nothing] * 6), Holes(*[nothing] * 3), Steps(*[nothing] * 3))
    if len(torn.word):
        shown = shown_by(points_of(torn), clock_jump)
    if not len(short.word):
        return shown
    points = points_of(short)
    order = np.lexsort((points.sequence, points.generator))
    generator, sequence = points.generator[order], points.sequence[order]
    scope = np.cumsum(starts_of(generator, sequence >> 16)) - 1
    found = holes(scope, sequence)
    of_scope = generator[np.flatnonzero(starts_of(scope))]
    return joined(shown, shown._replace(runs=Runs(*[nothing] * 6), gaps=found._replace(scope=of_scope[found.scope]),
                                        steps=Steps(*[nothing] * 3)))  # fmt: skip


def joined(one: Shown, other: Shown) -> Shown:
    """Return what two parts of a table's generators show."""
    import numpy as np

    def both(a: tuple[NDArray[np.int64], ...], b: tuple[NDArray[np.int64], ...]) -> list[NDArray[np.int64]]:
        return [np.concatenate(pair) for pair in zip(a, b, strict=True)]

    return Shown(
        Runs(*both(one.runs, other.runs)), Holes(*both(one.gaps, other.gaps)), Steps(*both(one.steps, other.steps))
    )
