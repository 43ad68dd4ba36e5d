"""The JSON form of Iggy's messages: malformed JSON raises `InvalidMessage`."""

import json

import pytest
from helpers import strategies
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy import Header, HeaderKey, HeaderKind
from msgid.iggy.json_form import messages_from_json, to_value

BAD_JSON = [
    ("{", "cannot decode '{' as JSON"),
    ("[]", "a message must be a JSON object"),
    (b"\xff", "as JSON"),
    ("[" * 100_000, "as JSON"),
    ('{"offset":0,"timestamp":0,"id":1.0,"payload":""}', "id must be an integer of 0 to .*, got 1.0"),
    ('{"offset":0,"timestamp":0,"id":2.3207167777756449e38,"payload":""}', "id must be .*, got 2.32"),
    ('{"offset":0,"timestamp":0,"id":"1","payload":""}', "id must be an integer of 0 to .*, got '1'"),
    ('{"offset":-1,"timestamp":0,"id":1,"payload":""}', "offset must be an integer of 0 to .*, got -1"),
    ('{"offset":true,"timestamp":0,"id":1,"payload":""}', "offset must be an integer of 0 to .*, got True"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"a"}', "payload must be base64, got 'a'"),
    ('{"offset":0,"timestamp":0,"id":1}', "payload must be base64, got None"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","state":"available"}', "both state and checksum, or neither"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","state":1,"checksum":0}', "state must be one of .*, got '1'"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","x":1}', "unknown field 'x' in a message"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":7}', "headers must be a JSON object or a list, got 7"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":[{"key":1}]}', "a header must be an object with key and"),
    ('{"header":1,"payload":""}', "header must be a JSON object, got 1"),
    ('{"header":{},"payload":"","x":1}', "unknown field 'x' in a message"),
    ('{"header":{},"payload":""}', "offset must be an integer"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":1}}', "header 'k' must be .*, got 1"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int","value":""}}}', "got 'int'"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int8","value":"AAA="}}}', "2 bytes for kind int8"),  # noqa: E501
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"":{"kind":"raw","value":"AA=="}}}', "1 to 255 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD_JSON, ids=lambda value: str(value)[:60])
def test_malformed_json_raises_one_error_that_quotes_it(text, reason):
    with pytest.raises(msgid.InvalidMessage, match=reason):
        iggy.from_json(text)


KEYS = [
    {HeaderKey.of(5, HeaderKind.INT32): 1},
    {"int32:5": 1},
    {"int32:5": 1, HeaderKey.of(5, HeaderKind.INT32): 2},
    {HeaderKey.of(b"a"): 1, "raw:61": b"x", "string:a": "y"},
    {HeaderKey.of(0.5): True, "a": 1.5},
]


@pytest.mark.parametrize("headers", KEYS, ids=str)
@pytest.mark.parametrize("layout", ["h64", "batch256"])
def test_headers_in_json_are_those_of_the_message(headers, layout):
    """A key of another kind than text is never the text that looks like it, and the checksum stays right."""
    message = iggy.Message.new(b"x", id=7, headers=headers, layout=layout)
    read = iggy.from_json(iggy.to_json(message))
    assert read == message
    assert read.headers == message.headers
    assert read.checksum_ok
    assert len({iggy.to_json(iggy.Message.new(b"x", id=7, headers=one, layout=layout)) for one in KEYS}) == len(KEYS)


@given(st.data(), st.sampled_from(list(iggy.LAYOUTS)))
def test_json_of_any_message_is_that_message(data, layout):
    message = data.draw(strategies.iggy_messages(layout))
    assert iggy.from_json(iggy.to_json(message)) == message


def of_server(message, form):
    """Return the JSON of a message in a poll response of a server's HTTP interface."""
    value = to_value(message)
    header = {name: value[name] for name in ("checksum", "id", "offset", "timestamp", "origin_timestamp")}
    header |= {"user_headers_length": 99, "payload_length": len(message.payload)}
    headers = value["headers"]
    if form == "list":
        headers = [
            {"key": {"kind": "string", "value": "aw=="} if name == "k" else {"kind": "uint8", "value": "BQ=="}}
            | {"value": held}
            for name, held in ((str(key), {"kind": "int64", "value": "AQAAAAAAAAA="}) for key in message.headers)
        ]
    one = {"header": header, "payload": value["payload"]} | ({"user_headers": headers} if headers else {})
    return json.dumps({"partition_id": 1, "current_offset": 9, "count": 2, "messages": [one, one]})


@pytest.mark.parametrize(("layout", "form"), [
    ("h56-crc", "object"), ("h56-xxh3", "object"), ("h64", "list"), ("batch256", "list"),
])  # fmt: skip
def test_poll_json_of_a_server_from_0_5_on_is_read(layout, form):
    """Headers are an object up to 0.6, and a list from 0.7 on; the layout is the one whose checksum fits."""
    keys = ["k"] if form == "object" else ["k", HeaderKey.of(5, HeaderKind.UINT8)]
    for headers in ({}, dict.fromkeys(keys, 1)):
        message = iggy.Message.new(b"hi", id=2**127, offset=3, timestamp=5, headers=headers, layout=layout)
        read = messages_from_json(of_server(message, form))
        assert read == [message, message]
        assert [(one.layout, one.checksum_ok, one.headers) for one in read] == [(layout, True, message.headers)] * 2


def test_poll_json_with_a_checksum_of_other_bytes_is_read():
    """The server of 0.8 sends the checksum of encrypted bytes, that of 0.9 the one within a batch."""
    batch = iggy.encode_log(
        [iggy.Message.new(b"x", id=n + 1, offset=n, layout="batch256") for n in range(2)], "batch256"
    )
    second = iggy.decode_log(batch)[1]
    (read, _) = messages_from_json(of_server(second, "object"))
    assert (read.offset, read.payload, read.checksum_ok) == (1, b"x", True)


def test_poll_json_with_headers_as_base64_is_read_if_they_are_headers():
    """Servers from 0.8 on write base64 of headers that they cannot decode; the error says what is wrong."""
    header = {"checksum": 1, "id": 1, "offset": 0, "timestamp": 0, "origin_timestamp": 0}
    given = {"header": header, "payload": "", "user_headers": "AgEAAABrAgEAAAB2"}
    assert iggy.from_json(json.dumps(given)).headers == {"k": Header.of("v")}
    with pytest.raises(msgid.InvalidMessage, match="a header's key's kind must be 1 to 15, got 99"):
        iggy.from_json(json.dumps({**given, "user_headers": "Y2NjYw=="}))
