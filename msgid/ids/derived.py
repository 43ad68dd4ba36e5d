"""Ids that are not minted but follow from something: a position in a log, or a parent and a name.

They come out the same whoever makes them, wherever and however often; `msgid.layout` has the nodes that keep them
apart from each other and from any process's ids.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgid import layout
from msgid._validate import integer, is_integer, quote, seconds_since_epoch
from msgid.ids._bytes import is_uuid, uuid_bytes
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse
from msgid.ids.v0 import BrokerOffsetId, ClientUniqueId

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["assigned_node", "derive_from_bytes", "derive_id", "position_id"]

_SEQUENCE_BITS: Final = 32
_PLACE_BITS: Final = 48
"""The bits of the pid and the sequence, which hold an offset or the rest of a hash."""


def position_id(source: str, offset: int, at: datetime | float) -> MessageId:
    """Give the message at a position of an ordered log its id: the same one every time it is read.

    Args:
        source: the name of one ordered log, such as ``"kafka://orders/3"``.
        offset: the message's place in it, 0 to 2**48 - 1.
        at: the message's own time, an aware datetime or Unix seconds.

    Returns:
        A `MessageId` of the origin ``position``: the node holds 44 bits of the source's SHA-256, the pid and the
        sequence the offset.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: the offset is out of range, the datetime naive, or ``source`` has no UTF-8 form.

    >>> position_id("kafka://orders/3", 1234, 1648047038)
    MessageId('013B0121EF30BE0000024CCDBE000004D2')
    """
    bits = _hash(_utf8("source", source), layout.SYNTHETIC_BITS)
    place = integer("offset", offset, 0, layout.OFFSET_MAX)
    return _lay_out("position", bits, place, seconds_since_epoch("at", at))


def derive_id(
    parent: MessageId | BrokerOffsetId | ClientUniqueId | str | bytes,
    name: str | int,
    at: datetime | float | None = None,
) -> MessageId:
    """Give what is made from a message its id: the same one however often the message is processed.

    Args:
        parent: The message's ID, as a value, text or bytes; or a UUID, as text with dashes.
        name: which of the message's offspring; an integer stands for its decimal digits.
        at: an aware datetime or Unix seconds. Default: the parent's seconds; 0 for a version-0
            parent or a UUID, which have none: the ID is then dated 2021-01-01.

    Returns:
        A `MessageId` of the origin ``derived``: node, pid and sequence hold 92 bits of SHA-256(parent's bytes, a zero
        byte, name). A UUID has 16 bytes.

    Raises:
        InvalidMessageId: if the parent is neither an ID nor a UUID.
        TypeError, ValueError: another argument is of the wrong type or out of range.

    >>> derive_id("0156F7E71C361B21BC024CCDBE00000000", "invoice")
    MessageId('01DF8354A8161BB5AE024CCDBE2DFA320C')
    >>> derive_id("0156F7E71C361B21BC024CCDBE00000000", 1) == derive_id("0156F7E71C361B21BC024CCDBE00000000", "1")
    True
    """
    own = None
    if is_uuid(parent):
        raw = uuid_bytes(parent)
    else:
        if not isinstance(parent, MessageId | BrokerOffsetId | ClientUniqueId):
            parent = parse(parent)
        raw = bytes(parent)
        own = parent.seconds if isinstance(parent, MessageId) else None
    if is_integer(name):
        name = _digits(name)
    if at is not None:
        seconds = seconds_since_epoch("at", at)
    else:
        seconds = own or 0
    return derive_from_bytes(raw, name, seconds)


def derive_from_bytes(parent: bytes, name: object, seconds: int) -> MessageId:
    """Return the ID that `derive_id` gives, for a parent whose bytes are those of `msgid.ids._bytes.identity_bytes`.

    >>> derive_from_bytes(b"orders-0-42", "invoice", 0) == derive_from_bytes(b"orders-0-43", "invoice", 0)
    False
    """
    bits = _hash(parent + b"\0" + _utf8("name", name), layout.SYNTHETIC_BITS + _PLACE_BITS)
    return _lay_out("derived", bits >> _PLACE_BITS, bits & ((1 << _PLACE_BITS) - 1), seconds)


def assigned_node(run: str | None = None) -> int:
    """Give the node of ids that are counted over the rows of one run: its lease.

    Args:
        run: the run's name, for the same node each time it is run; None for 44 random bits.

    >>> layout.origin_of(assigned_node("nightly/2026-11-21"))
    'assigned'
    """
    if run is None:
        bits = int.from_bytes(os.urandom(6), "big") >> (48 - layout.SYNTHETIC_BITS)
    else:
        bits = _hash(_utf8("run", run), layout.SYNTHETIC_BITS)
    return layout.synthetic_node("assigned", bits)


def _hash(content: bytes, bits: int) -> int:
    """Give the first so many bits of the SHA-256."""
    import hashlib  # not at import: it costs a tenth of the whole

    return int.from_bytes(hashlib.sha256(content).digest(), "big") >> (256 - bits)


def _lay_out(origin: layout.Origin, bits: int, place: int, seconds: int) -> MessageId:
    """Lay 44 bits of node, 48 of pid and sequence, and any number of seconds out as an id."""
    pid, sequence = place >> _SEQUENCE_BITS, place & layout.UINT32_MASK
    return MessageId._of(layout.pack(layout.synthetic_node(origin, bits), pid, seconds & layout.UINT32_MASK, sequence))


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write out thousands of digits
        raise ValueError(f"name must be a shorter integer, not one of {number.bit_length()} bits") from None


def _utf8(what: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, not {quote(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be text that has a UTF-8 form, not {quote(text)}") from None
