"""Rows of a stream on their way to a stateful operator: packed by bucket, several thousand rows to one row.

Spark passes rows to a stateful function one by one, which takes most of the time. So the rows of a bucket travel as
one row: a head with what the operator needs of each row, and all columns as one Arrow stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from spark_ext.streaming._state.bucket_state import CHECK_BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

PACKED: Final = "bucket int, head binary, rows binary"
_ROWS: Final = 200_000
_BYTES: Final = 32 << 20


class Prepared(NamedTuple):
    """Some rows, ready to be packed."""

    buckets: NDArray[Any]
    """The number of each row's bucket, counted from 0."""
    heads: NDArray[np.uint8]
    """The head of each row, as a row of a matrix."""
    rows: pa.RecordBatch


def packer(
    prepare: Callable[[pa.RecordBatch], Prepared], bucket_keys: NDArray[np.int32]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `DataFrame.mapInArrow` that packs rows; each bucket gets its key.

    Each task with rows adds one without rows under `CHECK_BUCKET`, so the operator sees that key in every micro-batch
    with rows.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = False
        for batch in _gathered(batches):
            yield _values(list(_by_bucket(prepare(batch), bucket_keys)))
            seen = True
        if seen:
            yield _values([(CHECK_BUCKET, b"", b"")])

    return pack


def _values(rows: list[tuple[int, bytes, bytes]]) -> pa.RecordBatch:
    bucket, head, payload = zip(*rows, strict=True)
    arrays = [pa.array(bucket, pa.int32()), pa.array(head, pa.binary()), pa.array(payload, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["bucket", "head", "rows"])


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, so that each bucket gets many rows at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
            waiting, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]


def _by_bucket(ready: Prepared, bucket_keys: NDArray[np.int32]) -> Iterator[tuple[int, bytes, bytes]]:
    order = np.argsort(ready.buckets, kind="stable")
    buckets, heads = ready.buckets[order], ready.heads[order]
    rows = ready.rows.take(pa.array(order))
    starts = np.flatnonzero(np.append(True, buckets[1:] != buckets[:-1]))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield int(bucket_keys[buckets[start]]), heads[start:end].tobytes(), written(rows.slice(start, end - start))


def written(batch: pa.RecordBatch) -> bytes:
    """Return rows as a packed value, which `written_rows` reads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def written_rows(raw: Any) -> pa.RecordBatch:
    """Return the rows of one packed value."""
    with pa.ipc.open_stream(raw) as reader:
        return reader.read_next_batch()
