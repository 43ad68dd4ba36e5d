"""One Iggy message: its fields, its checksum, its id, and its bytes."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from msgid.errors import NOT_V1, InvalidMessage, InvalidMessageId, TruncatedMessage, quote
from msgid.identifier import MessageId
from msgid.iggy.headers import Header, HeaderValue, decode_headers, encode_headers, headers_of
from msgid.iggy.wire import U32, U64_MAX, U128_MAX, Layout, Reader, shape_of, unsigned
from msgid.parsing import parse
from msgid.state import CODES, MessageState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Message", "checksum", "decode", "decode_from", "encode", "id_text", "id_value"]

_ID_LENGTH: Final = 16
_UUID_VERSION: Final = 4
_UUID_VARIANT: Final = 0b10
_UUID_DIGITS: Final = 36
_STATES: Final = {int(state): state for state in MessageState}


class Message(NamedTuple):
    """An Iggy message. `Message.new` checks what it is made of, and fills in state and checksum.

    >>> message = Message.new(b"hello", id=7, offset=3)
    >>> message.checksum, str(message.state), message.id_text
    (907060870, 'available', '0107000000000000000000000000000000')
    """

    offset: int
    """The message's place in its partition."""
    state: MessageState | None
    """None in the layout ``previous``."""
    timestamp: int
    """Microseconds since 1970."""
    id: int
    """Unsigned, of 128 bits."""
    checksum: int | None
    """CRC-32 of the payload; None in the layout ``previous``."""
    headers: dict[str, Header]
    payload: bytes

    @classmethod
    def new(
        cls,
        payload: bytes,
        *,
        id: int | MessageId | UUID,
        offset: int = 0,
        timestamp: int = 0,
        state: MessageState | int | str | None = MessageState.AVAILABLE,
        headers: Mapping[str, Header | HeaderValue] | None = None,
        layout: Layout = "current",
    ) -> Message:
        """Make a message, with the checksum of its payload and its headers sorted by key.

        Args:
            payload: up to 2**32 - 1 bytes.
            id: 0 to 2**128 - 1, a version-1 id for its body, or a UUID.
            offset: 0 to 2**64 - 1.
            timestamp: microseconds since 1970, 0 to 2**64 - 1.
            state: a state, its code or its name.
            headers: by key; Python values become headers of the kind that `Header.of` gives them.
            layout: ``previous`` leaves out state and checksum.

        Raises:
            TypeError, ValueError: an argument of the wrong type or out of range.
        """
        shape_of(layout)
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise TypeError(f"payload must be bytes, not {quote(payload)}")
        payload = bytes(payload)
        number = id if isinstance(id, int) else id_value(id)
        current = layout == "current"
        return cls(
            unsigned("offset", offset, U64_MAX),
            MessageState.of(MessageState.AVAILABLE if state is None else state) if current else None,
            unsigned("timestamp", timestamp, U64_MAX),
            unsigned("id", number, U128_MAX),
            checksum(payload) if current else None,
            headers_of(headers),
            payload,
        )

    @property
    def id_text(self) -> str:
        """The id as `id_text` writes it."""
        return id_text(self.id)

    @property
    def checksum_ok(self) -> bool | None:
        """Whether the checksum is that of the payload; None where there is none."""
        return None if self.checksum is None else self.checksum == checksum(self.payload)


def checksum(payload: bytes) -> int:
    """Give the CRC-32 (IEEE, as zlib and Spark have it) of a payload.

    >>> checksum(b"orders_data_2")
    2144931076
    """
    return zlib.crc32(payload)


def id_text(id: int | bytes) -> str:
    """Write the 128-bit id of an Iggy message as the identity it is: a version-1 id, or the UUIDv4 that a server made.

    The 16 bytes are as on the wire the body of a version-1 id, and for a UUID its bytes in the order of RFC 9562. They
    are a UUIDv4 where version and variant say so, as they do in no version-1 id before the year 2089.

    Args:
        id: 0 to 2**128 - 1, or the 16 bytes of the wire.

    Returns:
        34 upper-case hex digits, or a UUID in lower case.

    >>> id_text(232071677777564499402827199894559175028)
    '74b158ca-ddb3-498f-b0a9-9eec1c6197ae'
    >>> id_text(bytes.fromhex("56F7E71C361B21BC024CCDBE00000000"))
    '0156F7E71C361B21BC024CCDBE00000000'
    """
    raw = unsigned("id", id, U128_MAX).to_bytes(_ID_LENGTH, "little") if isinstance(id, int) else id
    if raw[6] >> 4 == _UUID_VERSION and raw[8] >> 6 == _UUID_VARIANT:
        return str(UUID(bytes=bytes(raw)))
    return MessageId.from_body(raw).hex


