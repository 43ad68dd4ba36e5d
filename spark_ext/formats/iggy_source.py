"""``spark.read.format("iggy")``: the messages of Iggy's segment files, in batch and as a stream, and a writer of them.

A file is one partition, or, where it is large, several, cut between messages. What cannot be decoded fails no job: the
remainder of its file is one row with the ``reason`` and, in ``original``, its bytes.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

from msgid._validate import unix_micros
from msgid.iggy._wire import AUTO, facts_of, name_of
from msgid.iggy.parts import detect_file, read_part, split_points, walk
from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from msgid.iggy.message import Message
    from msgid.iggy.table import Decoded

__all__ = ["SCHEMA", "IggyDataSource", "segments"]

SCHEMA: Final = (
    "file string, position bigint, offset bigint, state string, timestamp timestamp, id binary, checksum bigint, "
    "headers map<string, struct<kind: string, value: binary>>, payload binary, origin_timestamp timestamp, "
    "checksum_ok boolean, layout string, reason string, original binary"
)

_ENDING: Final = ".log"
_POISONED: Final = "poisoned"
_ORIGINAL_MAX: Final = 16 << 20
"""How much of what cannot be decoded is kept in its row."""


class IggyDataSource(DataSource):
    """Iggy's segment files.

    Options: ``path``, a file or folder, or an URL of a filesystem that Arrow knows; ``layout``, one of
    `msgid.iggy.LAYOUTS` (default: found by checksum; the writer writes ``m45``); ``splitBytes``, from which size on a
    file is read in several pieces (128 MB).
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
        return IggyWriter(self.options, overwrite)


class Piece(InputPartition):
    """A part of a file, from one boundary between messages to another."""

    def __init__(self, file: str, start: int, stop: int) -> None:
        super().__init__((file, start, stop))
        self.file = file
        self.start = start
        self.stop = stop


class Options(NamedTuple):
    """The options, read and checked."""

    path: str
    layout: Any
    split: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Read them; ValueError names what is wrong."""
        path, layout, split = (options.get(name) for name in ("path", "layout", "splitBytes"))
        if not path:
            raise ValueError("format iggy needs a path: load(path), or the option 'path'")
        layout = name_of(layout or AUTO, auto=True)
        if split is not None and not (split.isascii() and split.isdigit() and int(split) > 0):
            raise ValueError(f"splitBytes must be a number of bytes, not {split!r}")
        return cls(path, layout, int(split or 128 << 20))


def segments(path: str) -> list[tuple[str, int]]:
    """Give the segment files of a path or URL, with their sizes, in the order of their names.

    Raises:
        FileNotFoundError: there is nothing at the path.
    """
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    found = files.get_file_info(inner)
    if found.type == pafs.FileType.NotFound:
        raise FileNotFoundError(f"no file or folder {path}")
    if found.type == pafs.FileType.File:
        return [(path, found.size)]
    base = path.rstrip("/")
    inside = files.get_file_info(pafs.FileSelector(inner, recursive=True))
    names = [
        (f"{base}/{info.path[len(inner.rstrip('/')) + 1 :]}", info.size)
        for info in inside
        if info.type == pafs.FileType.File and info.path.endswith(_ENDING)
    ]
    return sorted(names)


def _reading(file: Any) -> Callable[[int, int], bytes]:
    """Return what reads bytes of an open file."""

    def read(position: int, length: int) -> bytes:
        return bytes(file.read_at(length, position))

    return read


def _layout_of(read: Callable[[int, int], bytes], size: int, name: str, layout: Any) -> Any:
    """Return the layout that is asked for, or else that of a file's first record; ``auto`` if that is not known."""
    if layout != AUTO:
        return layout
    return detect_file(read, size, first_offset=_first_offset(name)).layout or AUTO


def _first_offset(name: str) -> int:
    """Return the first offset of a segment, which is its file's name; 0 for another name."""
    stem = name.rpartition("/")[2].removesuffix(_ENDING)
    return int(stem) if stem.isascii() and stem.isdigit() else 0


class IggyReader(DataSourceReader):
    """Reads what is there."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Give a piece a file; several of one that is larger than ``splitBytes``."""
        pieces = []
        for name, size in segments(self.options.path):
            cuts: list[int] = []
            if size > self.options.split:
                files, path = filesystem(name)
                with files.open_input_file(path) as file:
                    layout, every = self.options.layout, self.options.split
                    cuts = split_points(_reading(file), size, every, layout=layout).points[1:]
            edges = [0, *cuts, size]
            pieces += [Piece(name, start, stop) for start, stop in itertools.pairwise(edges)]
        return pieces

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Give a piece's messages as Arrow batches."""
        if not isinstance(partition, Piece):  # Spark's own, where there is no file
            return iter(())
        return read_piece(partition, self.options.layout)


