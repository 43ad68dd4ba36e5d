"""The door for columns of IDs: a column in any carrier becomes an Arrow array, cells, or text in SQL.

`msgid.ids.checked_bytes` is the door for a single value. No other module of `msgid` looks at the type of IDs.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.ids.checked_bytes import check_several, identity, is_missing, plain
from msgid.shared.arrow_schema import UUID, says_uuid
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

WAS_TEXT: Final = (
    "if this column was text before an engine read it as a number, read it as text; else pass another column"
)
"""The cure for a column of numbers: an engine has changed or rounded the digits of IDs."""
CAST: Final = "cast it to text"
_DECIMAL_DIGITS: Final = 38
_INT64_MAX: Final = (1 << 63) - 1
_ASCII: Final = 0x80
_ALLOWED: Final = "a column of text, bytes or UUIDs"
_DROPS_ZEROS: Final = "has bytes in NumPy's type S, which drops zeros at their end: pass another type, such as V"


class UnreadColumn(ValueError):
    """A column in memory whose values are not read; the error does not name the column yet."""

    def __init__(self, reason: str, type: str = "unknown") -> None:
        super().__init__(reason)
        self.type = type


def check_ids(ids: object) -> None:
    """Raise `TypeError` if a single ID, a table, or another value that is not several IDs is passed in their place."""
    first = ids[0] if isinstance(ids, Sequence) and len(ids) else None
    if is_table(ids) or (isinstance(first, Mapping) and first):
        raise TypeError(f"ids must be IDs, got a table of type {type(ids).__name__}: pass its column of IDs")
    check_several(ids)


def is_table(value: Any) -> bool:
    """Return whether a value has named columns: a mapping, a frame, or another value that exports a stream of Arrow."""
    if isinstance(value, Mapping):
        return True
    is_stream = hasattr(value, "__arrow_c_stream__") or is_of("pandas", value)
    return is_stream and (hasattr(value, "columns") or is_of("pyarrow", value, "RecordBatchReader"))


def is_of(package: str, value: object, name: str | None = None) -> bool:
    """Return whether a value's class is one of a package, which is not imported here."""
    kind = type(value)
    return kind.__module__.partition(".")[0] == package and name in (None, kind.__name__)


# --- Columns of Python, NumPy, pandas and Polars as Arrow arrays ------------------------------------------------------


def arrow_of(values: Any) -> Any:
    """Return the values of a column as an Arrow array or chunked array: UUIDs beside text are text.

    Raises:
        UnreadColumn: if Arrow does not have the values.
        TypeError: if ``values`` is not a column.
    """
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if is_table(values):
        raise TypeError(
            f"a column must have values, got a table of type {type(values).__name__}: pass one of its columns"
        )
    check_several(values)
    if is_of("pandas", values):
        return _of_pandas(values)
    if is_of("polars", values):
        return _of_polars(values)
    if hasattr(values, "dtype") and hasattr(values, "tolist"):  # of NumPy
        if values.ndim == 1 and values.dtype.kind in "biufmM":
            mask = getattr(values, "mask", None)
            return _to_arrow(
                lambda: pa.array(getattr(values, "data", values) if mask is not None else values, mask=mask)
            )
        if values.ndim > 1 and (values.ndim, values.dtype.str) != (2, "|u1"):
            raise UnreadColumn(f"is an array of {values.dtype} with {values.ndim} dimensions: pass one of its columns")
        rows = values.tolist()  # None if masked; a row of bytes is a list of them
        if values.dtype.kind == "S" and not all(row is None or row.isascii() for row in rows):
            raise UnreadColumn(_DROPS_ZEROS)
        values = [None if None in row else bytes(row) for row in rows] if values.ndim > 1 else rows
    elif hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _to_arrow(lambda: pa.chunked_array(values))
    return _of_list([None if is_missing(value) else plain(value) for value in values])


