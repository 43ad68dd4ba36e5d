"""Danube's messages: the document's bytes, display forms, identities, and `InvalidMessage` for malformed input."""

import importlib.util
import json
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from helpers import strategies
from helpers import vector_files as vectors
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.danube import MessageID, StreamMessage, unlogged

needs_protobuf = pytest.mark.skipif(not importlib.util.find_spec("google"), reason="needs protobuf")
VECTOR = bytes.fromhex(json.loads((vectors.FOLDER / "danube.json").read_text())["stream_message_hex"])
EXPECTED = StreamMessage(
    request_id=7,
    msg_id=MessageID(9, "/default/events", "127.0.0.1:6650", 42),
    payload=b"hello",
    publish_time=1_700_000_000_000,
    producer_name="p1",
    attributes={"a": "1", "b": "2"},
    schema_id=42,
    schema_version=1,
    routing_key="k",
)


RECORDED = json.loads((vectors.FOLDER / "danube_broker.json").read_text())["messages"]


@needs_protobuf
@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"offset {row['offset']}")
def test_message_of_a_running_broker_decodes_and_encodes_to_the_same_message(row):
    """The order of attributes in the bytes is the broker's; their ID is version 1."""
    message = StreamMessage.decode(bytes.fromhex(row["hex"]))
    assert message.msg_id.topic_offset == row["offset"]
    assert (message.attributes, message.publish_time) == (row["attributes"], row["publish_time"])
    assert msgid.parse(message.attributes["message_id"]).version == 1
    assert StreamMessage.decode(message.encode()) == message


@needs_protobuf
def test_message_of_the_document_decodes_and_encodes_to_the_same_bytes():
    message = StreamMessage.decode(VECTOR)
    assert replace(message, publish_time=0) == replace(EXPECTED, publish_time=0)
    assert message.encode() == VECTOR
    assert message.time.timestamp() * 1000 == message.publish_time
    assert StreamMessage.from_json(message.to_json()) == message


@needs_protobuf
@given(strategies.danube_messages)
def test_message_written_to_bytes_or_json_reads_back(message):
    """Any message is equal after protobuf and JSON; a missing field differs from 0 and from empty text."""
    assert StreamMessage.decode(message.encode()) == message
    assert StreamMessage.from_json(message.to_json()) == message


@given(strategies.danube_ids)
def test_display_form_of_an_id_parses(id):
    """The display form contains every field except the broker's address, which is not part of the identity."""
    assert MessageID.parse(str(id)) == id._replace(broker_addr="")
    assert MessageID.parse(str(id)).key == id.key == id._replace(broker_addr="elsewhere").key


@given(strategies.danube_ids, st.integers(0, 2**31))
def test_position_id_of_a_message_does_not_depend_on_the_broker(id, at):
    """The messages of a topic keep their IDs if the topic moves to another broker."""
    id = id._replace(topic_offset=id.topic_offset % 2**48)
    assert id.position_id(at) == id._replace(broker_addr="moved").position_id(at)
    assert id.position_id(at) == msgid.position_id(id.source, id.topic_offset, at)


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "topic:_/a:b_producer:_1_topic_offset:_2",
        "topic:_/a_producer:_x_topic_offset:_2",
        "topic:_/a_producer:_1_topic_offset:_2\n",
        "topic:_/a_producer:_1_topic_offset:_-2",
        "topic:__producer:_1",
        "topic:_/a_producer:_１_topic_offset:_2",
        f"topic:_/a_producer:_1_topic_offset:_{1 << 64}",
    ],
)
def test_invalid_display_form_raises_invalid_message_id(text):
    with pytest.raises(msgid.InvalidMessage, match="message id"):
        MessageID.parse(text)


def test_topic_that_never_left_0_has_no_identity():
    """Messages of a topic without a log all have offset 0; the first message of a topic with a log has it, too."""
    ids = [MessageID(1, "/a", "", 0), MessageID(2, "/a", "", 0), MessageID(1, "/b", "", 0), MessageID(2, "/b", "", 1)]
    assert unlogged(ids) == {"/a"}
    assert unlogged([]) == set()


def dead_letter(**changed):
    """Return a dead letter of the message at offset 5, whose attributes are changed, or None to leave one out."""
    about = {"x-original-topic": "/default/orders", "x-original-topic-offset": "5", "x-original-producer-id": "7001"}
    about |= {"x-original-broker-addr": "http://127.0.0.1:6650", "x-original-subscription": "billing"}
    about |= {"x-delivery-attempt": "4", "x-poison-policy": "dead_letter", "x-failure-reason": "no", "size": "7"}
    about |= {name.replace("_", "-"): value for name, value in changed.items()}
    attributes = {name: value for name, value in about.items() if value is not None}
    place = MessageID(0, "/default/orders-dlq", "http://127.0.0.1:6650", 0)
    return StreamMessage(0, place, b"hello", 1790000000000, "shop", attributes=attributes)


