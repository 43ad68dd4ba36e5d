"""`parse_batch`: parse many IDs from texts, Arrow or NumPy into columns of fields."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids._native import native
from msgid.ids.carriers import cells_of
from msgid.ids.checked_bytes import id_bytes
from msgid.shared.validate import check_installed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from msgid.ids.carriers import Cells

__all__ = ["IdColumns"]

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
        ids: An iterable of values as `msgid.parse` accepts them, such as an `IdBatch`; a column of PyArrow, Polars or
            pandas, or another one that exports Arrow, of text, binary or UUIDs in any encoding; or a NumPy array of
            text (``U`` or ``S``), of bytes (``V``), of objects, or of ``uint8`` with one row of bytes per ID. A masked
            element is NULL.

    Returns:
        The columns. An invalid value or NULL raises no error; its ``valid`` is False. So is that of a UUID, which is
        not a message ID.

    Raises:
        TypeError: if the column has another type, such as numbers, or ``ids`` is a table or a single text or bytes.

    >>> import msgid
    >>> msgid.parse_batch(msgid.generate_batch(1000).to_arrow()).valid.all()
    np.True_
    """
    check_installed("parse_batch", "arrow", "numpy")
    cells = cells_of(ids)
    if isinstance(cells, tuple):
        return _parse_objects(cells)
    import numpy as np

    parts = [_parse_cells(chunk) for chunk in cells] or [_empty(0)]
    return parts[0] if len(parts) == 1 else IdColumns(*map(np.concatenate, zip(*parts, strict=True)))


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


def _parse_cells(cells: Cells) -> IdColumns:
    import numpy as np

    columns = _read_rows(cells.data, cells.offsets, cells.is_text)
    if cells.nulls is not None:  # the data may have any bytes in the place of a NULL
        for column in columns:
            column[cells.nulls] = 0
    if cells.indexes is None:
        return columns
    parts = [columns, _empty(1)]  # the last row is that of NULL
    return IdColumns(*(np.concatenate(pair)[cells.indexes] for pair in zip(*parts, strict=True)))


def _read_rows(data: NDArray[np.uint8], offsets: NDArray[np.int64], is_hex: bool) -> IdColumns:
    """Parse the IDs at ``data[offsets[i]:offsets[i + 1]]``, as hex digits or as bytes."""
    if native is None:
        cells = (data[start:end].tobytes() for start, end in itertools.pairwise(offsets.tolist()))
        return _parse_objects(tuple(cell.decode("ascii", "replace") if is_hex else cell for cell in cells))
    columns = _empty(len(offsets) - 1)
    native.read_rows(data, offsets, is_hex, *columns)
    return columns
