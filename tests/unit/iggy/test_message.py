"""One message of Iggy: the documents' bytes, every truncation, the errors of malformed bytes, and its fields."""

import copy
import json
import pickle
import struct
import tracemalloc
from dataclasses import replace

import pytest
from helpers import strategies
from helpers.iggy_frames import BROKEN, HUGE, MESSAGES, ONE, framed
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy import Message, json_form


@pytest.mark.parametrize("row", MESSAGES.values(), ids=MESSAGES)
def test_message_of_the_document_decodes_and_encodes_to_the_same_bytes(row):
    raw = bytes.fromhex(row["hex"])
    message = iggy.decode(raw, row["layout"])
    assert iggy.encode(message, row["layout"]) == raw
    if "json" in row:
        assert json_form.to_value(message) == row["json"]
        assert iggy.from_json(json.dumps(row["json"])) == message
        assert message.checksum_ok
    if "uuid" in row:
        assert message.id_text == row["uuid"]
        assert iggy.id_value(row["uuid"]) == message.id
    if "state" in row:
        assert message.state is msgid.MessageState.POISONED


@given(st.dictionaries(strategies.keys, strategies.keys, min_size=2, max_size=6))
def test_headers_in_any_order_are_written_sorted_by_key(values):
    backwards = dict(reversed(values.items()))
    one, other = (
        iggy.encode(Message.new(b"", id=1, headers=headers, layout="m45"), "m45") for headers in (values, backwards)
    )
    assert one == other
    assert list(iggy.decode(one, "m45").headers) == sorted(values)


@pytest.mark.parametrize(("kind", "raw", "reason", "offset"), BROKEN, ids=lambda value: str(value)[:40])
def test_malformed_message_raises_one_error_with_its_place(kind, raw, reason, offset):
    """Malformed bytes raise an error with a position; `TruncatedMessage` only if more bytes can help."""
    with pytest.raises(msgid.InvalidMessage, match=reason) as caught:
        iggy.decode(raw, "m45")
    assert caught.value.offset == offset
    assert (type(caught.value) is msgid.TruncatedMessage) == (kind == "truncated")


@pytest.mark.parametrize("cut", range(1, len(ONE)))
def test_message_cut_anywhere_raises_truncated_message(cut):
    with pytest.raises(msgid.TruncatedMessage):
        iggy.decode(ONE[:cut], "m45")


def test_message_with_a_huge_length_reserves_no_memory():
    tracemalloc.start()
    for raw in (framed(headers_length=HUGE), framed(payload_length=HUGE)):
        with pytest.raises(msgid.InvalidMessage):
            iggy.decode(raw, "m45")
    with pytest.raises(msgid.InvalidMessage, match="a count of 4294967295 messages, and bytes for 0 at the most"):
        iggy.decode_poll(struct.pack("<IQI", 0, 0, HUGE))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@given(strategies.message_ids)
def test_message_with_a_version_1_id_holds_its_128_bits(id):
    """A message keeps the body of a version-1 ID. Its text is that ID only if the caller says so."""
    message = Message.new(b"", id=id)
    assert message.id == int.from_bytes(id.body, "little") == iggy.id_value(id) == iggy.id_value(str(id))
    assert message.id_text == str(id.uuid)
    assert iggy.id_text(message.id, version_1=True) == iggy.id_text(id.body, version_1=True) == str(id)


@given(strategies.message_ids, st.booleans())
def test_id_with_its_version_is_never_shown_as_a_uuid(id, version_1):
    """A value, a text and 17 bytes tell a version-1 ID from a UUID, also where the 16 bytes of both are equal."""
    for form in (id, str(id), str(id).lower(), bytes(id), bytearray(bytes(id)), memoryview(bytes(id))):
        assert iggy.id_text(form, version_1=version_1) == str(id)
        assert iggy.id_value(form) == int.from_bytes(id.body, "little")
    for form in (id.uuid, str(id.uuid), str(id.uuid).upper()):
        assert iggy.id_text(form, version_1=version_1) == str(id.uuid)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "7F0000010000238F000000000001E240",
        "74b158ca-ddb3-498f-b0a9-9eec1c6197a",
        "{74b158ca-ddb3-498f-b0a9-9eec1c6197ae",
        b"",
        bytes(15),
        bytes(17),
        bytes(34),
        memoryview(bytes(32)).cast("i"),
        None,
        1.5,
        [],
        {},
        (1,),
    ],
)
def test_invalid_ids_raise_invalid_message_id(value):
    for function in (iggy.id_value, iggy.id_text):
        with pytest.raises(msgid.InvalidMessageId):
            function(value)


GOOD = Message.new(b"hello", id=7, offset=3, headers={"n": 1}, layout="m45")


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"offset": -1}, ValueError, "offset must be 0 to 18446744073709551615, got -1"),
        ({"offset": True}, TypeError, "offset must be an integer"),
        ({"timestamp": 1 << 64}, ValueError, "timestamp must be 0 to"),
        ({"id": 1 << 128}, ValueError, "id must be 0 to"),
        ({"checksum": 1 << 32}, ValueError, "checksum must be 0 to"),
        ({"checksum": None}, ValueError, "both a state and a checksum, or neither"),
        ({"state": None}, ValueError, "both a state and a checksum, or neither"),
        ({"state": 1}, TypeError, "state must be a MessageState or None"),
        ({"payload": "text"}, TypeError, "payload must be bytes"),
        ({"headers": None}, TypeError, "headers must be a dict"),
        ({"headers": {"n": 1}}, TypeError, "header 'n' must be a Header"),
        ({"headers": {1: GOOD.headers["n"]}}, TypeError, "key must be text"),
        ({"headers": {"": GOOD.headers["n"]}}, ValueError, "key must have 1 to 255 bytes"),
    ],
)
def test_message_invalid_field_raises(change, error, says):
    with pytest.raises(error, match=says):
        replace(GOOD, **change)


@pytest.mark.parametrize("made", [GOOD, iggy.decode(iggy.encode(GOOD, "m45"), "m45")], ids=["made", "decoded"])
def test_message_copied_or_pickled_is_equal(made):
    for again in (copy.copy(made), copy.deepcopy(made), *(pickle.loads(pickle.dumps(made, n)) for n in range(6))):
        assert again == made == GOOD
        assert type(again) is type(made) is Message
