"""Kafka records and their IDs. Spark rows, file exports and Python consumers give the same ID for the same record.

>>> record = Record.of({"topic": "orders", "partition": 3, "offset": 1234, "timestamp": 1648047038000})
>>> record.source(), record.message_id()
('kafka:kafka/orders/3', '011B10B399F8D80000024CCDBE000004D2')
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from uuid import UUID

from msgid import layout
from msgid.errors import InvalidMessage
from msgid.ids.checked_bytes import header_identity
from msgid.ids.derived import position_id
from msgid.messages import Encoding, bytes_of, check_row
from msgid.shared.handler_message import Message, key_text
from msgid.shared.known_tables import Columns, KnownTable, Named
from msgid.shared.moments import check_unit, moment_of, unit_hint, unix_micros
from msgid.shared.validate import INT32_MAX, in_range, one_of, quote

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Record"]

CLUSTER: Final = "kafka"
"""The default name of the cluster, which is part of every source name."""
ID_HEADER: Final = "message_id"
"""The default name of the header that may hold a message's own ID."""

HeaderType = Literal["id", "uuid"]
"""The reading of 16 bytes in a header: no ID, or a UUID."""
UUID_LENGTH: Final = 16
NO_ID: Final = "header {header} does not hold an ID"
"""The note of a message whose header is present and was not read."""

DEAD: Final = "__dlq.errors."
"""The beginning of the names of the headers that a share group gives to its dead letters."""
DEAD_REASON: Final = f"{DEAD}message"
DEAD_COUNT: Final = f"{DEAD}delivery.count"
DEAD_OFFSET: Final = f"{DEAD}offset"
FIRST_PLACE: Final = ("topic", "partition", "offset")
"""The ends of the names of those headers that name the first place."""
NO_FIRST_ID: Final = (
    "a dead letter of a share group must have an ID of its own: its time is not that of the first delivery"
)
"""The reason why a dead letter is refused: the ID of its place would be a second one."""

Headers = tuple[tuple[str, "bytes | None"], ...]