def _of_list(values: list[Any]) -> Any:
    """Return values as an Arrow array. Text, bytes and integers of one column become text."""
    import pyarrow as pa

    types = {type(value) for value in values if value is not None}
    texts = {one for one in types if issubclass(one, str | bytes)}
    if texts and len(types) > 1:
        other = next((one for one in types if not issubclass(one, str | bytes | int)), None)
        if other is not None:
            shown = " and ".join(sorted(f"{one.__name__}" for one in types))
            raise UnreadColumn(f"has values of several types, {shown}: pass one type")
        if any(isinstance(value, int) and abs(value) > _INT64_MAX for value in values):
            raise UnreadColumn(f"has text, and integers of more than 64 bits: {WAS_TEXT}")
        values = [
            value if value is None else identity(value) if isinstance(value, bytes) and value else _text(value)
            for value in values
        ]
    return _to_arrow(lambda: pa.array(values), values)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _to_arrow(make: Callable[[], Any], values: Sequence[Any] = ()) -> Any:
    """Return the array that a function makes.

    Raises:
        UnreadColumn: if Arrow does not have the values.
    """
    import pyarrow as pa

    try:
        return make()
    except OverflowError:
        if all(value is None or isinstance(value, int) for value in values):
            # A decimal is a number for the audit too: its error has the cure.
            largest = max(abs(value) for value in values if value is not None)
            if largest < 10**_DECIMAL_DIGITS:
                return pa.array(values, pa.decimal128(_DECIMAL_DIGITS, 0))
        raise UnreadColumn(f"has integers of more than {_DECIMAL_DIGITS} digits: {CAST}") from None
    except UnicodeEncodeError:
        raise UnreadColumn("has text with half of a surrogate pair") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnreadColumn(f"cannot be a column of Arrow: {' '.join(str(error).split())}; {CAST}") from None


def _of_pandas(series: Any) -> Any:
    import pyarrow as pa

    if series.dtype.kind != "O" or str(series.dtype) != "object":
        return _to_arrow(lambda: pa.Array.from_pandas(series))
    pandas = sys.modules["pandas"]
    if pandas.api.types.infer_dtype(series, skipna=True) in ("string", "bytes"):
        return _to_arrow(lambda: pa.Array.from_pandas(series))
    return arrow_of(series.tolist())


def _of_polars(series: Any) -> Any:
    kind = str(series.dtype)
    if kind.startswith("Object") or "Int128" in kind:  # the addresses of the objects; no type of Arrow
        raise UnreadColumn(f"is of the type {kind} of Polars: {CAST}", kind)
    return _to_arrow(series.to_arrow)


def readable(array: Any) -> Any:
    """Return an Arrow array as a type that every engine has, if there is one with the same values.

    An extension type is its storage, but a UUID: its 16 bytes would be an ID of version 0. A type of a program's own,
    whose name says UUID, is that of Arrow.
    """
    import pyarrow as pa

    type = array.type
    if pa.types.is_float16(type):
        return array.cast(pa.float32())
    if pa.types.is_decimal256(type) and type.precision <= _DECIMAL_DIGITS:
        return array.cast(pa.decimal128(type.precision, type.scale))
    if isinstance(type, pa.BaseExtensionType) and type.extension_name not in (UUID, "arrow.bool8"):
        storage = array.storage if isinstance(array, pa.Array) else array.cast(type.storage_type)
        return _uuids(storage) if says_uuid(type.extension_name) else readable(storage)
    if pa.types.is_run_end_encoded(type) and isinstance(type.value_type, pa.BaseExtensionType):
        chunks = array.chunks if hasattr(array, "chunks") else [array]
        values = [readable(one.values).take(pa.array(_indexes_of_runs(one))) for one in chunks]
        return pa.chunked_array(values, None if values else pa.string())
    return array


def _uuids(storage: Any) -> Any:
    """Return the array of UUIDs whose storage is bytes; text as it is.

    Raises:
        UnreadColumn: if some bytes are not a UUID.
    """
    import pyarrow as pa

    types = pa.types
    if not (types.is_fixed_size_binary(storage.type) or types.is_binary(storage.type)):
        return readable(storage)
    try:
        return storage.cast(pa.binary(16)).cast(pa.uuid())
    except pa.ArrowInvalid:
        raise UnreadColumn(f"is of UUIDs, and some have not 16 bytes: {CAST}") from None


def _indexes_of_runs(array: Any) -> Any:
    """Return the index of the value of each row of a run-end encoded array."""
    import numpy as np

    ends = np.clip(array.run_ends.to_numpy().astype(np.int64) - array.offset, 0, len(array))
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def of_field(field: Any, array: Any) -> Any:
    """Return the array of a field as `readable` does; UUIDs if the field's metadata says so.

    PyArrow reads a type that is not registered as its storage, and leaves its name in the metadata.
    """
    import pyarrow as pa

    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode("utf-8", "replace")
    is_storage = not isinstance(array.type, pa.BaseExtensionType)
    return _uuids(array) if says_uuid(name) and is_storage else readable(array)


# --- Columns of IDs as cells and identities ---------------------------------------------------------------------------


