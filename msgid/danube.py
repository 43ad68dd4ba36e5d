"""Danube's messages (as in the Danube message-structure document): values, protobuf and JSON.

>>> id = MessageID(9, "/default/events", "http://127.0.0.1:6650", 42)
>>> message = StreamMessage(7, id, b"hello", 1648047038000, "p1")
>>> StreamMessage.decode(message.encode()) == message
True
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid.errors import InvalidMessage
from msgid.ids.derived import position_id
from msgid.shared.moments import UNIX_EPOCH
from msgid.shared.validate import UINT32_MAX, UINT64_MAX, check_installed, in_range, is_utf8, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgid.ids.message_id import MessageId

__all__ = ["MessageID", "StreamMessage", "unlogged"]

DEAD: Final = "x-original-"
"""The beginning of the names of the attributes that name the first place of a dead letter."""
ORIGINAL_TOPIC: Final = "x-original-topic"
ORIGINAL_OFFSET: Final = "x-original-topic-offset"
ORIGINAL_PRODUCER: Final = "x-original-producer-id"
ORIGINAL_BROKER: Final = "x-original-broker-addr"
DEAD_COUNT: Final = "x-delivery-attempt"
DEAD_REASON: Final = "x-failure-reason"
_OF_DEAD: Final = (DEAD_COUNT, "x-poison-policy", DEAD_REASON)
_BROKER: Final = 0
"""The producer of dead letters."""
_NUMBER: Final = re.compile("[0-9]{1,20}")
_DISPLAY: Final = re.compile(r"topic:_([^:]+)_producer:_(\d{1,20})_topic_offset:_(\d{1,20})", re.ASCII)

# Field name: (number, protobuf type). An optional field has presence: 0 or "" differs from a missing field.
_ID_FIELDS: Final = {
    "producer_id": (1, "UINT64"),
    "topic_name": (2, "STRING"),
    "broker_addr": (3, "STRING"),
    "topic_offset": (5, "UINT64"),
}
_FIELDS: Final = {
    "request_id": (1, "UINT64"),
    "msg_id": (2, "MESSAGE"),
    "payload": (3, "BYTES"),
    "publish_time": (4, "UINT64"),
    "producer_name": (5, "STRING"),
    "subscription_name": (6, "STRING"),
    "attributes": (7, "MESSAGE"),
    "schema_id": (8, "UINT64"),
    "schema_version": (9, "UINT32"),
    "routing_key": (10, "STRING"),
}
_OPTIONAL: Final = ("subscription_name", "schema_id", "schema_version", "routing_key")


class MessageID(NamedTuple):
    """The position of a Danube message.

    >>> print(MessageID(9, "/default/events", "http://127.0.0.1:6650", 42))
    topic:_/default/events_producer:_9_topic_offset:_42
    """

    producer_id: int
    topic_name: str
    broker_addr: str
    """The broker's address; it changes when a topic moves, so it is not part of the identity."""
    topic_offset: int

    def __str__(self) -> str:
        return f"topic:_{self.topic_name}_producer:_{self.producer_id}_topic_offset:_{self.topic_offset}"

    @classmethod
    def parse(cls, text: str) -> MessageID:
        """Parse the display form, as ``str`` returns it; the result has an empty broker address.

        Args:
            text: The display form. A topic name cannot contain a colon.

        Raises:
            InvalidMessage: if the text is not a display form.

        >>> MessageID.parse("topic:_/default/events_producer:_9_topic_offset:_42")
        MessageID(producer_id=9, topic_name='/default/events', broker_addr='', topic_offset=42)
        """
        match = _DISPLAY.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidMessage(f"message id {quote(text)}, not topic:_..._producer:_..._topic_offset:_...")
        topic, producer, offset = match[1], int(match[2]), int(match[3])
        if max(producer, offset) > UINT64_MAX:
            raise InvalidMessage(f"message id {quote(text)}, with a number of more than 64 bits")
        return cls(producer, topic, "", offset)

    @property
    def key(self) -> tuple[str, int, int]:
        """The identity: (topic, producer, offset). `unlogged` finds messages without an identity."""
        return self.topic_name, self.producer_id, self.topic_offset

    @property
    def log(self) -> str:
        """The name of the log that numbers the offsets: a broker counts them per topic, over all producers."""
        return f"danube:{self.topic_name}"

    @property
    def source(self) -> str:
        """The source for `msgid.position_id`, from topic and producer."""
        return f"danube:{self.topic_name}#{self.producer_id}"

    def position_id(self, at: datetime | float) -> MessageId:
        """Return the ID of this place: `msgid.position_id` of its source and offset.

        Args:
            at: Publishing time, as an aware datetime or in Unix seconds.

        Raises:
            ValueError: if the offset is 2**48 or more.

        >>> MessageID(9, "/default/events", "", 42).position_id(1648047038)
        MessageId('013B223F1FE58B0000024CCDBE0000002A')
        """
        return position_id(self.source, self.topic_offset, at)


