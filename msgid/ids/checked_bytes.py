"""Check the text or bytes of an ID of any version and return its bytes; all other input raises `InvalidMessageId`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from msgid.errors import InvalidMessageId
from msgid.layout import BROKER_OFFSET, ID_LENGTH, KIND_V1, TAIL_LENGTH, V0_LENGTHS, VERSION_0, VERSION_1, v0_kind
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from msgid.layout import Kind

# The reasons of an `InvalidMessageId`. Python and Spark format the same templates.
WRONG_LENGTH: Final = "must have 32, 34, 56 or 58 hex digits, got {length} characters"
WRONG_BYTE_LENGTH: Final = "must have 16, 17, 28 or 29 bytes, got {length}"
IS_UUID: Final = "a UUID is not a message ID, but a derived ID can have it as its parent"
NOT_HEX: Final = "must have hex digits only"
UNKNOWN_VERSION: Final = "unknown version {version}"
NOT_V1: Final = "must be of version 1, got version 0"
NOT_AN_ID: Final = "must be a message ID or a UUID"
EMPTY: Final = "must be an ID of any version, a UUID or other text, got nothing"
NOT_V0: Final = "must be of version 0, got version 1"

_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_ASCII_LENGTHS: Final = frozenset({32, 34, 36, 56, 58})
"""The numbers of characters of an ID or a UUID with dashes; bytes of an ID have other lengths."""
_LENGTHS: Final = frozenset({ID_LENGTH, *V0_LENGTHS, *(1 + length for length in V0_LENGTHS)})


def plain(value: object) -> object:
    """Return the text or bytes that an accepted value stands for; any other value stays as it is.

    All functions that take an ID accept text, bytes, a value of this library, a UUID, and scalars of NumPy and Arrow. A
    UUID stands for its text with dashes, which is a message ID for no function, and an identity for those that take
    one.

    >>> import uuid
    >>> plain(uuid.UUID(int=1)), plain(memoryview(b"ab")), plain(7)
    ('00000000-0000-0000-0000-000000000001', b'ab', 7)
    """
    kind = type(value)
    if kind is bytes or isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(memoryview(value))  # a scalar of NumPy would stay one, and loses zeros at its end in a copy
    canonical = getattr(value, "canonical", None)
    if isinstance(canonical, str):
        return canonical
    uuid = sys.modules.get("uuid")  # not imported here: whoever has a UUID has imported it
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "as_py"):  # a scalar of Arrow
        return plain(value.as_py())
    return value.tobytes() if kind.__name__ == "void" and hasattr(value, "tobytes") else value


def is_missing(value: object) -> bool:
    """Return whether a value stands for a missing one: None, or NaN, NaT or NA of pandas and NumPy."""
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124
        return True
    name = type(value).__name__
    return name in ("NAType", "NaTType") or (name in ("datetime64", "timedelta64") and value != value)  # noqa: PLR0124


def check_several(ids: object) -> None:
    """Raise `TypeError` if a single ID, or a value that cannot be iterated, is passed in place of several IDs."""
    is_single = isinstance(ids, str | bytes | bytearray | memoryview) or getattr(ids, "ndim", 1) == 0
    if is_single or not hasattr(ids, "__iter__"):
        raise TypeError(f"ids must be an iterable of texts or bytes, or an array, got {quote(ids)}")


def id_bytes(value: object) -> bytes:
    """Return the bytes of an ID as `plain` accepts it, or raise `InvalidMessageId`.

    Text is ASCII hex digits in either case and nothing else. The bytes have the length that was given: 17 for version
    1; 16 or 28 for version 0, or 17 or 29 with its version byte in front. A value of version 0 has its version byte.
    """
    value = plain(value)
    if isinstance(value, str):
        digits = len(value)
        if digits & 1 or digits >> 1 not in _LENGTHS:
            if is_uuid(value):
                raise InvalidMessageId(quote(value), IS_UUID)
            raise InvalidMessageId(quote(value), WRONG_LENGTH.format(length=digits))
        try:
            raw = bytes.fromhex(value)
        except ValueError:
            raw = b""
        # fromhex skips white space: text with white space becomes fewer bytes than its length requires.
        if len(raw) != digits >> 1:
            raise InvalidMessageId(quote(value), NOT_HEX)
    elif isinstance(value, bytes):
        raw = value
        if len(raw) not in _LENGTHS:
            raise InvalidMessageId(quote(raw), WRONG_BYTE_LENGTH.format(length=len(raw)))
    else:
        raise InvalidMessageId(quote(value), f"must be text, bytes or an ID, got {type(value).__name__}")
    if raw[0] != VERSION_0 and not (raw[0] == VERSION_1 and len(raw) == ID_LENGTH) and len(raw) not in V0_LENGTHS:
        raise InvalidMessageId(quote(value), UNKNOWN_VERSION.format(version=raw[0]))
    return raw


def strip_version(raw: bytes) -> bytes | None:
    """Return the 16 or 28 bytes of a version-0 ID without its version byte; None for version 1."""
    if len(raw) in V0_LENGTHS:
        return raw
    return raw[1:] if raw[0] == VERSION_0 else None


def kind_of(raw: bytes) -> Kind:
    """Return the kind of the ID whose bytes `id_bytes` has checked."""
    v0 = strip_version(raw)
    return KIND_V1 if v0 is None else v0_kind(*BROKER_OFFSET.unpack(v0[-TAIL_LENGTH:]))


def identity(value: object) -> str:
    """Return the text by which two IDs are compared: equal if and only if they are the same ID.

    An ID of any version becomes its canonical text, so the case of the digits and the version byte of a version-0 ID
    do not matter. A UUID with dashes becomes lower case. Any other text stays unchanged: an ID with white space around
    it, a UUID in braces, or one with ``urn:uuid:`` in front. The 32 digits of a UUID without dashes, and its 16 bytes,
    are an ID of version 0. The ASCII bytes of an ID's or a UUID's text are that text, as a header of Kafka holds them.
    Any other bytes become ``0x`` and their hex digits.

    Raises:
        InvalidMessageId: if `plain` makes neither text nor bytes of the value, or if it is empty.

    >>> identity("7f0000010000238f000000000001e240"), identity("74B158CA-DDB3-498F-B0A9-9EEC1C6197AE")
    ('007F0000010000238F000000000001E240', '74b158ca-ddb3-498f-b0a9-9eec1c6197ae')
    >>> identity("orders-0-42")
    'orders-0-42'
    """
    try:
        raw = id_bytes(value)
    except InvalidMessageId:
        value = plain(value)
        if not isinstance(value, str | bytes):
            raise
        if not value:
            raise InvalidMessageId(quote(value), EMPTY) from None
        if isinstance(value, str):
            return value.lower() if is_uuid(value) else value
        return (header_identity(value) if len(value) in _ASCII_LENGTHS else None) or f"0x{value.hex().upper()}"
    v0 = strip_version(raw)
    return (raw if v0 is None else bytes([VERSION_0]) + v0).hex().upper()


def identity_bytes(text: str) -> bytes:
    """Return the bytes of an `identity`: an ID's or a UUID's own bytes, or the text in UTF-8.

    IDs derived from a parent hash these bytes. A version-0 ID has 16 or 28, without its version byte.
    """
    try:
        raw = id_bytes(text)
    except InvalidMessageId:
        return uuid_bytes(text) if is_uuid(text) else text.encode("utf-8", "surrogatepass")
    return strip_version(raw) or raw


def is_uuid(value: object) -> TypeGuard[str]:
    """Return whether a value is the text of a UUID with dashes, in either case."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a UUID with dashes."""
    return bytes.fromhex(text.replace("-", ""))


def header_identity(value: object) -> str | None:
    """Return the `identity` of the ID or UUID in a message's header or property; None if the value is neither.

    The value is text, UTF-8 bytes of a text, or the 17 bytes of a version-1 ID. Other bytes are not read as an ID,
    because any text of 16 letters would then be a version-0 ID.

    >>> header_identity(b"74B158CA-DDB3-498F-B0A9-9EEC1C6197AE"), header_identity("order 7")
    ('74b158ca-ddb3-498f-b0a9-9eec1c6197ae', None)
    """
    value = plain(value)
    if isinstance(value, bytes):
        if len(value) == ID_LENGTH and value[0] == VERSION_1:
            return value.hex().upper()
        try:
            value = value.decode("ascii")
        except UnicodeDecodeError:
            return None
    if value is None:
        return None
    if not is_uuid(value):
        try:
            id_bytes(value)
        except InvalidMessageId:
            return None
    return identity(value)
