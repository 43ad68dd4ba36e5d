"""The 16 bytes of an Iggy message's ID as text: which ones are UUIDs, and many IDs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ID_LENGTH: Final = 16
UUID_VERSIONS: Final = (4, 7)
"""The UUID versions that servers and clients make: 4 up to 0.4.0 and from 0.6.0 on, 7 in between."""
UUID_VARIANT: Final = 0b10

_VERSION_1: Final = b"01"
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
    raw = raw.reshape(len(fixed), ID_LENGTH)
    is_uuid = np.isin(raw[:, 6] >> 4, UUID_VERSIONS) & (raw[:, 8] >> 6 == UUID_VARIANT)
    if is_uuid.all():
        texts = _uuids(raw)
    elif not is_uuid.any():
        texts = _version_1_ids(raw)
    else:
        texts = pc.if_else(pa.array(is_uuid), _uuids(raw), _version_1_ids(raw))
    return pc.if_else(ids.is_valid(), texts, pa.scalar(None, pa.string())) if ids.null_count else texts


def _uuids(raw: np.ndarray[Any, Any]) -> pa.Array:
    import numpy as np

    digits = _hex(raw, "02x")
    return _texts(np.insert(digits, _GROUPS, ord("-"), axis=1))


def _version_1_ids(raw: np.ndarray[Any, Any]) -> pa.Array:
    import numpy as np

    digits = _hex(raw, "02X")
    version = np.broadcast_to(np.frombuffer(_VERSION_1, np.uint8), (len(raw), len(_VERSION_1)))
    return _texts(np.concatenate([version, digits], axis=1))


def _hex(raw: np.ndarray[Any, Any], format: str) -> np.ndarray[Any, Any]:
    """Return the hex digits of rows of bytes as rows of characters."""
    import numpy as np

    pairs = np.frombuffer("".join(f"{value:{format}}" for value in range(256)).encode(), np.uint16)
    digits: np.ndarray[Any, Any] = pairs[raw].view(np.uint8)
    return digits


def _texts(characters: np.ndarray[Any, Any]) -> pa.Array:
    """Return rows of characters as an Arrow array of text."""
    import numpy as np
    import pyarrow as pa

    rows, width = characters.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters)))
