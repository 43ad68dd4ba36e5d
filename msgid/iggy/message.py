"""One Iggy message: its fields, its ID, its checksum and the bytes that it covers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args
from uuid import UUID

from msgid.ids.checked_bytes import is_uuid
from msgid.ids.message_id import MessageId
from msgid.iggy.headers import Header, HeaderName, HeaderValue, check_headers, encode_headers, headers_of
from msgid.iggy.records.checksums import crc32, xxh3
from msgid.iggy.records.id_texts import ID_LENGTH
from msgid.iggy.wire import H64, LAYOUTS, NEWEST, PREVIOUS, Layout, LayoutFacts, facts_of, name_of
from msgid.messages import MessageState
from msgid.shared.validate import UINT32_MAX, UINT64_MAX, UINT128_MAX, integer, one_of, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgid.iggy.records.producers import Producer

UuidOrder = Literal["bytes", "number"]
"""How producers write a UUID into a message: its bytes from the first to the last, or as a little-endian number."""

__all__ = ["Batch"]

_NEW: Final = struct.Struct("<16sQQQII")
_FRAME: Final = struct.Struct("<16sIIIIQ")


class Batch(NamedTuple):
    """The header of the ``batch256`` batch in which a message stands."""

    partition_id: int
    base_offset: int
    base_timestamp: int
    """The server's append time; 0 in a batch that a producer sends."""
    origin_timestamp: int
    """The earliest producer's time of the batch."""
    checksum: int
    checksum_ok: bool
    """Whether the checksum of the batch is right."""
    producer: Producer | None = None
    """The idempotent producer that made the batch, if it names one."""


@dataclass(frozen=True, slots=True)
class Message:
    """An Iggy message. `Message.new` computes state and checksum; `dataclasses.replace` changes fields.

    Two messages are equal if they have the same content, even if their layouts and batches differ.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a field is out of range or does not fit the layout.

    >>> message = Message.new(b"hello", id=7, offset=3)
    >>> message.checksum, message.id_text, message.layout
    (1447503219077035144, '07000000-0000-0000-0000-000000000000', 'batch256')
    """

    offset: int
    """The offset of the message in its partition."""
    state: MessageState | None
    """The state; None in layouts without states, which are ``previous`` and all layouts since release 0.5.0."""
    timestamp: int
    """The time when the server stored the message, in microseconds since 1970."""
    id: int
    """The ID as an unsigned integer of 128 bits."""
    checksum: int | None
    """CRC-32 of the payload in ``m45`` and ``batch24``, of the whole message in later layouts; None in ``previous``."""
    headers: dict[HeaderName, Header]
    """The headers by key: text, or a `HeaderKey` for a key of another kind."""
    payload: bytes
    """The payload, up to 2**32 - 1 bytes."""
    origin_timestamp: int | None = None
    """The time when the producer made the message, in microseconds since 1970; None in layouts before release 0.5.0."""
    layout: str = field(default="", compare=False)
    """The layout from which the message was read. Default: ``previous`` or ``m45``, by the checksum."""
    batch: Batch | None = field(default=None, compare=False, repr=False)
    """The header of the message's batch, if the message was read from a ``batch256`` batch."""

    def __post_init__(self) -> None:
        if not self.layout:
            object.__setattr__(self, "layout", "m45" if self.checksum is not None else "previous")
        facts = facts_of(self.layout)
        integer("offset", self.offset, 0, UINT64_MAX)
        integer("timestamp", self.timestamp, 0, UINT64_MAX)
        integer("id", self.id, 0, UINT128_MAX)
        if self.state is not None and not isinstance(self.state, MessageState):
            raise TypeError(f"state must be a MessageState or None, got {quote(self.state)}")
        if self.checksum is not None:
            integer("checksum", self.checksum, 0, UINT32_MAX if facts.has_state else UINT64_MAX)
        if (self.state is not None) != facts.has_state or (self.checksum is not None) != bool(facts.checksum):
            if facts.has_origin:
                raise ValueError(f"a message of the layout {self.layout!r} has a checksum and no state")
            raise ValueError("a message has both a state and a checksum, or neither")
        if self.origin_timestamp is not None:
            integer("origin_timestamp", self.origin_timestamp, 0, UINT64_MAX)
        check_headers(self.headers)
        if not isinstance(self.payload, bytes):
            raise TypeError(f"payload must be bytes, got {quote(self.payload)}")
        integer("the length of the payload", len(self.payload), 0, UINT32_MAX)

    @classmethod
    def new(
        cls,
        payload: bytes,
        *,
        id: int | MessageId | UUID,
        offset: int = 0,
        timestamp: int = 0,
        state: MessageState | int | str | None = MessageState.AVAILABLE,
        headers: Mapping[Any, Header | HeaderValue] | None = None,
        origin_timestamp: int | None = None,
        layout: Layout = NEWEST,
    ) -> Message:
        """Create a message, with its checksum and with its headers sorted by key.

        Args:
            payload: Payload, up to 2**32 - 1 bytes.
            id: ID as an integer of 0 to 2**128 - 1, as a version-1 ID (its body is used), or as a UUID.
            offset: Offset in the partition, 0 to 2**64 - 1.
            timestamp: Server time in microseconds since 1970, 0 to 2**64 - 1.
            state: State, its code or its name; ignored for a layout without states.
            headers: Headers by key; Python values become headers of the kind that `Header.of` returns.
            origin_timestamp: Producer time in microseconds since 1970; ignored for a layout without it. Default:
                ``timestamp``.
            layout: Layout of the checksum and the fields. `encode` computes those of its own layout; for ``m45`` and
                ``batch24`` it needs a message with a state. Default: the newest layout.

        Raises:
            TypeError, ValueError: if an argument has the wrong type or is out of range.
        """
        layout_name = name_of(layout)
        facts = facts_of(layout_name)
        if isinstance(payload, bytearray | memoryview):
            payload = bytes(payload)
        if facts.has_origin and origin_timestamp is None:
            origin_timestamp = timestamp
        message = cls(
            offset,
            MessageState.of(MessageState.AVAILABLE if state is None else state) if facts.has_state else None,
            timestamp,
            id if isinstance(id, int) else id_value(id),
            0 if facts.checksum else None,
            headers_of(headers),
            payload,
            origin_timestamp if facts.has_origin else None,
            layout_name,
        )
        return replace(message, checksum=own_checksum(message, layout_name)) if facts.checksum else message

    @property
    def id_text(self) -> str:
        """The ID as a UUID; the function `id_text` returns a version-1 ID, too."""
        return id_text(self.id)

    @property
    def checksum_ok(self) -> bool | None:
        """Whether the checksums of the message and its batch are correct; None in a layout without checksums."""
        if self.checksum is None:
            return None
        if self.batch is not None and self.batch.checksum_ok is False:
            return False
        return self.checksum == own_checksum(self, self.layout)


