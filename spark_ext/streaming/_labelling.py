"""The rows of `deduplicate` on their way to its operator and back, for `spark_ext.streaming._packing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from spark_ext._spill import written_rows
from spark_ext.streaming._fingerprint import FINGERPRINT_LENGTH
from spark_ext.streaming._packing import Prepared
from spark_ext.streaming._seen import LABELS, Batch
from spark_ext.streaming._slices import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from spark_ext._spill import Place, Spill
    from spark_ext.streaming._slices import Arrived

KEY: Final = "key"
"""The column with the hash of the identity, the fingerprint, and a byte that is 1 for a row with an ID."""
LABELLED: Final = "labels binary, rows binary"
NO_TIME: Final = np.iinfo(np.int64).min

_TIME: Final = np.dtype("<i8")
_KEY_LENGTH: Final = 2 * FINGERPRINT_LENGTH + 1
HEAD_BYTES: Final = _TIME.itemsize + _KEY_LENGTH
"""The number of bytes in the head of a row."""
_PLACE: Final = np.dtype(">u8")
_ORDER_BYTES: Final = 2 * FINGERPRINT_LENGTH + _TIME.itemsize + _PLACE.itemsize
_SIGN: Final = np.uint64(1 << 63)
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
    return _columns(_matrix(heads), newest)


def _matrix(heads: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(heads, np.uint8).reshape(-1, HEAD_BYTES)


def _columns(matrix: NDArray[np.uint8], newest: int) -> Batch:
    words = np.ascontiguousarray(matrix[:, :-1])
    time = _times(words, newest)
    high, low, content_high, content_low = words.view(">u8").astype(np.uint64).T[1:]
    return Batch(high, low, content_high, content_low, time, matrix[:, -1] == 1)


def _times(words: NDArray[np.uint8], newest: int) -> NDArray[np.int64]:
    time = words.view(_TIME)[:, 0]
    return np.where(time == NO_TIME, newest, time)


def labels_of(
    arrived: Arrived, newest: int, label: Callable[[Batch], NDArray[np.uint8]]
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the labels and the rows of packed values, some values at a time.

    The slices are ranges in the order in which rows are labelled: by ID, time and fingerprint. So each slice touches
    its own range of the state. If the rows of an ID fill several slices, the later ones find the ID in the state.

    Args:
        arrived: The packed values of a bucket.
        newest: The time of rows without one.
        label: Returns the labels of rows, and remembers their IDs.
    """
    if arrived.spill is None:
        labels = label(read_heads(b"".join(arrived.heads()), newest))
    else:
        labels = np.empty(arrived.rows, np.uint8)
        for places, batch in _slices(arrived, arrived.spill, newest):
            labels[places] = label(batch)
    first = 0
    for group in arrived.groups():
        texts = []
        for head, _ in group:
            texts.append(labels[first : first + arrived.rows_of(head)].tobytes())
            first += arrived.rows_of(head)
        yield texts, [rows for _, rows in group]


def _slices(arrived: Arrived, spill: Spill, newest: int) -> Iterator[tuple[NDArray[Any], Batch]]:
    """Yield rows in ranges of their order: the places at which they arrived, and their columns."""
    samples = [
        order for _, orders in _ordered(arrived, newest) for order in orders[arrived.limit.samples(len(orders), 0)]
    ]
    firsts = np.array(ranges(samples, arrived.rows / arrived.limit.rows), f"S{_ORDER_BYTES}")
    parts: list[list[Place]] = [[] for _ in range(len(firsts) + 1)]
    for matrix, orders in _ordered(arrived, newest):
        part = np.searchsorted(firsts, orders, "right")
        places = orders.view(np.uint8).reshape(-1, _ORDER_BYTES)[:, -_PLACE.itemsize :]
        records = np.concatenate([places, matrix], axis=1)[np.argsort(part, kind="stable")]
        ends = np.cumsum(np.bincount(part, minlength=len(parts))).tolist()
        for stored, start, end in zip(parts, [0, *ends[:-1]], ends, strict=True):
            if end > start:
                stored.append(spill.write(records[start:end].tobytes()))
    for stored in filter(None, parts):
        raw = b"".join(map(spill.read, stored))
        records = np.frombuffer(raw, np.uint8).reshape(-1, _PLACE.itemsize + HEAD_BYTES)
        numbers = np.ascontiguousarray(records[:, : _PLACE.itemsize]).view(_PLACE)[:, 0].astype(np.intp)
        yield numbers, _columns(records[:, _PLACE.itemsize :], newest)


def _ordered(arrived: Arrived, newest: int) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bytes_]]]:
    """Yield the heads of about a slice of rows at a time, with bytes whose order is that in which they are labelled.

    The last bytes are the place at which a row arrived, so no two rows are equal.
    """
    first = 0
    for raw in _joined(arrived.heads(), arrived.limit.rows * HEAD_BYTES):
        matrix = _matrix(raw)
        times = (_times(np.ascontiguousarray(matrix[:, :-1]), newest).view(np.uint64) ^ _SIGN).astype(">u8")
        places = np.arange(first, first + len(matrix), dtype=_PLACE)
        id, content = matrix[:, _TIME.itemsize :][:, _WORDS], matrix[:, _TIME.itemsize + FINGERPRINT_LENGTH : -1]
        parts = [id, times.view(np.uint8).reshape(-1, 8), content, places.view(np.uint8).reshape(-1, 8)]
        yield matrix, np.concatenate(parts, axis=1).view(f"S{_ORDER_BYTES}")[:, 0]
        first += len(matrix)


def _joined(heads: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join heads to values of at least so many bytes; the last one may be smaller."""
    waiting: list[bytes] = []
    held = 0
    for head in heads:
        waiting.append(head)
        held += len(head)
        if held >= size:
            yield b"".join(waiting)
            waiting, held = [], 0
    if waiting:
        yield b"".join(waiting)


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
