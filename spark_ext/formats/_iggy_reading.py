"""The options of ``format("iggy")``, and the rows of a part of a segment."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from msgid.iggy._wire import AUTO, name_of
from msgid.iggy.following import Part, has_head
from msgid.iggy.parts import read_part
from spark_ext.formats._iggy_files import OpenSegment, SegmentFolder, first_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from msgid.iggy.table import Decoded

__all__ = ["LOST", "Options", "Piece", "read_piece"]

LOST: Final = "lost: "
"""How the reason starts of a row whose bytes are gone."""

_POISONED: Final = "poisoned"
_SPLIT: Final = 128 << 20
_ORIGINAL_MAX: Final = 16 << 20
"""How much of what cannot be decoded is kept in its row."""


class Piece(InputPartition):
    """A part of a segment: the messages that start in it, or the report that it is gone."""

    def __init__(self, part: Part) -> None:
        super().__init__(tuple(part))
        self.part = part


class Options(NamedTuple):
    """The options, read and checked."""

    path: str
    layout: Any
    split: int
    max_bytes: int | None
    max_files: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Return the options of a query.

        Raises:
            ValueError: if an option is missing or has a wrong value.
        """
        path, layout = options.get("path"), options.get("layout")
        if not path:
            raise ValueError("format iggy needs a path: load(path), or the option 'path'")
        layout = name_of(layout or AUTO, auto=True)
        split, max_bytes, max_files = (
            _count(options, name, unit)
            for name, unit in (
                ("splitBytes", "bytes"),
                ("maxBytesPerTrigger", "bytes"),
                ("maxFilesPerTrigger", "files"),
            )
        )
        return cls(path, layout, split or _SPLIT, max_bytes, max_files)

    @property
    def folder(self) -> SegmentFolder:
        """The segments of the path."""
        return SegmentFolder(self.path, self.layout)


def _count(options: Mapping[str, str], name: str, unit: str) -> int | None:
    given = options.get(name)
    if given is not None and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise ValueError(f"{name} must be a number of {unit} above 0, got {given!r}")
    return None if given is None else int(given)


def read_piece(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Return the rows of a partition; Spark's own partition, without a file, has 0 rows."""
    return _rows_of(options, partition.part) if isinstance(partition, Piece) else iter(())


def _rows_of(options: Options, part: Part) -> Iterator[pa.RecordBatch]:
    """Read a part of a segment a chunk at a time; a part that is gone is one row that says so."""
    folder = options.folder
    file = folder.file(part.name)
    with ExitStack() as stack:
        segment = None
        if not part.lost:
            with suppress(FileNotFoundError):
                segment = stack.enter_context(folder.open(part.name))
        if segment is None or not has_head(part.head, segment.bytes_at):
            how = "deleted" if segment is None and not part.lost else "deleted or begun anew"
            reason = f"{LOST}bytes {part.start} to {part.stop} of the segment, which was {how} before they were read"
            yield _poisoned(file, part.start, reason, None)
            return
        place = segment.boundary_to(part.start, part.first, part.end)
        if place < part.start:
            left = min(part.stop - part.start, _ORIGINAL_MAX)
            reason = f"invalid message: no record can be followed past byte {place}"
            yield _poisoned(file, part.start, reason, segment.bytes_at(part.start, left))
            return
        yield from _messages(options, part, file, segment, place)


def _messages(options: Options, part: Part, file: str, segment: OpenSegment, place: int) -> Iterator[pa.RecordBatch]:
    first = first_offset(part.name) if place == 0 else 0
    upgrade = options.layout == AUTO
    if place >= part.stop:
        return
    for found in read_part(
        segment.bytes_at, place, part.stop, part.end, segment.layout, first_offset=first, upgrade=upgrade
    ):
        place += found.length
        if found.table.num_rows:
            yield _rows(file, found)
        if found.error is not None:
            left, reason = part.stop - place, str(found.error)
            if left > _ORIGINAL_MAX:
                reason += f" ({left} bytes are left in the part; the first {_ORIGINAL_MAX} are kept here)"
            yield _poisoned(file, place, reason, segment.bytes_at(place, min(left, _ORIGINAL_MAX)))


def _columns() -> pa.Schema:
    import pyarrow as pa

    from msgid.iggy.table import schema

    outer = [pa.field("file", pa.string()), pa.field("position", pa.int64())]
    return pa.schema([*outer, *schema(), pa.field("reason", pa.string()), pa.field("original", pa.binary())])


def _rows(name: str, found: Decoded) -> pa.RecordBatch:
    """Add the columns that are the source's own."""
    import pyarrow as pa

    rows = found.table.num_rows
    file = pa.repeat(pa.scalar(name, pa.string()), rows)
    reasons, originals = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.binary())
    columns = dict(zip(found.table.schema.names, found.table.columns, strict=True))
    if found.malformed:
        wrong = {message.row: message for message in found.malformed}
        reasons = pa.array([str(wrong[row].error) if row in wrong else None for row in range(rows)], pa.string())
        originals = pa.array([wrong[row].original if row in wrong else None for row in range(rows)], pa.binary())
        states = columns["state"].to_pylist()
        columns["state"] = pa.array([_POISONED if row in wrong else states[row] for row in range(rows)], pa.string())
    outer = [file, pa.array(found.positions)]
    return pa.RecordBatch.from_arrays([*outer, *columns.values(), reasons, originals], schema=_columns())


def _poisoned(name: str, place: int, reason: str, original: bytes | None) -> pa.RecordBatch:
    import pyarrow as pa

    row = {"file": name, "position": place, "state": _POISONED, "reason": reason, "original": original}
    return pa.RecordBatch.from_pylist([row], _columns())
