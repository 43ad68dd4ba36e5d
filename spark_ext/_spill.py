"""The size of a slice of rows, and values on the local disk, for rows that do not fit into the memory of a worker."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_SAMPLES: Final = 64
"""The number of rows of each slice whose order is known when the ranges are chosen."""


class Limit(NamedTuple):
    """The size of a slice."""

    rows: int
    bytes: int

    def share(self, rows: int, size: int) -> float:
        """Return how many slices some rows fill."""
        return max(rows / self.rows, size / self.bytes)

    def samples(self, rows: int, size: int) -> range:
        """Return the places of rows that stand for some rows: large rows count more."""
        return range(0, rows, max(1, int(rows / (_SAMPLES * self.share(rows, size)))))


Place = tuple[int, int]
"""The first byte and the length of a value in a `Spill`."""


class Spill:
    """Values in a file without a name, in Spark's local folder: the system removes it when the process ends."""

    def __init__(self) -> None:
        folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
        self._file: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115  # `close` closes it
            dir=folders[os.getpid() % len(folders)] or None
        )
        self._end = 0

    def write(self, raw: bytes) -> Place:
        """Add a value, and return its place."""
        self._file.seek(self._end)
        self._file.write(raw)
        start = self._end
        self._end += len(raw)
        return start, len(raw)

    def read(self, place: Place) -> bytes:
        """Return a value."""
        self._file.seek(place[0])
        return self._file.read(place[1])

    def table(self, places: Iterable[Place]) -> pa.Table:
        """Return the rows of values that `written` made."""
        import pyarrow as pa

        return pa.Table.from_batches([written_rows(self.read(place)) for place in places])

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def written(batch: pa.RecordBatch) -> bytes:
    """Return rows as a packed value, which `written_rows` reads."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def written_rows(raw: Any) -> pa.RecordBatch:
    """Return the rows of one packed value."""
    import pyarrow as pa

    with pa.ipc.open_stream(raw) as reader:
        return reader.read_next_batch()