_NO_TIME: Final = "make a Record with a time of your own that is the same whenever the message is read"


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record.

    Args:
        topic: Name of the topic.
        partition: Number of the partition, 0 or more.
        offset: Offset in the partition, 0 to 2**48 - 1.
        timestamp: The record's own time, an aware datetime.
        key: Key as bytes, or None.
        value: Value as bytes. None is a tombstone, which is a message like any other.
        headers: Pairs of name and bytes, in their order; a name may occur more than once.

    Raises:
        InvalidMessage: if an argument has another type or is out of range.
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise InvalidMessage(f"topic must be text, got {quote(self.topic)}")
        if not in_range(self.partition, 0, INT32_MAX):
            raise InvalidMessage(f"partition must be 0 to {INT32_MAX}, got {quote(self.partition)}")
        if not in_range(self.offset, 0, layout.OFFSET_MAX):
            raise InvalidMessage(f"offset must be 0 to {layout.OFFSET_MAX}, got {quote(self.offset)}")
        for name, number in (("partition", self.partition), ("offset", self.offset)):
            object.__setattr__(self, name, int(number))  # an integer of NumPy may overflow later
        object.__setattr__(self, "timestamp", moment_of("timestamp", self.timestamp))

    @classmethod
    def of(cls, row: Mapping[str, Any], *, encoding: Encoding = "utf-8") -> Record:
        """Return the record that a row holds, with the columns of Spark's Kafka source.

        Args:
            row: ``topic``, ``partition``, ``offset``, ``timestamp`` (as `msgid.shared.moments.moment_of` reads it), and
                optionally ``key``, ``value`` and ``headers``: a list of pairs, or of mappings with ``key`` and
                ``value``; or a mapping of names to values. Other columns are ignored.
            encoding: How text in ``key``, ``value`` and header values stands for bytes: ``utf-8`` or ``base64``.

        Raises:
            InvalidMessage: if a column is missing or malformed.

        >>> row = {"topic": "orders", "partition": 3, "offset": 7, "timestamp": "1970-01-01T00:00:00Z", "value": "aGk="}
        >>> Record.of(row, encoding="base64").value
        b'hi'
        """
        check_row(row)
        missing = [name for name in ("topic", "partition", "offset", "timestamp") if row.get(name) is None]
        if missing:
            raise InvalidMessage(f"a Kafka row must have {missing[0]}, got {quote(dict(row))}")
        check_unit("timestamp", row["timestamp"], 1_000, InvalidMessage)
        return cls(
            row["topic"],
            row["partition"],
            row["offset"],
            moment_of("timestamp", row["timestamp"]),
            bytes_of("key", row.get("key"), encoding),
            bytes_of("value", row.get("value"), encoding),
            _headers(row.get("headers"), encoding),
        )

    @classmethod
    def from_consumer(cls, message: Any) -> Record:
        """Return the record of a consumer's message: confluent-kafka's, kafka-python's or aiokafka's.

        Args:
            message: An object with ``topic``, ``partition``, ``offset``, ``timestamp``, ``key``, ``value`` and
                ``headers``, as attributes or as methods without arguments.

        Raises:
            InvalidMessage: if one of them is missing or malformed, or if the object is an error event of
                confluent-kafka, such as the end of a partition.
        """
        error = getattr(message, "error", None)
        reason = error() if callable(error) else None
        if reason is not None:
            raise InvalidMessage(f"cannot make a record of an error event: {reason}")
        names = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        if missing := [name for name in names[:4] if not hasattr(message, name)]:
            raise InvalidMessage(f"a message of a consumer must have {missing[0]}, got {quote(message)}")
        attributes = {name: getattr(message, name, None) for name in names}
        row = {name: value() if callable(value) else value for name, value in attributes.items()}
        if isinstance(row["timestamp"], tuple):  # confluent-kafka returns (type, milliseconds)
            row["timestamp"] = row["timestamp"][-1] if row["timestamp"] else None
        if row["timestamp"] in (None, -1):  # Kafka's number for a message without a timestamp
            position = f"{row['topic']}/{row['partition']}/{row['offset']}"
            raise InvalidMessage(f"timestamp is missing in the message {position}: {_NO_TIME}")
        # The broker's own number is in milliseconds, even if a producer has sent seconds.
        return cls.of({**row, "timestamp": moment_of("timestamp", row["timestamp"])})

    def source(self, cluster: str = CLUSTER) -> str:
        """Return the name of the record's log: ``kafka:<cluster>/<topic>/<partition>``."""
        return _log_of(self.topic, self.partition, cluster)

    def message_id(
        self, cluster: str = CLUSTER, header: str | None = ID_HEADER, *, header_type: HeaderType = "id"
    ) -> str:
        """Return the record's ID; it does not depend on the reader.

        Args:
            cluster: Name of the cluster.
            header: Name of the header that may hold the message's own ID; None if no header does.
            header_type: ``uuid`` if 16 bytes in the header are a UUID. Default: they are not read, because any text of
                16 letters has 16 bytes.

        Returns:
            The canonical text of the ID or UUID in the last header of that name; else the `position_id` of source,
            offset and timestamp. `note` tells whether a header was not read.

        Raises:
            InvalidMessage: if the record is a dead letter of a share group without an ID of its own: its place is not
                that of its first delivery.

        >>> row = {"topic": "orders", "partition": 3, "offset": 7, "timestamp": 0}
        >>> Record.of({**row, "headers": [("message_id", b"0156f7e71c361b21bc024ccdbe00000000")]}).message_id()
        '0156F7E71C361B21BC024CCDBE00000000'
        """
        return _identity_of(self._value_of(header), header_type) or self._position_id(cluster)

    def message(
        self,
        *,
        cluster: str = CLUSTER,
        header: str | None = ID_HEADER,
        header_type: HeaderType = "id",
        key: str | None = None,
    ) -> Message:
        """Return the record as a message for a `msgid.processing.Processor`.

        Args:
            cluster: Name of the cluster; see `message_id`.
            header: Name of the header that may hold the message's own ID; see `message_id`.
            header_type: See `message_id`.
            key: The business key, if it is not the key of the record: a field of the value, say.

        Returns:
            The message. Its ID is the `message_id`, its timestamp is the record's own time. Its body is the value, as
            bytes, or None for a tombstone. Its key is the record's key as text; a key that is not text in UTF-8 becomes
            ``0x`` and its hex digits. A record without a key gets its ID as key, so that it has a state of its own.

        Raises:
            InvalidMessage: if the header is present and does not hold an ID: a message that is sent twice would get two
                IDs by its positions. Pass ``header=None`` if the header has another meaning. Or if the record is a dead
                letter of a share group without an ID of its own. Or if the record's time is one of 1970 that becomes a
                time of our years when its number is read as seconds.

        >>> row = {"topic": "orders", "partition": 3, "offset": 7, "timestamp": 0, "key": b"shop 5", "value": b"12"}
        >>> Record.of(row).message()
        Message(id='011B10B399F8D80000A0119A0000000007', key='shop 5', body=b'12', timestamp=0)
        """
        value = self._value_of(header)
        own = _identity_of(value, header_type)
        if value is not None and not own:
            raise InvalidMessage(
                f"header {header} must hold an ID or a UUID, got {quote(value)}: "
                "send str(derive_id(a UUID of your own, the text)), or pass header=None for the ID of the position"
            )
        id = own or self._position_id(cluster)
        if key is None:
            key = id if self.key is None else key_text(self.key)
        micros = unix_micros(self.timestamp)
        if unit_hint(micros, 1_000_000):
            raise InvalidMessage(
                f"timestamp of {self.source(cluster)} at offset {self.offset} is {self.timestamp.isoformat()}: "
                "has the producer sent seconds instead of milliseconds?"
            )
        return Message(id, key, self.value, micros)

    def note(self, header: str | None = ID_HEADER, *, header_type: HeaderType = "id") -> str | None:
        """Return that a header does not hold an ID; None if it holds one or is missing.

        Such a header may hold the producer's own name of the message, such as an order number.

        >>> row = {"topic": "orders", "partition": 3, "offset": 7, "timestamp": 0, "headers": [("message_id", b"no-7")]}
        >>> Record.of(row).note()
        'header message_id does not hold an ID'
        """
        value = self._value_of(header)
        return None if value is None or _identity_of(value, header_type) else NO_ID.format(header=header)

    def _position_id(self, cluster: str) -> str:
        place = first_place(self.headers)
        if place is not None:
            raise InvalidMessage(f"{NO_FIRST_ID}. Its first place is {quote(place)}: make a Message with its ID there")
        return str(position_id(self.source(cluster), self.offset, self.timestamp))

    def _value_of(self, header: str | None) -> bytes | None:
        """Return the last header of a name, or None without one; a header without a value is empty."""
        values = [value for name, value in self.headers if name == header]
        return (values[-1] or b"") if values else None


