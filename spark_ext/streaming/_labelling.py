"""The rows of `deduplicate` on their way to its operator and back, for `spark_ext.streaming._packing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from spark_ext.streaming._fingerprint import FINGERPRINT_LENGTH
from spark_ext.streaming._packing import Prepared, written_rows
from spark_ext.streaming._seen import LABELS, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray


KEY: Final = "key"
"""The column with the hash of the identity, the fingerprint, and a byte that is 1 for a row with an ID."""
LABELLED: Final = "labels binary, rows binary"
NO_TIME: Final = np.iinfo(np.int64).min

_TIME: Final = np.dtype("<i8")
_KEY_LENGTH: Final = 2 * FINGERPRINT_LENGTH + 1
HEAD_BYTES: Final = _TIME.itemsize + _KEY_LENGTH
"""The number of bytes in the head of a row."""
_WORDS: Final = slice(0, FINGERPRINT_LENGTH)
"""The bytes of `KEY` that choose the bucket: those of the ID."""
_ODD: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))
_HALF: Final = np.uint64(32)


def preparer(buckets: int, time: str) -> Callable[[pa.RecordBatch], Prepared]:
    """Return the function that prepares rows for packing; the head of a row is its time and its `KEY`.

    Args:
        buckets: The number of buckets.
        time: The column of the rows' times.
    """

    def prepare(batch: pa.RecordBatch) -> Prepared:
        keys = _fixed(batch.column(KEY), _KEY_LENGTH)
        times = batch.column(time).cast(pa.int64()).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
        heads = np.empty((len(keys), HEAD_BYTES), np.uint8)
        heads[:, : _TIME.itemsize] = times.astype(_TIME).view(np.uint8).reshape(-1, _TIME.itemsize)
        heads[:, _TIME.itemsize :] = keys
        return Prepared(_buckets(keys, buckets), heads, batch.drop_columns([KEY]))

    return prepare


def _buckets(keys: Any, buckets: int) -> Any:
    """Return the bucket of each row: equal for equal IDs, and even although the bytes of an ID may not be random."""
    high, low = np.ascontiguousarray(keys[:, _WORDS]).view("<u8").T
    mixed = high * _ODD[0] ^ low * _ODD[1]
    mixed = (mixed ^ mixed >> _HALF) * _ODD[1]
    return ((mixed ^ mixed >> _HALF) % np.uint64(buckets)).astype(np.intp)


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
    high, low, content_high, content_low = words.view(">u8").astype(np.uint64).T[1:]
    return Batch(high, low, content_high, content_low, np.where(time == NO_TIME, newest, time), matrix[:, -1] == 1)


def labelled(
    frames: Iterable[pd.DataFrame], newest: int, label: Callable[[Batch], NDArray[np.uint8]]
) -> Iterator[pd.DataFrame]:
    """Yield packed rows with their labels.

    Args:
        frames: The packed rows of a bucket in a micro-batch, as Spark passes them.
        newest: The time of rows without one.
        label: Returns the labels of rows, and remembers their IDs.
    """
    held = list(frames)
    labels = label(read_heads(b"".join(head for frame in held for head in frame["head"]), newest))
    for frame in held:
        *parts, labels = np.split(labels, np.cumsum(frame["head"].map(len)) // HEAD_BYTES)
        yield pd.DataFrame({"labels": [part.tobytes() for part in parts], "rows": frame["rows"].to_numpy()})


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the labelled rows as they came, with the column ``label``: for `DataFrame.mapInArrow`."""
    names = pa.array(LABELS)
    for batch in batches:
        for labels, packed in zip(batch.column(0), batch.column(1), strict=True):
            rows = written_rows(packed.as_buffer())
            label = names.take(pa.array(np.frombuffer(labels.as_buffer(), np.uint8)))
            yield pa.RecordBatch.from_arrays(
                [*rows.columns, label], schema=rows.schema.append(pa.field("label", pa.string()))
            )
