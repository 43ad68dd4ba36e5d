"""One Iggy message: its fields, its checksum and its ID."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msgid._validate import UINT32_MAX, UINT64_MAX, UINT128_MAX, integer, quote
from msgid.errors import InvalidMessageId
from msgid.ids._bytes import NOT_V1
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse
from msgid.iggy._records.checksums import crc32
from msgid.iggy._records.encoding import Batch, own_checksum
from msgid.iggy._wire import Layout, facts_of, name_of
from msgid.iggy.headers import Header, HeaderName, HeaderValue, check_headers, headers_of
from msgid.messages import MessageState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Batch", "Message", "checksum", "id_text", "id_value", "valid_message"]

_ID_LENGTH: Final = 16
_UUID_VERSIONS: Final = (4, 7)
"""The versions that servers and clients make: 4 up to 0.4.0 and from 0.6.0 on, 7 in between."""
_UUID_VARIANT: Final = 0b10
_UUID_DIGITS: Final = 36


class _Slots:
    """The fields of a `Message` before they are frozen.

    Decoding makes a message of every few bytes. Filling these slots takes a third of the time that the ``__init__`` of
    a frozen class takes.
    """

    __slots__ = (
        "batch",
        "checksum",
        "headers",
        "id",
        "layout",
        "offset",
        "origin_timestamp",
        "payload",
        "state",
        "timestamp",
    )

    def __init__(
        self,
        offset: int,
        state: MessageState | None,
        timestamp: int,
        id: int,
        checksum: int | None,
        headers: dict[HeaderName, Header],
        payload: bytes,
        origin_timestamp: int | None,
        layout: str,
        batch: Batch | None,
    ) -> None:
        self.offset = offset
        self.state = state
        self.timestamp = timestamp
        self.id = id
        self.checksum = checksum
        self.headers = headers
        self.payload = payload
        self.origin_timestamp = origin_timestamp
        self.layout = layout
        self.batch = batch


def _none() -> None:
    """Return the default of a field; a plain default value would hide the slot."""


@dataclass(frozen=True)
class Message(_Slots):
    """An Iggy message. `Message.new` fills in state and checksum; `dataclasses.replace` changes fields.

    Two messages are equal if they have the same content, whatever the layouts and batches they were read from.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a field is out of range or does not fit the layout.

    >>> message = Message.new(b"hello", id=7, offset=3)
    >>> message.checksum, str(message.state), message.id_text
    (907060870, 'available', '0107000000000000000000000000000000')
    """

    __slots__ = ()

    offset: int
    """The message's place in its partition."""
    state: MessageState | None
    """None in the layouts without states: ``previous``, and all since release 0.5.0."""
    timestamp: int
    """When the server stored the message, in microseconds since 1970."""
    id: int
    """Unsigned, of 128 bits."""
    checksum: int | None
    """In ``m45`` and ``batch24`` the CRC-32 of the payload; later of the whole message. None in ``previous``."""
    headers: dict[HeaderName, Header]
    """By key: text, or a `HeaderKey` for a key of another kind."""
    payload: bytes
    """Up to 2**32 - 1 bytes."""
    origin_timestamp: int | None = field(default_factory=_none)
    """When the producer made the message, in microseconds since 1970; None in the layouts before release 0.5.0."""
    layout: str = field(default_factory=str, compare=False)
    """The layout of the bytes that the message was read from. Default: ``previous`` or ``m45``, by the checksum."""
    batch: Batch | None = field(default_factory=_none, compare=False, repr=False)
    """The header of its batch, if the message was read from a ``batch256`` batch."""

    def __post_init__(self) -> None:
        if not self.layout:
            object.__setattr__(self, "layout", "m45" if self.checksum is not None else "previous")
        facts = facts_of(self.layout)
        integer("offset", self.offset, 0, UINT64_MAX)
        integer("timestamp", self.timestamp, 0, UINT64_MAX)
        integer("id", self.id, 0, UINT128_MAX)
        if self.state is not None and not isinstance(self.state, MessageState):
            raise TypeError(f"state must be a MessageState or None, not {quote(self.state)}")
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
            raise TypeError(f"payload must be bytes, not {quote(self.payload)}")
        integer("the length of the payload", len(self.payload), 0, UINT32_MAX)

    def __reduce__(self) -> tuple[type[Message], tuple[Any, ...]]:
        return Message, (
            self.offset,
            self.state,
            self.timestamp,
            self.id,
            self.checksum,
            self.headers,
            self.payload,
            self.origin_timestamp,
            self.layout,
            self.batch,
        )

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
        layout: Layout = "m45",
    ) -> Message:
        """Make a message, with its checksum and with its headers sorted by key.

        Args:
            payload: Up to 2**32 - 1 bytes.
            id: 0 to 2**128 - 1, a version-1 ID for its body, or a UUID.
            offset: 0 to 2**64 - 1.
            timestamp: Server time in microseconds since 1970, 0 to 2**64 - 1.
            state: A state, its code or its name; ignored for a layout without states.
            headers: By key; Python values become headers of the kind that `Header.of` returns.
            origin_timestamp: Producer time in microseconds since 1970; ignored for a layout without it. Default:
                ``timestamp``.
            layout: The layout for which the checksum is made.

        Raises:
            TypeError, ValueError: if an argument has the wrong type or is out of range.
        """
        layout_name = name_of(layout)
        facts = facts_of(layout_name)
        if isinstance(payload, bytearray | memoryview):
            payload = bytes(payload)
        if facts.has_origin and origin_timestamp is None:
            origin_timestamp = timestamp
        made = cls(
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
        return replace(made, checksum=own_checksum(made, layout_name)) if facts.checksum else made

    @property
    def id_text(self) -> str:
        """The ID as `id_text` writes it."""
        return id_text(self.id)

    @property
    def checksum_ok(self) -> bool | None:
        """Whether the checksum is right, that of its batch included; None in a layout without checksums."""
        if self.checksum is None:
            return None
        if self.batch is not None and self.batch.checksum_ok is False:
            return False
        return self.checksum == own_checksum(self, self.layout)


def checksum(payload: bytes) -> int:
    """Return the CRC-32 of a payload (IEEE, as in zlib and Spark).

    >>> checksum(b"orders_data_2")
    2144931076
    """
    return crc32(payload)


def id_text(id: int | bytes) -> str:
    """Return the 128-bit ID of an Iggy message as text: a version-1 ID, or the UUID that a server or a client made.

    The 16 bytes of the wire are the body of a version-1 ID, or a UUID in the byte order of RFC 9562. They are a UUID
    if the version is 4 or 7 and the variant fits. No version-1 ID from before the year 2089 has that variant.

    Args:
        id: 0 to 2**128 - 1, or the 16 bytes of the wire.

    Returns:
        34 upper-case hex digits, or a UUID in lower case.

    >>> id_text(232071677777564499402827199894559175028)
    '74b158ca-ddb3-498f-b0a9-9eec1c6197ae'
    >>> id_text(bytes.fromhex("0193e3b27c1a7d3e9a5f0123456789ab"))
    '0193e3b2-7c1a-7d3e-9a5f-0123456789ab'
    >>> id_text(bytes.fromhex("56F7E71C361B21BC024CCDBE00000000"))
    '0156F7E71C361B21BC024CCDBE00000000'
    """
    raw = integer("id", id, 0, UINT128_MAX).to_bytes(_ID_LENGTH, "little") if isinstance(id, int) else id
    if raw[6] >> 4 in _UUID_VERSIONS and raw[8] >> 6 == _UUID_VARIANT:
        return str(UUID(bytes=bytes(raw)))
    return MessageId.from_body(raw).hex


def id_value(id: MessageId | UUID | str) -> int:
    """Return the 128-bit ID of an Iggy message for the text that `id_text` returns, or for a value.

    Args:
        id: A version-1 ID or a UUID, as a value or as text.

    Returns:
        0 to 2**128 - 1.

    Raises:
        InvalidMessageId: if it is neither.

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


def valid_message(
    offset: int,
    state: MessageState | None,
    timestamp: int,
    id: int,
    checksum: int | None,
    headers: dict[HeaderName, Header],
    payload: bytes,
    origin_timestamp: int | None = None,
    layout: str = "m45",
    batch: Batch | None = None,
) -> Message:
    """Return a message of values that are already checked, without the checks of `Message`."""
    made: Any = _Slots(offset, state, timestamp, id, checksum, headers, payload, origin_timestamp, layout, batch)
    made.__class__ = Message
    message: Message = made
    return message
