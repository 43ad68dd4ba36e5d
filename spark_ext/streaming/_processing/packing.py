"""The rows of `process` on their way to its operator: many rows at once, for `spark_ext.streaming._state.packed_rows`.

IDs become canonical, missing times come from the IDs, and malformed rows become text. The operator gets the columns
that a handler needs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid.ids.bulk import parse_batch
from msgid.ids.carriers import identities, identities_of_v1
from msgid.layout import EPOCH_UNIX, VERSION_1
from msgid.processing.strict_json import text
from spark_ext.streaming._state.packed_rows import Prepared, written_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CONTROL: Final = 5
"""The number of columns before the user's own: bucket, key, ID, time and reason."""
NO_TIME: Final = -(1 << 63)
"""The time of a message without one: it is handled before all others."""
UNREADABLE: Final = "a column has text that is not UTF-8, or a time outside the years 1 to 9999"
_KEY, _ID, _TIME, _REASON, _TEXT = range(5)
"""The first columns of packed rows; those of the body follow."""


Malformed = tuple["str | None", str, str]
"""A malformed row: the ID, the whole row as JSON, and the reason."""


class Arrival(NamedTuple):
    """A message of a micro-batch."""

    key: str
    id: str
    time: int
    """Its own time in microseconds since 1970; `NO_TIME` if that is missing."""
    values: tuple[Any, ...]
    """The columns of its body."""

    def body(self, names: Sequence[str]) -> str:
        """Return the body as JSON."""
        return text(dict(zip(names, self.values, strict=True)))


def preparer(names: tuple[str, ...], body: tuple[int, ...]) -> Callable[[pa.RecordBatch], Prepared]:
    """Return the function that prepares rows for packing; the first columns are those of `CONTROL`.

    Args:
        names: The user's columns.
        body: The indexes of those columns that are the message's body.
    """

    def prepare(batch: pa.RecordBatch) -> Prepared:
        buckets, keys, raw_ids, raw_times, raw_reasons = batch.columns[:CONTROL]
        given = [column.cast(in_utc(column.type)) for column in batch.columns[CONTROL:]]
        ids, times = _known(raw_ids, raw_times)
        reasons, texts = _malformed(given, raw_reasons, names, body)
        columns = [keys, ids, times, reasons, texts, *(given[index] for index in body)]
        rows = pa.RecordBatch.from_arrays(columns, [str(index) for index in range(len(columns))])
        no_heads = np.empty((len(rows), 0), np.uint8)
        return Prepared(buckets.to_numpy(zero_copy_only=False), no_heads, rows)

    return prepare


def in_utc(type: pa.DataType) -> pa.DataType:
    """Return a type with its timestamps in UTC: Spark gives them the session's time zone, which may change.

    All parts may be NULL: Arrow does not cast a NULL struct whose fields may not.

    >>> in_utc(pa.list_(pa.timestamp("us", "Asia/Tokyo")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    if pa.types.is_timestamp(type) and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")
    if pa.types.is_map(type):
        return pa.map_(in_utc(type.key_type), _nullable(type.item_field))
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        list_type = pa.list_ if pa.types.is_list(type) else pa.large_list
        return list_type(_nullable(type.value_field))
    if pa.types.is_struct(type):
        return pa.struct([_nullable(field) for field in type])
    return type


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(in_utc(field.type)).with_nullable(True)


def unpacked(packed: Iterable[bytes]) -> tuple[list[Malformed], pa.Table]:
    """Return the rows of some packed values of one query: the malformed ones, and the messages."""
    table = pa.Table.from_batches([written_rows(rows) for rows in packed])
    reasons = table.column(_REASON)
    if reasons.null_count == table.num_rows:
        return [], table
    bad = table.filter(reasons.is_valid())
    malformed = zip(*(bad.column(index).to_pylist() for index in (_ID, _TEXT, _REASON)), strict=True)
    return list(malformed), table.filter(reasons.is_null())


def slices(table: pa.Table, names: Sequence[str], rows: int) -> Iterator[list[Arrival]]:
    """Yield messages in the order of their handling, about so many at a time: by key, time, ID and body.

    The rows of a micro-batch come in any order, another one in each run. Messages that differ in the body alone are in
    one slice.

    Args:
        table: The messages that `unpacked` returned.
        names: The columns of their bodies.
        rows: The least number of messages in a slice but the last one.
    """
    order = pc.sort_indices(table, [(str(index), "ascending") for index in (_KEY, _TIME, _ID)])
    ends = _ends(table.select([_KEY, _ID, _TIME]).take(order))
    start = 0
    while start < table.num_rows:
        end = int(ends[np.searchsorted(ends, min(start + rows, table.num_rows))])
        yield _in_order(table.take(order[start:end]), names)
        start = end


def _ends(table: pa.Table) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the ends of the groups of ordered rows with the same key, ID and time, which are the first columns."""
    differs = [pc.not_equal(column[1:], column[:-1]).to_numpy() for column in table.columns[: _TIME + 1]]
    return np.append(np.flatnonzero(np.any(differs, axis=0)) + 1, table.num_rows)


