"""The options of ``format("iggy")``, and the rows of a part of a segment."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from msgid.iggy._gaps import next_record, reach
from msgid.iggy._marks import Part, has_head
from msgid.iggy._records.id_texts import id_texts
from msgid.iggy._superseded import Superseded
from msgid.iggy._wire import AUTO, name_of
from msgid.iggy.parts import read_part
from msgid.messages import MessageState
from spark_ext.formats._iggy_files import OpenSegment, SegmentFolder
from spark_ext.formats._segment_paths import segment_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from msgid.iggy.table import Decoded

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

LOST: Final = "lost: "
"""How the reason starts of a row whose bytes are gone."""

SUPERSEDED: Final = "superseded: the server gave the offset, or a lower one, to a later message of the file"
"""The reason of a message that a server wrote before it was killed, and does not serve."""

_NOWHERE: Final = "before the segment, which no segment has: they were deleted before they were read"
_POISONED, _UNAVAILABLE = str(MessageState.POISONED), str(MessageState.UNAVAILABLE)
_SPLIT: Final = 128 << 20
_WAIT: Final = 60
"""How many seconds a stream looks for a folder that is away."""
_ORIGINAL_MAX: Final = 16 << 20
"""How much of what cannot be decoded is in one row."""


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
    columns: tuple[str, ...]
    wait: int

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
        split, max_bytes, max_files, wait = (
            _count(options, name, unit)
            for name, unit in (
                ("splitBytes", "bytes"),
                ("maxBytesPerTrigger", "bytes"),
                ("maxFilesPerTrigger", "files"),
                ("waitSeconds", "seconds"),
            )
        )
        names = _names(options.get("columns"))
        return cls(path, layout, split or _SPLIT, max_bytes, max_files, names, wait or _WAIT)

    @property
    def folder(self) -> SegmentFolder:
        """The segments of the path."""
        return SegmentFolder(self.path, self.layout)


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


def read_piece(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Return the rows of a partition; Spark's own partition, without a file, has 0 rows."""
    if isinstance(partition, Piece):
        for rows in _rows_of(options, partition.part):
            yield rows.select(options.columns)


def _rows_of(options: Options, part: Part) -> Iterator[pa.RecordBatch]:
    """Read a part of a segment a chunk at a time; a part that is gone is one row that says so."""
    folder = options.folder
    file = folder.file(part.name)
    if part.offsets is not None:
        yield _poisoned(file, None, f"{LOST}offsets {part.offsets[0]} to {part.offsets[1]} {_NOWHERE}", None)
        return
    with ExitStack() as stack:
        segment = None
        if not part.lost:
            segment = _opened(folder, part.name, options.wait, stack)
        if segment is None or not has_head(part.head, segment.bytes_at):
            how = "deleted" if segment is None and not part.lost else "deleted or begun anew"
            yield _lost(file, part.start, part.stop, how)
            return
        if segment.size < part.stop:
            yield _lost(file, max(segment.size, part.start), part.stop, "cut off")
            part = part._replace(stop=segment.size, end=segment.size)
        if part.start < part.stop:
            yield from _messages(options, part, file, segment)


def _opened(folder: SegmentFolder, name: str, wait: int, stack: ExitStack) -> OpenSegment | None:
    """Return a segment, None if it is gone; wait if the whole folder is away, so that nothing in it counts as lost."""
    for _ in range(2):
        with suppress(FileNotFoundError):
            return stack.enter_context(folder.open(name))
        folder.wait(wait)
    return None


def _messages(options: Options, part: Part, file: str, segment: OpenSegment) -> Iterator[pa.RecordBatch]:
    """Read messages and gaps from the first record of a part to that of the next part."""
    whole, stop = segment.until(part.end), part.stop
    place, layout = reach(whole, part.start, part.first, waits=False)
    superseded = Superseded(segment.until(segment.size), place)
    while part.start <= place < stop:
        failed = None
        for found in read_part(
            segment.bytes_at, place, stop, part.end, layout,
            first_offset=(segment.first_offset or 0) if place == 0 else 0, upgrade=options.layout == AUTO,
        ):  # fmt: skip
            if found.table.num_rows:
                yield _rows(file, found, superseded.among(found, place + found.length))
            place, failed = place + found.length, found.error
        if failed is None:
            return
        next_part = reach(whole, part.stop, part.first, waits=False)[0]
        stop = next_part if next_part >= part.stop else part.end
        gap = place
        place, layout = next_record(whole, gap + 1, layout) or (stop, layout)
        yield from _gap(file, segment, gap, min(place, stop), str(failed))


def _gap(file: str, segment: OpenSegment, start: int, stop: int, reason: str) -> Iterator[pa.RecordBatch]:
    """Yield rows with all bytes of a gap."""
    for place in range(start, stop, _ORIGINAL_MAX):
        end = min(place + _ORIGINAL_MAX, stop)
        shown = reason if (start, stop) == (place, end) else f"{reason} (bytes {place} to {end} of {start} to {stop})"
        yield _poisoned(file, place, shown, segment.bytes_at(place, end - place))


def _lost(file: str, start: int, stop: int, how: str) -> pa.RecordBatch:
    reason = f"{LOST}bytes {start} to {stop} of the segment, which was {how} before they were read"
    return _poisoned(file, start, reason, None)


def _schema() -> pa.Schema:
    import pyarrow as pa

    from msgid.iggy.table import schema

    own = {"file": pa.string(), "source": pa.string(), "stream": pa.string(), "topic": pa.string()}
    own |= {"partition": pa.int32(), "segment": pa.int64(), "position": pa.int64(), "id_text": pa.string()}
    own |= {"reason": pa.string(), "original": pa.binary()}
    of_message = schema()
    return pa.schema([pa.field(name, own.get(name) or of_message.field(name).type) for name in COLUMNS])


def _rows(file: str, found: Decoded, superseded: Any | None) -> pa.RecordBatch:
    """Add the columns that are the source's own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, types = found.table.num_rows, _schema()
    reasons, originals = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.binary())
    columns = dict(zip(found.table.schema.names, found.table.columns, strict=True))
    if found.malformed:
        wrong = {message.row: message for message in found.malformed}
        reasons = pa.array([str(wrong[row].error) if row in wrong else None for row in range(rows)], pa.string())
        originals = pa.array([wrong[row].original if row in wrong else None for row in range(rows)], pa.binary())
        states = columns["state"].to_pylist()
        columns["state"] = pa.array([_POISONED if row in wrong else states[row] for row in range(rows)], pa.string())
    if superseded is not None:
        reasons = pc.if_else(superseded, pc.coalesce(reasons, pa.scalar(SUPERSEDED)), reasons)
        columns["state"] = pc.if_else(
            superseded, pc.coalesce(columns["state"], pa.scalar(_UNAVAILABLE)), columns["state"]
        )
    for name, value in _of_file(file).items():
        columns[name] = pa.repeat(pa.scalar(value, types.field(name).type), rows)
    columns |= {"position": pa.array(found.positions), "id_text": id_texts(columns["id"])}
    columns |= {"reason": reasons, "original": originals}
    return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], schema=types)


def _of_file(file: str) -> dict[str, str | int | None]:
    """Return the columns that all rows of a file have in common."""
    return {"file": file, **segment_names(file)._asdict()}


def _poisoned(file: str, place: int | None, reason: str, original: bytes | None) -> pa.RecordBatch:
    import pyarrow as pa

    row = {**_of_file(file), "position": place, "state": _POISONED, "reason": reason, "original": original}
    return pa.RecordBatch.from_pylist([row], _schema())
