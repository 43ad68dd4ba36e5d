"""The rows of `deduplicate` on their way to its operator and back, and their labels.

An entry of the log has the hash of an ID, the fingerprint of the ID's first content, and the time until which it is
needed. The first half of the hash may begin with the time in the ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from spark_ext.columns.fingerprint import FINGERPRINT_LENGTH
from spark_ext.streaming._state.bucket_log import BEFORE_ALL, Entries, fixed, mixed
from spark_ext.streaming._state.packed_rows import Prepared, written_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from spark_ext.streaming._state.bucket_log import BucketLog


KEY: Final = "key"
"""The column with the hash of the identity, the start of the fingerprint, and a byte that is 1 for a row with an ID."""
LABELLED: Final = "labels binary, rows binary"
_TIME: Final = np.dtype("<i8")
CONTENT_LENGTH: Final = 8
"""The bytes of a fingerprint that are compared. Only rows of one ID are compared, so more are not worth their place."""
_KEY_LENGTH: Final = FINGERPRINT_LENGTH + CONTENT_LENGTH + 1
HEAD_BYTES: Final = _TIME.itemsize + _KEY_LENGTH
"""The number of bytes in the head of a row."""

LABELS: Final = ("new", "duplicate", "conflict", "late", "no id")
NEW, DUPLICATE, CONFLICT, LATE, NO_ID = range(len(LABELS))

_LATEST: Final = np.iinfo(np.int64).max


def preparer(buckets: int, time: str) -> Callable[[pa.RecordBatch], Prepared]:
    """Return the function that prepares rows for packing; the head of a row is its time and its `KEY`.

    Args:
        buckets: The number of buckets.
        time: The column of the rows' times.
    """

    def prepare(batch: pa.RecordBatch) -> Prepared:
        keys = _fixed(batch.column(KEY), _KEY_LENGTH)
        times = batch.column(time).cast(pa.int64()).fill_null(BEFORE_ALL).to_numpy(zero_copy_only=False)
        heads = np.empty((len(keys), HEAD_BYTES), np.uint8)
        heads[:, : _TIME.itemsize] = times.astype(_TIME).view(np.uint8).reshape(-1, _TIME.itemsize)
        heads[:, _TIME.itemsize :] = keys
        return Prepared(_buckets(keys, buckets), heads, batch.drop_columns([KEY]))

    return prepare


def _buckets(keys: Any, buckets: int) -> Any:
    """Return the bucket of each row: equal for equal IDs, and even although the bytes of an ID may not be random."""
    high, low = np.ascontiguousarray(keys[:, :FINGERPRINT_LENGTH]).view("<u8").T
    return (mixed(high, low) % np.uint64(buckets)).astype(np.intp)


def _fixed(column: pa.Array, length: int) -> Any:
    """View a binary column whose values all have one length as a matrix of bytes."""
    _, _, data = column.buffers()
    start = column.offset * length
    return np.frombuffer(data, np.uint8)[start : start + len(column) * length].reshape(-1, length)


def read_heads(heads: bytes, newest: int) -> Batch:
    """Return rows as columns.

    Args:
        heads: The heads of the rows, one after another.
        newest: The time of rows without one.
    """
    matrix = np.frombuffer(heads, np.uint8).reshape(-1, HEAD_BYTES)
    words = np.ascontiguousarray(matrix[:, :-1])
    time = words.view(_TIME)[:, 0]
    high, low, content = words.view(">u8").astype(np.uint64).T[1:]
    return Batch(high, low, content, np.where(time == BEFORE_ALL, newest, time), matrix[:, -1] == 1)


def labelled(
    frames: Iterable[pd.DataFrame], newest: int, label: Callable[[Batch], NDArray[np.uint8]]
) -> Iterator[pd.DataFrame]:
    """Yield packed rows with their labels.

    Args:
        frames: The packed rows of a bucket in a micro-batch, as Spark passes them.
        newest: The time of rows without one.
        label: Returns the labels of rows, and remembers their IDs.
    """
    packed = pd.concat(list(frames), ignore_index=True)
    labels = label(read_heads(b"".join(packed["head"]), newest))
    ends = np.cumsum(packed["head"].map(len)) // HEAD_BYTES
    yield pd.DataFrame({"labels": [part.tobytes() for part in np.split(labels, ends[:-1])], "rows": packed["rows"]})


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the labelled rows as they came, with the column ``label``: for `DataFrame.mapInArrow`."""
    names = pa.array(LABELS)
    for batch in batches:
        for labels, packed in zip(batch.column(0), batch.column(1), strict=True):
            rows = written_rows(packed.as_buffer())
            label = names.take(pa.array(np.frombuffer(labels.as_buffer(), np.uint8)))
            yield rows.append_column("label", label)


class Batch(NamedTuple):
    """The rows of one bucket in one micro-batch, as columns."""

    high: NDArray[Any]
    low: NDArray[Any]
    content: NDArray[Any]
    time: NDArray[Any]
    """Microseconds since 1970."""
    has_id: NDArray[Any]


def label_bucket(batch: Batch, log: BucketLog, watermark: int, within: int) -> NDArray[Any]:
    """Return the label of each row, and remember its ID in the log of its bucket.

    Rows of one ID are taken in the order of their times, then of their fingerprints, so that the order in which they
    arrive does not matter.

    Args:
        batch: The rows.
        log: The log, in which IDs are dead before the watermark. Its times are milliseconds, as Spark's watermark is.
        watermark: Microseconds since 1970, a multiple of 1000.
        within: Microseconds.
    """
    labels = np.where(batch.time < watermark, LATE, np.where(batch.has_id, NEW, NO_ID)).astype(np.uint8)
    asked = np.flatnonzero(labels == NEW)
    order = asked[np.lexsort([column[asked] for column in (batch.content, batch.time, batch.low, batch.high)])]
    high, low, content, time = (column[order] for column in batch[:4])
    first = np.ones(len(order), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    starts = np.flatnonzero(first)
    index, entries = log.find(high[starts], low[starts])
    known = index >= 0
    until, first_content = np.full(len(starts), BEFORE_ALL), content[starts]
    until[known] = entries.time[index[known]]
    first_content[known] = entries.payloads().view(np.uint64)[index[known]]
    group = np.cumsum(first) - 1
    labels[order] = np.where(first & ~known[group], NEW, np.where(content == first_content[group], DUPLICATE, CONFLICT))
    last = time[np.append(starts, len(order))[1:] - 1]  # the rows of an ID are sorted by time
    needed = np.where(last > _LATEST - within, _LATEST, last + within) // 1000
    changed = np.flatnonzero(needed > until)
    payloads = fixed(first_content[changed].view(np.uint8).reshape(-1, CONTENT_LENGTH))
    log.add(Entries(high[starts][changed], low[starts][changed], needed[changed], payloads))
    return labels
