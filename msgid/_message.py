"""A message to be handled, and the fields of its ID that handlers need. `msgid.processing` exports it.

It is here because the message formats, which processing does not import, make messages too.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from msgid._validate import quote
from msgid.errors import InvalidMessage, InvalidMessageId
from msgid.ids._bytes import id_bytes, identity, identity_bytes
from msgid.layout import EPOCH_UNIX, FIELDS, ID_LENGTH, VERSION_1

_SECONDS: Final = slice(FIELDS["seconds"].start, FIELDS["seconds"].stop)
_AS_BYTES: Final = re.compile(r"0x(?:[0-9A-F]{2})+", re.ASCII)


class Message(NamedTuple):
    """A message to be handled."""

    id: str
    """A message ID of any version, a UUID, or any other text that identifies the message.

    A processor also takes bytes, IDs as values and `uuid.UUID`, and passes their canonical text to the handler. A UUID
    in braces or after ``urn:uuid:`` is other text, so it is another message: pass ``uuid.UUID(text)`` instead.
    """
    key: str
    """The business key whose state the message changes."""
    body: Any
    timestamp: int | None = None
    """The time of the message in microseconds since 1970. None means the time in the ID, if the ID is of version 1."""

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
    """Seconds since 2021-01-01T00:00:00Z; None if the ID does not have a time."""


def read_id(id: object) -> Known:
    """Return the fields of an ID of any kind, or raise `InvalidMessageId` if it is empty or neither text nor bytes."""
    try:
        raw = id_bytes(id)
    except InvalidMessageId:
        raw = b""
    if len(raw) == ID_LENGTH and raw[0] == VERSION_1:
        return Known(raw.hex().upper(), raw, int.from_bytes(raw[_SECONDS], "big"))
    same = identity(id)
    return Known(same, identity_bytes(same), None)


def check_key(key: object) -> None:
    """Raise `InvalidMessage` if a business key is not text."""
    if not isinstance(key, str):
        raise InvalidMessage(f"key must be text, got {quote(key)}")


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
