"""The JSON form of Iggy's messages: one error for JSON that is malformed."""

import pytest

import msgid
from msgid import iggy

BAD_JSON = [
    ("{", "is no JSON"),
    ("[]", "is no JSON object"),
    (b"\xff", "is no JSON"),
    ("[" * 100_000, "is no JSON"),
    ('{"offset":0,"timestamp":0,"id":1.0,"payload":""}', "id 1.0, not an integer"),
    ('{"offset":0,"timestamp":0,"id":2.3207167777756449e38,"payload":""}', "id 2.32"),
    ('{"offset":0,"timestamp":0,"id":"1","payload":""}', "id '1', not an integer"),
    ('{"offset":-1,"timestamp":0,"id":1,"payload":""}', "offset -1, not an integer of 0 to"),
    ('{"offset":true,"timestamp":0,"id":1,"payload":""}', "offset True, not an integer"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"a"}', "payload 'a', not base64"),
    ('{"offset":0,"timestamp":0,"id":1}', "payload None, not base64"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","state":"available"}', "state and checksum"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","state":1,"checksum":0}', "state '1'"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","x":1}', "no field 'x' in a message"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":[]}', r"headers \[\], no JSON object"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":1}}', "header 'k' is 1, not a kind and a value"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int","value":""}}}', "kind 'int', not raw"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int8","value":"AAA="}}}', "2 bytes for kind int8"),  # noqa: E501
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"":{"kind":"raw","value":"AA=="}}}', "key ''"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD_JSON, ids=lambda value: str(value)[:60])
def test_malformed_json_raises_one_error_that_quotes_it(text, reason):
    """One error, which quotes what was given."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        iggy.from_json(text)
