"""RocketMQ rows and the IDs of their messages.

A RocketMQ message has two IDs. The producer's client writes the first into the property ``UNIQ_KEY``. Most clients call
it ``msgId``, and ``mqadmin queryMsgByUniqueKey`` takes it. The broker's ``offsetMsgId`` holds the broker's address and
the offset in its commit log; ``mqadmin queryMsgById`` takes it.

>>> row = {"topic": "orders", "brokerName": "broker-a", "queueId": 2, "queueOffset": 7, "storeTimestamp": 1648047038000}
>>> Record.of(row).source, Record.of(row).message_id()
('rocketmq:broker-a/orders/2', '01FBA9D519F4DB0000024CCDBE00000007')
>>> Record.of({**row, "properties": '{"UNIQ_KEY": "0156F7E71C361B21BC024CCDBE00000000"}'}).message_id()
'0156F7E71C361B21BC024CCDBE00000000'
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

from msgid import layout
from msgid.errors import InvalidMessage
from msgid.ids.checked_bytes import header_identity
from msgid.ids.derived import position_id
from msgid.messages import Encoding, bytes_of, check_row
from msgid.shared.handler_message import Message
from msgid.shared.known_tables import Columns, Inside, KnownTable, Named
from msgid.shared.moments import check_unit, moment_of
from msgid.shared.validate import INT32_MAX, in_range, is_utf8, quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import pyarrow as pa

__all__ = ["Record"]

UNIQUE_KEY: Final = "UNIQ_KEY"
"""The property that holds the ID that the producer's client made."""
KEYS: Final = "KEYS"
"""The property that holds the message's business keys, with a space between them."""
TAGS: Final = "TAGS"
"""The property that holds the message's tag."""
OFFSET_ID: Final = "offsetMsgId"
"""The column that may hold the broker-offset ID."""
RETRY_TOPIC: Final = "RETRY_TOPIC"
"""The property of a redelivered message that holds the topic to which it was sent."""
REAL_TOPIC: Final = "REAL_TOPIC"
"""The property of a redelivered message that holds the retry topic of the consumer group."""
REAL_QUEUE: Final = "REAL_QID"
"""The property of a redelivered message that holds the queue of the retry topic."""
POP_CHECKPOINT: Final = "POP_CK"
"""The property of a message that a consumer in POP mode received. `POP_KIND` is the place of a field in it."""
POP_KIND: Final = 4
"""The field says in which topic the message was: "0" for its own, or a key of `POP_RETRIES`."""
POP_RETRIES: Final = {"1": "_", "2": "+"}
"""The mark between group and topic in the name of a retry topic of POP mode, by the field of the checkpoint."""
POP_GROUP: Final = "ORIGIN_GROUP"
"""The property of a message redelivered in POP mode that holds the consumer group."""
REDELIVERIES: Final = "reconsumeTimes"
"""The column that may hold the number of redeliveries."""
RECONSUMED: Final = "RECONSUME_TIME"
"""The property of a redelivered message that holds the number of redeliveries."""
ORIGIN: Final = "ORIGIN_MESSAGE_ID"
"""The property of a redelivered message that holds the broker-offset ID of its first place."""
RETRY: Final = "%RETRY%"
"""The beginning of the name of a retry topic."""
DEAD: Final = "%DLQ%"
"""The beginning of the name of a dead-letter topic."""
NO_FIRST_PLACE: Final = f"property {UNIQUE_KEY} of a redelivered message must hold an ID or a UUID"
"""The reason why a message is refused: its place is not that of its first delivery, so it would get a second ID."""
NO_LOG: Final = "no position: the retry topic of a redelivered message is unknown"
"""The note of a redelivered message that has an ID of its own."""
NO_POSITION: Final = "the message does not have a broker, a queue and an offset, and its own ID is"


