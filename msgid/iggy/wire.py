"""The layout of Iggy's bytes, written once, and how they are read and written strictly.

A message, in the layout ``current`` (the message-state document)::

    offset u64 | state u8 | timestamp u64, microseconds | id u128 | checksum u32 |
    headers length u32 | headers | payload length u32 | payload

The layout ``previous`` has neither state nor checksum. A header is key length u32, key, kind u8, value length u32,
value. All integers are little-endian, the id too.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage, quote
from msgid.strict import integer

__all__ = [
    "HEADER_KEY_MAX",
    "HEADER_VALUE_MAX",
    "LAYOUTS",
    "U8_MAX",
    "U32",
    "U32_MAX",
    "U64_MAX",
    "U128_MAX",
    "Layout",
    "Reader",
    "Shape",
    "shape_of",
    "unsigned",
]

Layout = Literal["current", "previous"]

U8_MAX: Final = (1 << 8) - 1
U32_MAX: Final = (1 << 32) - 1
U64_MAX: Final = (1 << 64) - 1
U128_MAX: Final = (1 << 128) - 1
U32: Final = struct.Struct("<I")

HEADER_KEY_MAX: Final = 255
HEADER_VALUE_MAX: Final = 255


class Shape(NamedTuple):
    """The fixed part of a message in one layout: up to and with the length of its headers."""

    fixed: struct.Struct
    fields: dict[str, tuple[int, str]]
    """Where each field starts, and its type as NumPy names it."""

    @property
    def least(self) -> int:
        """The bytes of the smallest message."""
        return self.fixed.size + U32.size


LAYOUTS: Final[dict[str, Shape]] = {
    "current": Shape(
        struct.Struct("<QBQ16sII"),
        {
            "offset": (0, "<u8"),
            "state": (8, "u1"),
            "timestamp": (9, "<u8"),
            "id": (17, "V16"),
            "checksum": (33, "<u4"),
            "headers_length": (37, "<u4"),
        },
    ),
    "previous": Shape(
        struct.Struct("<QQ16sI"),
        {"offset": (0, "<u8"), "timestamp": (8, "<u8"), "id": (16, "V16"), "headers_length": (32, "<u4")},
    ),
}


def shape_of(layout: str) -> Shape:
    """Give the shape of a layout, or raise ValueError naming those there are."""
    try:
        return LAYOUTS[layout]
    except (KeyError, TypeError):
        raise ValueError(f"layout must be {' or '.join(map(repr, LAYOUTS))}, not {quote(layout)}") from None


def unsigned(name: str, value: object, most: int) -> int:
    """Give an integer of 0 to ``most`` back, or raise TypeError or ValueError naming it."""
    return integer(name, value, 0, most)


class Reader:
    """Read a buffer from its start to its end; what is not there is `TruncatedMessage` with the byte's place.

    Nothing is copied or reserved before it is known to be there, whatever a length says.
    """

    __slots__ = ("base", "data", "end", "place")

    def __init__(self, data: bytes | memoryview, place: int = 0, end: int | None = None, base: int = 0) -> None:
        self.data = data
        self.place = place
        self.end = len(data) if end is None else end
        self.base = base
        """What is added to a place for errors: where the buffer starts in the file."""

    def need(self, length: int, what: str) -> int:
        """Step over so many bytes, and give where they start."""
        start = self.place
        if length > self.end - start:
            raise TruncatedMessage(f"{what} needs {length} bytes, and {self.end - start} are left", self.base + start)
        self.place = start + length
        return start

    def unsigned(self, width: int, what: str) -> int:
        """Read an unsigned integer of so many bytes."""
        start = self.need(width, what)
        return int.from_bytes(self.data[start : self.place], "little")

    def take(self, length: int, what: str) -> bytes:
        """Read so many bytes."""
        start = self.need(length, what)
        return bytes(self.data[start : self.place])

    def sized(self, width: int, what: str, least: int = 0, most: int | None = None) -> bytes:
        """Read a length of so many bytes, and as much as it says."""
        start = self.place
        length = self.unsigned(width, f"the length of {what}")
        if length < least or (most is not None and length > most):
            raise InvalidMessage(f"{what} of {length} bytes, not {least} to {most}", self.base + start)
        return self.take(length, what)

    def text(self, width: int, what: str, most: int) -> str:
        """Read a length, and 1 to ``most`` bytes of UTF-8."""
        start = self.place
        raw = self.sized(width, what, 1, most)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise InvalidMessage(f"{what} {quote(raw)}, which is no UTF-8", self.base + start + width) from None

    def finish(self, what: str) -> None:
        """Raise `InvalidMessage` where bytes are left."""
        if self.place != self.end:
            raise InvalidMessage(f"{self.end - self.place} bytes after the end of {what}", self.base + self.place)
