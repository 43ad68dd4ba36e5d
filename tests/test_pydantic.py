"""Ids as the fields of Pydantic models."""

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

import msgid
from msgid import BrokerOffsetId, ClientUniqueId, MessageId

V1 = "0156F7E71C361B21BC024CCDBE00000000"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"


class Message(BaseModel):
    id: MessageId
    parent: MessageId | BrokerOffsetId | ClientUniqueId | None = None


@pytest.mark.parametrize("given", [V1, V1.lower(), bytes.fromhex(V1), MessageId(V1)])
def test_a_field_takes_an_id_in_any_form(given):
    """Text, bytes or a value; the field holds the value."""
    assert Message(id=given).id == MessageId(V1)


def test_json_both_ways():
    """In JSON an id is its text; in Python it stays a value."""
    message = Message(id=V1, parent=BROKER)
    assert message.model_dump_json() == f'{{"id":"{V1}","parent":"{BROKER}"}}'
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert message.model_dump()["id"] is message.id
    assert message.model_dump(mode="json")["id"] == V1


@pytest.mark.parametrize("text", [V1, BROKER, CLIENT, "00" + CLIENT])
def test_a_union_takes_the_kind_that_parse_says(text):
    """In a union of the kinds, a text becomes the one that it is."""
    adapter = TypeAdapter(MessageId | BrokerOffsetId | ClientUniqueId)
    assert adapter.validate_python(text) == msgid.parse(text)


@pytest.mark.parametrize(
    ("given", "message"), [("xyz", "3 characters"), (BROKER, "is a v0-broker-offset id, not a MessageId"), (1, "a int")]
)
def test_what_is_no_id_is_a_validation_error(given, message):
    """Pydantic's own error, with the reason in it."""
    with pytest.raises(ValidationError, match=message):
        Message(id=given)


def test_json_schema():
    """The schema says text, with the digits it may have."""
    schema = TypeAdapter(MessageId).json_schema()
    assert schema == {"type": "string", "pattern": "^01[0-9A-Fa-f]{32}$", "title": "MessageId"}
    for kind in (BrokerOffsetId, ClientUniqueId):
        assert TypeAdapter(kind).json_schema()["type"] == "string"
