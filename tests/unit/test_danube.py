"""Danube's messages: the document's own bytes, display forms, identities, and one error for what is no message."""

import importlib.util
import json
from dataclasses import replace

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


@needs_protobuf
def test_message_of_the_document_decodes_and_encodes_to_the_same_bytes():
    """The document's bytes decode to its message, and encode to the same bytes."""
    message = StreamMessage.decode(VECTOR)
    assert replace(message, publish_time=0) == replace(EXPECTED, publish_time=0)
    assert message.encode() == VECTOR
    assert message.time.timestamp() * 1000 == message.publish_time
    assert StreamMessage.from_json(message.to_json()) == message


@needs_protobuf
@given(strategies.danube_messages)
def test_message_written_to_bytes_or_json_reads_back(message):
    """Any message comes back from protobuf and from JSON as it was; nothing is not the same as 0 or no text."""
    assert StreamMessage.decode(message.encode()) == message
    assert StreamMessage.from_json(message.to_json()) == message


@given(strategies.danube_ids)
def test_display_form_of_an_id_parses(id):
    """All but the broker's address comes back: it is no part of the identity."""
    assert MessageID.parse(str(id)) == id._replace(broker_addr="")
    assert MessageID.parse(str(id)).key == id.key == id._replace(broker_addr="elsewhere").key


@given(strategies.danube_ids, st.integers(0, 2**31))
def test_position_id_of_a_message_does_not_depend_on_the_broker(id, at):
    """A topic that moves to another broker keeps its messages' ids."""
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
    """One error, which quotes what was given."""
    with pytest.raises(msgid.InvalidMessage, match="message id"):
        MessageID.parse(text)


def test_producer_that_never_left_0_has_no_identity():
    """Two messages at offset 0 of a topic without a log would have one identity: they have none."""
    ids = [MessageID(1, "/a", "", 0), MessageID(1, "/a", "", 0), MessageID(2, "/a", "", 0), MessageID(2, "/a", "", 1)]
    assert unlogged(ids) == {("/a", 1)}
    assert unlogged([]) == set()


@needs_protobuf
@given(st.binary(max_size=80))
def test_decode_of_any_bytes_gives_a_message_or_the_one_error(raw):
    """Nothing else is raised."""
    try:
        StreamMessage.decode(raw)
    except msgid.InvalidMessage:
        return


@needs_protobuf
@pytest.mark.parametrize("cut", range(len(VECTOR)))
def test_message_cut_anywhere_raises_or_is_another_message(cut):
    """A message cut off is refused, or, cut between two fields, lacks what came after: never another error."""
    try:
        short = StreamMessage.decode(VECTOR[:cut])
    except msgid.InvalidMessage:
        return
    assert short != StreamMessage.decode(VECTOR)


GOOD = json.loads(EXPECTED.to_json())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"request_id": 1.0}, "request_id 1.0, not an integer"),
        ({"request_id": True}, "request_id True, not an integer"),
        ({"request_id": -1}, "request_id -1, not an integer of 0 to"),
        ({"schema_version": 1 << 32}, "schema_version 4294967296, not an integer of 0 to 4294967295"),
        ({"payload": "a"}, "payload 'a', not base64"),
        ({"payload": None}, "payload None, not text"),
        ({"msg_id": None}, "msg_id is None, no JSON object"),
        ({"producer_name": "\ud800"}, r"producer_name '\\ud800', not text"),
        ({"msg_id": {**GOOD["msg_id"], "topic_name": "\udfff"}}, r"topic_name '\\udfff', not text"),
        ({"attributes": {"a": "\ud800"}}, "attributes .*, not texts by name"),
        ({"attributes": {"\ud800": "a"}}, "attributes .*, not texts by name"),
        ({"msg_id": {**GOOD["msg_id"], "x": 1}}, "no field 'x' in msg_id"),
        ({"attributes": {"a": 1}}, "attributes {'a': 1}, not texts by name"),
        ({"extra": 1}, "no field 'extra' in the message"),
        ({"producer_name": 5}, "producer_name 5, not text"),
    ],
)
def test_malformed_json_raises_one_error_that_quotes_it(change, reason):
    """One error, which quotes what was given."""
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
        with pytest.raises(msgid.InvalidMessage, match=f"{name} (is )?None, no"):
            StreamMessage.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", b"\xff", "[" * 100_000])
def test_json_that_is_not_an_object_raises_invalid_message(text):
    """The same error."""
    with pytest.raises(msgid.InvalidMessage):
        StreamMessage.from_json(text)


@needs_protobuf
@pytest.mark.parametrize("change", [{"request_id": -1}, {"schema_version": 1 << 32}, {"payload": "text"}])
def test_field_out_of_range_is_not_written(change):
    """ValueError or TypeError of the protobuf runtime."""
    with pytest.raises((ValueError, TypeError)):
        replace(EXPECTED, **change).encode()
