"""The section of a ``batch256`` header in which an idempotent producer numbers its messages.

The crate iggy_binary_protocol 0.11.1-edge.8 has it. No release of the server was found that writes it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from msgid.shared.validate import integer

SECTION_AT: Final = 52
"""Where flags and section start in the header of a batch; they go to its end."""
SECTION: Final = struct.Struct("<B3xQH2xI184x")
"""Flags, and the fields of `Producer`; the other bytes are 0."""
FIELDS_AT: Final = (56, 64, 68)
"""Where the fields are in the header."""
_COVERED: Final = struct.Struct("<BQHI")
_NONE: Final = bytes(SECTION.size)


class Producer(NamedTuple):
    """The producer of a ``batch256`` batch; a server recognises its repetitions by these numbers."""

    producer_id: int
    """0 to 2**63 - 1."""
    epoch: int
    """0 to 2**15 - 1."""
    base_sequence: int
    """Sequence number of the first message, 0 to 2**31 - 1; it rises by 1 with each message and begins again at 0."""


LARGEST: Final = Producer(2**63 - 1, 2**15 - 1, 2**31 - 1)


def section(producer: Producer | None) -> bytes:
    """Return the header of a batch from `SECTION_AT` to its end; ValueError for a number out of range."""
    if producer is None:
        return _NONE
    limits = zip(Producer._fields, producer, LARGEST, strict=True)
    return SECTION.pack(1, *(integer(name, number, 0, most) for name, number, most in limits))


def covered(producer: Producer | None) -> bytes:
    """Return the bytes of flags and section that the checksum of a batch covers."""
    return b"" if producer is None else _COVERED.pack(1, *producer)


def producer_of(header: bytes) -> Producer | None:
    """Return the producer that a checked header of a batch names."""
    flags, *fields = SECTION.unpack_from(header, SECTION_AT)
    return Producer(*fields) if flags else None
