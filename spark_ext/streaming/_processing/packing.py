"""Rows of a bucket as one binary value, so that Spark passes a few large values to a Python worker and not many rows.

This module does the work for many rows at once: IDs become canonical, missing times come from the IDs, and
malformed rows become text. The operator gets the columns that a handler needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid.errors import InvalidMessageId
from msgid.ids._bytes import identity
from msgid.ids.bulk import parse_batch
from msgid.layout import EPOCH_UNIX, VERSION_1
from spark_ext.streaming._processing.codec import input_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from spark_ext.streaming._processing.handling import Settings

PACKED: Final = "bucket int, rows binary"
CONTROL: Final = 6
"""The number of columns before the user's own: bucket, key, ID, time, reason and the time of the micro-batch."""
NO_TIME: Final = -(1 << 63)
"""The time of a message without one: it is handled before all others."""
_CHECK_KEYS: Final = np.zeros(1, np.int32)
NOT_UTF8: Final = "a column has text that is not UTF-8"
_CHUNK_ROWS: Final = 200_000
_CHUNK_BYTES: Final = 32 << 20
_NOW: Final = b"now"
_KEY, _ID, _TIME, _REASON, _TEXT, _BODY = range(6)


class Rows(NamedTuple):
    """The rows of a bucket, column by column."""

    now_ms: int
    """The processing time of the micro-batch, which a replay has too, milliseconds since 1970."""
    keys: list[str]
    ids: list[str]
    times: list[int]
    """Microseconds since 1970; `NO_TIME` if the time is missing."""
    body: list[list[Any]]
    """The columns of the message's body."""
    nested: list[int]
    """The places in the body of values that can be changed, so that a handler needs a copy."""
    malformed: list[tuple[str | None, str, str]]
    """The ID, the whole row as JSON, and the reason."""


def packer(
    settings: Settings, bucket_keys: npt.NDArray[np.int32]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow`` that packs rows; the first columns are those of `CONTROL`.

    Each bucket gets its key. Each task adds an empty value under key 0. The operator sees this key in every micro-batch
    with rows. It checks there the format of the checkpoint and its number of buckets. Format 2 had bucket 0 under it.
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
                yield from _packed(held, settings, bucket_keys)
                held, rows, size = [], 0, 0
        if rows:
            yield from _packed(held, settings, bucket_keys)
        if seen:
            yield _values(_CHECK_KEYS, [b""])

    return pack


def unpack(packed: list[bytes]) -> Rows:
    """Return the rows of some packed values of one query."""
    table = pa.concat_tables([pa.ipc.open_stream(raw).read_all() for raw in packed])
    malformed = []
    if table.column(_REASON).null_count < table.num_rows:
        is_good = table.column(_REASON).is_null()
        bad = table.filter(pc.invert(is_good))
        malformed = list(zip(*(bad.column(place).to_pylist() for place in (_ID, _TEXT, _REASON)), strict=True))
        table = table.filter(is_good)
    keys, ids, times, _, _, *body = table.columns
    nested = [place for place, column in enumerate(body) if pa.types.is_nested(column.type)]
    told, same, at, *values = (column.to_pylist() for column in (keys, ids, times, *body))
    return Rows(int(table.schema.metadata[_NOW]), told, same, at, values, nested, malformed)


def _packed(
    batches: list[pa.RecordBatch], settings: Settings, bucket_keys: npt.NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some batches, one binary value for each bucket."""
    table = pa.Table.from_batches(batches).combine_chunks()
    columns = [_whole(column) for column in table.columns]
    buckets, keys, raw_ids, raw_times, raw_reasons, now = columns[:CONTROL]
    ids, times = _known(raw_ids, raw_times)
    reasons, texts = _malformed(columns[CONTROL:], raw_reasons, settings.columns)
    body = [columns[CONTROL + place] for place in settings.body]
    made = [keys, ids, times, reasons, texts, *body]
    order = np.argsort(buckets.to_numpy(), kind="stable")
    ordered = buckets.to_numpy()[order]
    table = pa.table(made, [str(place) for place in range(len(made))], metadata={_NOW: str(now[0].as_py())})
    table = table.take(pa.array(order))
    found, starts = np.unique(ordered, return_index=True)
    ends = [*starts[1:], len(ordered)]
    for place, start, end in zip(range(len(found)), starts.tolist(), ends, strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, int(end) - start).combine_chunks())
        yield _values(bucket_keys[found[place : place + 1]], [sink.getvalue().to_pybytes()])


def _known(ids: pa.Array, times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the identities of IDs, and the times of messages: given, in the ID, or `NO_TIME`."""
    fields = parse_batch(ids)
    is_v1 = fields.version == VERSION_1
    in_id = np.where(is_v1, (fields.seconds.astype(np.int64) + EPOCH_UNIX) * 1_000_000, NO_TIME)
    if times.null_count:
        times = pc.coalesce(times, pa.array(in_id))
    is_text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    if is_text and is_v1.all():
        return pc.ascii_upper(ids), times
    return pa.array([_identity(value) for value in ids.to_pylist()], pa.string()), times


def _identity(value: str | bytes | None) -> str | None:
    try:
        return identity(value) if value else None
    except InvalidMessageId:
        return None


def _malformed(columns: list[pa.Array], reasons: pa.Array, names: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """Return the reasons of malformed rows, and their JSON; NULL for a valid row.

    A row with text that is not UTF-8 cannot become Python values: it gets a reason, and NULL in that column.
    """
    broken = [_not_utf8(column) for column in columns]
    bad = np.logical_or.reduce(
        [reasons.is_valid().to_numpy(zero_copy_only=False), *(b for b in broken if b is not None)]
    )
    if not bad.any():
        return reasons, pa.nulls(len(reasons), pa.string())
    told = reasons.to_pylist()
    texts: list[str | None] = [None] * len(told)
    for row in np.flatnonzero(bad).tolist():
        whole = {
            name: None if at is not None and at[row] else column[row].as_py()
            for name, column, at in zip(names, columns, broken, strict=True)
        }
        texts[row] = input_text(whole)
        told[row] = told[row] or NOT_UTF8
    return pa.array(told, pa.string()), pa.array(texts, pa.string())


def _not_utf8(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values have text that is not UTF-8; None if all values are valid."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([not _is_readable(value) for value in column])
    return None


def _is_readable(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _values(keys: npt.NDArray[np.int32], rows: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(rows, pa.binary())], ["bucket", "rows"])