@dataclass(frozen=True, slots=True)
class Record:
    """One RocketMQ message, from a row of RocketMQ's connector for Spark or from a consumer in Python.

    A message of the Python client does not have a position: ``broker``, ``queue``, ``offset`` and ``stored`` are None.

    Args:
        topic: Name of the topic.
        broker: Name of the broker, ``brokerName`` in a row.
        queue: Number of the queue, ``queueId`` in a row.
        offset: Offset in the queue, ``queueOffset`` in a row, 0 to 2**48 - 1.
        stored: When the broker stored the message, ``storeTimestamp`` in a row.
        born: When the producer made the message, ``bornTimestamp`` in a row; None if the row does not have it.
        body: Payload.
        properties: Properties by name.
        offset_id: Broker-offset ID, ``offsetMsgId`` in a row; None if the row does not have it.

    Raises:
        InvalidMessage: if an argument has another type or is out of range.
    """

    topic: str
    broker: str | None = None
    queue: int | None = None
    offset: int | None = None
    stored: datetime | None = None
    born: datetime | None = None
    body: bytes | None = None
    properties: Mapping[str, str] | None = None
    offset_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise InvalidMessage(f"topic must be text, got {quote(self.topic)}")
        if self.born is not None:
            object.__setattr__(self, "born", moment_of("bornTimestamp", self.born))
        if any(part is not None for part in (self.broker, self.queue, self.offset, self.stored)):
            self._check_position()

    def _check_position(self) -> None:
        if not isinstance(self.broker, str) or not self.broker:
            raise InvalidMessage(f"brokerName must be text, got {quote(self.broker)}")
        if not in_range(self.queue, 0, INT32_MAX):
            raise InvalidMessage(f"queueId must be 0 to {INT32_MAX}, got {quote(self.queue)}")
        if not in_range(self.offset, 0, layout.OFFSET_MAX):
            raise InvalidMessage(f"queueOffset must be 0 to {layout.OFFSET_MAX}, got {quote(self.offset)}")
        for name, number in (("queue", self.queue), ("offset", self.offset)):
            object.__setattr__(self, name, int(number))  # an integer of NumPy may overflow later
        object.__setattr__(self, "stored", moment_of("storeTimestamp", self.stored))

    @classmethod
    def of(cls, row: Mapping[str, Any], *, encoding: Encoding = "utf-8") -> Record:
        """Return the message that a row of RocketMQ's connector for Spark, or an export of such rows, holds.

        Args:
            row: ``topic``, ``brokerName``, ``queueId``, ``queueOffset``, ``storeTimestamp``, and optionally ``body``,
                ``properties`` (a mapping, or a JSON object as text), ``bornTimestamp`` and ``offsetMsgId``. Other
                columns are ignored.
            encoding: How text in ``body`` stands for bytes: ``utf-8`` or ``base64``.

        Raises:
            InvalidMessage: if a column is missing or malformed.
        """
        check_row(row)
        needed = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp")
        missing = [name for name in needed if row.get(name) is None]
        if missing:
            raise InvalidMessage(f"a RocketMQ row must have {missing[0]}, got {quote(dict(row))}")
        born = row.get("bornTimestamp")
        for name in ("storeTimestamp", "bornTimestamp"):
            check_unit(name, row.get(name), 1_000, InvalidMessage)
        return cls(
            row["topic"],
            row["brokerName"],
            row["queueId"],
            row["queueOffset"],
            moment_of("storeTimestamp", row["storeTimestamp"]),
            None if born is None else moment_of("bornTimestamp", born),
            bytes_of("body", row.get("body"), encoding),
            _properties(row.get("properties")),
            row.get(OFFSET_ID),
        )

    @classmethod
    def from_consumer(cls, message: Any) -> Record:
        """Return the record of a message that a consumer of RocketMQ's Python client received.

        The client shows neither the queue nor the offset, so the record does not have a position.

        Args:
            message: An object with ``topic``, ``message_id``, ``body``, ``keys``, ``tag``, ``properties`` and
                ``born_timestamp`` (milliseconds since 1970).

        Raises:
            InvalidMessage: if one of them is missing or malformed, or if the client found a wrong checksum.
        """
        names = ("topic", "message_id", "body", "keys", "tag", "properties", "born_timestamp")
        missing = [name for name in names if not hasattr(message, name)]
        if missing:
            raise InvalidMessage(f"a message of a consumer must have {missing[0]}, got {quote(message)}")
        if getattr(message, "corrupted", False):
            raise InvalidMessage(f"cannot make a record of message {message.message_id}: its checksum is wrong")
        keys = (message.keys,) if isinstance(message.keys, str) else message.keys or ()
        if not hasattr(keys, "__iter__") or not all(isinstance(key, str) for key in keys):
            raise InvalidMessage(f"keys must be a set of text, got {quote(message.keys)}")
        system = {UNIQUE_KEY: message.message_id, KEYS: " ".join(sorted(keys)), TAGS: message.tag}
        own = {name: value for name, value in system.items() if value}
        born = message.born_timestamp or None
        return cls(
            message.topic,
            born=None if born is None else moment_of("bornTimestamp", born),
            body=bytes_of("body", message.body, "utf-8"),
            properties={**_properties(message.properties), **own},
        )

    @property
    def source(self) -> str:
        """The name of the message's log: ``rocketmq:<broker>/<topic>/<queue>``.

        A redelivered message of a push consumer has the first topic, but the queue and the offset of the consumer
        group's retry topic. Its log is the retry topic, so that it never has the position of another message.

        Raises:
            InvalidMessage: if the message does not have a position, or if it is redelivered and its properties do not
                name the retry topic.
        """
        log = self._log()
        if log.topic is None:
            name = log.redelivered_by or ""
            shown = f"{name} is {quote((self.properties or {}).get(name))}"
            raise InvalidMessage(f"cannot name the log of a redelivered message: no retry topic, and {shown}")
        return f"rocketmq:{self.broker}/{log.topic}/{log.queue}"

    def _log(self) -> RowLog:
        if self.broker is None or self.queue is None:
            raise InvalidMessage(f"{NO_POSITION}: {quote(self.original)}")
        return log_of(self.topic, self.queue, self.properties or {})

    @property
    def original(self) -> str | None:
        """The ID as the producer's client wrote it; None without the property ``UNIQ_KEY``.

        A broker finds a message only by this text: the Go client's IDs end in lower case, and the index compares
        letters.
        """
        return (self.properties or {}).get(UNIQUE_KEY)

    def message_id(self) -> str:
        """Return the message's ID; it does not depend on the reader.

        Returns:
            The canonical text of the ID or UUID in the property ``UNIQ_KEY``; else the `position_id` of source,
            offset and storing time.

        Raises:
            InvalidMessage: if the message has neither such an ID nor a position; or if it is redelivered or a dead
                letter, and does not have such an ID: its position is not that of its first delivery.
        """
        if own := header_identity(self.original):
            return own
        if self._log().redelivered_by is not None:
            first = quote((self.properties or {}).get(ORIGIN))
            raise InvalidMessage(
                f"{NO_FIRST_PLACE}, got {quote(self.original)}. To handle it, make a Message with str(derive_id(a UUID "
                f"of your own, the {OFFSET_ID} of the first delivery)) as its ID: {ORIGIN} is {first}"
            )
        return str(position_id(self.source, cast("int", self.offset), cast("datetime", self.stored)))

    def message(self, *, key: str | None = None) -> Message:
        """Return the record as a message for a `msgid.processing.Processor`.

        Args:
            key: The business key, if it is not the key in the property ``KEYS``: the group of a FIFO message, say.

        Returns:
            The message. Its ID is the `message_id`, its body is the payload as bytes. Its timestamp is the time at
            which the producer made it, or else the storing time. A record without a key gets its ID as key, so that it
            has a state of its own.

        Raises:
            InvalidMessage: if the record has several keys and ``key`` is not given; if it has neither an ID nor a
                position; or if ``UNIQ_KEY`` is present and does not hold an ID: a message that is delivered twice would
                get two IDs by its positions.

        >>> row = {"topic": "orders", "brokerName": "a", "queueId": 2, "queueOffset": 7, "storeTimestamp": 0}
        >>> Record.of({**row, "properties": {"KEYS": "shop-5"}, "body": b"12"}).message()
        Message(id='014B6528F2FD850000A0119A0000000007', key='shop-5', body=b'12', timestamp=0)
        """
        id = self.message_id()
        if self.original is not None and not header_identity(self.original):
            raise InvalidMessage(
                f"{UNIQUE_KEY} must hold an ID or a UUID, got {quote(self.original)}: "
                "make a Message with str(derive_id(a UUID of your own, the text)) as its ID"
            )
        if key is None:
            keys = (self.properties or {}).get(KEYS, "").split()
            if len(keys) > 1:
                raise InvalidMessage(f"key must be given for a message with several keys, got {quote(keys)}")
            key = keys[0] if keys else id
        return Message(id, key, self.body, self.born or self.stored)


