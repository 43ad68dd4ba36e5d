"""`MessageId`: the value of a version-1 ID."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final, final

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids._base import Value, compiled
from msgid.ids.checked_bytes import NOT_V1, id_bytes
from msgid.shared.moments import EPOCH, aware
from msgid.shared.validate import integer, quote

if TYPE_CHECKING:
    from uuid import UUID

    from msgid.layout import Kind, Origin

_FIELDS: Final = layout.FIELDS
_NODE: Final = slice(_FIELDS["node"].start, _FIELDS["node"].stop)
_PID: Final = slice(_FIELDS["pid"].start, _FIELDS["pid"].stop)
_SECONDS: Final = slice(_FIELDS["seconds"].start, _FIELDS["seconds"].stop)
_SEQUENCE: Final = slice(_FIELDS["sequence"].start, _FIELDS["sequence"].stop)
_VERSION_BYTE: Final = bytes([layout.VERSION_1])


@compiled
@final
class MessageId(Value):
    """A version-1 message ID: 17 bytes, written as 34 upper-case hex digits.

    IDs of one generator sort in the order in which they were made. IDs of different processes do not sort by time;
    `time_key` does. An ID is never equal to its text or bytes: compare ``str(id)``, or parse the text first.

    Args:
        value: 34 ASCII hex digits in either case, or 17 bytes.

    Raises:
        InvalidMessageId: if ``value`` is anything else. `msgid.parse` also reads version-0 IDs.

    RocketMQ's message-identifier document defines the layout; see `msgid.layout`.

    >>> id = MessageId("0156F7E71C361B21BC024CCDBE00000000")
    >>> id.mac, id.pid, id.time.isoformat(), id.sequence, id.origin
    ('56:f7:e7:1c:36:1b', 8636, '2022-03-23T14:50:38+00:00', 0, 'mac')
    """

    __module__ = "msgid"
    __slots__ = ()
    _kinds: ClassVar[tuple[Kind, ...]] = (layout.KIND_V1,)
    _json_pattern: ClassVar[str] = f"^01[0-9A-Fa-f]{{{layout.ID_DIGITS - 2}}}$"

    def __new__(cls, value: MessageId | str | bytes) -> MessageId:  # noqa: D102
        raw = id_bytes(value)
        if len(raw) != layout.ID_LENGTH or raw[0] != layout.VERSION_1:
            raise InvalidMessageId(quote(value), NOT_V1)
        return cls._of(raw)

    @classmethod
    def from_fields(cls, *, node: int, pid: int, seconds: int, sequence: int) -> MessageId:
        """Return the ID with the given fields.

        Args:
            node: Node as an integer of 48 bits.
            pid: Process ID, 16 bits.
            seconds: Seconds since 2021-01-01T00:00:00Z, 32 bits; they reach to 2157-02-07.
            sequence: Sequence number, 32 bits.

        Raises:
            TypeError: if a field is not an integer.
            ValueError: if a field is out of range.

        >>> MessageId.from_fields(node=0x56F7E71C361B, pid=8636, seconds=38587838, sequence=0)
        MessageId('0156F7E71C361B21BC024CCDBE00000000')
        """
        return cls._of(
            layout.pack(
                integer("node", node, 0, layout.NODE_MAX),
                integer("pid", pid, 0, layout.PID_MAX),
                integer("seconds", seconds, 0, layout.UINT32_MASK),
                integer("sequence", sequence, 0, layout.UINT32_MASK),
            )
        )

    @classmethod
    def from_body(cls, body: bytes) -> MessageId:
        """Return the ID with the given 16 bytes after its version byte.

        Raises:
            InvalidMessageId: if ``body`` is not 16 bytes.

        >>> MessageId.from_body(bytes.fromhex("56F7E71C361B21BC024CCDBE00000000"))
        MessageId('0156F7E71C361B21BC024CCDBE00000000')
        """
        if not isinstance(body, bytes | bytearray | memoryview) or len(bytes(body)) != layout.BODY_LENGTH:
            raise InvalidMessageId(quote(body), f"the body of an id is {layout.BODY_LENGTH} bytes")
        return cls._of(_VERSION_BYTE + bytes(body))

    @classmethod
    def from_uuid(cls, value: UUID) -> MessageId:
        """Return the ID for a UUID that `uuid` made; the body is the UUID's 16 bytes in the same order.

        Raises:
            InvalidMessageId: if ``value`` is not a `uuid.UUID`.

        >>> import uuid
        >>> MessageId.from_uuid(uuid.UUID("56f7e71c-361b-21bc-024c-cdbe00000000"))
        MessageId('0156F7E71C361B21BC024CCDBE00000000')
        """
        import uuid

        if not isinstance(value, uuid.UUID):
            raise InvalidMessageId(quote(value), f"a {type(value).__name__}; from_uuid takes a uuid.UUID")
        return cls.from_body(value.bytes)

    @property
    def version(self) -> int:
        """Always 1."""
        return layout.VERSION_1

    @property
    def kind(self) -> Kind:
        """Always ``"v1"``."""
        return layout.KIND_V1

    @property
    def canonical(self) -> str:
        """The same text as `hex`, because a version-1 ID contains its version byte."""
        return self.hex

    @property
    def node(self) -> int:
        """The MAC address or synthetic node as an integer of 48 bits, as in `uuid.UUID.node`."""
        return int.from_bytes(self._bytes[_NODE], "big")

    @property
    def mac(self) -> str:
        """The node as the text of a MAC address, ``aa:bb:cc:dd:ee:ff``."""
        return self._bytes[_NODE].hex(":")

    @property
    def pid(self) -> int:
        """The low 16 bits of the process ID. With a synthetic node, they can have another meaning: see `origin`."""
        return int.from_bytes(self._bytes[_PID], "big")

    @property
    def seconds(self) -> int:
        """Seconds since 2021-01-01T00:00:00Z, 32 bits."""
        return int.from_bytes(self._bytes[_SECONDS], "big")

    @property
    def sequence(self) -> int:
        """The sequence number from the generator's counter, 32 bits."""
        return int.from_bytes(self._bytes[_SEQUENCE], "big")

    @property
    def time(self) -> datetime:
        """`seconds` as an aware UTC datetime, 2021-01-01 to 2157-02-07; `time_near` handles later times."""
        return EPOCH + timedelta(seconds=self.seconds)

    def time_near(self, near: datetime) -> datetime:
        """Return the time closest to ``near`` that fits `seconds`, the low 32 bits of the full count of seconds.

        Args:
            near: An aware datetime of 2021 or later, at most 68 years from the creation of the ID.

        Returns:
            An aware UTC datetime.

        Raises:
            TypeError: if ``near`` is not a datetime.
            ValueError: if ``near`` is naive or before 2021, or the result is after the year 9999.

        >>> from datetime import datetime, timezone
        >>> id = MessageId("0156F7E71C361B21BC0000000A00000000")
        >>> id.time_near(datetime(2157, 3, 1, tzinfo=timezone.utc)).isoformat()
        '2157-02-07T06:28:26+00:00'
        """
        elapsed = (aware("near", near) - EPOCH) // timedelta(seconds=1)
        if elapsed < 0:
            raise ValueError(f"near must not be before {EPOCH.isoformat()}, where IDs begin, got {near.isoformat()}")
        span = layout.UINT32_SPAN
        wraps = max(0, (elapsed - self.seconds + span // 2) // span)
        try:
            return EPOCH + timedelta(seconds=self.seconds + wraps * span)
        except OverflowError:
            raise ValueError(f"the moment nearest to {near.isoformat()} lies past the year 9999") from None

    @property
    def origin(self) -> Origin:
        """The origin that the node declares: ``mac``, ``random``, ``assigned``, ``position`` or ``derived``."""
        return layout.origin_of(self.node)

    @property
    def body(self) -> bytes:
        """The 16 bytes after the version byte, an unsigned big-endian integer of 128 bits."""
        return self._bytes[1:]

    @property
    def uuid(self) -> UUID:
        """The body as a `uuid.UUID`, for a UUID column. Do not interpret its version and variant bits."""
        from uuid import UUID

        return UUID(bytes=self._bytes[1:])

    @property
    def time_key(self) -> bytes:
        """16 bytes that sort by (seconds, sequence, node, pid), as a time-ordered key."""
        return layout.time_key(self._bytes)

    def __repr__(self) -> str:
        return f"MessageId('{self.hex}')"

    def __reduce__(self) -> tuple[type[MessageId], tuple[bytes]]:
        return MessageId, (self._bytes,)
