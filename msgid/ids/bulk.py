"""`parse_batch`: parse many IDs from texts, Arrow or NumPy into columns of fields."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from msgid import layout
from msgid._validate import INT32_MAX, check_installed
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import check_several, id_bytes
from msgid.ids._native import native

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_ASCII: Final = 0x80
_DTYPES: Final = {
    "version": "uint8",
    "node": "uint64",
    "pid": "uint16",
    "seconds": "uint32",
    "sequence": "uint32",
    "valid": "bool",
}


class IdColumns(NamedTuple):
    """The fields of many IDs: one NumPy array per field, one element per ID.

    ``valid`` is True for every valid ID of any version, and ``version`` is the version of that ID. The other fields
    belong to version 1; they are 0 for a version-0 ID and for an invalid value.

    >>> import msgid
    >>> columns = msgid.parse_batch(["0156F7E71C361B21BC024CCDBE00000007", "no id"])
    >>> columns.sequence.tolist(), columns.valid.tolist()
    ([7, 0], [True, False])
    """

    version: NDArray[np.uint8]
    node: NDArray[np.uint64]
    pid: NDArray[np.uint16]
    seconds: NDArray[np.uint32]
    sequence: NDArray[np.uint32]
    valid: NDArray[np.bool_]

    def to_arrow(self) -> pa.RecordBatch:
        """Return the columns as an Arrow record batch. Needs PyArrow."""
        import pyarrow as pa

        return pa.RecordBatch.from_arrays([pa.array(column) for column in self], names=list(self._fields))


def parse_batch(ids: Iterable[Any]) -> IdColumns:
    """Parse many IDs at once. Needs NumPy.

    Args:
        ids: An iterable of values as `msgid.parse` accepts them, such as an `IdBatch`; an Arrow array or chunked array
            of text or binary; or a NumPy array of text (``U`` or ``S``), of bytes (``V``), of objects, or of ``uint8``
            with one row of bytes per ID. A masked element is NULL.

    Returns:
        The columns. An invalid value or NULL raises no error; its ``valid`` is False.

    Raises:
        TypeError: if the Arrow or NumPy array has another type, or ``ids`` is a single text or bytes.

    >>> import msgid
    >>> msgid.parse_batch(msgid.generate_batch(1000).to_arrow()).valid.all()
    np.True_
    """
    check_installed("parse_batch", "arrow", "numpy")
    module = type(ids).__module__.partition(".")[0]
    if module == "pyarrow":
        return _parse_arrow(ids)
    if module == "numpy":
        return _parse_numpy(cast("NDArray[Any]", ids))
    check_several(ids)
    return _parse_objects(tuple(ids))


_MOST_COMBINED: Final = INT32_MAX
"""The most bytes of text that Arrow can combine from several chunks."""


def _empty(count: int) -> IdColumns:
    import numpy as np

    return IdColumns(*(np.zeros(count, dtype) for dtype in _DTYPES.values()))


def _parse_objects(ids: tuple[Any, ...]) -> IdColumns:
    columns = _empty(len(ids))
    rows = range(len(ids)) if native is None else native.read_texts(ids, *columns)
    for row in rows:
        try:
            raw = id_bytes(ids[row])
        except InvalidMessageId:
            continue
        columns.valid[row] = True
        if raw[0] == layout.VERSION_1 and len(raw) == layout.ID_LENGTH:
            columns.version[row] = layout.VERSION_1
            columns.node[row], columns.pid[row], columns.seconds[row], columns.sequence[row] = layout.unpack(raw)
    return columns


def _parse_arrow(array: Any) -> IdColumns:
    import numpy as np
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        if array.nbytes > _MOST_COMBINED:
            parts = [_parse_arrow(chunk) for chunk in array.chunks]
            return IdColumns(*map(np.concatenate, zip(*parts, strict=True)))
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        # Arrow cannot write out a dictionary whose rows are more than 2 GiB of text. The fields of IDs are small.
        parts = [_parse_arrow(array.dictionary), _empty(1)]  # the last row is that of NULL
        places = array.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        return IdColumns(*(np.concatenate(pair)[places] for pair in zip(*parts, strict=True)))
    kind, count = array.type, len(array)
    is_hex = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        data, offsets = array.buffers()[1], (np.arange(count + 1, dtype=np.int64) + array.offset) * width
    elif is_hex or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        array = array.cast(pa.large_string() if is_hex else pa.large_binary())
        _, starts, data = array.buffers()
        offsets = np.zeros(1, np.int64)
        if starts is not None and count:
            offsets = np.frombuffer(starts, np.int64)[array.offset : array.offset + count + 1]
    elif pa.types.is_null(kind):
        return _empty(count)
    else:
        raise TypeError(f"ids must be an Arrow array of text or binary, got {kind}")
    columns = _read_rows(np.frombuffer(data or b"", np.uint8), offsets, is_hex)
    if array.null_count:  # the buffer may hold any bytes in the place of a NULL
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        for column in columns:
            column[nulls] = 0
    return columns


def _parse_numpy(array: NDArray[Any]) -> IdColumns:
    import numpy as np

    if isinstance(array, np.ma.MaskedArray):
        columns = _parse_numpy(array.data)
        is_masked = np.ma.getmaskarray(array).reshape(len(array), math.prod(array.shape[1:])).any(axis=1)
        return IdColumns(*(np.where(is_masked, column.dtype.type(0), column) for column in columns))
    if array.ndim == 1 and array.dtype.kind == "V" and array.dtype.names is None:
        array = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), array.dtype.itemsize)
    if array.ndim == 1 and array.dtype.kind == "O":
        return _parse_objects(tuple(array))
    if array.ndim == 2 and array.dtype == np.uint8:  # noqa: PLR2004, rows and their bytes
        count, width = array.shape
        return _read_rows(np.ascontiguousarray(array).reshape(-1), np.arange(count + 1, dtype=np.int64) * width, False)
    if array.ndim == 1 and array.dtype.kind in "SU":
        # NumPy pads text with zeros, so the text ends before the first trailing zero.
        unit = np.uint32 if array.dtype.kind == "U" else np.uint8
        count, width = len(array), array.dtype.itemsize // np.dtype(unit).itemsize
        codes = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).view(unit).reshape(count, width)
        places = np.arange(1, width + 1)
        lengths = np.max(np.where(codes != 0, places, 0), axis=1, initial=0)
        text = np.where(codes < _ASCII, codes, 0).astype(np.uint8)  # 0 is not a hex digit either
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        return _read_rows(text[places <= lengths[:, None]], offsets, True)
    shape = f"{array.dtype}{list(array.shape)}"
    raise TypeError(f"ids must be a NumPy array of text, objects, or uint8 with one row per ID, got {shape}")


def _read_rows(data: NDArray[np.uint8], offsets: NDArray[np.int64], is_hex: bool) -> IdColumns:
    """Parse the IDs at ``data[offsets[i]:offsets[i + 1]]``, as hex digits or as bytes."""
    if native is None:
        cells = (data[start:end].tobytes() for start, end in itertools.pairwise(offsets.tolist()))
        return _parse_objects(tuple(cell.decode("ascii", "replace") if is_hex else cell for cell in cells))
    columns = _empty(len(offsets) - 1)
    native.read_rows(data, offsets, is_hex, *columns)
    return columns