def id_value(id: MessageId | UUID | str) -> int:
    """Give the 128-bit id of an Iggy message for what `id_text` wrote, or for a value of it.

    Args:
        id: a version-1 id or a UUID, as a value or as text.

    Returns:
        0 to 2**128 - 1.

    Raises:
        InvalidMessageId: it is neither.

    >>> id_value("74b158ca-ddb3-498f-b0a9-9eec1c6197ae")
    232071677777564499402827199894559175028
    """
    if isinstance(id, str) and "-" in id:
        with suppress(ValueError):
            id = UUID(id) if len(id) == _UUID_DIGITS else id
    if isinstance(id, UUID):
        return int.from_bytes(id.bytes, "little")
    parsed = parse(id) if isinstance(id, str) else id
    if not isinstance(parsed, MessageId):
        raise InvalidMessageId(quote(id), NOT_V1)
    return int.from_bytes(parsed.body, "little")


def encode(message: Message, layout: Layout = "current") -> bytes:
    """Write a message.

    Args:
        message: with state and checksum for ``current``; ``previous`` leaves them out.
        layout: ``current`` or ``previous``.

    Returns:
        the message's bytes, its headers in the order that they have.

    Raises:
        ValueError: state or checksum is missing.

    >>> len(encode(Message.new(b"", id=1))), len(encode(Message.new(b"", id=1), "previous"))
    (45, 40)
    """
    shape = shape_of(layout)
    offset, state, timestamp, id, sum, headers, payload = message
    packed, raw = encode_headers(headers), id.to_bytes(_ID_LENGTH, "little")
    if layout == "current":
        if state is None or sum is None:
            raise ValueError("a message without state and checksum cannot be written in the layout 'current'")
        fixed = shape.fixed.pack(offset, state, timestamp, raw, sum, len(packed))
    else:
        fixed = shape.fixed.pack(offset, timestamp, raw, len(packed))
    return b"".join((fixed, packed, U32.pack(len(payload)), payload))


def decode(data: bytes | memoryview, layout: Layout = "current") -> Message:
    """Read one message, which is all there is.

    Args:
        data: the message's bytes.
        layout: ``current`` or ``previous``.

    Returns:
        the message; its checksum is not compared: `Message.checksum_ok` does that.

    Raises:
        TruncatedMessage: the bytes end before the message does.
        InvalidMessage: they are no message, or go on after it; with the place of the byte.

    >>> decode(encode(Message.new(b"hello", id=7))).payload
    b'hello'
    """
    reader = Reader(data)
    message = decode_from(reader, layout)
    reader.finish("the message")
    return message


def decode_from(reader: Reader, layout: Layout = "current") -> Message:
    """Read the message at a reader's place."""
    shape = shape_of(layout)
    start = reader.base + reader.place
    data, place = reader.data, reader.need(shape.fixed.size, "a message")
    if layout == "current":
        offset, code, timestamp, raw, sum, length = shape.fixed.unpack_from(data, place)
        state = _STATES.get(code)
        if state is None:
            raise InvalidMessage(f"state {code}, not {CODES}", start + shape.fields["state"][0])
    else:
        offset, timestamp, raw, length = shape.fixed.unpack_from(data, place)
        state = sum = None
    place = reader.need(length, "the block of headers")
    headers = {}
    if length:
        try:
            headers = decode_headers(Reader(data, place, place + length, reader.base))
        except TruncatedMessage as error:  # the headers' length is what there is, so more bytes will not help
            raise InvalidMessage(f"within headers of {length} bytes {error.reason}", error.offset) from None
    payload = reader.sized(4, "the payload")
    return Message(offset, state, timestamp, int.from_bytes(raw, "little"), sum, headers, payload)