class RowLog(NamedTuple):
    """Where the offset of a row counts, and whether the row is the first delivery of its message."""

    topic: str | None
    """None if the row does not tell."""
    queue: int | None
    redelivered_by: str | None = None
    """The property that shows a redelivered or dead message, or ``topic``; None for the first delivery."""


def log_of(topic: str, queue: int, properties: Mapping[str, str]) -> RowLog:
    """Return the log of a row. No other function decides it; `spark_ext.formats.rocketmq.log_of` is the same column.

    A push consumer shows a redelivered message with its first topic, and the queue and offset of a retry topic.

    >>> log_of("orders", 3, {})
    RowLog(topic='orders', queue=3, redelivered_by=None)
    >>> log_of("orders", 0, {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "0"})
    RowLog(topic='%RETRY%billing', queue=0, redelivered_by='RETRY_TOPIC')
    >>> log_of("orders", 0, {"POP_CK": "0 1795918014305 11000 6 1 broker-a 0 3", "ORIGIN_GROUP": "billing"})
    RowLog(topic='%RETRY%billing_orders', queue=0, redelivered_by='POP_CK')
    """
    if topic.startswith((RETRY, DEAD)):
        return RowLog(topic, queue, "topic")
    if RETRY_TOPIC in properties:
        retry, number = properties.get(REAL_TOPIC, ""), properties.get(REAL_QUEUE, "")
        if retry.startswith(RETRY) and re.fullmatch("[0-9]{1,9}", number):
            return RowLog(retry, int(number), RETRY_TOPIC)
        return RowLog(None, None, RETRY_TOPIC)
    if POP_CHECKPOINT in properties:
        kind = [*properties[POP_CHECKPOINT].split(" "), *[""] * POP_KIND][POP_KIND]
        group = properties.get(POP_GROUP)
        if kind in POP_RETRIES and group:
            return RowLog(f"{RETRY}{group}{POP_RETRIES[kind]}{topic}", queue, POP_CHECKPOINT)
        if kind != "0":
            return RowLog(None, None, POP_CHECKPOINT)
    return RowLog(None, None, ORIGIN) if ORIGIN in properties else RowLog(topic, queue)