class Cells(NamedTuple):
    """The values of a column of IDs, side by side.

    Attributes:
        data: The bytes of all values.
        offsets: Where each value starts, and at the end where the last one ends.
        is_text: Whether a value is text, and not the bytes of an ID.
        nulls: Whether each value is NULL; None if none is.
        indexes: The cell of each row, or -1 for NULL; None if each row has a cell of its own.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    is_text: bool
    nulls: NDArray[np.bool_] | None = None
    indexes: NDArray[np.int64] | None = None

    def values(self) -> Iterator[str | bytes | None]:
        """Yield the text or bytes of each cell."""
        for cell, (start, end) in enumerate(itertools.pairwise(self.offsets.tolist())):
            raw = self.data[start:end].tobytes()
            value = raw.decode("latin-1") if self.is_text else raw
            yield None if self.nulls is not None and self.nulls[cell] else value


def cells_of(ids: Any) -> list[Cells] | tuple[Any, ...]:
    """Return a column of IDs as cells, in the order of its rows; a tuple of the values if they are objects of Python.

    Raises:
        TypeError: if the column is not of text, bytes or UUIDs, or ``ids`` is one ID or a table.
    """
    check_ids(ids)
    if is_of("numpy", ids):
        return _cells_of_numpy(ids)
    if not _is_arrow(ids):
        return tuple(ids)
    _check_type(array := _exported(ids))
    return [_cells_of_arrow(chunk) for chunk in (array.chunks if hasattr(array, "chunks") else [array])]


def values_of(ids: Any) -> Iterable[Any]:
    """Return the text, bytes or other value of each ID of a column, as it was written; None for a missing one.

    Raises:
        TypeError: if the column is not of text, bytes or UUIDs, or ``ids`` is one ID or a table.
    """
    check_ids(ids)
    if is_of("numpy", ids):
        cells = _cells_of_numpy(ids)
        ids = cells if isinstance(cells, tuple) else cells[0].values()
    elif _is_arrow(ids):
        _check_type(array := _exported(ids))
        ids = array.to_pylist()
    return (None if is_missing(value) else plain(value) for value in ids)


def _is_arrow(ids: Any) -> bool:
    """Return whether a column exports Arrow; one of pandas does so, unless it has objects of Python."""
    if is_of("pandas", ids):
        return str(ids.dtype) != "object"
    return any(hasattr(ids, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__"))


def _exported(ids: Any) -> Any:
    try:
        return readable(arrow_of(ids))
    except UnreadColumn as error:
        raise TypeError(f"ids must be {_ALLOWED}; it {error}") from None


def _check_type(array: Any) -> None:
    """Raise TypeError if an Arrow array is not of text, bytes, UUIDs or NULLs."""
    import pyarrow as pa

    kind, types = array.type, pa.types
    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    known = (
        types.is_null, types.is_string, types.is_large_string, types.is_string_view, types.is_binary,
        types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary,
    )  # fmt: skip
    is_extension = isinstance(kind, pa.BaseExtensionType)
    if any(is_known(kind) for is_known in known) or (is_extension and says_uuid(kind.extension_name)):
        return
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    raise TypeError(f"ids must be {_ALLOWED}, got {kind}: {WAS_TEXT if is_number else CAST}")


def _cells_of_arrow(array: Any) -> Cells:
    import numpy as np
    import pyarrow as pa

    kind, count, types = array.type, len(array), pa.types
    if types.is_dictionary(kind):
        # Arrow cannot write out a dictionary whose rows are more than 2 GiB of text.
        indexes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return _at_indexes(_cells_of_arrow(readable(array.dictionary)), indexes)
    if types.is_run_end_encoded(kind):
        return _at_indexes(_cells_of_arrow(readable(array.values)), _indexes_of_runs(array))
    is_uuid = isinstance(kind, pa.BaseExtensionType) and kind.extension_name == UUID
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if is_uuid or types.is_null(kind):  # a UUID is not a message ID, so its text is not needed
        return Cells(np.zeros(0, np.uint8), np.zeros(count + 1, np.int64), True, nulls)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if types.is_fixed_size_binary(kind):
        data, offsets = array.buffers()[1], (np.arange(count + 1, dtype=np.int64) + array.offset) * kind.byte_width
    else:
        array = array.cast(pa.large_string() if is_text else pa.large_binary())
        _, starts, data = array.buffers()
        offsets = np.zeros(1, np.int64)
        if starts is not None and count:
            offsets = np.frombuffer(starts, np.int64)[array.offset : array.offset + count + 1]
    return Cells(np.frombuffer(data or b"", np.uint8), offsets, is_text, nulls)


def _at_indexes(cells: Cells, indexes: NDArray[np.int64]) -> Cells:
    """Return cells with an index for each row of a column; -1 is NULL."""
    import numpy as np

    return cells._replace(indexes=indexes if cells.indexes is None else np.append(cells.indexes, -1)[indexes])


def _cells_of_numpy(array: NDArray[Any]) -> list[Cells] | tuple[Any, ...]:
    import numpy as np

    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array).reshape(len(array), math.prod(array.shape[1:]))
        is_masked: NDArray[np.bool_] = np.logical_or.reduce(mask, axis=1)
        cells = _cells_of_numpy(array.data)
        if isinstance(cells, tuple):
            return tuple(None if masked else value for value, masked in zip(cells, is_masked.tolist(), strict=True))
        return [cells[0]._replace(nulls=is_masked)]
    if array.ndim == 1 and array.dtype.kind == "V" and array.dtype.names is None:
        array = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), array.dtype.itemsize)
    if array.ndim == 1 and array.dtype.kind in "OT":  # objects, or text of NumPy's StringDType
        return tuple(array)
    if array.ndim == 2 and array.dtype == np.uint8:  # noqa: PLR2004, rows and their bytes
        count, width = array.shape
        offsets = np.arange(count + 1, dtype=np.int64) * width
        return [Cells(np.ascontiguousarray(array).reshape(-1), offsets, False)]
    if array.ndim == 1 and array.dtype.kind in "SU":
        # NumPy pads text with zeros, so the text ends before the first trailing zero.
        unit = np.uint32 if array.dtype.kind == "U" else np.uint8
        count, width = len(array), array.dtype.itemsize // np.dtype(unit).itemsize
        codes = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).view(unit).reshape(count, width)
        ends = np.arange(1, width + 1)
        if unit is np.uint8 and (codes >= _ASCII).any():
            raise TypeError(f"ids must be {_ALLOWED}; it {_DROPS_ZEROS}")
        lengths = np.max(np.where(codes != 0, ends, 0), axis=1, initial=0)
        text = np.where(codes < _ASCII, codes, 0).astype(np.uint8)  # 0 is not a hex digit either
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        return [Cells(text[ends <= lengths[:, None]], offsets, True)]
    shape = f"{array.dtype}{list(array.shape)}"
    cure = f": {WAS_TEXT}" if array.ndim == 1 and array.dtype.kind in "iuf" else ""
    raise TypeError(f"ids must be a NumPy array of text, objects, or uint8 with one row per ID, got {shape}{cure}")


def identities(array: Any) -> Any:
    """Return the identities of an Arrow array of text, binary or UUIDs; NULL for a value that is missing or empty."""
    import pyarrow as pa

    return pa.array([identity(value) if value else None for value in array.to_pylist()], pa.string())


def identities_of_v1(array: Any) -> Any:
    """Return the identities of an Arrow array of version-1 IDs, as `identities` does, but faster for text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return pc.ascii_upper(array) if is_text else identities(array)


