"""Atheris: the readers of messages, schemas and states raise only their documented error, and end in time.

An input is one byte for the reader, one byte for its option, and the bytes to read.
"""

from __future__ import annotations

import io
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import atheris

with atheris.instrument_imports(include=["msgid"]):
    import msgid
    from msgid import danube, iggy, kafka, rocketmq
    from msgid.iggy import commands
    from msgid.iggy.json_form import from_json, messages_from_json, to_json
    from msgid.iggy.log import decode, decode_log, read_log
    from msgid.iggy.poll import decode_poll
    from msgid.iggy.table import decode_table, read_tables
    from msgid.processing.strict_json import dumps, loads
    from msgid.schemas._validators import validator

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SECONDS = 15
"""The seconds of CPU time that one input may take. The sanitizers slow a reader by a factor of about ten."""
LAYOUTS: list[Any] = ["auto", *iggy.LAYOUTS]
ROCKETMQ = {"topic": "o", "brokerName": "a", "queueId": 2, "queueOffset": 7, "storeTimestamp": 0, "body": b""}
AVRO_NODE = {
    "type": "record", "name": "node", "fields": [
        {"name": "value", "type": "int"}, {"name": "next", "type": ["null", "node"]},
        {"name": "all", "type": {"type": "array", "items": "node"}},
    ],
}  # fmt: skip
AVRO_ROW = {
    "type": "record", "name": "row", "fields": [
        {"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": {"type": "array", "items": "double"}},
        {"name": "d", "type": {"type": "map", "values": "bytes"}},
    ],
}  # fmt: skip
AVRO = [
    AVRO_ROW, AVRO_NODE, {"type": "record", "name": "empty", "fields": []},
    {"type": "enum", "name": "kind", "symbols": ["A", "B"]}, {"type": "fixed", "name": "five", "size": 5},
    {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 4},
    {"type": "long", "logicalType": "timestamp-micros"}, {"type": "string", "logicalType": "uuid"},
]  # fmt: skip
JSON_SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$"}, "b": {"multipleOf": 0.01}}},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/n"}}}}},
]


def of_payload(kind: Any, schemas: list[Any]) -> Callable[[bytes, int], None]:
    """Return a check of a payload against one of the schemas."""
    checks = [validator(kind, json.dumps(schema)) for schema in schemas]

    def check(data: bytes, option: int) -> None:
        reason = checks[option % len(checks)](data)
        assert reason is None or isinstance(reason, str)

    return check


def danube_message(data: bytes, option: int) -> None:
    """Check that a message of Danube that is read is written and read again as itself."""
    message = danube.StreamMessage.decode(data)
    assert danube.StreamMessage.decode(message.encode()) == message
    danube.StreamMessage.from_json(message.to_json())


def records(data: bytes, option: int) -> None:
    """Read a JSON value as a record of Kafka or RocketMQ."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    str((kafka, rocketmq)[option % 2].Record.of(value).message())


def properties(data: bytes, option: int) -> None:
    """Read the properties of a RocketMQ message."""
    rocketmq.Record.of({**ROCKETMQ, "properties": data.decode("utf-8", "replace")}).message()


def state(data: bytes, option: int) -> None:
    """Check that a state that is read is written and read again as itself."""
    try:
        value = loads(data)
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        return  # states are written by the library itself
    assert dumps(loads(dumps(value))) == dumps(value)


def layout(option: int) -> Any:
    """Return the layout that an option selects."""
    return LAYOUTS[option % len(LAYOUTS)]


COMMANDS = (commands.CreateTopic, commands.CreateStream, commands.Topic, commands.Stream)
READERS: list[Callable[[bytes, int], Any]] = [
    lambda data, option: decode(data, layout(option)),
    lambda data, option: decode_log(data, layout(option)),
    lambda data, option: list(read_log(io.BytesIO(data), layout(option))),
    lambda data, option: decode_table(data, layout(option)),
    lambda data, option: list(read_tables(io.BytesIO(data), layout(option))),
    lambda data, option: decode_poll(data, layout(option)),
    lambda data, option: to_json(from_json(data)),
    lambda data, option: [to_json(message) for message in messages_from_json(data)],
    lambda data, option: COMMANDS[option % len(COMMANDS)].decode(data),
    danube_message,
    lambda data, option: danube.StreamMessage.from_json(data),
    lambda data, option: danube.MessageID.parse(data.decode("latin1")),
    of_payload("avro", AVRO),
    of_payload("json", JSON_SCHEMAS),
    records,
    properties,
    state,
]


def test_one_input(data: bytes) -> None:
    """Read bytes with one of the readers."""
    if len(data) < 2:
        return
    reader, begin = READERS[data[0] % len(READERS)], time.process_time()
    try:
        reader(data[2:], data[1])
    except (msgid.InvalidMessage, msgid.InvalidMessageId):
        pass
    seconds = time.process_time() - begin
    assert seconds < MOST_SECONDS, f"reader {data[0] % len(READERS)} took {seconds:.0f} s for {len(data)} bytes"


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
