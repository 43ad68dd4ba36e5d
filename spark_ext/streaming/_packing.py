"""Rows of a stream on their way to the state and back: packed per bucket as Arrow, labelled, and unpacked.

Spark passes rows to a stateful function one by one, which takes most of the time. So the rows of a bucket travel as
one row: the hashes that the state needs, and all columns as one Arrow stream that is passed on untouched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spark_ext.streaming._fingerprint import FINGERPRINT_LENGTH
from spark_ext.streaming._seen import LABELS, Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

KEY: Final = "key"
"""The column with the hash of the identity, the fingerprint, and a byte that is 1 for a row with an ID."""
KEY_LENGTH: Final = 2 * FINGERPRINT_LENGTH + 1
PACKED: Final = "bucket int, head binary, rows binary"
LABELLED: Final = "labels binary, rows binary"
CHECK_BUCKET: Final = -1
"""The key under which the state stores settings that must not change, such as the number of buckets."""
NO_TIME: Final = np.iinfo(np.int64).min

_ROWS: Final = 1 << 16
_BYTES: Final = 1 << 24
_TIME: Final = np.dtype("<i8")


def pack(bucket_keys: NDArray[np.int32], time: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `DataFrame.mapInArrow` that packs rows.

    Args:
        bucket_keys: The key of each bucket.
        time: The column of the rows' times.
    """

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_first = True
        for batch in _gathered(batches):
            rows = list(_by_bucket(batch, bucket_keys, time))
            if is_first:
                rows.append((CHECK_BUCKET, b"", b""))
                is_first = False
            bucket, head, payload = zip(*rows, strict=True)
            arrays = [pa.array(bucket, pa.int32()), pa.array(head, pa.binary()), pa.array(payload, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["bucket", "head", "rows"])

    return packed


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, so that each bucket gets enough rows per message."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_struct_array(pa.concat_arrays([batch.to_struct_array() for batch in batches]))


def _by_bucket(batch: pa.RecordBatch, bucket_keys: NDArray[np.int32], time: str) -> Iterator[tuple[int, bytes, bytes]]:
    keys = _fixed(batch.column(batch.schema.get_field_index(KEY)), KEY_LENGTH)
    times = batch.column(batch.schema.get_field_index(time)).cast(pa.int64())
    micros = times.fill_null(NO_TIME).to_numpy(zero_copy_only=False)
    bucket = keys[:, :8].copy().view("<u8").ravel() % np.uint64(len(bucket_keys))
    order = np.argsort(bucket, kind="stable")
    bucket, keys, micros = bucket[order], keys[order], micros[order]
    rows = batch.select([name for name in batch.schema.names if name != KEY]).take(pa.array(order))
    starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        head = micros[start:end].astype(_TIME).tobytes() + keys[start:end].tobytes()
        yield int(bucket_keys[bucket[start]]), head, _written(rows.slice(start, end - start))


def _fixed(column: pa.Array, length: int) -> Any:
    """View a binary column whose values all have one length as a matrix of bytes."""
    _, _, data = column.buffers()
    start = column.offset * length
    return np.frombuffer(data, np.uint8)[start : start + len(column) * length].reshape(-1, length)


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def read_heads(heads: list[bytes]) -> tuple[Batch, list[int]]:
    """Return the rows of a bucket as columns, and the number of rows per message."""
    times, keys, counts = [], [], []
    for head in heads:
        count = len(head) // (_TIME.itemsize + KEY_LENGTH)
        times.append(np.frombuffer(head, _TIME, count))
        keys.append(np.frombuffer(head, np.uint8, offset=count * _TIME.itemsize).reshape(-1, KEY_LENGTH))
        counts.append(count)
    matrix = np.concatenate(keys)
    words = np.ascontiguousarray(matrix[:, :-1]).view("<u8")
    high, low, content_high, content_low = words.T
    return Batch(high, low, content_high, content_low, np.concatenate(times), matrix[:, -1] == 1), counts


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the labelled rows as they came, with the column ``label``: for `DataFrame.mapInArrow`."""
    names = pa.array(LABELS)
    for batch in batches:
        for labels, rows in zip(batch.column(0), batch.column(1), strict=True):
            with pa.ipc.open_stream(rows.as_buffer()) as reader:
                held = reader.read_next_batch()
            told = names.take(pa.array(np.frombuffer(labels.as_buffer(), np.uint8)))
            yield pa.RecordBatch.from_arrays(
                [*held.columns, told], schema=held.schema.append(pa.field("label", pa.string()))
            )