def audited_rows(table: pa.Table) -> pa.Table:
    """Add the column ``id`` to rows of the connector, and give redelivered messages their own log.

    An ID is the property ``UNIQ_KEY``, or else the ID of `Record.message_id`; NULL if the row is not a message.
    """
    import pyarrow as pa

    names = [name for name in table.column_names if name != "body"]
    added: dict[str, list[Any]] = {"id": [], "topic": [], "queueId": [], "queueOffset": []}
    for row in table.select(names).to_pylist():
        given = row["properties"]
        row["properties"] = dict(given) if isinstance(given, list) else given  # Arrow's maps are lists of pairs
        id, log = None, RowLog(row["topic"], row["queueId"])
        with suppress(InvalidMessage):
            properties = _properties(row["properties"])
            id, log = properties.get(UNIQUE_KEY), log_of(row["topic"] or "", row["queueId"], properties)
            if row["topic"] is None and log.redelivered_by != RETRY_TOPIC:  # the names of other logs have the topic
                log = RowLog(None, row["queueId"])
            if row.get("storeTimestamp") is not None:  # the broker's own number, whatever a clock has said
                row["storeTimestamp"] = moment_of("storeTimestamp", row["storeTimestamp"])
            id = id or Record.of({**row, "bornTimestamp": None}).message_id()
        if isinstance(id, str) and not is_utf8(id):  # JSON has half a pair of surrogates, and Arrow's text has not
            id = ascii(id)
        if log.topic is not None and not is_utf8(log.topic):
            log = RowLog(None, log.queue)
        offset = None if log.topic is None else row["queueOffset"]
        for name, value in zip(added, (id, log.topic, log.queue, offset), strict=True):
            added[name].append(value)
    for name, values in added.items():
        column = pa.array(values, pa.string() if name == "id" else None)
        kept = table.drop_columns(name) if name in table.column_names else table
        table = kept.append_column(name, column)
    return table


def _named(row: Mapping[str, Any]) -> Named:
    """Return the ID and the log of a row of the connector."""
    id = name = None
    with suppress(InvalidMessage):
        properties = _properties(row.get("properties"))
        log = log_of(str(row["topic"] or ""), row["queueId"], properties)
        name = f"rocketmq:{row['brokerName']}/{log.topic}/{log.queue}" if log.topic else None
        id = header_identity(properties.get(UNIQUE_KEY))
        id = id or Record.of({**row, "body": None, "bornTimestamp": None}).message_id()
    return Named(id, name)


ROWS: Final = KnownTable(
    Columns(None, ("brokerName", "topic", "queueId"), "rocketmq:", "queueOffset", "storeTimestamp", content=("body",)),
    ("brokerName", "topic", "queueId", "queueOffset"),
    Inside("properties", "rocketmq", audited_rows),
    _named,
)
"""The columns of RocketMQ's connector that an audit reads."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _properties(given: Any) -> dict[str, str]:
    if isinstance(given, str):
        try:
            given = json.loads(given, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise InvalidMessage(f"properties must be a JSON object, got {quote(given)}") from None
    if given is None:
        return {}
    if not hasattr(given, "items"):
        raise InvalidMessage(f"properties must be a mapping or a JSON object, got {quote(given)}")
    known = ((str(name), value) for name, value in given.items() if value is not None)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in known}
