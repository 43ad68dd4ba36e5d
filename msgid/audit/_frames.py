"""Read: tables in memory, lists of IDs, and Arrow files as relations of DuckDB; only columns in use are exported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from msgid.audit.duck import quoted
from msgid.audit.parts import Part, Source, Unreadable, plain_error, source_of
from msgid.ids.carriers import UnreadColumn, arrow_of, check_ids, is_of, is_table, of_field, readable
from msgid.shared.arrow_schema import UUID, arrow_types
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from msgid.audit.paths import File


class _Frame(NamedTuple):
    """A table in memory: the names of its columns, and a function that returns one as an Arrow array."""

    names: list[str]
    column: Callable[[int], Any]


def frame_source(duck: Any, table: Any, columns: Iterable[str] | None = None) -> Source:
    """Return a table in memory, or a list of IDs, as a source.

    Args:
        duck: The connection to DuckDB.
        table: Arrow table; DataFrame of pandas or Polars; DuckDB relation; another table that exports a stream of
            Arrow; dict of columns; list of dicts, one per row; list, array or series of IDs, which is the column
            ``id``.
        columns: The columns in use, if they are known. The other ones are not exported. Default: all columns.

    Raises:
        TypeError: if ``table`` is not a table.
    """
    wanted = None if columns is None else set(columns)
    frame = _frame_of(table)
    if frame is None:
        return _stream_source(duck, table, wanted)
    return _source_of_columns(duck, "the table", frame, wanted)


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a table in memory, without exporting a value.

    Raises:
        TypeError: if ``table`` is not a table.
    """
    frame = _frame_of(table)
    if frame is not None:
        return frame.names
    return list(map(str, table.schema.names if isinstance(table, pa.RecordBatchReader) else table.columns))


def ids_source(duck: Any, ids: Iterable[Any]) -> Source:
    """Return IDs in any container as a source with the column ``id``.

    Raises:
        TypeError: if ``ids`` is one ID, or a table.
    """
    check_ids(ids)
    return _source_of_columns(duck, "the IDs", _Frame(["id"], lambda index: arrow_of(ids)), None)


def _frame_of(table: Any) -> _Frame | None:
    """Return a table in memory by its columns; None for one whose rows come as a stream."""
    if isinstance(table, pa.Table | pa.RecordBatch):
        return _Frame(table.schema.names, lambda index: of_field(table.schema.field(index), table.column(index)))
    if isinstance(table, Mapping):
        columns = list(table.values())
        return _Frame([str(name) for name in table], lambda index: arrow_of(columns[index]))
    if is_of("pandas", table) and hasattr(table, "columns"):
        return _Frame([str(name) for name in table.columns], lambda index: arrow_of(table.iloc[:, index]))
    if is_of("polars", table, "DataFrame"):
        return _Frame(list(table.columns), lambda index: arrow_of(table.to_series(index)))
    several = isinstance(table, pa.Array | pa.ChunkedArray | Sequence) or is_of("numpy", table, "ndarray")
    several = several and not isinstance(table, str | bytes | bytearray | memoryview)
    if several and len(table) and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for row in table for name in row))
        return _Frame([str(name) for name in names], lambda index: arrow_of([row.get(names[index]) for row in table]))
    if several or (hasattr(table, "to_numpy") and hasattr(table, "name")):
        return _Frame(["id"], lambda index: arrow_of(table))
    if is_table(table):
        return None
    hint = "; audit_file reads a file" if isinstance(table, str | os.PathLike) else ""
    hint = "; collect it" if is_of("polars", table) else hint
    raise TypeError(f"table must be a table of Arrow, pandas or polars, got {quote(table)}{hint}")


# --- Arrow arrays as relations of DuckDB ------------------------------------------------------------------------------


def _source_of_columns(duck: Any, name: str, frame: _Frame, wanted: set[str] | None) -> Source:
    arrays: dict[str, Any] = {}
    refused: dict[str, str] = {}
    kinds = dict.fromkeys(frame.names, "unknown")
    for index, column in enumerate(frame.names):
        if frame.names.index(column) != index:
            refused[column] = f"it has several columns {quote(column)}"
        elif wanted is None or column in wanted:
            try:
                arrays[column] = readable(frame.column(index))
            except UnreadColumn as error:
                refused[column], kinds[column] = f"the column {quote(column)} {error}", error.type
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{quote(column)} {len(array):,}" for column, array in arrays.items())
        raise ValueError(f"cannot read {name}: its columns must have one length, got {shown}")
    return _registered(duck, name, kinds, arrays, refused)


