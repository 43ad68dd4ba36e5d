"""A message to be handled, and the fields of its ID that handlers need. `msgid.processing` exports it.

It is here because the message formats, which processing does not import, make messages too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.errors import InvalidMessage, InvalidMessageId
from msgid.ids.checked_bytes import identity, identity_bytes
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse
from msgid.layout import EPOCH_UNIX
from msgid.shared.moments import moment
from msgid.shared.validate import is_utf8, quote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from msgid.ids.parsing import AnyId

TEXT_LIMIT: Final = 1000
"""The maximum number of bytes of a key and of an ID: PostgreSQL's index holds both in one row of 2700 bytes."""
_AS_BYTES: Final = re.compile(r"0x(?:[0-9A-F]{2})+", re.ASCII)


class _Fields(NamedTuple):
    """The fields of a message."""

    id: str
    """The canonical text of the message's ID."""
    key: str
    """The business key whose state the message changes."""
    body: Any
    timestamp: int | None = None
    """The time of the message in microseconds since 1970. None means the time in the ID, if the ID is of version 1."""


class Message(_Fields):
    """A message to be handled, whose `timestamp` is in microseconds since 1970.

    Args:
        id: A message ID of any version, a UUID, or any other text that identifies the message. It becomes its canonical
            text. A UUID in braces or after ``urn:uuid:`` is other text, so it is another message: pass
            ``uuid.UUID(text)`` instead.
        key: The business key whose state the message changes.
        body: The content.
        timestamp: The time of the message, in microseconds since 1970 or as an aware datetime. None means the time in
            the ID, if the ID is of version 1. An ID that is derived from a UUID does not have a time.

    Raises:
        InvalidMessageId: if the ID is empty, or neither text nor bytes nor an ID.
        InvalidMessage: if the ID or the key cannot be stored: no text, a NUL character, or more than 1000 bytes.
        TypeError, ValueError: if the timestamp has another type or unit.

    >>> Message("orders-0-42", "customer 7", {"amount": 3}, 1_700_000_000)
    Traceback (most recent call last):
    ValueError: timestamp must be microseconds since 1970, got 1700000000: seconds?
    """

    __slots__ = ()

    def __new__(  # noqa: D102  # the class explains its arguments
        cls, id: AnyId | UUID | str | bytes, key: str, body: Any, timestamp: int | datetime | None = None
    ) -> Message:
        text = read_id(id).text
        for name, value in (("id", text), ("key", key)):
            if type(value) is not str or len(value) > TEXT_LIMIT or not value.isascii() or "\0" in value:
                check_text(name, value, InvalidMessage)
        at = None if timestamp is None else moment("timestamp", timestamp)
        return super().__new__(cls, text, key, body, at)

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Message:  # type: ignore[override]  # `_replace` calls it
        return cls(*iterable)

    def with_body(self, body: Any) -> Message:
        """Return the message with another body; its other fields are not checked again."""
        return tuple.__new__(Message, (self.id, self.key, body, self.timestamp))

    @property
    def at(self) -> int | None:
        """The time of the message in microseconds since 1970; None if neither the timestamp nor the ID has one."""
        if self.timestamp is not None:
            return self.timestamp
        seconds = read_id(self.id).seconds
        return None if seconds is None else (EPOCH_UNIX + seconds) * 1_000_000


class Known(NamedTuple):
    """The fields of an ID that handlers need."""

    text: str
    """The canonical form of the ID."""
    raw: bytes
    """The bytes that are hashed into derived IDs."""
    seconds: int | None
    """Seconds since 2021-01-01T00:00:00Z; None if the ID does not have a time, as one that is derived from a UUID."""


def read_id(id: object) -> Known:
    """Return the fields of an ID of any kind, or raise `InvalidMessageId` if it is empty or neither text nor bytes."""
    return _read_text(id) if type(id) is str and len(id) <= TEXT_LIMIT else _read(id)


def _read(id: object) -> Known:
    try:
        known = parse(id)  # type: ignore[arg-type]
    except InvalidMessageId:
        known = None
    if isinstance(known, MessageId):
        return Known(str(known), bytes(known), known.seconds or None)
    same = identity(id)
    return Known(same, identity_bytes(same), None)


# A message is created, stored and published under its ID, which is read once. A batch has 1,000 messages.
_read_text: Final = lru_cache(4096)(_read)


def check_text(name: str, text: object, error: type[ValueError] = ValueError) -> None:
    """Raise an error if a value is not text that a store can hold as a key or an ID."""
    if not is_utf8(text):
        raise error(f"{name} must be text{' that UTF-8 can encode' * isinstance(text, str)}, got {quote(text)}")
    assert isinstance(text, str)
    if (length := len(text.encode())) > TEXT_LIMIT:
        raise error(f"{name} must be text of at most {TEXT_LIMIT} bytes, got {length}: {quote(text)}")
    if "\0" in text:
        raise error(f"{name} must be text without a NUL character, got {quote(text)}")


def key_text(key: bytes) -> str:
    r"""Return the text of a key of bytes; different keys have different texts.

    Bytes that are not text in UTF-8, or that contain a NUL character, which a store refuses, become ``0x`` and their
    hex digits. So does a text that looks like that.

    >>> key_text(b"customer 7"), key_text(b"\x00\x07"), key_text(b"0x0007")
    ('customer 7', '0x0007', '0x307830303037')
    """
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = "\0"
    return f"0x{key.hex().upper()}" if "\0" in text or _AS_BYTES.fullmatch(text) else text
