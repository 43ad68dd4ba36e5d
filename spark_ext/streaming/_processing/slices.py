"""The messages of a bucket in slices: ranges of keys, or of the messages of a key in the order of their handling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from spark_ext._spill import Limit, written
from spark_ext.streaming._processing.codec import input_text
from spark_ext.streaming._processing.packing import BODY, as_rows, good_rows, malformed_rows, unpacked
from spark_ext.streaming._slices import range_of, ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from spark_ext._spill import Place, Spill
    from spark_ext.streaming._processing.packing import Malformed, Rows
    from spark_ext.streaming._slices import Arrived

SLICE: Final = Limit(50_000, 16 << 20)
"""The rows of a bucket that are handled at once."""
_TOO_LARGE: Final = 2
"""A range of more slices is divided again."""

_Order = tuple[Any, ...]


class _Stored(NamedTuple):
    """The rows of a range, in a file."""

    places: list[Place]
    slices: float
    """The number of slices that they fill."""


def slices(arrived: Arrived, names: Sequence[str]) -> Iterator[tuple[list[Malformed], Rows | None]]:
    """Yield the malformed rows and the messages of a bucket, some at a time.

    A key whose messages fill several slices is in successive ones, in the order of `in_order`.

    Args:
        arrived: The packed values of the bucket.
        names: The columns of the messages' bodies.
    """
    spill = arrived.spill
    if spill is None:
        table = unpacked(rows for _, rows in arrived.values())
        yield malformed_rows(table), as_rows(good_rows(table))
        return
    limit = arrived.limit
    for table in _tables(arrived):
        malformed = malformed_rows(table)
        if malformed:
            yield malformed, None

    def messages() -> Iterator[pa.Table]:
        return map(good_rows, _tables(arrived))

    for stored in _divided(messages, _by_key, spill, limit):
        if stored.slices <= _TOO_LARGE:
            yield [], as_rows(spill.table(stored.places))
            continue

        # Many messages of a key have one time and one ID.
        def same(places: list[Place] = stored.places) -> Iterator[pa.Table]:
            return (spill.table([place]) for place in places)

        for part in _divided(same, lambda table, numbers: _by_body(table, numbers, names), spill, limit):
            yield [], as_rows(spill.table(part.places))


def _tables(arrived: Arrived) -> Iterator[pa.Table]:
    """Yield the rows of a bucket in tables of at most a slice of rows."""
    for group in arrived.groups():
        table = unpacked(rows for _, rows in group).combine_chunks()
        for first in range(0, table.num_rows, arrived.limit.rows):
            yield table[first : first + arrived.limit.rows]


def _divided(
    tables: Callable[[], Iterable[pa.Table]],
    order_of: Callable[[pa.Table, Iterable[int]], list[_Order]],
    spill: Spill,
    limit: Limit,
) -> Iterator[_Stored]:
    """Write rows to a file in ranges of about a slice each, and yield the ranges in their order.

    Args:
        tables: Returns the rows, each time the same.
        order_of: Returns what orders rows of a table with these numbers.
        spill: The file.
        limit: The size of a slice.
    """
    samples: list[_Order] = []
    total, first = 0.0, 0
    for table in tables():
        total += limit.share(table.num_rows, table.nbytes)
        some = limit.samples(table.num_rows, table.nbytes)
        samples += order_of(table.take(pa.array(some)), [first + place for place in some])
        first += table.num_rows
    firsts = ranges(samples, total)
    stored = [_Stored([], 0.0) for _ in range(len(firsts) + 1)]
    first = 0
    for table in tables():
        orders = order_of(table, range(first, first + table.num_rows))
        numbers = np.fromiter((range_of(firsts, order) for order in orders), np.intp, table.num_rows)
        ends = np.cumsum(np.bincount(numbers, minlength=len(stored))).tolist()
        (batch,) = table.take(pa.array(np.argsort(numbers, kind="stable"))).combine_chunks().to_batches() or [None]
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                part = batch.slice(start, end - start)
                places, slices = stored[number]
                places.append(spill.write(written(part)))
                stored[number] = _Stored(places, slices + limit.share(part.num_rows, part.nbytes))
        first += table.num_rows
    yield from (one for one in stored if one.places)


def _by_key(table: pa.Table, numbers: Iterable[int]) -> list[_Order]:
    """Return the keys, and the order of the messages of a key."""
    rows = as_rows(table.select(list(range(BODY))))
    return list(zip(rows.keys, rows.times, rows.ids, strict=True))


def _by_body(table: pa.Table, numbers: Iterable[int], names: Sequence[str]) -> list[_Order]:
    """Return the same order with the texts of the bodies; equal messages keep the order of their arrival."""
    rows = as_rows(table)
    bodies = zip(*rows.body, strict=True) if rows.body else [()] * table.num_rows
    texts = (input_text(dict(zip(names, values, strict=True))) for values in bodies)
    orders = zip(_by_key(table, numbers), texts, numbers, strict=True)
    return [(*order, text, number) for order, text, number in orders]