def unlogged(ids: Iterable[MessageID]) -> set[str]:
    """Return the topics whose messages all have offset 0.

    A topic without a log never increases its offset, so its messages do not have an identity. The messages of one
    producer do not tell: the first message of a topic has offset 0, too.

    Args:
        ids: Positions of all available messages.

    >>> unlogged([MessageID(1, "/a/b", "", 0), MessageID(1, "/a/c", "", 0), MessageID(2, "/a/c", "", 5)])
    {'/a/b'}
    """
    most: dict[str, int] = {}
    for id in ids:
        most[id.topic_name] = max(most.get(id.topic_name, 0), id.topic_offset)
    return {topic for topic, offset in most.items() if offset == 0}


def first_position(attributes: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the topic and the offset that the attributes of a dead letter name; None without them.

    >>> first_position({"x-original-topic": "/a/b", "x-original-topic-offset": "42"})
    ('/a/b', 42)
    """
    topic, offset = attributes.get(ORIGINAL_TOPIC), attributes.get(ORIGINAL_OFFSET, "")
    return (topic, int(offset)) if topic and _NUMBER.fullmatch(offset) else None


def first_place(id: MessageID, attributes: Mapping[str, str]) -> MessageID:
    """Return the place of the first delivery of a message; only a dead letter has another one than its own.

    A broker publishes a dead letter with producer 0 to another topic, with the payload and the time of the message. Its
    attributes name the first place. No other function decides the place by which a message has its ID.

    Raises:
        InvalidMessage: if the attributes do not name the place; or if a program has sent them, because the time is then
            not that of the first delivery.
    """
    is_of_broker = id.producer_id == _BROKER
    shown = sorted(name for name in attributes if name.startswith(DEAD) or (is_of_broker and name in _OF_DEAD))
    if not shown:
        return id
    if not is_of_broker:
        raise InvalidMessage(
            f"no ID: attribute {quote(shown[0])} is that of a dead letter, and producer {id.producer_id} has sent it "
            "again, so its time is not that of the first delivery"
        )
    topic = attributes.get(ORIGINAL_TOPIC)
    if not topic:
        raise InvalidMessage(f"no ID: a dead letter must have the attribute {ORIGINAL_TOPIC}, got {quote(topic)}")
    producer = _number(attributes, ORIGINAL_PRODUCER, _BROKER + 1)  # not the dead letter of a dead letter
    return MessageID(producer, topic, attributes.get(ORIGINAL_BROKER, ""), _number(attributes, ORIGINAL_OFFSET, 0))


def _number(attributes: Mapping[str, str], name: str, least: int) -> int:
    text = attributes.get(name, "")
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= UINT64_MAX:
        allowed = f"{least} to {UINT64_MAX}"
        raise InvalidMessage(f"no ID: attribute {name} of a dead letter must be {allowed}, got {quote(text)}")
    return int(text)


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A Danube message; `dataclasses.replace` changes fields."""

    request_id: int
    msg_id: MessageID
    payload: bytes
    publish_time: int
    """Publishing time in milliseconds since 1970."""
    producer_name: str
    subscription_name: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    schema_version: int | None = None
    routing_key: str | None = None

    @property
    def time(self) -> datetime:
        """The publishing time in UTC.

        Raises:
            OverflowError: if the time is after the year 9999.
        """
        return UNIX_EPOCH + timedelta(milliseconds=self.publish_time)

    @property
    def first_place(self) -> MessageID:
        """The place of the first delivery, which is `msg_id` but for a dead letter.

        Raises:
            InvalidMessage: if the attributes of a dead letter do not name the place, or if a program has sent it again.
        """
        return first_place(self.msg_id, self.attributes)

    def message_id(self) -> str:
        """Return the message's ID: the `position_id` of its first place and its publishing time.

        Raises:
            InvalidMessage: if the first place is unknown, or its offset is 2**48 or more.
            OverflowError: if the publishing time is after the year 9999.

        >>> place, letter = MessageID(9, "/a/b", "", 42), MessageID(0, "/a/b-dlq", "", 0)
        >>> attributes = {"x-original-topic": "/a/b", "x-original-producer-id": "9", "x-original-topic-offset": "42"}
        >>> sent, dead = StreamMessage(1, place, b"", 5, "p"), StreamMessage(0, letter, b"", 5, "p", None, attributes)
        >>> sent.message_id() == dead.message_id() == str(place.position_id(sent.time))
        True
        """
        place = self.first_place
        if place.topic_offset > layout.OFFSET_MAX:
            raise InvalidMessage(f"no ID: offset {place.topic_offset} has more than 48 bits")
        return str(place.position_id(self.time))

    def encode(self) -> bytes:
        """Encode the message as protobuf; equal messages have equal bytes.

        Raises:
            ValueError, TypeError: if a field has the wrong type or is out of range.
        """
        fields = self._present()
        fields["msg_id"] = self.msg_id._asdict()
        raw: bytes = _message_class()(**fields).SerializeToString(deterministic=True)
        return raw

    def _present(self) -> dict[str, Any]:
        """Return the fields that are not None, by name."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def decode(cls, data: bytes) -> StreamMessage:
        """Decode a message from protobuf.

        Raises:
            InvalidMessage: if the bytes are malformed, ``msg_id`` or its ``topic_name`` is missing, or a field is
                unknown: brokers before October 2025 wrote ``segment_id`` and ``segment_offset`` into ``msg_id``, whose
                offsets start again in each segment.
        """
        from google.protobuf.message import DecodeError
        from google.protobuf.unknown_fields import UnknownFieldSet

        try:
            read = _message_class().FromString(bytes(data))
        except DecodeError as error:
            raise InvalidMessage(f"cannot decode {quote(bytes(data))} as a protobuf StreamMessage: {error}") from None
        if not read.HasField("msg_id"):
            raise InvalidMessage(f"a StreamMessage must have msg_id, got {quote(bytes(data))}")
        for what, part in (("a StreamMessage", read), ("msg_id", read.msg_id)):
            fields: Any = UnknownFieldSet(part)
            unknown = sorted(field.field_number for field in fields)
            if unknown:
                raise InvalidMessage(f"unknown protobuf field {unknown[0]} in {what}, of another release of Danube")
        at, has_field = read.msg_id, read.HasField
        # The names are written out, because a loop over them takes half of the time.
        return cls(
            read.request_id,
            _checked_id(MessageID(at.producer_id, at.topic_name, at.broker_addr, at.topic_offset)),
            read.payload,
            read.publish_time,
            read.producer_name,
            read.subscription_name if has_field("subscription_name") else None,
            dict(read.attributes),
            read.schema_id if has_field("schema_id") else None,
            read.schema_version if has_field("schema_version") else None,
            read.routing_key if has_field("routing_key") else None,
        )

    def to_json(self) -> str:
        """Encode the message as JSON: names in snake_case, the payload in base64, missing optional fields left out.

        >>> print(StreamMessage(7, MessageID(9, "/a/b", "", 1), b"hi", 5, "p").to_json())
        {"request_id": 7, "msg_id": {"producer_id": 9, "topic_name": "/a/b", "broker_addr": "", "topic_offset": 1}, \
"payload": "aGk=", "publish_time": 5, "producer_name": "p", "attributes": {}}
        """
        value = self._present()
        value |= {"msg_id": self.msg_id._asdict(), "payload": base64.b64encode(self.payload).decode()}
        return json.dumps(value, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> StreamMessage:
        """Decode a message from JSON. Integer fields must be JSON integers, not floats.

        Raises:
            InvalidMessage: if the text is not valid JSON, or the message is malformed.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidMessage(f"cannot decode {quote(text)} as JSON: {error}") from None
        fields = _checked(value, _FIELDS, {*_OPTIONAL, "attributes"}, "the message")
        id = _checked_id(MessageID(**_checked(fields["msg_id"], _ID_FIELDS, {"broker_addr"}, "msg_id")))
        try:
            payload = base64.b64decode(fields["payload"], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidMessage(f"payload must be base64, got {quote(fields['payload'])}") from None
        attributes = fields.get("attributes") or {}
        if not isinstance(attributes, dict) or not all(map(is_utf8, (*attributes, *attributes.values()))):
            raise InvalidMessage(f"attributes must be an object of texts, got {quote(attributes)}")
        return cls(**{**fields, "msg_id": id, "payload": payload, "attributes": attributes})


def _checked_id(id: MessageID) -> MessageID:
    if not id.topic_name:
        raise InvalidMessage("topic_name of msg_id must not be empty")
    return id


def _checked(value: object, fields: dict[str, tuple[int, str]], optional: set[str], what: str) -> dict[str, Any]:
    """Return the fields of a JSON object after a check of their names and types."""
    if not isinstance(value, dict):
        raise InvalidMessage(f"{what} must be a JSON object, got {quote(value)}")
    unknown = set(value) - set(fields)
    if unknown:
        raise InvalidMessage(f"unknown field {quote(min(unknown))} in {what}")
    checked = {}
    for name, (_, type) in fields.items():
        content = value.get(name)
        if content is None and name in optional:
            if name == "broker_addr":
                content = ""
            else:
                continue
        if type in ("UINT64", "UINT32"):
            most = UINT64_MAX if type == "UINT64" else UINT32_MAX
            if not in_range(content, 0, most):
                raise InvalidMessage(f"{name} must be an integer of 0 to {most}, got {quote(content)}")
        elif type != "MESSAGE" and not is_utf8(content):
            raise InvalidMessage(f"{name} must be text, got {quote(content)}")
        checked[name] = content
    return checked


@cache
def _message_class() -> Any:
    """Return the protobuf class of the fields above. Generated code would have to match the installed runtime."""
    check_installed("protobuf of Danube", "danube", "google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="msgid/danube.proto", package="danube", syntax="proto3")
    id = file.message_type.add(name="MsgID")
    message = file.message_type.add(name="StreamMessage")
    kinds = descriptor_pb2.FieldDescriptorProto
    for owner, fields in ((id, _ID_FIELDS), (message, _FIELDS)):
        for name, (number, kind) in fields.items():
            field = owner.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL)
            field.type = getattr(kinds, f"TYPE_{kind}")
            if name in _OPTIONAL:  # proto3 records presence in a separate oneof for each field
                field.proto3_optional = True
                field.oneof_index = len(owner.oneof_decl)
                owner.oneof_decl.add(name=f"_{name}")
    by_name = {field.name: field for field in message.field}
    by_name["msg_id"].type_name = ".danube.MsgID"
    entry = message.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    by_name["attributes"].label = kinds.LABEL_REPEATED
    by_name["attributes"].type_name = ".danube.StreamMessage.AttributesEntry"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("danube.StreamMessage"))
