"""IDs as fields of Pydantic models."""

import pytest

pydantic = pytest.importorskip("pydantic")


V1 = "0156F7E71C361B21BC024CCDBE00000000"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"


def model_of(msgid):
    """Return a model whose fields are the IDs of a backend."""
    kinds = msgid.MessageId | msgid.BrokerOffsetId | msgid.ClientUniqueId | None
    return pydantic.create_model("Message", id=(msgid.MessageId, ...), parent=(kinds, None))


@pytest.mark.parametrize("given", [V1, V1.lower(), bytes.fromhex(V1), "value"])
def test_field_given_an_id_in_any_form_holds_the_value(msgid, given):
    id = msgid.MessageId(V1)
    assert model_of(msgid)(id=id if given == "value" else given).id == id


def test_json_of_a_model_reads_back(msgid):
    """In JSON an ID is its text; in Python it stays a value."""
    Message = model_of(msgid)
    message = Message(id=V1, parent=BROKER)
    assert message.model_dump_json() == f'{{"id":"{V1}","parent":"{BROKER}"}}'
    assert Message.model_validate_json(message.model_dump_json()) == message
    assert message.model_dump()["id"] is message.id
    assert message.model_dump(mode="json")["id"] == V1


@pytest.mark.parametrize("text", [V1, BROKER, CLIENT, "00" + CLIENT])
def test_union_of_the_kinds_takes_the_one_that_parse_says(msgid, text):
    adapter = pydantic.TypeAdapter(msgid.MessageId | msgid.BrokerOffsetId | msgid.ClientUniqueId)
    assert adapter.validate_python(text) == msgid.parse(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [("xyz", "3 characters"), (BROKER, "id must be a MessageId, got .* of kind v0-broker-offset"), (1, "got int")],
)
def test_field_given_an_invalid_id_raises_validation_error(msgid, given, message):
    with pytest.raises(pydantic.ValidationError, match=message):
        model_of(msgid)(id=given)


def test_json_schema_of_an_id_is_text_with_a_pattern(msgid):
    schema = pydantic.TypeAdapter(msgid.MessageId).json_schema()
    assert schema == {"type": "string", "pattern": "^01[0-9A-Fa-f]{32}$", "title": "MessageId"}
    for kind in (msgid.BrokerOffsetId, msgid.ClientUniqueId):
        assert pydantic.TypeAdapter(kind).json_schema()["type"] == "string"
