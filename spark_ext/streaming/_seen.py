"""The IDs that a stream has seen, as sorted columns that are looked up and merged with NumPy.

An entry has the hash of an ID, the fingerprint of the ID's first content, and the time until which it is needed.
`spark_ext.streaming._pages` divides the entries into pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from spark_ext._spill import Limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spark_ext.streaming._pages import Pages

SLICE: Final = Limit(200_000, 32 << 20)
"""The rows of a bucket that are labelled at once."""
LABELS: Final = ("new", "duplicate", "conflict", "late")
NEW, DUPLICATE, CONFLICT, LATE = range(len(LABELS))

NO_WATERMARK: Final = np.iinfo(np.int64).min
_LATEST: Final = np.iinfo(np.int64).max
_COLUMNS: Final = 5


@dataclass(frozen=True)
class Entries:
    """IDs in the order of their hashes, without repetition."""

    high: NDArray[Any]
    """The place of each ID: the first half of its hash, which may begin with the time in the ID."""
    low: NDArray[Any]
    content_high: NDArray[Any]
    content_low: NDArray[Any]
    until: NDArray[Any]
    """Microseconds since 1970: the entry is needed while the watermark is not later."""

    def __len__(self) -> int:
        return len(self.high)

    def columns(self) -> Sequence[NDArray[Any]]:
        """Return the columns."""
        return self.high, self.low, self.content_high, self.content_low, self.until

    def take(self, places: NDArray[Any] | slice) -> Entries:
        """Return the entries at some places."""
        return Entries(*(column[places] for column in self.columns()))

    def find(self, high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each ID, -1 for a missing one."""
        last = len(self) - 1
        places = np.searchsorted(self.high, high)
        # IDs with the same first half of the hash are neighbors: compare each of them.
        found = np.full(len(high), -1)
        asked = np.flatnonzero(places <= last)
        while len(asked):
            at = places[asked]
            asked, at = (part[self.high[at] == high[asked]] for part in (asked, at))
            hit = self.low[at] == low[asked]
            found[asked[hit]] = at[hit]
            asked = asked[~hit]
            places[asked] += 1
            asked = asked[places[asked] <= last]
        return found


class EntriesCodec:
    """Entries as the content of a page: the columns one after another."""

    def empty(self) -> Entries:
        """Return no entries."""
        return _NOTHING

    def load(self, raw: bytes) -> Entries:
        """Return the entries that `dump` wrote, without a copy."""
        columns = np.frombuffer(raw, np.uint64).reshape(_COLUMNS, -1)
        return Entries(columns[0], columns[1], columns[2], columns[3], columns[4].view(np.int64))

    def dump(self, content: Entries) -> bytes:
        """Write entries as bytes."""
        return b"".join(column.tobytes() for column in content.columns())

    def split(self, content: Entries, parts: int) -> list[tuple[int, Entries]]:
        """Divide entries into parts of about equal size; IDs of one place stay together."""
        wanted = content.high[np.arange(parts) * len(content) // parts]
        starts = np.unique(np.searchsorted(content.high, wanted))
        ends = [*starts[1:].tolist(), len(content)]
        return [
            (int(content.high[start]), content.take(slice(start, end)))
            for start, end in zip(starts.tolist(), ends, strict=True)
        ]

    def join(self, first: Entries, second: Entries) -> Entries:
        """Append entries whose places are higher."""
        return joined([first, second])


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the entries of some parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return Entries(*(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True)))


_NO_WORDS: Final = np.empty(0, np.uint64)
_NOTHING: Final = Entries(_NO_WORDS, _NO_WORDS, _NO_WORDS, _NO_WORDS, np.empty(0, np.int64))


class Batch(NamedTuple):
    """The rows of one bucket in one micro-batch, as columns."""

    high: NDArray[Any]
    low: NDArray[Any]
    content_high: NDArray[Any]
    content_low: NDArray[Any]
    time: NDArray[Any]
    """Microseconds since 1970."""
    has_id: NDArray[Any]


