"""Rows of a bucket as one binary value, so that Spark hands a Python worker a few large values instead of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CONTROL", "PACKED", "Rows", "packer", "unpack"]

PACKED: Final = "bucket int, rows binary"
CONTROL: Final = 5
"""The number of columns before the user's own: bucket, key, ID, time and reason."""
_CHUNK_ROWS: Final = 200_000
_CHUNK_BYTES: Final = 32 << 20
NOT_UTF8: Final = "a column has text that is not UTF-8"


class Rows(NamedTuple):
    """The rows of one packed value, column by column."""

    keys: list[str | None]
    ids: list[str | None]
    times: list[int | None]
    reasons: list[str | None]
    columns: list[list[Any]]
    """The user's columns, in the order of the data frame."""
    nested: list[bool]
    """Whether the values of a column can be changed, so that a handler needs a copy."""


def packer() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow`` that packs rows; the first column is the bucket.

    Each task adds an empty value for bucket 0. The operator sees bucket 0 in every micro-batch with rows and checks
    there how many buckets the checkpoint has.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = size = 0
        seen = False
        for batch in batches:
            held.append(batch)
            seen = seen or batch.num_rows > 0
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
                yield from _packed(held)
                held, rows, size = [], 0, 0
        if rows:
            yield from _packed(held)
        if seen:
            yield _values([0], [b""])

    return pack


def _packed(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some batches, one binary value for each bucket."""
    table = pa.Table.from_batches(batches)
    buckets = table.column(0).to_numpy()
    order = np.argsort(buckets, kind="stable")
    table = table.take(pa.array(order))
    ordered = buckets[order]
    found, starts = np.unique(ordered, return_index=True)
    ends = [*starts[1:], len(ordered)]
    for bucket, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, int(end) - start).combine_chunks())
        yield _values([bucket], [sink.getvalue().to_pybytes()])


def _values(buckets: list[int], rows: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(buckets, pa.int32()), pa.array(rows, pa.binary())], ["bucket", "rows"])


def unpack(packed: bytes) -> Rows:
    """Return the rows of a packed value.

    A row with text that is not UTF-8 cannot become Python values: it gets a reason, and NULL in that column.
    """
    table = pa.ipc.open_stream(packed).read_all()
    keys, ids, times, reasons = (table.column(place).to_pylist() for place in range(1, CONTROL))
    columns, nested = [], []
    for place in range(CONTROL, table.num_columns):
        column = table.column(place)
        try:
            values = column.to_pylist()
        except UnicodeDecodeError:
            values = []
            for row, value in enumerate(column):
                try:
                    values.append(value.as_py())
                except UnicodeDecodeError:
                    values.append(None)
                    reasons[row] = reasons[row] or NOT_UTF8
        columns.append(values)
        nested.append(pa.types.is_nested(column.type))
    return Rows(keys, ids, times, reasons, columns, nested)
