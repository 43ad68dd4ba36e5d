"""Confluent's framing: a zero byte and the schema ID (u32, big-endian) before the payload."""

from __future__ import annotations

import struct
from typing import Final, Literal, get_args

from msgid._validate import integer, quote
from msgid.errors import InvalidMessage

Framing = Literal["none", "confluent"]
"""The bytes before a payload: nothing, or Confluent's zero byte and the ID of the schema."""

_HEAD: Final = struct.Struct(">BI")
_MAGIC: Final = 0


def checked_framing(framing: Framing) -> Framing:
    """Check the name of a framing and return it.

    Raises:
        ValueError: if the framing is unknown.
    """
    if framing not in get_args(Framing):
        raise ValueError(f"framing must be one of {', '.join(get_args(Framing))}, got {quote(framing)}")
    return framing


def frame(schema_id: int, payload: bytes) -> bytes:
    r"""Return a payload in Confluent's framing.

    Raises:
        TypeError: if the ID is not an integer.
        ValueError: if the ID is not 0 to 4294967295.

    >>> frame(7, b"\x02")
    b'\x00\x00\x00\x00\x07\x02'
    """
    return _HEAD.pack(_MAGIC, integer("schema_id", schema_id, 0, (1 << 32) - 1)) + payload


def unframe(data: bytes) -> tuple[int, bytes]:
    r"""Return the schema ID and the payload of bytes in Confluent's framing.

    Raises:
        InvalidMessage: if there are fewer than 5 bytes, or the first byte is not zero.

    >>> unframe(b"\x00\x00\x00\x00\x07\x02")
    (7, b'\x02')
    """
    if len(data) < _HEAD.size:
        raise InvalidMessage(f"Confluent's framing takes {_HEAD.size} bytes, got {len(data)}", 0)
    magic, schema_id = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise InvalidMessage(f"Confluent's framing begins with a zero byte, got {magic}", 0)
    return schema_id, data[_HEAD.size :]
