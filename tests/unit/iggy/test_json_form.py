"""The JSON form of Iggy's messages: malformed JSON raises `InvalidMessage`."""

import pytest

import msgid
from msgid import iggy

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
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":[]}', r"headers must be a JSON object, got \[\]"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":1}}', "header 'k' must be .*, got 1"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int","value":""}}}', "got 'int'"),
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"k":{"kind":"int8","value":"AAA="}}}', "2 bytes for kind int8"),  # noqa: E501
    ('{"offset":0,"timestamp":0,"id":1,"payload":"","headers":{"":{"kind":"raw","value":"AA=="}}}', "1 to 255 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD_JSON, ids=lambda value: str(value)[:60])
def test_malformed_json_raises_one_error_that_quotes_it(text, reason):
    """Malformed JSON raises `InvalidMessage`, which quotes the invalid value."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        iggy.from_json(text)