def _registered(
    duck: Any, name: str, types: dict[str, str], arrays: Mapping[str, Any], refused: dict[str, str]
) -> Source:
    """Return Arrow arrays as a source; a column without one is not in use."""
    relation = duck.new_name("frame")
    own = {column: f"column{index}" for index, column in enumerate(arrays)}
    refused = dict(refused)
    no_column = pa.table({"row": pa.nulls(0)})
    try:
        duck.register(relation, pa.table([*arrays.values()], names=[*own.values()]) if arrays else no_column)
        described = dict(row[:2] for row in duck.rows(f"DESCRIBE {relation}"))
    except (duckdb.Error, pa.ArrowException):
        described = {}
        for column, array in arrays.items():
            type = _type_in_duck(duck, array)
            if type is None:
                refused[column] = f"the column {quote(column)} is of {array.type}: cast it to text"
            else:
                described[own[column]] = type
        kept = {own[column]: array for column, array in arrays.items() if own[column] in described}
        duck.register(relation, pa.table(kept) if kept else no_column)
    types = types | {column: described.get(own[column], str(array.type)) for column, array in arrays.items()}
    for column in types:
        if column not in arrays:
            refused.setdefault(column, f"the column {quote(column)} is not in use")
    values = {column: quoted(one) for column, one in own.items()}
    return source_of(name, [Part(types, values, relation, refused)], is_cheap=True)


def _type_in_duck(duck: Any, array: Any) -> str | None:
    """Return the type of DuckDB for an Arrow array; None if it does not have one."""
    probe = duck.new_name("probe")
    try:
        duck.register(probe, pa.table({"probe": array.slice(0, 0)}))
        return str(duck.rows(f"DESCRIBE {probe}")[0][1])
    except (duckdb.Error, pa.ArrowException):
        return None