class IggyStreamReader(DataSourceStreamReader):
    """Reads what is added: new files, and messages at the end of those there are.

    Half a message at the end of a file is left until the rest of it is there, or until a later segment is: then it is
    broken. An offset is how far each file has been read.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def initialOffset(self) -> dict[str, int]:
        """Nothing has been read."""
        return {}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit | None = None) -> dict[str, int]:
        """Say how far each file can be read by now, from how far it has been."""
        found = segments(self.options.path)
        reached = dict(start)
        for place, (name, size) in enumerate(found):
            done = start.get(name, 0)
            if size <= done:
                continue
            files, path = filesystem(name)
            with files.open_input_file(path) as file:
                read, asked = _reading(file), self.options.layout
                layout = _layout_of(read, size, name, asked)
                stop = walk(read, done, size, layout, upgrade=asked == AUTO).end
            folder = name.rpartition("/")[0]
            closed = place + 1 < len(found) and found[place + 1][0].rpartition("/")[0] == folder
            reached[name] = size if closed else stop
        return reached

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Give a piece for each file that has grown."""
        return [
            Piece(name, start.get(name, 0), stop) for name, stop in sorted(end.items()) if stop > start.get(name, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Give a piece's messages as Arrow batches."""
        if not isinstance(partition, Piece):  # Spark's own, where there is no file
            return iter(())
        return read_piece(partition, self.options.layout)


def read_piece(piece: Piece, layout: Any) -> Iterator[pa.RecordBatch]:
    """Read a piece a chunk at a time."""
    files, path = filesystem(piece.file)
    with files.open_input_file(path) as file:
        place, read = piece.start, _reading(file)
        known = _layout_of(read, file.size(), piece.file, layout)
        first = _first_offset(piece.file) if place == 0 else 0
        for found in read_part(read, place, piece.stop, piece.stop, known, first_offset=first, upgrade=layout == AUTO):
            place += found.length
            if found.table.num_rows:
                yield _rows(piece.file, found)
            if found.error is not None:
                yield _poisoned(piece.file, place, str(found.error), file, piece.stop)


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


def _poisoned(name: str, place: int, reason: str, file: Any, stop: int) -> pa.RecordBatch:
    import pyarrow as pa

    left = stop - place
    if left > _ORIGINAL_MAX:
        reason += f" ({left} bytes are left in the file, the first {_ORIGINAL_MAX} of which are kept here)"
    row = {"file": name, "position": place, "state": _POISONED, "reason": reason}
    return pa.RecordBatch.from_pylist([{**row, "original": file.read_at(min(left, _ORIGINAL_MAX), place)}], _columns())


class Written(WriterCommitMessage):
    """What a task has written: the file, under another name as yet, and the name it is to have."""

    def __init__(self, partial: str | None, name: str | None) -> None:
        self.partial = partial
        self.name = name


class IggyWriter(DataSourceArrowWriter):
    """Writes a segment file a task, named by its first offset, 20 digits; they appear when all are written."""

    def __init__(self, options: Mapping[str, str], overwrite: bool) -> None:
        self.options = Options.of(options)
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write a task's rows under a name of its own."""
        import uuid

        from msgid.iggy.log import encode

        layout: Any = "m45" if self.options.layout == AUTO else self.options.layout
        files, path = filesystem(self.options.path)
        files.create_dir(path, recursive=True)
        partial, first = f"{path}/.{uuid.uuid4().hex}.partial", None
        with files.open_output_stream(partial) as file:
            for batch in iterator:
                for row in batch.to_pylist():
                    message = message_of(row, layout)
                    first = message.offset if first is None else first
                    file.write(encode(message, layout))
        if first is None:
            files.delete_file(partial)
            return Written(None, None)
        return Written(partial, f"{path}/{first:020d}{_ENDING}")

    def commit(self, messages: list[Any]) -> None:
        """Give the files their names, once all tasks are done."""
        import pyarrow.fs as pafs

        files, path = filesystem(self.options.path)
        written = [message for message in messages if message is not None and message.name is not None]
        names = [message.name for message in written]
        taken = [info.path for info in files.get_file_info(names) if info.type != pafs.FileType.NotFound]
        twice = [name for name in names if names.count(name) > 1]
        if twice or (taken and not self.overwrite):
            self.abort(messages)
            raise FileExistsError(f"there would be two segments {(twice or taken)[0]}: sort and part rows by offset")
        if self.overwrite:
            for info in files.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
                if info.path.endswith(_ENDING):
                    files.delete_file(info.path)
        for message in written:
            files.move(message.partial, message.name)

    def abort(self, messages: list[Any]) -> None:
        """Remove what was written under other names."""
        files, _ = filesystem(self.options.path)
        for message in messages:
            if message is not None and message.partial is not None:
                files.delete_file(message.partial)


def message_of(row: dict[str, Any], layout: Any) -> Message:
    """Make a message of a row; what is not there has the value that `msgid.iggy.Message.new` gives it."""
    from dataclasses import replace

    from msgid.iggy.headers import NAMES, checked
    from msgid.iggy.message import Message

    timestamp = _micros(row.get("timestamp")) or 0
    headers = dict(row.get("headers") or [])
    made = Message.new(
        row.get("payload") or b"",
        id=int.from_bytes(row["id"], "little"),
        offset=row.get("offset") or 0,
        timestamp=timestamp,
        state=row.get("state"),
        headers={key: checked(NAMES[held["kind"]], held["value"], None) for key, held in headers.items()},
        origin_timestamp=_micros(row.get("origin_timestamp")),
        layout=layout,
    )
    given = row.get("checksum")
    # Only the old layouts have a checksum that holds in every file: later ones cover the place of the message.
    return made if given is None or not facts_of(layout).has_state else replace(made, checksum=given)


def _micros(moment: Any) -> int | None:
    """Return microseconds since 1970 of a datetime or a number."""
    from datetime import datetime

    return unix_micros(moment) if isinstance(moment, datetime) else moment
