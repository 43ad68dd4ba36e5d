"""Version-0 IDs, the older format: a broker offset, or a client's address, pid, time and counter.

Both kinds have 16 bytes (IPv4) or 28 bytes (IPv6) and no marker of the kind. `msgid.parse` decides by the rule in
`msgid.layout.v0_kind`. If you know the kind, call `BrokerOffsetId.parse` or `ClientUniqueId.parse`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, final

from msgid import layout
from msgid.errors import InvalidMessageId
from msgid.ids._base import Value, compiled
from msgid.ids.checked_bytes import NOT_V0, id_bytes, kind_of, strip_version
from msgid.shared.moments import aware
from msgid.shared.validate import UINT16_MAX, integer, quote

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    from msgid.layout import Kind

_UTC: Final = timezone.utc
V = TypeVar("V", bound="_V0")


def _host_bytes(host: object) -> bytes:
    import ipaddress

    try:
        # ip_address would accept an int or bytes as a packed address; this function does not.
        address = host if isinstance(host, ipaddress.IPv4Address | ipaddress.IPv6Address) else None
        if address is None and isinstance(host, str):
            address = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"host must be an IPv4 or IPv6 address, got {quote(host)}") from None
    if address is None:
        raise TypeError(f"host must be an ipaddress address or its text, got {quote(host)}")
    if getattr(address, "scope_id", None):
        raise ValueError(f"host must be an address without a zone, got {quote(host)}")
    return address.packed


class _V0(Value):
    __slots__ = ()
    _json_pattern: ClassVar[str] = "^(00)?([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$"

    @classmethod
    def parse(cls: type[V], value: str | bytes) -> V:
        """Parse text or bytes as this kind of ID, even if `msgid.parse` would return the other kind.

        Args:
            value: 32 or 56 hex digits, or 16 or 28 bytes; or the canonical form of either, with ``00`` in front.

        Raises:
            InvalidMessageId: if the value is not a version-0 ID, or a field has a value that this kind cannot have.
        """
        raw = strip_version(id_bytes(value))
        if raw is None:
            raise InvalidMessageId(quote(value), NOT_V0)
        id = cls._of(raw)
        id._check(value)
        return id

    def _check(self, value: object) -> None:
        """Raise `InvalidMessageId` if a field has a value that this kind cannot have."""

    @property
    def version(self) -> int:
        """Always 0."""
        return layout.VERSION_0

    @property
    def host(self) -> IPv4Address | IPv6Address:
        """The address of the broker or client."""
        import ipaddress

        return ipaddress.ip_address(self._host_bytes)

    @property
    def _host_bytes(self) -> bytes:
        return self._bytes[: -layout.TAIL_LENGTH]

    @property
    def _rest(self) -> bytes:
        return self._bytes[-layout.TAIL_LENGTH :]


@compiled
@final
class BrokerOffsetId(_V0):
    """A version-0 ID made by a broker: its address and the offset of the message in its commit log.

    Args:
        host: Address of the broker, an `ipaddress` address or its text.
        port: Port of the broker, 0 to 65535.
        offset: Offset of the message in the commit log, in bytes, 0 to 2**48 - 1.

    Raises:
        TypeError, ValueError: if an argument has the wrong type or is out of range.

    `msgid.parse` reads the text back as an equal value, with two exceptions that could be client IDs: port 0, and an
    offset of at least 2**40 that ends in a zero byte. `BrokerOffsetId.parse` reads those too. RocketMQ's
    ``MessageDecoder.createMessageId`` defines the layout.

    >>> id = BrokerOffsetId("127.0.0.1", 9103, 123456)
    >>> str(id), id.canonical
    ('7F0000010000238F000000000001E240', '007F0000010000238F000000000001E240')
    """

    __module__ = "msgid"
    __slots__ = ()
    _kinds: ClassVar[tuple[Kind, ...]] = (layout.KIND_BROKER_OFFSET,)

    def __new__(cls, host: IPv4Address | IPv6Address | str, port: int, offset: int) -> BrokerOffsetId:  # noqa: D102
        rest = layout.BROKER_OFFSET.pack(
            integer("port", port, 0, layout.PORT_MAX), integer("offset", offset, 0, layout.OFFSET_MAX)
        )
        return cls._of(_host_bytes(host) + rest)

    def _check(self, value: object) -> None:
        if not (0 <= self.port <= layout.PORT_MAX and 0 <= self.offset <= layout.OFFSET_MAX):
            raise InvalidMessageId(quote(value), f"no broker offset: port {self.port}, offset {self.offset}")

    @property
    def kind(self) -> Kind:
        """Always ``"v0-broker-offset"``."""
        return layout.KIND_BROKER_OFFSET

    @property
    def port(self) -> int:
        """The broker's port."""
        return int(layout.BROKER_OFFSET.unpack(self._rest)[0])

    @property
    def offset(self) -> int:
        """The offset of the message in the broker's commit log, in bytes."""
        return int(layout.BROKER_OFFSET.unpack(self._rest)[1])

    def __repr__(self) -> str:
        return f"BrokerOffsetId('{self.host}', {self.port}, {self.offset})"

    def __reduce__(self) -> tuple[type[BrokerOffsetId], tuple[str, int, int]]:
        return BrokerOffsetId, (self.host.exploded, self.port, self.offset)


