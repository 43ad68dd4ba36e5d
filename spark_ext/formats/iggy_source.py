"""``spark.read.format("iggy")``: the messages of Iggy's segment files, in batch and as a stream, and a writer of them.

The driver lists files, and divides large ones at points that their index names. Bytes that are not messages fail no
job: they are a row with the ``reason`` and, in ``original``, the bytes. Reading goes on at the next record whose
checksum holds.

A stream reads closed segments: those that a later one of their folder follows. Its offset is the number of the last
segment that was read, for each folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from msgid.iggy._wire import AUTO, LAYOUTS, name_of
from msgid.messages import MessageState
from spark_ext._compat import STREAM_SOURCE, needs
from spark_ext.formats._iggy_files import first_offset, open_part, points_of, segment_names, segments
from spark_ext.formats._iggy_writer import IggyWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from msgid.iggy.table import Decoded
    from spark_ext.formats._iggy_files import Segment

COLUMNS: Final = {
    "file": "string",
    "source": "string",
    "stream": "string",
    "topic": "string",
    "partition": "int",
    "segment": "bigint",
    "position": "bigint",
    "offset": "bigint",
    "state": "string",
    "timestamp": "timestamp",
    "id": "binary",
    "id_text": "string",
    "checksum": "bigint",
    "headers": "map<string, struct<kind: string, value: binary>>",
    "payload": "binary",
    "origin_timestamp": "timestamp",
    "checksum_ok": "boolean",
    "layout": "string",
    "reason": "string",
    "original": "binary",
}
"""The columns and their types in Spark."""

_POISONED: Final = str(MessageState.POISONED)
_SPLIT: Final = 128 << 20


class Part(InputPartition):
    """A part of a segment, from a record's start to that of the next part."""

    def __init__(self, path: str, start: int, layout: Any, stop: int) -> None:
        super().__init__((path, start, layout, stop))
        self.path, self.start, self.layout, self.stop = path, start, layout, stop