def label_bucket(batch: Batch, pages: Pages[Entries], watermark: int, within: int) -> NDArray[Any]:
    """Return the label of each row, and remember its ID in the pages of its bucket.

    Rows of one ID are taken in the order of their times, then of their fingerprints, so that the order in which they
    arrive does not matter. ``watermark`` and ``within`` are microseconds.
    """
    labels = np.where(batch.time < watermark, LATE, NEW).astype(np.uint8)
    asked = np.flatnonzero(batch.has_id & (labels == NEW))
    order = asked[np.lexsort([column[asked] for column in (batch.content_low, batch.content_high, batch.time,
                                                           batch.low, batch.high)])]  # fmt: skip
    high, low, content_high, content_low, time = (column[order] for column in batch[:5])
    first = np.ones(len(order), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    starts = np.flatnonzero(first)
    ids = Entries(
        high[starts], low[starts], content_high[starts], content_low[starts], _later(time, first, starts, within)
    )
    page_of = pages.pages_of(ids.high)
    touched = np.unique(page_of).tolist()
    pages.read(touched)
    remembered = joined([pages.content(page) for page in touched]) if touched else _NOTHING
    known, until = _look_up(ids, remembered, watermark)
    group = np.cumsum(first) - 1
    same = (content_high == ids.content_high[group]) & (content_low == ids.content_low[group])
    labels[order] = np.where(first & ~known[group], NEW, np.where(same, DUPLICATE, CONFLICT))
    changed = np.flatnonzero(ids.until > until)
    for page, added in _by_page(page_of[changed], ids.take(changed)):
        pages.replace(page, merged(pages.content(page), added, watermark))
    for page in pages.due(max(watermark, 0), max(within // SWEEPS, 1)):
        content = pages.content(page)
        if len(content) and content.until.min() < watermark:
            pages.replace(page, content.take(content.until >= watermark))
    return labels


SWEEPS: Final = 4
"""How often each page is swept within the time for which an ID is remembered, if the rows suffice."""


def _by_page(page_of: NDArray[Any], ids: Entries) -> Iterator[tuple[int, Entries]]:
    """Divide IDs by their pages, which ascend."""
    if not len(page_of):
        return
    starts = [0, *(np.flatnonzero(page_of[1:] != page_of[:-1]) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], len(page_of)], strict=True):
        yield int(page_of[start]), ids.take(slice(start, end))


def _later(time: NDArray[Any], first: NDArray[Any], starts: NDArray[Any], within: int) -> NDArray[Any]:
    """Return the time until which each ID is needed: its last time plus ``within``. The rows of an ID are sorted."""
    ends = np.append(starts[1:], len(first)) - 1 if len(starts) else starts
    last = time[ends]
    return np.where(last > _LATEST - within, _LATEST, last + within)


def _look_up(ids: Entries, remembered: Entries, watermark: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Set the first content of known IDs; return which IDs are known, and the time until which each was needed."""
    known = np.zeros(len(ids), bool)
    until = np.full(len(ids), NO_WATERMARK)
    places = remembered.find(ids.high, ids.low)
    here = np.flatnonzero(places >= 0)
    here = here[remembered.until[places[here]] >= watermark]
    places = places[here]
    known[here] = True
    until[here] = remembered.until[places]
    ids.content_high[here] = remembered.content_high[places]
    ids.content_low[here] = remembered.content_low[places]
    np.maximum(ids.until, until, out=ids.until)
    return known, until


def merged(content: Entries, added: Entries, watermark: int) -> Entries:
    """Merge entries with newer ones, which replace older ones of the same ID; drop those whose time has passed."""
    whole = joined([content, added])
    order = np.argsort(whole.high, kind="stable")  # fast, because both parts are sorted
    high, low = whole.high[order], whole.low[order]
    ties = high[1:] == high[:-1]
    if (low[1:] != low[:-1])[ties].any():
        order = np.lexsort((whole.low, whole.high))
        high, low = whole.high[order], whole.low[order]
    last = np.ones(len(order), bool)
    last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return whole.take(order[last & (whole.until[order] >= watermark)])
