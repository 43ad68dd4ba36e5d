"""IDs that are computed from existing data: a position in a log, or a parent ID and a name.

The same input gives the same ID in every process and at every time. The node of such an ID declares its origin (see
`msgid.layout.ORIGINS`) and never equals a MAC address or a random node.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, cast

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids.checked_bytes import is_uuid, plain, uuid_bytes
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import AnyId, parse
from msgid.shared.moments import seconds_since_epoch
from msgid.shared.validate import integer, is_integer, quote

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

_SEQUENCE_BITS: Final = 32
_NATURAL_KEY: Final = "for a natural key, parent is a UUID of your own, and name is the key"
_FRONT: Final = f"{layout.VERSION_1:02x}"
_DERIVED: Final = f"{layout.ORIGINS['derived']:x}"


def position_id(source: str, offset: int, at: datetime | float) -> MessageId:
    """Return the ID of the message at a position of an ordered log, with its time in Unix seconds or as a datetime.

    Rereading the message gives the same ID.

    Args:
        source: Name of one ordered log, such as ``"kafka://orders/3"``.
        offset: Position of the message in the log, 0 to 2**48 - 1.
        at: Timestamp of the message, as an aware datetime or in Unix seconds. The ID holds the lower 32 bits of the
            seconds since 2021, so the time of an ID is wrong if ``at`` is before 2021 or after February 2157.

    Returns:
        A `MessageId` of the origin ``position``. Its node holds 44 bits of the SHA-256 of ``source``; its pid and
        sequence hold the offset.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the offset is out of range, the datetime is naive, or ``source`` cannot be encoded as UTF-8.

    >>> position_id("kafka://orders/3", 1234, 1648047038)
    MessageId('013B0121EF30BE0000024CCDBE000004D2')
    """
    bits = _hash(_utf8("source", source), layout.SYNTHETIC_BITS)
    checked_offset = integer("offset", offset, 0, layout.OFFSET_MAX)
    node = layout.synthetic_node("position", bits)
    pid, sequence = checked_offset >> _SEQUENCE_BITS, checked_offset & layout.UINT32_MASK
    return MessageId._of(layout.pack(node, pid, seconds_since_epoch("at", at) & layout.UINT32_MASK, sequence))


def derive_id(
    parent: AnyId | UUID | str | bytes,
    name: str | int,
    *names: str | int,
    at: datetime | float | None = None,
) -> MessageId:
    """Return the ID of an output of a message; reprocessing the message gives the same ID.

    Args:
        parent: ID of the message, as `parse` accepts it; or a UUID, as a value or as text with dashes. For a natural
            key, a UUID of your own that stands for the set of keys, as the namespace of a UUIDv5 does.
        name: Name of the output, unique per parent, or the natural key; an integer means its decimal digits.
        *names: Names of outputs of that output, such as the number of a line of an invoice: the last ID is returned.
        at: Time of the output, as an aware datetime or in Unix seconds. Default: the seconds of the parent. A version-0
            parent or a UUID does not have seconds; the ID is then dated 2021-01-01.

    Returns:
        A `MessageId` of the origin ``derived``. Its node, pid and sequence hold the first 92 bits of the SHA-256 of the
        parent's bytes, a zero byte and the name in UTF-8. With ``h`` for the hash in hex, the ID is ``01``, ``h[0]``,
        ``F``, ``h[1:15]``, eight digits of the seconds since 2021, and ``h[15:23]``. A version-1 parent has 17 bytes, a
        version-0 one its bytes without the version, a UUID 16.

    Raises:
        InvalidMessageId: if the parent is not an ID or a UUID.
        TypeError, ValueError: if another argument has the wrong type or is out of range.

    >>> derive_id("0156F7E71C361B21BC024CCDBE00000000", "invoice")
    MessageId('01DF8354A8161BB5AE024CCDBE2DFA320C')
    >>> derive_id("0156F7E71C361B21BC024CCDBE00000000", 1) == derive_id("0156F7E71C361B21BC024CCDBE00000000", "1")
    True
    >>> invoice = derive_id("0156F7E71C361B21BC024CCDBE00000000", "invoice")
    >>> derive_id("0156F7E71C361B21BC024CCDBE00000000", "invoice", 1) == derive_id(invoice, 1)
    True
    >>> ORDERS = "8e884ace-bee4-11e4-8dfc-aa07a5b093db"  # made once for all orders: str(uuid.uuid4())
    >>> derive_id(ORDERS, "order-17", at=1700000000)
    MessageId('01AFC69D098755D17C05658B00DB1E6628')
    """
    own = None
    given = parent if isinstance(parent, AnyId) else plain(parent)
    if is_uuid(given):
        raw = uuid_bytes(given)
    else:
        try:
            id = parse(cast("str | bytes", given))
        except InvalidMessageId as error:
            if not isinstance(given, str):
                raise
            raise InvalidMessageId(error.shown, f"{error.reason}; {_NATURAL_KEY}") from None
        raw = bytes(id)
        own = id.seconds if isinstance(id, MessageId) else None
    if at is not None:
        seconds = seconds_since_epoch("at", at)
    else:
        seconds = own or 0
    for level in (name, *names):
        derived = derive_from_bytes(raw, _digits(level) if is_integer(level) else level, seconds)
        raw = bytes(derived)
    return derived


def derive_from_bytes(parent: bytes, name: object, seconds: int) -> MessageId:
    """Return the ID of `derive_id` for a parent whose bytes come from `msgid.ids.checked_bytes.identity_bytes`.

    >>> derive_from_bytes(b"orders-0-42", "invoice", 0) == derive_from_bytes(b"orders-0-43", "invoice", 0)
    False
    """
    return MessageId._of(bytes.fromhex(derived_text(parent, _utf8("name", name), seconds)))


def derived_text(parent: bytes, name: bytes, seconds: int) -> str:
    """Return the text of the ID of `derive_from_bytes`. This is faster, because text needs no arithmetic on bits.

    >>> derived_text(b"orders-0-42", b"invoice", 0) == derive_from_bytes(b"orders-0-42", "invoice", 0).hex
    True
    """
    import hashlib  # not at the top of the module: it takes a tenth of the import time of the package

    # The first 92 bits of the hash fill the node around the digit of its origin, then the pid, then the sequence.
    digits = hashlib.sha256(parent + b"\0" + name).hexdigest()
    return f"{_FRONT}{digits[0]}{_DERIVED}{digits[1:15]}{seconds & layout.UINT32_MASK:08x}{digits[15:23]}".upper()


def assigned_node(run: str | None = None) -> int:
    """Return the node for IDs that number the rows of one run.

    Args:
        run: Name of the run; the same name always gives the same node. None gives 44 random bits.

    >>> layout.origin_of(assigned_node("nightly/2026-11-21"))
    'assigned'
    """
    if run is None:
        bits = int.from_bytes(os.urandom(6), "big") >> (48 - layout.SYNTHETIC_BITS)
    else:
        bits = _hash(_utf8("run", run), layout.SYNTHETIC_BITS)
    return layout.synthetic_node("assigned", bits)


def _hash(content: bytes, bits: int) -> int:
    """Return the first ``bits`` bits of the SHA-256 of ``content``."""
    import hashlib  # not at the top of the module: it takes a tenth of the import time of the package

    return int.from_bytes(hashlib.sha256(content).digest(), "big") >> (256 - bits)


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to convert an integer of thousands of digits to text
        raise ValueError(f"name must be a shorter integer, not one of {number.bit_length()} bits") from None


def _utf8(what: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text, got {quote(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be text that UTF-8 can encode, got {quote(text)}") from None