class Options(NamedTuple):
    """The options, read and checked."""

    path: str
    layout: Any
    split: int
    max_files: int | None
    columns: tuple[str, ...]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Return the options of a query.

        Raises:
            ValueError: if an option is missing or has a wrong value.
        """
        path = options.get("path")
        if not path:
            raise ValueError("format iggy needs a path: load(path), or the option 'path'")
        layout = name_of(options.get("layout") or AUTO, auto=True)
        split, files = _count(options, "splitBytes", "bytes"), _count(options, "maxFilesPerTrigger", "files")
        return cls(path, layout, split or _SPLIT, files, _names(options.get("columns")))

    def parts(self, segment: Segment) -> list[Part]:
        """Return the parts of a segment."""
        points = points_of(segment, self.layout, self.split)
        stops = [*(point.position for point in points[1:]), segment.size]
        return [Part(segment.path, *point, stop) for point, stop in zip(points, stops, strict=True)]


def _count(options: Mapping[str, str], name: str, unit: str) -> int | None:
    given = options.get(name)
    if given is not None and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise ValueError(f"{name} must be a number of {unit} above 0, got {given!r}")
    return None if given is None else int(given)


def _names(given: str | None) -> tuple[str, ...]:
    """Return the columns that the option ``columns`` names."""
    if given is None:
        return tuple(COLUMNS)
    names = tuple(name.strip() for name in given.split(","))
    if len(set(names)) < len(names) or not set(names) <= set(COLUMNS):
        raise ValueError(f"columns must be some of {', '.join(COLUMNS)}, each once, got {given!r}")
    return names


class IggyDataSource(DataSource):
    """Iggy's segment files.

    Each row has the ``file``, the names ``stream``, ``topic``, ``partition`` and ``segment`` in its path, and the
    ``position`` of the message in the file. ``source`` is the name of the log, for `position_id`. ``id_text`` is the ID
    as `msgid.iggy.id_text` writes it.

    Options:

    - ``path``: a file or folder, or a URL of a file system that Arrow knows. Files in a folder are segments if their
      names are 20 digits and ``.log``; so the whole folder of a server can be read.
    - ``layout``: one of `msgid.iggy.LAYOUTS`. Default: found by checksum. The writer needs it.
    - ``splitBytes``: the size in bytes from which a segment with an index is read in parts. Default: 128 MB.
    - ``columns``: names of columns, separated by commas. Default: all. Other columns are not sent from the reader to
      Spark, which takes a large part of the time of a query.
    - ``maxFilesPerTrigger``: how many segments a micro-batch of a stream reads. Default: all that are closed.

    A stream reads each closed segment once. A segment is closed if a later one is in its folder, so the last segment of
    each partition is not read.

    Torn bytes are rows with ``state`` ``poisoned``, a ``reason`` and the bytes in ``original``, up to 16 MiB in each.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "iggy"

    def schema(self) -> str:
        """Return the columns, those of the option ``columns`` if it is set."""
        return ", ".join(f"`{name}` {COLUMNS[name]}" for name in Options.of(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return IggyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        needs('a stream of format("iggy")', STREAM_SOURCE)
        from spark_ext.formats._iggy_stream import IggyStreamReader

        return IggyStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of segment files."""
        options = Options.of(self.options)
        if options.layout == AUTO:
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)} to write files: pass option('layout', ...)")
        return IggyWriter(options.path, options.layout, overwrite)


class IggyReader(DataSourceReader):
    """Read the present segments."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of all segments."""
        return [part for segment in segments(self.options.path) for part in self.options.parts(segment)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_part(self.options, partition)


def read_part(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; Spark's own partition, without a file, has 0 rows."""
    if not isinstance(partition, Part):
        return
    from msgid.iggy.table import read_tables

    path, start, stop = partition.path, partition.start, partition.stop
    with open_part(path, start, stop) as file:
        for found in read_tables(
            file, partition.layout, base=start, length=stop - start,
            first_offset=first_offset(path) or 0, upgrade=options.layout == AUTO,
        ):  # fmt: skip
            rows = _rows(path, found) if found.error is None else _torn(path, found)
            yield rows.select(options.columns)


def _schema() -> pa.Schema:
    import pyarrow as pa

    from msgid.iggy.table import schema

    own = {"file": pa.string(), "source": pa.string(), "stream": pa.string(), "topic": pa.string()}
    own |= {"partition": pa.int32(), "segment": pa.int64(), "position": pa.int64(), "id_text": pa.string()}
    own |= {"reason": pa.string(), "original": pa.binary()}
    of_message = schema()
    return pa.schema([pa.field(name, own.get(name) or of_message.field(name).type) for name in COLUMNS])


def _rows(file: str, found: Decoded) -> pa.RecordBatch:
    """Add the columns that are the source's own."""
    import pyarrow as pa

    from msgid.iggy._records.id_texts import id_texts

    rows, types = found.table.num_rows, _schema()
    reasons, originals = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.binary())
    columns = dict(zip(found.table.schema.names, found.table.columns, strict=True))
    if found.malformed:
        wrong = {message.row: message for message in found.malformed}
        reasons = pa.array([str(wrong[row].error) if row in wrong else None for row in range(rows)], pa.string())
        originals = pa.array([wrong[row].original if row in wrong else None for row in range(rows)], pa.binary())
        states = columns["state"].to_pylist()
        columns["state"] = pa.array([_POISONED if row in wrong else states[row] for row in range(rows)], pa.string())
    for name, value in _of_file(file).items():
        columns[name] = pa.repeat(pa.scalar(value, types.field(name).type), rows)
    columns |= {"position": pa.array(found.positions), "id_text": id_texts(columns["id"])}
    columns |= {"reason": reasons, "original": originals}
    return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], schema=types)


def _of_file(file: str) -> dict[str, str | int | None]:
    """Return the columns that all rows of a file have in common."""
    return {"file": file, **segment_names(file)._asdict()}


def _torn(file: str, found: Decoded) -> pa.RecordBatch:
    import pyarrow as pa

    row = {"position": found.position, "state": _POISONED, "reason": str(found.error), "original": found.torn}
    return pa.RecordBatch.from_pylist([{**_of_file(file), **row}], _schema())
