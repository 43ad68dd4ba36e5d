"""RocketMQ rows in plain Python: the required columns of a row, and which of the two IDs is used."""

import json

import pytest

import msgid
from msgid.rocketmq import Record

V1 = "0156F7E71C361B21BC024CCDBE00000000"
OFFSET_ID = "7F0000010000238F000000000001E240"
ROW = {
    "topic": "orders",
    "flag": 0,
    "body": b"hi",
    "properties": json.dumps({"UNIQ_KEY": V1.lower(), "KEYS": "order-7"}),
    "brokerName": "broker-a",
    "queueId": 2,
    "queueOffset": 7,
    "bornTimestamp": 1648047037000,
    "storeTimestamp": 1648047038000,
}


def test_message_id_with_unique_key_is_that_id_in_canonical_form():
    """The ID that the producer's client made is the message's ID."""
    assert Record.of(ROW).message_id() == V1


@pytest.mark.parametrize("properties", [None, "{}", {}, {"UNIQ_KEY": "not an id"}, {"KEYS": "7"}])
def test_message_id_without_unique_key_is_the_position(properties):
    """Without a valid `UNIQ_KEY` the ID is `position_id` of broker, topic and queue, offset and storing time."""
    expected = str(msgid.position_id("rocketmq:broker-a/orders/2", 7, 1648047038))
    assert Record.of({**ROW, "properties": properties}).message_id() == expected


def test_offset_id_is_kept_beside_the_id():
    """The broker-offset ID, which names the place in the commit log, does not replace the message's ID."""
    record = Record.of({**ROW, "offsetMsgId": OFFSET_ID})
    assert (record.offset_id, record.message_id()) == (OFFSET_ID, V1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topic": ""}, "topic must be text, got ''"),
        ({"brokerName": None}, "a RocketMQ row must have brokerName"),
        ({"queueId": -1}, "queueId must be 0 to 2147483647, got -1"),
        ({"queueOffset": -1}, "queueOffset must be 0 to 281474976710655, got -1"),
        ({"storeTimestamp": "yesterday"}, "storeTimestamp must be an aware datetime"),
        ({"bornTimestamp": 1.5}, "bornTimestamp must be an aware datetime"),
        ({"properties": "{"}, "properties must be a JSON object, got '{'"),
        ({"properties": "[1]"}, "properties must be a mapping or a JSON object"),
        ({"properties": "[" * 100_000}, "properties must be a JSON object"),
        ({"body": 7}, "body must be text or bytes, got 7"),
    ],
)
def test_row_that_is_malformed_raises_one_error_that_quotes_it(changed, reason):
    """Every malformed column is `InvalidMessage`, and the reason names the column and quotes the value."""
    with pytest.raises(msgid.InvalidMessage) as caught:
        Record.of({**ROW, **changed})
    assert reason in str(caught.value)
