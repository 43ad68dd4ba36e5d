"""The options of ``format("iggy")``, and the rows of a part of a segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from msgid.iggy.wire import AUTO, name_of
from msgid.messages import MessageState
from spark_ext.formats._iggy_files import first_offset, open_part, points_of, segment_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

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

_OPTIONS: Final = ("path", "layout", "splitBytes", "columns", "maxFilesPerTrigger")
_NAMES: Final = {name.lower() for name in _OPTIONS}
"""Spark compares the names of options without regard to case, and passes unknown ones on."""
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
            ValueError: if an option is missing, unknown or has a wrong value.
        """
        unknown = next((name for name in options if name.lower() not in _NAMES), None)
        if unknown is not None:
            raise ValueError(f"an option of format iggy must be one of {', '.join(_OPTIONS)}, got {unknown!r}")
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


def read_part(options: Options, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; Spark's own partition, without a file, has 0 rows."""
    if not isinstance(partition, Part):
        return
    from msgid.iggy.table import read_tables

    path, start, stop = partition.path, partition.start, partition.stop
    with open_part(path, start, stop) as file:
        for decoded in read_tables(
            file, partition.layout, base=start, length=stop - start,
            first_offset=first_offset(path) or 0, upgrade=options.layout == AUTO,
        ):  # fmt: skip
            rows = _rows(path, decoded) if decoded.error is None else _torn(path, decoded)
            yield rows.select(options.columns)


def _schema() -> pa.Schema:
    import pyarrow as pa

    from msgid.iggy.table import schema

    own = {"file": pa.string(), "source": pa.string(), "stream": pa.string(), "topic": pa.string()}
    own |= {"partition": pa.int32(), "segment": pa.int64(), "position": pa.int64(), "id_text": pa.string()}
    own |= {"reason": pa.string(), "original": pa.binary()}
    of_message = schema()
    return pa.schema([pa.field(name, own.get(name) or of_message.field(name).type) for name in COLUMNS])


def _rows(file: str, decoded: Decoded) -> pa.RecordBatch:
    """Add the columns that are the source's own."""
    import pyarrow as pa

    from msgid.iggy.records.id_texts import id_texts

    rows, types = decoded.table.num_rows, _schema()
    reasons, originals = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.binary())
    columns = dict(zip(decoded.table.schema.names, decoded.table.columns, strict=True))
    if decoded.malformed:
        wrong = {message.row: message for message in decoded.malformed}
        reasons = pa.array([str(wrong[row].error) if row in wrong else None for row in range(rows)], pa.string())
        originals = pa.array([wrong[row].original if row in wrong else None for row in range(rows)], pa.binary())
        states = columns["state"].to_pylist()
        columns["state"] = pa.array([_POISONED if row in wrong else states[row] for row in range(rows)], pa.string())
    for name, value in _of_file(file).items():
        columns[name] = pa.repeat(pa.scalar(value, types.field(name).type), rows)
    columns |= {"position": pa.array(decoded.positions), "id_text": id_texts(columns["id"])}
    columns |= {"reason": reasons, "original": originals}
    return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], schema=types)


def _of_file(file: str) -> dict[str, str | int | None]:
    """Return the columns that all rows of a file have in common."""
    return {"file": file, **segment_names(file)._asdict()}


def _torn(file: str, decoded: Decoded) -> pa.RecordBatch:
    import pyarrow as pa

    row = {"position": decoded.position, "state": _POISONED, "reason": str(decoded.error), "original": decoded.torn}
    return pa.RecordBatch.from_pylist([{**_of_file(file), **row}], _schema())