def digest(facts: LayoutFacts, data: bytes) -> int:
    """Return the checksum of bytes in a layout."""
    return xxh3(data) if facts.checksum == "xxh3" else crc32(data)


def origin_of(message: Message) -> int:
    """Return the producer's time of a message, or else the server's."""
    return message.timestamp if message.origin_timestamp is None else message.origin_timestamp


def raw_id(message: Message) -> bytes:
    """Return the 16 bytes of a message's ID."""
    return message.id.to_bytes(16, "little")


def new_body(message: Message, facts: LayoutFacts, headers: bytes, *, sent: bool = False) -> bytes:
    """Return a message of the layouts with 56 or 64 bytes, from byte 8 on."""
    offset, timestamp = (0, 0) if sent else (message.offset, message.timestamp)
    lengths = (len(headers), len(message.payload))
    fixed = _NEW.pack(raw_id(message), offset, timestamp, origin_of(message), *lengths)
    return b"".join((fixed, bytes(8) if facts.code == H64 else b"", message.payload, headers))


def frame_body(message: Message, headers: bytes, base_offset: int, origin: int) -> bytes:
    """Return a frame of a ``batch256`` batch, from byte 8 on."""
    deltas = ((message.offset - base_offset) & UINT64_MAX, (origin_of(message) - origin) & UINT64_MAX)
    if max(deltas) > UINT32_MAX:
        raise ValueError(
            f"cannot write the message at offset {message.offset} into a batch that starts at offset {base_offset} "
            f"and time {origin}: the distance must be 0 to {UINT32_MAX}"
        )
    fixed = _FRAME.pack(raw_id(message), *deltas, len(headers), len(message.payload), 0)
    return b"".join((fixed, message.payload, headers))


def base_of(message: Message) -> tuple[int, int]:
    """Return the offset and the producer's time that a message's frame counts from."""
    if message.batch is not None:
        return message.batch.base_offset, message.batch.origin_timestamp
    return message.offset, origin_of(message)


def own_checksum(message: Message, layout: str) -> int | None:
    """Return the checksum that a message must have in a layout; None if none is right."""
    facts = LAYOUTS[layout]
    if facts.code == PREVIOUS:
        return None
    if facts.has_state:
        return crc32(message.payload)
    headers = encode_headers(message.headers, typed=facts.typed_keys)
    if not facts.batch:
        return digest(facts, new_body(message, facts, headers))
    try:
        return digest(facts, frame_body(message, headers, *base_of(message)))
    except ValueError:  # fields that were changed, and fit the batch no more: no checksum is right
        return None