def _in_order(table: pa.Table, names: Sequence[str]) -> list[Arrival]:
    """Return messages that are ordered but for their bodies."""
    key, id, time, *body = (
        python_values(column) for index, column in enumerate(table.columns) if index not in (_REASON, _TEXT)
    )
    values = zip(*body, strict=True) if body else itertools.repeat((), len(key))
    messages = list(map(Arrival._make, zip(key, id, time, values, strict=True)))
    for start, end in itertools.pairwise([0, *_ends(table).tolist()]):
        if end - start > 1:
            messages[start:end] = sorted(messages[start:end], key=lambda arrival: arrival.body(names))
    return messages


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as PySpark gives them to Python: a map is a dict, also inside of other values.

    >>> python_values(pa.array([[("n", 1)], None], pa.map_(pa.string(), pa.int64())))
    [{'n': 1}, None]
    """
    values: list[Any] = column.to_pylist()
    return [_with_dicts(value, column.type) for value in values] if _has_maps(column.type) else values


def _has_maps(type: pa.DataType) -> bool:
    return pa.types.is_map(type) or any(_has_maps(type.field(index).type) for index in range(type.num_fields))


def _with_dicts(value: Any, type: pa.DataType) -> Any:
    """Return a value of Arrow with dicts in place of lists of pairs; the keys of a map do not have maps inside."""
    if value is None or not _has_maps(type):
        return value
    if pa.types.is_map(type):
        return {key: _with_dicts(one, type.item_type) for key, one in value}
    if pa.types.is_struct(type):
        return {field.name: _with_dicts(value[field.name], field.type) for field in type}
    return [_with_dicts(one, type.value_type) for one in value]


def _known(ids: pa.Array, times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the identities of IDs, and the times of messages: given, in the ID, or `NO_TIME`."""
    fields = parse_batch(ids)
    is_v1 = fields.version == VERSION_1
    in_id = np.where(is_v1 & (fields.seconds > 0), (fields.seconds.astype(np.int64) + EPOCH_UNIX) * 1_000_000, NO_TIME)
    if times.null_count:
        times = pc.coalesce(times, pa.array(in_id))
    return (identities_of_v1 if is_v1.all() else identities)(ids), times


def _malformed(
    columns: list[pa.Array], reasons: pa.Array, names: tuple[str, ...], body: tuple[int, ...]
) -> tuple[pa.Array, pa.Array]:
    """Return the reasons of malformed rows, and their JSON; NULL for a valid row.

    A row gets a reason if Python cannot represent one of the values of its body. `_shown` writes that value.
    """
    bad = reasons.is_valid().to_numpy(zero_copy_only=False)
    rows = {*np.flatnonzero(bad).tolist(), *(row for index in body for row in _unreadable(columns[index]))}
    if not rows:
        return reasons, pa.nulls(len(reasons), pa.string())
    words = reasons.to_pylist()
    texts: list[str | None] = [None] * len(words)
    for row in rows:
        texts[row] = text({name: _shown(column[row]) for name, column in zip(names, columns, strict=True)})
        words[row] = words[row] or UNREADABLE
    return pa.array(words, pa.string()), pa.array(texts, pa.string())


def _unreadable(column: pa.Array, first: int = 0) -> list[int]:
    """Return the rows whose values Python cannot represent; they are counted from ``first``."""
    try:
        # Python reads text that Arrow finds valid, and any number.
        if pa.types.is_nested(column.type) or pa.types.is_temporal(column.type):
            column.to_pylist()
        else:
            column.validate(full=True)
    except (OverflowError, ValueError):
        half = len(column) // 2
        return [*_unreadable(column[:half], first), *_unreadable(column[half:], first + half)] if half else [first]
    return []


def _shown(value: pa.Scalar) -> Any:
    """Return a value for the JSON of a malformed row: bytes for text that is not UTF-8, a number for a far time."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_struct(value.type):
            return {name: _shown(part) for name, part in value.items()}
        if pa.types.is_map(value.type):
            return [(_shown(pair["key"]), _shown(pair["value"])) for pair in value.values]
        if pa.types.is_nested(value.type):
            return [_shown(part) for part in value.values]
        return value.value if pa.types.is_temporal(value.type) else value.as_buffer().to_pybytes()
