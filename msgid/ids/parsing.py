"""Parse an ID of any version."""

from __future__ import annotations

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids._native import native, twin
from msgid.ids.checked_bytes import NOT_V0, id_bytes, strip_version
from msgid.ids.message_id import MessageId
from msgid.ids.v0 import BrokerOffsetId, ClientUniqueId, read_v0
from msgid.shared.validate import quote

AnyId = MessageId | BrokerOffsetId | ClientUniqueId


def parse(value: AnyId | str | bytes) -> AnyId:
    """Parse an ID of any version from its text or its bytes.

    Args:
        value: ASCII hex digits in either case and nothing else, or bytes; or an ID, which is returned. Version 1 has
            34 digits or 17 bytes. Version 0 has 32 or 56 digits, or 16 or 28 bytes; with its version byte, 34 or 58
            digits, or 17 or 29 bytes. A scalar of NumPy or Arrow stands for its text or bytes.

    Returns:
        A `MessageId`, a `BrokerOffsetId` or a `ClientUniqueId`. The rule in `msgid.layout.v0_kind` distinguishes the
        two version-0 kinds. If it cannot decide, the result is a `ClientUniqueId` that is ``ambiguous``.

    Raises:
        InvalidMessageId: if the value is anything else.

    >>> parse("0156F7E71C361B21BC024CCDBE00000000").pid
    8636
    >>> parse("7F0000010000238F000000000001E240")
    BrokerOffsetId('127.0.0.1', 9103, 123456)
    >>> parse("0156F7E7 1C361B21BC024CCDBE0000000")
    Traceback (most recent call last):
    msgid.InvalidMessageId: invalid message id '0156F7E7 1C361B21BC024CCDBE0000000': must have hex digits only
    """
    if isinstance(value, AnyId):
        return value  # its bytes may be ambiguous, and it knows its kind
    raw = id_bytes(value)
    v0 = strip_version(raw)
    return MessageId._of(raw) if v0 is None else read_v0(v0)


def is_valid(value: object) -> bool:
    """Return whether `parse` accepts a value.

    Args:
        value: Any object.

    Returns:
        True for an ID of any version, as a value, text or bytes. False for anything else; it never raises.

    >>> is_valid("7F0000010000238F000000000001E240"), is_valid("7F00"), is_valid(None)
    (True, False, False)
    """
    try:
        id_bytes(value)
    except Exception:  # InvalidMessageId, or any error of a str subclass
        return False
    return True


def translate_v0(value: AnyId | str | bytes) -> str:
    """Return the canonical text of a version-0 ID: ``00`` in front of its upper-case hex digits.

    The form loses nothing: ``str(parse(canonical))`` is the original ID. One column can hold IDs of every version.
    RocketMQ's own decoders read a 34-digit ID that starts with ``00`` as version 0 and print it without the ``00``.

    Args:
        value: A version-0 ID as text or bytes. Canonical text is returned in upper case.

    Raises:
        InvalidMessageId: if the value is not a version-0 ID.

    >>> translate_v0("7F0000010000238F000000000001E240")
    '007F0000010000238F000000000001E240'
    """
    v0 = strip_version(id_bytes(value))
    if v0 is None:
        raise InvalidMessageId(quote(value), NOT_V0)
    return layout.CANONICAL_V0_PREFIX + v0.hex().upper()


if native is not None:
    native.bind(MessageId, parse, is_valid)
    parse, is_valid = twin(parse), twin(is_valid)