class _Stream:
    """Rows that DuckDB reads from a stream, which may be opened anew for each scan.

    Args:
        duck: The connection to DuckDB.
        open: Returns a reader of batches, with a ``schema``.
        reader: The first reader.
        wanted: The columns in use, or None for all columns.
    """

    def __init__(self, duck: Any, open: Callable[[], Any], reader: Any, wanted: set[str] | None) -> None:
        self._open, self._first = open, reader
        self.names: list[str] = list(reader.schema.names)
        self.refused: dict[str, str] = {}
        self._indexes: list[int] = []
        fields = []
        self._given = list(reader.schema)
        for index, field in enumerate(self._given):
            name = field.name
            if self.names.index(name) != index:
                self.refused[name] = f"it has several columns {quote(name)}"
            elif wanted is None or name in wanted:
                empty = _empty(field)
                if empty is None or _type_in_duck(duck, empty) is None:
                    self.refused[name] = f"the column {quote(name)} is of {field.type}: cast it to text"
                else:
                    self._indexes.append(index)
                    fields.append((f"column{index}", empty.type))
        self._schema = pa.schema(fields or [("row", pa.null())])

    def reader(self) -> Any:
        """Return a reader of the columns in use, as DuckDB takes them."""
        reader, self._first = self._first or self._open(), None

        def batches() -> Iterator[Any]:
            for batch in reader:
                arrays = [of_field(self._given[index], batch.column(index)) for index in self._indexes] or [
                    pa.nulls(batch.num_rows)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

        return pa.RecordBatchReader.from_batches(self._schema, batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)

    def part(self, duck: Any, relation: str) -> Part:
        """Return the columns of a relation with the rows of the stream."""
        described = dict(row[:2] for row in duck.rows(f"DESCRIBE {relation}"))
        columns = {self.names[index]: f"column{index}" for index in self._indexes}
        types = {name: described[columns[name]] if name in columns else "unknown" for name in self.names}
        not_in_use = {name: f"the column {quote(name)} is not in use" for name in self.names if name not in columns}
        return Part(types, {name: quoted(one) for name, one in columns.items()}, relation, not_in_use | self.refused)


def _empty(field: Any) -> Any:
    """Return an empty array of the type that a field has here, or None if Arrow does not make one."""
    try:
        return of_field(field, pa.nulls(0, field.type))
    except pa.ArrowException:
        return None


def _stream_source(duck: Any, table: Any, wanted: set[str] | None) -> Source:
    """Return a table that exports its rows as a stream as a source: the rows are read once, into a temporary table."""
    refused: dict[str, str] = {}
    names = column_names(table)
    chosen = table
    if hasattr(table, "project") and hasattr(table, "types"):  # a relation of DuckDB
        refused = _not_exported(table)
        usable = [name for name in names if name not in refused and (wanted is None or name in wanted)]
        chosen = table.project(", ".join(map(quoted, usable)) or "true AS row")
    elif wanted is not None and hasattr(table, "select"):
        chosen = table.select([name for name in names if name in wanted])
    try:
        reader = pa.RecordBatchReader.from_stream(chosen)
        stream = _Stream(duck, lambda: reader, reader, wanted)
        relation = duck.new_name("frame")
        duck.register(f"{relation}_stream", stream.reader())
        duck.run(f"CREATE TEMP TABLE {relation} AS SELECT * FROM {relation}_stream")
    except (pa.ArrowException, duckdb.Error) as error:
        raise ValueError(f"cannot read the table: {plain_error(error)}") from None
    part = stream.part(duck, relation)
    for name in names:
        if name not in part.types:
            part.types[name] = "unknown"
            part.refused[name] = refused.get(name, f"the column {quote(name)} is not in use")
    return source_of("the table", [part], is_cheap=True)


def _not_exported(relation: Any) -> dict[str, str]:
    """Return the columns of a relation of DuckDB that it exports with other values: integers of 128 bits."""
    types = zip(relation.columns, map(str, relation.types), strict=True)
    return {
        name: f"the column {quote(name)} is of {type}: cast it to text" for name, type in types if "HUGEINT" in type
    }


# --- Arrow files ------------------------------------------------------------------------------------------------------


def arrow_files(duck: Any, name: str, files: Sequence[File]) -> Source:
    """Return Arrow files as a source; they are mapped to memory.

    Raises:
        Unreadable: if a file is damaged.
    """
    parts = []
    for file in files:
        try:
            parts.append(_arrow_part(duck, file))
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = _wide_integers(file) or " ".join(str(error).split())
            raise Unreadable(reason if len(files) == 1 else f"{quote(file.shown)}: {reason}") from None
    return source_of(name, parts, is_cheap=True)


def _arrow_part(duck: Any, file: File) -> Part:
    def batches() -> Any:
        reader = pa.ipc.open_file(pa.memory_map(file.path))
        all_batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        return pa.RecordBatchReader.from_batches(reader.schema, all_batches)

    memory = pa.memory_map(file.path)
    reader = pa.ipc.open_file(memory)
    is_mapped = True
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        batch.validate(full=True)  # DuckDB does not check text
        is_mapped = is_mapped and _is_mapped(memory, batch)
    if is_mapped:
        table = reader.read_all()
        arrays = {field.name: of_field(field, table.column(index)) for index, field in enumerate(table.schema)}
        (part,) = _registered(duck, file.shown, dict.fromkeys(arrays, "unknown"), arrays, {}).parts
        return part
    stream = _Stream(duck, batches, batches(), None)  # the rows are decompressed in each scan
    relation = duck.new_name("frame")
    duck.register(relation, stream)
    return stream.part(duck, relation)


def _is_mapped(memory: Any, batch: Any) -> bool:
    """Return whether the values of a batch are those in the mapped file, and not a decompressed copy."""
    memory.seek(0)
    whole = memory.read_buffer()
    buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None and buffer.size]
    return all(whole.address <= buffer.address < whole.address + whole.size for buffer in buffers)


def _wide_integers(file: File) -> str | None:
    """Return the reason if a file has columns of 128-bit integers of Polars, which no other program reads."""
    with open(file.path, "rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - _FOOTER_LIMIT))
        data = stream.read()
    size = int.from_bytes(data[-10:-6], "little")
    wide = [name for name, type in arrow_types(data[-10 - size : -10], is_footer=True).items() if type != UUID]
    if not wide:
        return None
    return f"the column {quote(wide[0])} is of 128-bit integers, which only Polars reads: cast it to text"


_FOOTER_LIMIT: Final = 1 << 24
