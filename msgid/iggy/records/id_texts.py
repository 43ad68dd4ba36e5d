"""The 16 bytes of many IDs as text at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

ID_LENGTH: Final = 16
_GROUPS: Final = (8, 12, 16, 20)
"""The numbers of hex digits before the hyphens of a UUID."""


def id_texts(ids: pa.Array) -> pa.Array:
    """Return the text of each ID, as `msgid.iggy.id_text` does.

    Args:
        ids: Binary values of 16 bytes, or NULL.

    Returns:
        Text of the same length; NULL for NULL.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.null_count == len(ids):
        return pa.nulls(len(ids), pa.string())
    fixed = ids.cast(pa.binary(ID_LENGTH))
    raw = np.frombuffer(fixed.buffers()[1], np.uint8)[ID_LENGTH * fixed.offset :][: ID_LENGTH * len(fixed)]
    pairs = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
    digits = pairs[raw].view(np.uint8).reshape(len(fixed), 2 * ID_LENGTH)
    characters = np.insert(digits, _GROUPS, ord("-"), axis=1)
    rows, width = characters.shape
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * width)
    texts = pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(np.ascontiguousarray(characters)))
    return pc.if_else(ids.is_valid(), texts, pa.scalar(None, pa.string())) if ids.null_count else texts
