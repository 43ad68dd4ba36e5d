"""Shared parts of all message formats: message states, the normal form of names, and the values of exported rows.

Iggy's message-state and message-expiry documents define the rules for states and names.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, Final, Literal, get_args

from msgid.errors import InvalidMessage
from msgid.shared.validate import in_range, one_of, quote

Encoding = Literal["utf-8", "base64"]
"""The encoding of the bytes of a key, value or header in a text export; Spark and many tools use base64 in JSON."""

STATE_CODES: Final = "1, 10, 20 or 30"
MAX_NAME_BYTES: Final = 255
"""A name's length is encoded in one byte."""

_ALLOWED: Final = re.compile(r"[\w.\-\s]+")
_SPACE: Final = re.compile(r"\s+")


class MessageState(IntEnum):
    """The state of a message. Consumers receive only messages that are ``available``.

    >>> MessageState(20), MessageState.of("poisoned"), str(MessageState.MARKED_FOR_DELETION)
    (<MessageState.POISONED: 20>, <MessageState.POISONED: 20>, 'marked_for_deletion')
    """

    AVAILABLE = 1
    UNAVAILABLE = 10
    POISONED = 20
    """The message failed its checksum, its schema check or its decoding."""
    MARKED_FOR_DELETION = 30
    """The message has expired by its retention policy."""

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, value: object) -> MessageState:
        """Return the state with a code, or with a name in snake_case.

        Args:
            value: The code as an int, or the name as a str.

        Raises:
            InvalidMessage: if the state is unknown.

        >>> MessageState.of(1)
        <MessageState.AVAILABLE: 1>
        """
        if isinstance(value, str):
            for state in cls:
                if str(state) == value:
                    return state
            raise InvalidMessage(f"state must be one of {', '.join(map(str, cls))}, got {quote(value)}")
        if in_range(value, min(cls), max(cls)) and value in cls._value2member_map_:
            return cls(value)
        raise InvalidMessage(f"state must be {STATE_CODES}, got {quote(value)}")


def normalize_name(name: str) -> str:
    r"""Return the normal form of a name: lower case, trimmed, one dot for each run of white space.

    The length is checked last, because lower case can be longer than upper case.

    Args:
        name: Name of a stream or topic: word characters, dots, hyphens and white space.

    Returns:
        The normal form, 1 to 255 bytes in UTF-8.

    Raises:
        InvalidMessage: if the name is blank, has other characters, or is too long.

    >>> normalize_name("  My Orders\t2026 ")
    'my.orders.2026'
    """
    if not isinstance(name, str):
        raise InvalidMessage(f"name {quote(name)}, a {type(name).__name__} and not text")
    if not name.strip():
        raise InvalidMessage(f"name {quote(name)}, which is blank")
    if not _ALLOWED.fullmatch(name):
        raise InvalidMessage(f"name {quote(name)}, which has more than word characters, dots, hyphens and white space")
    normal = _SPACE.sub(".", name.lower().strip())
    length = len(normal.encode("utf-8", "surrogatepass"))
    if length > MAX_NAME_BYTES:
        raise InvalidMessage(f"name must have 1 to {MAX_NAME_BYTES} bytes, got {length}: {quote(name)}")
    return normal


def check_row(row: object) -> None:
    """Raise InvalidMessage if a row is not a mapping of columns to values."""
    if not hasattr(row, "get") or not hasattr(row, "keys"):
        raise InvalidMessage(f"row must be a mapping of columns to values, got {quote(row)}")


def bytes_of(name: str, value: Any, encoding: Encoding = "utf-8") -> bytes | None:
    """Return the bytes that a row of an export holds; None stays None.

    Args:
        name: Name of the column, for the error.
        value: Bytes, or text in ``encoding``.
        encoding: ``utf-8`` or ``base64``; used for text only.

    Raises:
        InvalidMessage: if the value is neither text nor bytes, or not valid base64.
        ValueError: if the encoding is unknown.

    >>> bytes_of("value", "aGk=", "base64"), bytes_of("value", b"hi")
    (b'hi', b'hi')
    """
    one_of("encoding", encoding, get_args(Encoding))
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        raise InvalidMessage(f"{name} must be text or bytes, got {quote(value)}")
    if encoding == "utf-8":
        return value.encode("utf-8", "surrogatepass")
    import base64

    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise InvalidMessage(f"{name} must be base64, got {quote(value)}") from None
