"""The rows of a bucket in slices, so that a worker needs the memory of a slice for a micro-batch of any size.

The rows of a bucket stay in memory up to a limit. Above it, they go to a file on the local disk. The operator takes
them from there in ranges of its own order, each about as large as the limit. A range needs the memory, not all rows.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

from spark_ext._spill import Spill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd

    from spark_ext._spill import Limit, Place


class Arrived:
    """The packed values of a bucket in a micro-batch, with their heads; in a file if they exceed a slice.

    Args:
        frames: The packed values, as Spark passes them.
        head_bytes: The number of bytes in the head of a row.
        limit: The size of a slice.
    """

    def __init__(self, frames: Iterable[pd.DataFrame], head_bytes: int, limit: Limit) -> None:
        self._head_bytes = head_bytes
        self.limit = limit
        self._held: list[tuple[bytes, bytes]] = []
        self._places: list[tuple[Place, Place]] = []
        self.spill: Spill | None = None
        """The file with the values; None if they are in memory."""
        self.rows = self.bytes = 0
        for frame in frames:
            for head, rows in zip(frame["head"], frame["rows"], strict=True):
                if head:
                    self._add(head, rows)

    def _add(self, head: bytes, rows: bytes) -> None:
        self.rows += self.rows_of(head)
        self.bytes += len(head) + len(rows)
        self._held.append((head, rows))
        if self.spill is None and self.limit.share(self.rows, self.bytes) > 1:
            self.spill = Spill()
        if self.spill is not None:
            self._places += [(self.spill.write(head), self.spill.write(rows)) for head, rows in self._held]
            self._held = []

    def rows_of(self, head: bytes) -> int:
        """Return the number of rows of a packed value with this head."""
        return len(head) // self._head_bytes

    def heads(self) -> Iterator[bytes]:
        """Yield the heads of the packed values."""
        if self.spill is None:
            yield from (head for head, _ in self._held)
        else:
            yield from map(self.spill.read, (head for head, _ in self._places))

    def values(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the packed values with their heads."""
        if self.spill is None:
            yield from self._held
        else:
            for head, rows in self._places:
                yield self.spill.read(head), self.spill.read(rows)

    def groups(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield the packed values with their heads in lists of about a slice each."""
        group: list[tuple[bytes, bytes]] = []
        rows = size = 0
        for head, packed in self.values():
            group.append((head, packed))
            rows += self.rows_of(head)
            size += len(head) + len(packed)
            if self.limit.share(rows, size) >= 1:
                yield group
                group, rows, size = [], 0, 0
        if group:
            yield group

    def close(self) -> None:
        """Delete the file."""
        if self.spill is not None:
            self.spill.close()


def ranges(samples: list[Any], slices: float) -> list[Any]:
    """Return the first value of each range but the first, so that the ranges have about equally many samples.

    >>> ranges([5, 1, 4, 2, 3, 0], 3)
    [2, 4]
    """
    ordered, count = sorted(samples), math.ceil(slices)
    return [ordered[number * len(ordered) // count] for number in range(1, count)]


def range_of(firsts: Sequence[Any], value: Any) -> int:
    """Return the range of a value, counted from 0."""
    return bisect.bisect_right(firsts, value)
