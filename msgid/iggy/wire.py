"""The names and numbers of Iggy's binary layouts, and a strict reader of bytes.

Each release of Iggy's servers writes one of these layouts. All integers are little-endian, including the ID. A message
has these bytes, by layout:

- ``m45``: offset u64, state u8, timestamp u64, ID u128, checksum u32, length of the headers u32, headers, length of the
  payload u32, payload. ``previous`` is the same without state and checksum.
- ``batch24``: a header of 24 bytes for each batch, then messages that each start with their size.
- ``h56-crc``, ``h56-xxh3``, ``h64``: a header of 56 or 64 bytes, payload, user headers.
- ``batch256``: a header of 256 bytes for each batch, then frames with a header of 48 bytes each.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

from msgid.errors import InvalidMessage, TruncatedMessage
from msgid.shared.validate import one_of, quote

Layout = Literal["auto", "previous", "m45", "batch24", "h56-crc", "h56-xxh3", "h64", "batch256"]

AUTO: Final = "auto"
PREVIOUS, M45, BATCH24, H56_CRC, H56_XXH3, H64, BATCH256 = range(7)
"""The numbers of the layouts, as table rows and the compiled scanner use them."""

U32: Final = struct.Struct("<I")

HEADER_KEY_MAX: Final = 255
HEADER_VALUE_MAX: Final = 255


class LayoutFacts(NamedTuple):
    """The properties of a layout, except the positions of the fields."""

    code: int
    """The number of the layout."""
    least: int
    """The size of the smallest message in bytes, without the batch header."""
    batch: int
    """The size of a batch header in bytes; 0 in a layout without batches."""
    has_state: bool
    has_origin: bool
    """Whether a message contains the producer's time."""
    checksum: str
    """The kind of checksum: ``""`` (none), ``"crc"`` or ``"xxh3"``."""
    typed_keys: bool
    """Whether the keys of user headers have a kind."""


LAYOUTS: Final[dict[str, LayoutFacts]] = {
    "previous": LayoutFacts(PREVIOUS, 40, 0, False, False, "", False),
    "m45": LayoutFacts(M45, 45, 0, True, False, "crc", False),
    "batch24": LayoutFacts(BATCH24, 45, 24, True, False, "crc", False),
    "h56-crc": LayoutFacts(H56_CRC, 56, 0, False, True, "crc", False),
    "h56-xxh3": LayoutFacts(H56_XXH3, 56, 0, False, True, "xxh3", False),
    "h64": LayoutFacts(H64, 64, 0, False, True, "xxh3", True),
    "batch256": LayoutFacts(BATCH256, 48, 256, False, True, "xxh3", True),
}
"""The layouts by name, in release order."""
TYPED_KEYS: Final = tuple(facts.typed_keys for facts in LAYOUTS.values())
"""Whether the keys of user headers have a kind, by the number of the layout."""
HAS_ORIGIN: Final = tuple(facts.has_origin for facts in LAYOUTS.values())
"""Whether a message contains the producer's time, by the number of the layout."""
LATER: Final = {H56_CRC: (H56_XXH3, H64), H56_XXH3: (H64,)}
"""The layouts that a server writes into the same file after an upgrade."""
WHOLE: Final = frozenset((H56_CRC, H56_XXH3, H64))
"""The layouts without batches whose checksums cover the lengths; a torn message is found by them."""
NEWEST: Final = "batch256"
"""The layout of the latest release."""


def name_of(layout: str, *, auto: bool = False) -> str:
    """Return the name of a layout; an unknown name raises ValueError with the list of names.

    Args:
        layout: A name.
        auto: Whether ``auto`` is allowed.
    """
    one_of("layout", layout, [AUTO, *LAYOUTS] if auto else [*LAYOUTS])
    return layout


def wire_name(layout: str, *, auto: bool = False) -> str:
    """Return the name of a layout on the network, where ``batch24`` is ``m45``; for the rest see `name_of`."""
    name = name_of(layout, auto=auto)
    return "m45" if name == "batch24" else name


def facts_of(layout: str) -> LayoutFacts:
    """Return the properties of a layout; an unknown name raises ValueError with the list of names."""
    return LAYOUTS[name_of(layout)]


class Reader:
    """Reads a buffer from start to end; missing bytes raise `TruncatedMessage` with their position.

    The reader copies and allocates bytes only after it has checked that they exist, whatever a length field contains.
    """

    __slots__ = ("base", "data", "end", "position")

    def __init__(self, data: bytes | memoryview, position: int = 0, end: int | None = None, base: int = 0) -> None:
        self.data = data
        self.position = position
        self.end = len(data) if end is None else end
        self.base = base
        """The position of the buffer in the file, which is added to positions in errors."""

    def need(self, length: int, what: str) -> int:
        """Skip ``length`` bytes and return the position of the first one."""
        start = self.position
        if length > self.end - start:
            raise TruncatedMessage(f"{what} needs {length} bytes, and {self.end - start} are left", self.base + start)
        self.position = start + length
        return start

    def unsigned(self, width: int, what: str) -> int:
        """Read an unsigned integer of ``width`` bytes."""
        start = self.need(width, what)
        return int.from_bytes(self.data[start : self.position], "little")

    def take(self, length: int, what: str) -> bytes:
        """Read ``length`` bytes."""
        start = self.need(length, what)
        return bytes(self.data[start : self.position])

    def sized(self, width: int, what: str, least: int = 0, most: int | None = None) -> bytes:
        """Read a length field of ``width`` bytes, then that many bytes."""
        start = self.position
        length = self.unsigned(width, f"the length of {what}")
        if length < least or (most is not None and length > most):
            raise InvalidMessage(f"{what} must have {least} to {most} bytes, got {length}", self.base + start)
        return self.take(length, what)

    def text(self, width: int, what: str, most: int) -> str:
        """Read a length field of ``width`` bytes, then a text of 1 to ``most`` bytes in UTF-8."""
        start = self.position
        raw = self.sized(width, what, 1, most)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise InvalidMessage(f"{what} must be UTF-8, got {quote(raw)}", self.base + start + width) from None

    def finish(self, what: str) -> None:
        """Raise `InvalidMessage` if bytes are left."""
        if self.position != self.end:
            raise InvalidMessage(f"{self.end - self.position} bytes after the end of {what}", self.base + self.position)
