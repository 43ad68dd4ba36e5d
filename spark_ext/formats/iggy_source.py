"""``spark.read.format("iggy")``: the messages of Iggy's segment files, in batch and as a stream, and a writer of them.

The driver lists files and plans parts by their bytes. The task that reads a part finds the first record in it. Bytes
that cannot be decoded fail no job: the remainder of their part is one row with the ``reason`` and, in ``original``, its
bytes.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from msgid.iggy._wire import AUTO, name_of
from msgid.iggy.following import Part, divided, from_json, has_head, latest, parts, to_json
from msgid.iggy.parts import read_part
from spark_ext.formats._iggy_files import OpenSegment, SegmentFolder, first_offset, segments
from spark_ext.formats._iggy_writer import IggyWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from msgid.iggy.table import Decoded

__all__ = ["SCHEMA", "IggyDataSource", "segments"]

SCHEMA: Final = (
    "file string, position bigint, offset bigint, state string, timestamp timestamp, id binary, checksum bigint, "
    "headers map<string, struct<kind: string, value: binary>>, payload binary, origin_timestamp timestamp, "
    "checksum_ok boolean, layout string, reason string, original binary"
)

_POISONED: Final = "poisoned"
_SPLIT: Final = 128 << 20
_ORIGINAL_MAX: Final = 16 << 20
"""How much of what cannot be decoded is kept in its row."""


class IggyDataSource(DataSource):
    """Iggy's segment files.

    Options:

    - ``path``: a file or folder, or a URL of a file system that Arrow knows.
    - ``layout``: one of `msgid.iggy.LAYOUTS`. Default: found by checksum; the writer writes ``m45``.
    - ``splitBytes``: the size in bytes from which a task reads a part of a segment. Default: 128 MB.
    - ``maxBytesPerTrigger`` and ``maxFilesPerTrigger``: about how much a micro-batch of a stream reads. A batch reads
      one message at least. Default: all that is there.

    A stream reads each message once. A segment that was deleted, or begun anew under its name, before it was read is
    one row with ``state`` ``poisoned`` and a ``reason`` that starts with ``lost:`` and has the range of bytes.
    """

    @classmethod
    def name(cls) -> str:
        """Give the name for ``format``."""
        return "iggy"

    def schema(self) -> str:
        """Give the columns; see `SCHEMA`."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Give what reads the files that are there."""
        return IggyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Give what reads the files that are there and will be, and what is added to them."""
        return IggyStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Give what writes messages as segment files."""
        options = Options.of(self.options)
        return IggyWriter(options.path, options.layout, overwrite)


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


class IggyReader(DataSourceReader):
    """Read the segments that are there."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of all segments; their boundaries are found by the tasks that read them."""
        seen = sorted(self.options.folder.seen())
        return [Piece(part) for file in seen for part in divided(file.name, 0, file.size, self.options.split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        if not isinstance(partition, Piece):  # Spark's own, where there is no file
            return iter(())
        return read_part_of(self.options, partition.part)


class IggyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read the segments that are there, and what is added to them; `msgid.iggy.following` has the rules."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)
        self.bound: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset of a reader that has read nothing."""
        return to_json({})

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options ask for."""
        if self.options.max_bytes is not None:
            return ReadMaxBytes(self.options.max_bytes)
        return ReadAllAvailable() if self.options.max_files is None else ReadMaxFiles(self.options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take what is there now as all that the query reads."""
        self.bound = {seen.name: seen.size for seen in self.options.folder.seen()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return how far each segment is read by the next batch."""
        folder = self.options.folder
        seen = folder.seen()
        if self.bound is not None:
            seen = [one._replace(size=min(one.size, self.bound[one.name])) for one in seen if one.name in self.bound]
        with ExitStack() as stack:

            def opened(name: str) -> Any:
                try:
                    return stack.enter_context(folder.open(name))
                except FileNotFoundError:
                    return None

            free = isinstance(limit, ReadAllAvailable)
            max_bytes = None if free else self.options.max_bytes
            max_files = None if free else self.options.max_files
            end = latest(
                from_json(start, folder.inner),
                seen,
                _one_by_one(opened, stack),
                max_bytes=max_bytes,
                max_files=max_files,
            )
        return start if end is None else to_json(end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the parts between two offsets, and those that are lost."""
        folder = self.options.folder

        def resumed(name: str, place: int) -> int:
            with folder.open(name) as segment:
                return segment.boundary_to(place, 0, place)

        states = from_json(start, folder.inner), from_json(end, folder.inner)
        return [Piece(part) for part in parts(*states, self.options.split, resumed)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        if not isinstance(partition, Piece):  # Spark's own, where there is no file
            return iter(())
        return read_part_of(self.options, partition.part)


def _one_by_one(opened: Callable[[str], Any], stack: ExitStack) -> Callable[[str], Any]:
    """Return what opens one segment after another: each is closed when the next is opened."""

    def one(name: str) -> Any:
        stack.close()
        return opened(name)

    return one


def read_part_of(options: Options, part: Part) -> Iterator[pa.RecordBatch]:
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
            reason = f"lost: bytes {part.start} to {part.stop} of the segment, which was {how} before they were read"
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
                reason += f" ({left} bytes are left in the part, of which the first {_ORIGINAL_MAX} are kept here)"
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