@compiled
@final
class ClientUniqueId(_V0):
    """A version-0 ID made by a client: its address, process, milliseconds of the month and a counter.

    Args:
        host: Address of the client, an `ipaddress` address or its text.
        pid: Process ID, 16 bits.
        loader_hash: Hash code of the class loader, 32 bits; 0 or random in clients that do not have one.
        elapsed_ms: Milliseconds since the start of the month in the client's time zone, 32 bits.
        counter: Counter of the client, 16 bits.

    Raises:
        TypeError, ValueError: if an argument has the wrong type or is out of range.

    `msgid.parse` reads the text back as an equal value, unless the fields also form a valid port and offset.
    `ClientUniqueId.parse` always does. RocketMQ's ``MessageClientIDSetter`` defines the layout.

    >>> import msgid
    >>> id = msgid.parse("C0A8F001103E214D29547ACFD6E30000")
    >>> str(id.host), id.pid, id.elapsed_ms, id.counter
    ('192.168.240.1', 4158, 2060441315, 0)
    """

    __module__ = "msgid"
    __slots__ = ()
    _kinds: ClassVar[tuple[Kind, ...]] = (layout.KIND_CLIENT_UNIQUE, layout.KIND_AMBIGUOUS)

    def __new__(  # noqa: D102
        cls, host: IPv4Address | IPv6Address | str, pid: int, loader_hash: int, elapsed_ms: int, counter: int
    ) -> ClientUniqueId:
        rest = layout.CLIENT_UNIQUE.pack(
            integer("pid", pid, 0, UINT16_MAX),
            integer("loader_hash", loader_hash, 0, layout.UINT32_MASK),
            integer("elapsed_ms", elapsed_ms, 0, layout.UINT32_MASK),
            integer("counter", counter, 0, UINT16_MAX),
        )
        return cls._of(_host_bytes(host) + rest)

    @property
    def kind(self) -> Kind:
        """Either ``"v0-client-unique"`` or ``"v0-ambiguous"``."""
        return layout.KIND_AMBIGUOUS if self.ambiguous else layout.KIND_CLIENT_UNIQUE

    @property
    def ambiguous(self) -> bool:
        """Whether the bytes can also mean a broker offset of 2**40 or more.

        RocketMQ's C++ client 1.2.0 to 1.2.3 makes such IDs, because it writes the fields in little-endian order.
        """
        return layout.v0_kind(*layout.BROKER_OFFSET.unpack(self._rest)) == layout.KIND_AMBIGUOUS

    @property
    def may_be_uuid(self) -> bool:
        """Whether the bytes may be a random UUID (version 4) that was written without dashes.

        One in 64 IDs of a client has the bits of such a UUID by chance. A time after the end of a month tells that the
        bytes are not an ID: `elapsed_ms` of 2678400000 or more, as in 3 of 8 UUIDs.

        >>> import msgid, uuid
        >>> msgid.parse(uuid.UUID("74b158ca-ddb3-498f-b0a9-9eec1c6197ae").hex).may_be_uuid
        True
        """
        return layout.may_be_uuid(self._bytes)

    @property
    def pid(self) -> int:
        """The low 16 bits of the client's process ID; some clients write 0."""
        return self._fields[0]

    @property
    def loader_hash(self) -> int:
        """The hash code of the client's class loader, 32 bits, unsigned."""
        return self._fields[1]

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the start of the month in the client's time zone; above 2**31 after 24.85 days."""
        return self._fields[2]

    @property
    def counter(self) -> int:
        """The client's counter, 16 bits."""
        return self._fields[3]

    @property
    def _fields(self) -> tuple[int, int, int, int]:
        return layout.CLIENT_UNIQUE.unpack(self._rest)

    def time_near(self, near: datetime, *, timezone: tzinfo | str = timezone.utc) -> datetime:
        """Return when the ID was made. The ID contains only the time since the start of the month.

        Args:
            near: An aware datetime less than 27 days after the creation of the ID, such as the time at which the
                message was born, stored or received. The ID may be up to a day later, because clocks differ.
            timezone: Time zone of the client, as a tzinfo or as a name of the IANA database.

        Returns:
            An aware UTC datetime in milliseconds, in a month that is longer than `elapsed_ms`. If several months have
            such a time, it is the nearest one to ``near`` that is at most a day after it.

        Raises:
            TypeError, ValueError: if ``near`` is not an aware datetime, or ``timezone`` is not a time zone.
            ValueError: if `elapsed_ms` is not part of the month of ``near`` or of one of the three months before,
                such as 31 days or more.

        RocketMQ's ``MessageClientIDSetter.getNearlyTimeFromID`` returns the same for an ID made before ``near``. For an
        ID made in the millisecond ``near`` or later, it returns a time a month too early.

        >>> import msgid
        >>> from datetime import datetime, timezone
        >>> id = msgid.parse("C0A8F001103E214D29547ACFD6E30000")
        >>> id.time_near(datetime(2021, 10, 3, tzinfo=timezone.utc), timezone="Asia/Shanghai").isoformat()
        '2021-09-24T12:20:41.315000+00:00'
        """
        zone = _zone(timezone)
        elapsed = timedelta(milliseconds=self.elapsed_ms)
        try:
            latest = aware("near", near) + timedelta(seconds=layout.CLOCKS_DIFFER_S)
            month = latest.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
            for _ in range(4):  # one of four months has 31 days of 24 hours: March may be an hour shorter
                following = (month + timedelta(days=31)).replace(day=1)
                moment = month.astimezone(_UTC) + elapsed
                if moment <= latest and moment < following.astimezone(_UTC):
                    return moment
                month = (month - timedelta(days=1)).replace(day=1)
        except OverflowError:
            raise ValueError(
                f"near must be at least three months from the first and the last year, got {near.isoformat()}"
            ) from None
        raise ValueError(
            f"cannot tell the time of {self}: {self.elapsed_ms} ms are not part of a month up to {near.isoformat()}"
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in zip(layout.CLIENT_FIELDS, self._fields, strict=True))
        return f"ClientUniqueId('{self.host}', {fields})"

    def __reduce__(self) -> tuple[type[ClientUniqueId], tuple[str, int, int, int, int]]:
        return ClientUniqueId, (self.host.exploded, *self._fields)


def _zone(timezone: tzinfo | str) -> tzinfo:
    if isinstance(timezone, tzinfo):
        return timezone
    if not isinstance(timezone, str):
        raise TypeError(f"timezone must be a tzinfo or the name of a time zone, got {quote(timezone)}")
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(timezone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError(
            f"timezone must be the name of a time zone, such as Asia/Shanghai, got {quote(timezone)}"
        ) from None


def read_v0(raw: bytes) -> BrokerOffsetId | ClientUniqueId:
    """Return the 16 or 28 bytes of a version-0 ID as the kind that `msgid.layout.v0_kind` decides."""
    if kind_of(raw) == layout.KIND_BROKER_OFFSET:
        return BrokerOffsetId._of(raw)
    return ClientUniqueId._of(raw)
