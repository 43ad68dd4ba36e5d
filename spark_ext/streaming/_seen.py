"""The IDs that a stream has seen, which are looked up and remembered with NumPy.

An entry of the log has the hash of an ID, the fingerprint of the ID's first content, and the time until which it is
needed. The first half of the hash may begin with the time in the ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from spark_ext.streaming._log import Entries, fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spark_ext.streaming._log import Log

LABELS: Final = ("new", "duplicate", "conflict", "late")
NEW, DUPLICATE, CONFLICT, LATE = range(len(LABELS))

NO_WATERMARK: Final = np.iinfo(np.int64).min // 1000 * 1000
_LATEST: Final = np.iinfo(np.int64).max
_MILLISECOND: Final = 1000
_WORD: Final = np.dtype(np.uint64)


class Batch(NamedTuple):
    """The rows of one bucket in one micro-batch, as columns."""

    high: NDArray[Any]
    low: NDArray[Any]
    content_high: NDArray[Any]
    content_low: NDArray[Any]
    time: NDArray[Any]
    """Microseconds since 1970."""
    has_id: NDArray[Any]


def label_bucket(batch: Batch, log: Log, watermark: int, within: int) -> NDArray[Any]:
    """Return the label of each row, and remember its ID in the log of its bucket.

    Rows of one ID are taken in the order of their times, then of their fingerprints, so that the order in which they
    arrive does not matter.

    Args:
        batch: The rows.
        log: The log, in which IDs are dead before the watermark. Its times are milliseconds, as Spark's watermark is.
        watermark: Microseconds since 1970, a multiple of 1000.
        within: Microseconds.
    """
    labels = np.where(batch.time < watermark, LATE, NEW).astype(np.uint8)
    asked = np.flatnonzero(batch.has_id & (labels == NEW))
    order = asked[np.lexsort([column[asked] for column in (batch.content_low, batch.content_high, batch.time,
                                                           batch.low, batch.high)])]  # fmt: skip
    high, low, content_high, content_low, time = (column[order] for column in batch[:5])
    first = np.ones(len(order), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    starts = np.flatnonzero(first)
    content = np.stack([content_high, content_low], axis=1)
    known, first_content, until = _look_up(log, high[starts], low[starts], content[starts])
    group = np.cumsum(first) - 1
    same = (content == first_content[group]).all(axis=1)
    labels[order] = np.where(first & ~known[group], NEW, np.where(same, DUPLICATE, CONFLICT))
    needed = _later(time, first, starts, within)
    changed = np.flatnonzero(needed > until)
    payloads = fixed(np.ascontiguousarray(first_content[changed]).view(np.uint8))
    log.add(Entries(high[starts][changed], low[starts][changed], needed[changed], payloads))
    return labels


def _later(time: NDArray[Any], first: NDArray[Any], starts: NDArray[Any], within: int) -> NDArray[Any]:
    """Return the time until which each ID is needed: its last time plus ``within``. The rows of an ID are sorted."""
    ends = np.append(starts[1:], len(first)) - 1 if len(starts) else starts
    last = time[ends]
    return np.where(last > _LATEST - within, _LATEST, last + within) // _MILLISECOND


def _look_up(
    log: Log, high: NDArray[Any], low: NDArray[Any], content: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return which IDs are known, the first content of each, and the time until which each was needed."""
    place, entries = log.find(high, low)
    known = place >= 0
    until = np.full(len(high), np.iinfo(np.int64).min)
    until[known] = entries.time[place[known]]
    first_content = content.copy()
    first_content[known] = entries.payloads().view(_WORD).reshape(-1, content.shape[1])[place[known]]
    return known, first_content, until
