"""The IDs that a stream has seen: runs of sorted hashes, looked up and merged with NumPy.

A run is one binary value with five columns, sorted by the hash of the ID: both halves of that hash, both halves of the
fingerprint of the ID's first content, and the time until which the entry is needed. A micro-batch appends one run to
its bucket. A newer run hides an older one. Runs are merged before they grow many, and entries whose time has passed are
dropped then, so that each entry is rewritten a few times only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LABELS: Final = ("new", "duplicate", "conflict", "late")
NEW, DUPLICATE, CONFLICT, LATE = range(len(LABELS))

NO_WATERMARK: Final = np.iinfo(np.int64).min
_LATEST: Final = np.iinfo(np.int64).max
_MAX_RUNS: Final = 16
_COLUMNS: Final = 5
_MAGIC: Final = b"MSGIDSN2"
FORMAT: Final = b"format=3 "
"""The start of the value that describes a checkpoint. Format 2 lacked it and numbered the buckets from 0."""
OTHER_FORMAT: Final = "cannot read the state of `deduplicate`: it has another format; use a new checkpoint"


@dataclass(frozen=True)
class Run:
    """IDs in the order of their hashes, without repetition."""

    high: NDArray[Any]
    low: NDArray[Any]
    content_high: NDArray[Any]
    content_low: NDArray[Any]
    until: NDArray[Any]
    """Microseconds since 1970: the entry is needed while the watermark is not later."""

    def __len__(self) -> int:
        return len(self.high)

    def __bytes__(self) -> bytes:
        return b"".join((_MAGIC, *(column.tobytes() for column in self._columns())))

    @staticmethod
    def from_bytes(raw: bytes) -> Run:
        """Return the run that a state holds, without a copy."""
        if bytes(raw[: len(_MAGIC)]) != _MAGIC:
            raise ValueError(OTHER_FORMAT)
        columns = np.frombuffer(raw, np.uint64, offset=len(_MAGIC)).reshape(_COLUMNS, -1)
        return Run(columns[0], columns[1], columns[2], columns[3], columns[4].view(np.int64))

    def _columns(self) -> Sequence[NDArray[Any]]:
        return self.high, self.low, self.content_high, self.content_low, self.until

    def take(self, places: NDArray[Any]) -> Run:
        """Return the entries at some places."""
        return Run(*(column[places] for column in self._columns()))

    def find(self, high: NDArray[Any], low: NDArray[Any]) -> NDArray[Any]:
        """Return the place of each ID, -1 for one that is not in the run."""
        last = len(self) - 1
        places = np.searchsorted(self.high, high)
        # IDs with the same first half of the hash are neighbours: compare each of them.
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


class Batch(NamedTuple):
    """The rows of one bucket in one micro-batch, as columns."""

    high: NDArray[Any]
    low: NDArray[Any]
    content_high: NDArray[Any]
    content_low: NDArray[Any]
    time: NDArray[Any]
    """Microseconds since 1970."""
    has_id: NDArray[Any]


def label_rows(batch: Batch, runs: Sequence[Run], watermark: int, within: int) -> tuple[NDArray[Any], Run]:
    """Return the label of each row, and the run that remembers the new IDs.

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
    ids = Run(high[starts], low[starts], content_high[starts], content_low[starts], _later(time, first, starts, within))

    known, until = _look_up(ids, runs, watermark)
    group = np.cumsum(first) - 1
    same = (content_high == ids.content_high[group]) & (content_low == ids.content_low[group])
    labels[order] = np.where(first & ~known[group], NEW, np.where(same, DUPLICATE, CONFLICT))
    changed = ids.until > until
    return labels, ids if changed.all() else ids.take(np.flatnonzero(changed))


def _later(time: NDArray[Any], first: NDArray[Any], starts: NDArray[Any], within: int) -> NDArray[Any]:
    """Return the time until which each ID is needed: its last time plus ``within``. The rows of an ID are sorted."""
    ends = np.append(starts[1:], len(first)) - 1 if len(starts) else starts
    last = time[ends]
    return np.where(last > _LATEST - within, _LATEST, last + within)


def _look_up(ids: Run, runs: Sequence[Run], watermark: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Set the first content of known IDs; return which IDs are known, and the time until which each was needed."""
    known = np.zeros(len(ids), bool)
    until = np.full(len(ids), NO_WATERMARK)
    open = np.arange(len(ids))
    for run in reversed(runs):
        places = run.find(ids.high[open], ids.low[open])
        hit = places >= 0
        # An entry of a newer run hides entries of older runs, even if its time has passed.
        here, places = open[hit], places[hit]
        needed = run.until[places] >= watermark
        here, places = here[needed], places[needed]
        known[here] = True
        until[here] = run.until[places]
        ids.content_high[here] = run.content_high[places]
        ids.content_low[here] = run.content_low[places]
        open = open[~hit]
        if not len(open):
            break
    np.maximum(ids.until, until, out=ids.until)
    return known, until


def needs_merge(runs: Sequence[Run]) -> bool:
    """Check whether to merge runs: if there are many, or the newer runs have half the size of the oldest."""
    return len(runs) >= _MAX_RUNS or 2 * sum(map(len, runs[1:])) > len(runs[0])


def compacted(runs: Sequence[Run], watermark: int) -> Run:
    """Merge runs, oldest first, and drop the entries whose time has passed."""
    high, low, *rest = (np.concatenate(columns) for columns in zip(*(run._columns() for run in runs), strict=True))
    order = np.argsort(high, kind="stable")  # fast, because the runs are sorted
    ties = high[order][1:] == high[order][:-1]
    if (low[order][1:] != low[order][:-1])[ties].any():
        order = np.lexsort((low, high))
    last = np.ones(len(order), bool)
    last[:-1] = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    kept = order[last & (rest[-1][order] >= watermark)]
    return Run(high, low, *rest).take(kept)