# --- Columns of IDs in the SQL of DuckDB ------------------------------------------------------------------------------


def kind_in_duck(type: str) -> str | None:
    """Return how a type of DuckDB holds IDs: ``text``, ``uuid``, ``bytes`` or ``null``; None for any other type."""
    known = {"VARCHAR": "text", "UUID": "uuid", "BLOB": "bytes", '"NULL"': "null"}
    return "text" if type.startswith("ENUM(") else known.get(type)


def is_identity_in_duck(type: str) -> bool:
    """Return whether the text of a value of a type of DuckDB is its identity."""
    return kind_in_duck(type) == "uuid"


def text_in_duck(argument: str, name: str, value: str, type: str) -> str:
    """Return the text of an ID in SQL. Bytes are an ID of their length, or printable ASCII, as in a header of Kafka.

    Args:
        argument: The argument that names the column, for the error.
        name: The column, for the error.
        value: The column in SQL.
        type: Its type of DuckDB.

    Raises:
        ValueError: if IDs of the type are not read.
    """
    kind = kind_in_duck(type)
    if kind == "text" and type == "VARCHAR":
        return value
    if kind == "bytes":
        printable = f"regexp_full_match(hex({value}), '([2-6][0-9A-F]|7[0-9A-E])*')"
        length, first = f"octet_length({value})", f"hex({value}[1:1])"
        is_id = (
            f"{length} IN (16, 28) OR ({length} IN (17, 29) AND {first} = '00') OR ({length} = 17 AND {first} = '01')"
        )
        return (
            f"CASE WHEN {is_id} THEN hex({value}) WHEN {printable} THEN decode({value}) ELSE '0x' || hex({value}) END"
        )
    if kind is not None:
        return f"CAST({value} AS VARCHAR)"
    is_number = type.endswith(("INT", "INTEGER", "FLOAT", "DOUBLE")) or type.startswith("DECIMAL")
    raise ValueError(
        f"`{argument}` must be a column of text, binary or UUIDs, got {quote(name)} of type {type}: "
        f"{WAS_TEXT if is_number else CAST}"
    )