def checksum(payload: bytes) -> int:
    """Return the CRC-32 of a payload (IEEE, as in zlib and Spark).

    >>> checksum(b"orders_data_2")
    2144931076
    """
    return crc32(payload)


def id_text(id: MessageId | UUID | str | int | bytes, *, version_1: bool = False, uuid: UuidOrder = "bytes") -> str:
    """Return the ID of an Iggy message as text: a UUID, whose bytes are those of the message.

    A server or a client makes a UUID, and an application may use any 16 bytes. They do not tell whether they are the
    body of a version-1 ID: pass ``version_1`` if the producer puts such IDs into its messages. Nor do they tell in
    which order the producer wrote the bytes of a UUID: pass ``uuid``.

    Args:
        id: ID as an integer of 0 to 2**128 - 1, or its 16 bytes in the message; or a version-1 ID or UUID as `id_value`
            accepts them.
        version_1: Whether an integer and 16 bytes are the body of a version-1 ID.
        uuid: ``number`` if the producers pass a UUID as a number, as Java, Node.js, HTTP and ``uuid.int`` in Python do:
            the message has its bytes from the last to the first. Default: its bytes from the first to the last.

    Returns:
        A UUID in lower case; for a version-1 ID 34 upper-case hex digits.

    Raises:
        InvalidMessageId: if ``id`` is anything else.
        ValueError: if ``uuid`` is another text, or ``number`` together with ``version_1``.

    >>> id_text(232071677777564499402827199894559175028)
    '74b158ca-ddb3-498f-b0a9-9eec1c6197ae'
    >>> raw = bytes.fromhex("56F7E71C361B21BC024CCDBE00000000")
    >>> id_text(raw), id_text(raw, version_1=True)
    ('56f7e71c-361b-21bc-024c-cdbe00000000', '0156F7E71C361B21BC024CCDBE00000000')
    >>> id_text(2123340158126455836249256035818143754, uuid="number")
    '0198f0c0-a0b1-7c00-8000-00000000000a'
    """
    is_number = check_order(uuid, version_1) == "number"
    if isinstance(id, int):
        id = integer("id", id, 0, UINT128_MAX).to_bytes(ID_LENGTH, "little")
    if not (isinstance(id, bytes | bytearray | memoryview) and memoryview(id).nbytes == ID_LENGTH):
        known = _known(id)
        return known.hex if isinstance(known, MessageId) else str(known)
    if version_1:
        return MessageId.from_body(bytes(id)).hex
    return str(UUID(bytes=bytes(id)[::-1] if is_number else bytes(id)))


def check_order(uuid: UuidOrder, version_1: bool) -> UuidOrder:
    """Return the order of the bytes of a UUID, or raise ValueError if it is unknown or does not fit ``version_1``."""
    one_of("uuid", uuid, get_args(UuidOrder))
    if version_1 and uuid == "number":
        raise ValueError("uuid must be 'bytes' with version_1=True, got 'number'")
    return uuid


def id_value(id: MessageId | UUID | str | bytes, *, uuid: UuidOrder = "bytes") -> int:
    """Return the 128-bit ID of an Iggy message for a version-1 ID or UUID; the reverse of `id_text`.

    Args:
        id: Version-1 ID or UUID, as a value or as text; or the 17 bytes of a version-1 ID.
        uuid: ``number`` if the producers pass a UUID as a number; see `id_text`. A version-1 ID has one order.

    Returns:
        The ID as an integer of 0 to 2**128 - 1.

    Raises:
        InvalidMessageId: if ``id`` is neither.
        ValueError: if ``uuid`` is another text.

    >>> id_value("74b158ca-ddb3-498f-b0a9-9eec1c6197ae")
    232071677777564499402827199894559175028
    >>> id_value("0198f0c0-a0b1-7c00-8000-00000000000a", uuid="number")
    2123340158126455836249256035818143754
    """
    check_order(uuid, version_1=False)
    known = _known(id)
    if uuid == "number" and isinstance(known, UUID):
        return known.int
    return int.from_bytes(known.body if isinstance(known, MessageId) else known.bytes, "little")


def _known(id: Any) -> MessageId | UUID:
    """Return the version-1 ID or the UUID that a value, a text or 17 bytes name."""
    if isinstance(id, UUID):
        return id
    return UUID(id) if is_uuid(id) else MessageId(id)


def valid_message(**fields: Any) -> Message:
    """Return a message of all its fields without repeating the checks of `Message`, which take most of its time."""
    message = object.__new__(Message)
    for name, value in fields.items():
        object.__setattr__(message, name, value)
    return message