def test_dead_letter_has_the_id_of_its_first_place():
    """The attributes name topic, producer and offset, and the publishing time is that of the message."""
    first = MessageID(7001, "/default/orders", "http://127.0.0.1:6650", 5)
    letter = dead_letter()
    assert letter.first_place == first
    assert letter.message_id() == str(first.position_id(letter.time))
    sent = replace(letter, msg_id=first, attributes={"size": "7"})
    assert (sent.first_place, sent.message_id()) == (first, letter.message_id())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"x_original_topic": None}, "a dead letter must have the attribute x-original-topic, got None"),
        ({"x_original_topic": ""}, "a dead letter must have the attribute x-original-topic, got ''"),
        ({"x_original_topic_offset": None}, "x-original-topic-offset of a dead letter must be 0 to .*, got ''"),
        ({"x_original_topic_offset": "-1"}, "x-original-topic-offset of a dead letter must be 0 to .*, got '-1'"),
        ({"x_original_topic_offset": "٥"}, "x-original-topic-offset of a dead letter must be 0 to .*, got '.u0665'"),
        ({"x_original_topic_offset": str(1 << 64)}, "x-original-topic-offset of a dead letter must be 0 to"),
        ({"x_original_topic_offset": str(1 << 48)}, "no ID: offset 281474976710656 has more than 48 bits"),
        ({"x_original_producer_id": "0"}, "x-original-producer-id of a dead letter must be 1 to .*, got '0'"),
        ({"x_original_producer_id": " 7"}, "x-original-producer-id of a dead letter must be 1 to .*, got ' 7'"),
    ],
)
def test_dead_letter_without_a_first_place_has_no_id(changed, reason):
    with pytest.raises(msgid.InvalidMessage, match=reason):
        dead_letter(**changed).message_id()


def test_dead_letter_that_a_program_sent_again_has_no_id():
    """Its producer is the program, and its time is not that of the first delivery."""
    letter = dead_letter()
    with pytest.raises(msgid.InvalidMessage, match="producer 8 has sent it again, so its time is not that"):
        replace(letter, msg_id=letter.msg_id._replace(producer_id=8)).message_id()
    own = replace(
        letter, msg_id=letter.msg_id._replace(producer_id=8), attributes={"x-failure-reason": "of the program"}
    )
    assert own.first_place == own.msg_id


@needs_protobuf
@given(st.binary(max_size=80))
def test_decode_of_any_bytes_gives_a_message_or_the_one_error(raw):
    try:
        StreamMessage.decode(raw)
    except msgid.InvalidMessage:
        return


@needs_protobuf
def test_message_without_an_id_raises_invalid_message():
    """Protobuf decodes a message without its ID; its fields would be those of an unknown place."""
    with pytest.raises(msgid.InvalidMessage, match="a StreamMessage must have msg_id, got b''"):
        StreamMessage.decode(b"")


GOOD = json.loads(EXPECTED.to_json())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"request_id": 1.0}, "request_id must be an integer of 0 to .*, got 1.0"),
        ({"request_id": True}, "request_id must be an integer of 0 to .*, got True"),
        ({"request_id": -1}, "request_id must be an integer of 0 to .*, got -1"),
        ({"schema_version": 1 << 32}, "schema_version must be an integer of 0 to 4294967295, got 4294967296"),
        ({"payload": "a"}, "payload must be base64, got 'a'"),
        ({"payload": None}, "payload must be text, got None"),
        ({"msg_id": None}, "msg_id must be a JSON object, got None"),
        ({"msg_id": {**GOOD["msg_id"], "x": 1}}, "unknown field 'x' in msg_id"),
        ({"msg_id": {**GOOD["msg_id"], "topic_name": ""}}, "topic_name of msg_id must not be empty"),
        ({"attributes": {"a": 1}}, "attributes must be an object of texts, got {'a': 1}"),
        ({"extra": 1}, "unknown field 'extra' in the message"),
        ({"producer_name": 5}, "producer_name must be text, got 5"),
        ({"producer_name": "\ud800"}, r"producer_name must be text, got '\\ud800'"),
        ({"msg_id": {**GOOD["msg_id"], "topic_name": "\udfff"}}, r"topic_name must be text, got '\\udfff'"),
        ({"attributes": {"a": "\ud800"}}, "attributes must be an object of texts"),
        ({"attributes": {"\ud800": "a"}}, "attributes must be an object of texts"),
    ],
)
def test_malformed_json_raises_one_error_that_quotes_it(change, reason):
    with pytest.raises(msgid.InvalidMessage, match=reason):
        StreamMessage.from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("name", GOOD)
def test_json_without_a_field_raises_invalid_message_or_has_its_default(name):
    """A missing field is never a KeyError: it is optional, or named in the one error."""
    text = json.dumps({key: value for key, value in GOOD.items() if key != name})
    optional = {"attributes", "subscription_name", "schema_id", "schema_version", "routing_key"}
    if name in optional:
        assert StreamMessage.from_json(text).producer_name == EXPECTED.producer_name
    else:
        with pytest.raises(msgid.InvalidMessage, match=f"{name} must be .*, got None"):
            StreamMessage.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", b"\xff", "[" * 100_000])
def test_json_that_is_not_an_object_raises_invalid_message(text):
    with pytest.raises(msgid.InvalidMessage):
        StreamMessage.from_json(text)


@needs_protobuf
@pytest.mark.parametrize("change", [{"request_id": -1}, {"schema_version": 1 << 32}, {"payload": "text"}])
def test_field_out_of_range_is_not_written(change):
    with pytest.raises((ValueError, TypeError)):
        replace(EXPECTED, **change).encode()


def field(number, value):
    """Return a field of protobuf: a number as a varint, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


PLACE = field(1, 9) + field(2, b"/a/b")


@needs_protobuf
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (field(2, PLACE + field(4, 1) + field(5, 0)), "unknown protobuf field 4 in msg_id, of another release"),
        (field(2, PLACE + field(5, 1)) + field(11, 1), "unknown protobuf field .* in a StreamMessage"),
        (field(2, field(1, 9) + field(5, 1)), "topic_name of msg_id must not be empty"),
    ],
)
def test_message_of_another_release_of_danube_is_refused(raw, reason):
    """Offsets of a former release start again in each segment, so two messages would have one ID."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        StreamMessage.decode(raw)


def test_message_set_field_raises():
    message = StreamMessage(7, MessageID(9, "/a/b", "", 1), b"", 5, "p")
    with pytest.raises(FrozenInstanceError):
        message.payload = b"x"
    assert pickle.loads(pickle.dumps(message)) == message