def _log_of(topic: object, partition: object, cluster: str = CLUSTER) -> str:
    return f"kafka:{cluster}/{topic}/{partition}"


def first_place(headers: Headers) -> str | None:
    """Return the first place of a dead letter of a share group as its headers name it; None for any other record.

    >>> first_place((("__dlq.errors.topic", b"orders"), ("__dlq.errors.offset", b"2")))
    'orders/?/2'
    """
    about = {name.removeprefix(DEAD): value or b"" for name, value in headers if name.startswith(DEAD)}
    if not about:
        return None
    return "/".join(about.get(name, b"?").decode(errors="replace") for name in FIRST_PLACE)


def first_position(headers: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the log and the offset that the headers of a dead letter name; None without them.

    >>> names = ("topic", "partition", "offset")
    >>> first_position({f"__dlq.errors.{name}": held for name, held in zip(names, ("orders", "0", "2"), strict=True)})
    ('kafka:kafka/orders/0', 2)
    """
    topic, partition, offset = (headers.get(f"{DEAD}{name}", "") for name in FIRST_PLACE)
    return (_log_of(topic, partition), int(offset)) if offset.isdecimal() else None


def _named(row: Mapping[str, Any]) -> Named:
    """Return the ID and the log of a row of Spark's Kafka source."""
    id = None
    with suppress(InvalidMessage):
        value = dict(_headers(row.get("headers"), "utf-8")).get(ID_HEADER)
        id = header_identity(value) or Record.of({**row, "key": None, "value": None}).message_id()
    is_placed = row["topic"] is not None and row["partition"] is not None
    return Named(id, _log_of(row["topic"], row["partition"]) if is_placed else None)


ROWS: Final = KnownTable(
    Columns(None, ("topic", "partition"), f"kafka:{CLUSTER}/", "offset", "timestamp", content=("value",)),
    ("topic", "partition", "offset"),
    named=_named,
)
"""The columns that an audit reads of the rows of Spark's Kafka source."""


def _identity_of(value: bytes | None, header_type: HeaderType) -> str | None:
    one_of("header_type", header_type, get_args(HeaderType))
    if header_type == "uuid" and value is not None and len(value) == UUID_LENGTH:
        return str(UUID(bytes=value))
    return header_identity(value)


def _headers(given: Any, encoding: Encoding) -> Headers:
    pairs = []
    if isinstance(given, Mapping):
        given = given.items()
    if given is not None and (isinstance(given, str | bytes) or not hasattr(given, "__iter__")):
        raise InvalidMessage(f"headers must be a list of pairs of name and value, got {quote(given)}")
    for header in given or ():
        try:
            name, value = (header["key"], header["value"]) if hasattr(header, "keys") else header
        except (KeyError, TypeError, ValueError):
            raise InvalidMessage(f"a header must be a pair of name and value, got {quote(header)}") from None
        if not isinstance(name, str):
            raise InvalidMessage(f"a header's name must be text, got {quote(name)}")
        pairs.append((name, bytes_of(f"header {name}", value, encoding)))
    return tuple(pairs)
