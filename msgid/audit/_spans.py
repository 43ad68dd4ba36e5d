"""Reduce: spans of sequence numbers, which a generator gave in one second without a gap, from words of 32 numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from msgid.audit.facts import Counted, Gap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

WORD_SHIFT: Final = 5
BLOCK_SHIFT: Final = 16
"""A block has 65,536 numbers."""
_NUMBER_BITS: Final = 33
"""The bits of a sequence number, or of one after the last."""


def starts_of(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where sorted keys change; the first place is one."""
    changed = np.ones(len(keys[0]), bool)
    if len(changed):
        changed[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return changed


class Spans(NamedTuple):
    """Spans as columns: the place of the scope, Unix seconds or 0, the lowest and the highest number."""

    scope: NDArray[np.int64]
    seconds: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def ids(self) -> NDArray[np.int64]:
        """The number of distinct IDs of each span."""
        return self.high - self.low + 1

    def take(self, rows: Any) -> Spans:
        """Return some of the spans, by their places or by a mask."""
        return Spans(*(column[rows] for column in self))


def spans_of_words(scope: NDArray[Any], seconds: NDArray[Any], word: NDArray[Any], mask: NDArray[Any]) -> Spans:
    """Return the spans of words: of each word, the mask has the bits of its 32 numbers."""

    def bit_indexes(bits: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.sort(np.concatenate([np.flatnonzero(bits >> n & 1) << WORD_SHIFT | n for n in range(32)]))

    low, high = bit_indexes(mask & ~(mask << 1)), bit_indexes(mask & ~(mask >> 1))
    row, bit = low >> WORD_SHIFT, (1 << WORD_SHIFT) - 1
    start = word[row] << WORD_SHIFT
    spans = Spans(scope[row], seconds[row], start + (low & bit), start + (high & bit))
    return _joined(spans.take(np.lexsort((spans.low, spans.seconds, spans.scope))))


def _joined(spans: Spans) -> Spans:
    """Return ordered spans, in which those that follow one another are one."""
    starts = starts_of(spans.scope, spans.seconds)
    starts[1:] |= spans.low[1:] != spans.high[:-1] + 1
    return spans.take(starts)._replace(high=spans.high[np.roll(starts, -1)])


def divided(spans: Spans) -> Spans:
    """Return spans that are divided where another one of their scope begins or ends: two of them are equal or apart."""
    low = spans.scope << _NUMBER_BITS | spans.low
    end = spans.scope << _NUMBER_BITS | (spans.high + 1)
    bounds = np.unique(np.concatenate((low, end)))
    first = np.searchsorted(bounds, low)
    pieces = np.searchsorted(bounds, end) - first
    row = np.repeat(np.arange(len(low)), pieces)
    index = first[row] + np.arange(len(row)) - (np.cumsum(pieces) - pieces)[row]
    start = spans.scope[row] << _NUMBER_BITS
    return spans.take(row)._replace(low=bounds[index] - start, high=bounds[index + 1] - 1 - start)


def per_scope(
    check: str,
    names: list[str],
    scope: NDArray[np.int64],
    count: NDArray[np.int64],
    rank: NDArray[np.int64],
    x: NDArray[np.int64],
    y: NDArray[np.int64] | None = None,
) -> Iterator[Counted]:
    """Yield the sum of the counts of each scope, with the example of the highest rank and then the lowest ``x``."""
    order = np.lexsort((x, -rank, scope))
    order = order[count[order] > 0]
    starts = np.flatnonzero(starts_of(scope[order]))
    sums = np.add.reduceat(count[order], starts)
    for row, total in zip(order[starts], sums, strict=True):
        second = None if y is None else int(y[row])
        yield Counted(check, names[scope[row]], int(total), int(x[row]), second)


class Gaps(NamedTuple):
    """Missing ranges of scopes as columns: the largest ones, and the largest one of each scope; largest first.

    ``number`` is the number of all ranges.
    """

    scope: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    number: int

    def counted(self, check: str, names: list[str], missing: NDArray[np.int64]) -> list[Counted]:
        """Return the missing numbers of each scope with a range, by its place in ``missing``, and its largest range."""
        scopes, firsts = np.unique(self.scope, return_index=True)
        columns = (scopes, missing[scopes], self.first[firsts], self.last[firsts])
        return [Counted(check, names[scope], *rest) for scope, *rest in np.transpose(columns).tolist()]

    def listed(self, kind: str, names: list[str]) -> list[Gap]:
        """Return the ranges, largest first."""
        rows = zip(*(column.tolist() for column in self[:3]), strict=True)
        return [Gap(kind, names[scope], first, last, last - first + 1) for scope, first, last in rows]


def gaps_between(scope: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64], most: int) -> Gaps:
    """Return the gaps between pairs of numbers of a scope, between which all numbers are missing.

    Args:
        scope: The scope of each pair.
        before: The lower number.
        after: The higher number.
        most: Number of ranges to return.
    """
    scope, first, last = np.array([scope, before + 1, after - 1])[:, after - before > 1]
    order = np.lexsort((first, scope, first - last))
    kept = np.arange(len(order)) < most
    kept[np.unique(scope[order], return_index=True)[1]] = True
    listed = order[kept]
    return Gaps(scope[listed], first[listed], last[listed], len(order))
