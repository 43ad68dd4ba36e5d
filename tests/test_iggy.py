"""Iggy's messages: the documents' own bytes, every kind of header, and nothing but one error for what is no message."""

import io
import json
import struct
import tracemalloc
import zlib

import pytest
import strategies
import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import msgid
from msgid import iggy
from msgid.iggy import Header, HeaderKind, Message, json_form
from msgid.iggy.wire import LAYOUTS

DOCUMENTS = json.loads((vectors.FOLDER / "iggy.json").read_text())
MESSAGES = {row["name"]: row for row in DOCUMENTS["messages"]}
COMMANDS = {row["name"]: row for row in DOCUMENTS["commands"]}
LAYOUT = st.sampled_from(list(LAYOUTS))
ONE = iggy.encode(Message.new(b"payload", id=1, headers={"key": 5}))


@pytest.mark.parametrize("row", MESSAGES.values(), ids=MESSAGES)
def test_the_documents_messages(row):
    """Bytes decode to what the document says, and encode to the same bytes."""
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


def test_the_documents_commands():
    """Commands and responses encode to the document's bytes and decode to its values."""
    made = {
        "create_topic": iggy.CreateTopic(1, 2, 3, 10, "test"),
        "create_stream": iggy.CreateStream(1, "test"),
        "topic": iggy.Topic(2, 3, 10, 1024, 7, "test"),
        "stream": iggy.Stream(1, 2, 1024, 7, "test"),
    }
    assert set(made) == set(COMMANDS)
    for name, command in made.items():
        raw = bytes.fromhex(COMMANDS[name]["hex"])
        assert command.encode() == raw
        assert type(command).decode(raw) == command
        for cut in range(len(raw)):
            with pytest.raises(msgid.TruncatedMessage):
                type(command).decode(raw[:cut])
        with pytest.raises(msgid.InvalidMessage, match="1 bytes after the end"):
            type(command).decode(raw + b"x")
    named = iggy.CreateTopic("My Stream", 2, 3, 0, " Test ")
    assert iggy.CreateTopic.decode(named.encode()) == iggy.CreateTopic("my.stream", 2, 3, 0, "test")
    with pytest.raises(msgid.InvalidMessage, match="identifier of kind 9, not 1 or 2, at byte 0"):
        iggy.CreateTopic.decode(b"\x09" + bytes(20))


def test_header_kinds_are_the_documents():
    """The 15 kinds have the names and codes of the document."""
    assert {str(kind): int(kind) for kind in HeaderKind} == DOCUMENTS["header_kinds"]


@pytest.mark.parametrize(
    ("code", "name"), [(1, "available"), (10, "unavailable"), (20, "poisoned"), (30, "marked_for_deletion")]
)
def test_states(code, name):
    """Four codes, each with a name; nothing else is a state."""
    assert (int(msgid.MessageState.of(name)), str(msgid.MessageState.of(code))) == (code, name)


@pytest.mark.parametrize("value", [0, 2, 255, -1, True, None, "Available", "1", "", 1.0])
def test_what_is_no_state(value):
    """One error, which quotes what was given."""
    with pytest.raises(msgid.InvalidMessage, match="state"):
        msgid.MessageState.of(value)


@given(message=st.data(), layout=LAYOUT)
def test_what_is_written_is_read(message, layout):
    """Any message comes back from bytes and from JSON as it was."""
    made = message.draw(strategies.iggy_messages(layout))
    assert iggy.decode(iggy.encode(made, layout), layout) == made
    assert iggy.from_json(iggy.to_json(made)) == made


@given(st.dictionaries(strategies.keys, strategies.keys, min_size=2, max_size=6))
def test_headers_are_written_sorted_by_key(values):
    """The same headers in any order are the same bytes."""
    backwards = dict(reversed(values.items()))
    one, other = (iggy.encode(Message.new(b"", id=1, headers=headers)) for headers in (values, backwards))
    assert one == other
    assert list(iggy.decode(one).headers) == sorted(values)


@pytest.mark.parametrize(
    ("value", "kind", "raw"),
    [
        (b"\x00\xff", HeaderKind.RAW, "00ff"),
        ("é", HeaderKind.STRING, "c3a9"),
        (True, HeaderKind.BOOL, "01"),
        (-1, HeaderKind.INT8, "ff"),
        (-2, HeaderKind.INT16, "feff"),
        (1, HeaderKind.INT32, "01000000"),
        (250000, HeaderKind.INT64, "90d0030000000000"),
        (-(1 << 127), HeaderKind.INT128, "00" * 15 + "80"),
        (255, HeaderKind.UINT8, "ff"),
        (1, HeaderKind.UINT16, "0100"),
        (1 << 31, HeaderKind.UINT32, "00000080"),
        ((1 << 64) - 1, HeaderKind.UINT64, "ff" * 8),
        ((1 << 128) - 1, HeaderKind.UINT128, "ff" * 16),
        (1.5, HeaderKind.FLOAT32, "0000c03f"),
        (-0.0, HeaderKind.FLOAT64, "0000000000000080"),
    ],
)
def test_a_header_of_each_kind(value, kind, raw):
    """Python's value to the kind's bytes and back."""
    header = Header.of(value, kind)
    assert (header.raw.hex(), header.value, type(header.value)) == (raw, value, type(value))
    assert iggy.decode(iggy.encode(Message.new(b"", id=1, headers={"k": header}))).headers == {"k": header}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (128, HeaderKind.INT8),
        (-1, HeaderKind.UINT128),
        (1 << 63, None),
        ("", None),
        (b"", None),
        ("x" * 256, None),
        (1e39, HeaderKind.FLOAT32),
    ],
)
def test_header_values_out_of_range(value, kind):
    """ValueError, before anything is written."""
    with pytest.raises(ValueError, match="header"):
        Header.of(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"), [(None, None), ([], None), ("1", HeaderKind.INT8), (1, HeaderKind.BOOL), (True, HeaderKind.INT8)]
)
def test_header_values_of_another_type(value, kind):
    """TypeError, which quotes the value."""
    with pytest.raises(TypeError):
        Header.of(value, kind)


@pytest.mark.parametrize("key", ["", "k" * 256, "é" * 128])
def test_header_keys_have_1_to_255_bytes(key):
    """Counted in UTF-8."""
    with pytest.raises(ValueError, match="a header's key must have 1 to 255 bytes"):
        Message.new(b"", id=1, headers={key: 1})


def framed(headers=b"", *, headers_length=None, payload=b"p", payload_length=None, state=1):
    """A message with these headers; lengths can lie."""
    fixed = struct.pack("<QBQ16sII", 0, state, 0, bytes(16), zlib.crc32(payload), headers_length or len(headers))
    return fixed + headers + struct.pack("<I", payload_length or len(payload)) + payload


def header(key=b"k", kind=2, value=b"v", key_length=None, value_length=None):
    """A header; lengths can lie."""
    return b"".join(
        (
            struct.pack("<I", len(key) if key_length is None else key_length),
            key,
            bytes([kind]),
            struct.pack("<I", len(value) if value_length is None else value_length),
            value,
        )
    )


HUGE = (1 << 32) - 1
BROKEN = [
    ("", framed(state=7), "state 7, not 1, 10, 20 or 30", 8),
    ("", framed(state=0), "state 0, not 1, 10, 20 or 30", 8),
    ("", framed() + b"x", "1 bytes after the end of the message", 46),
    ("truncated", framed(headers_length=HUGE), "the block of headers needs 4294967295 bytes, and 5 are left", 41),
    ("truncated", framed(payload_length=HUGE), "the payload needs 4294967295 bytes, and 1 are left", 45),
    ("", framed(header(b"")), "a header's key of 0 bytes, not 1 to 255", 41),
    ("", framed(header(b"k" * 256)), "a header's key of 256 bytes, not 1 to 255", 41),
    (
        "",
        framed(header(key_length=200)),
        "within headers of 11 bytes a header's key needs 200 bytes, and 7 are left",
        45,
    ),
    ("", framed(header(b"\xff")), r"a header's key b'\\xff', which is no UTF-8", 45),
    ("", framed(header(kind=0)), "a header's kind 0, not 1 to 15", 46),
    ("", framed(header(kind=16)), "a header's kind 16, not 1 to 15", 46),
    ("", framed(header(value=b"")), "a header's value of 0 bytes, not 1 to 255", 47),
    ("", framed(header(value_length=HUGE)), "a header's value of 4294967295 bytes, not 1 to 255", 47),
    ("", framed(header(kind=3, value=b"\x02")), r"a header of kind bool with the value b'\\x02'", 47),
    ("", framed(header(kind=7)), "a header's value of 1 bytes for kind int64", 47),
    ("", framed(header(value=b"\xff")), r"a header of kind string with the value b'\\xff', no UTF-8", 47),
    ("", framed(header() + header()), "a second header 'k'", 52),
    (
        "",
        framed(header()[:3]),
        "within headers of 3 bytes the length of a header's key needs 4 bytes, and 3 are left",
        41,
    ),
]


@pytest.mark.parametrize(("kind", "raw", "reason", "offset"), BROKEN, ids=lambda value: str(value)[:40])
def test_what_is_no_message(kind, raw, reason, offset):
    """One error with the place of the byte; `TruncatedMessage` only where more bytes could mend it."""
    with pytest.raises(msgid.InvalidMessage, match=reason) as caught:
        iggy.decode(raw)
    assert caught.value.offset == offset
    assert (type(caught.value) is msgid.TruncatedMessage) == (kind == "truncated")
    found = iggy.decode_table(raw)
    assert found.table.num_rows == ("after the end" in reason)
    assert found.error is not None


@pytest.mark.parametrize("cut", range(len(ONE)))
def test_every_truncation(cut):
    """A message cut off anywhere is `TruncatedMessage`."""
    with pytest.raises(msgid.TruncatedMessage):
        iggy.decode(ONE[:cut])


def test_a_length_reserves_nothing():
    """A length of 4 GB in a message of 50 bytes takes no memory."""
    tracemalloc.start()
    for raw in (framed(headers_length=HUGE), framed(payload_length=HUGE)):
        with pytest.raises(msgid.InvalidMessage):
            iggy.decode(raw)
        assert iggy.decode_table(raw).error is not None
    with pytest.raises(msgid.InvalidMessage, match="a count of 4294967295 messages, and bytes for 0 at the most"):
        iggy.decode_poll(struct.pack("<IQI", 0, 0, HUGE))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@settings(max_examples=500)
@given(st.data(), LAYOUT)
def test_mutated_messages(data, layout):
    """Bytes changed, cut, doubled or put in anywhere give messages or the one error, never another."""
    raw = bytearray(iggy.encode_log(data.draw(st.lists(strategies.iggy_messages(layout), max_size=3)), layout))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw)))
        stop = min(len(raw), place + data.draw(st.integers(0, 4)))
        raw[place:stop] = data.draw(st.binary(max_size=4))
    decoded, error = [], None
    try:
        for message in iggy.read_log(io.BytesIO(raw), layout, chunk=64):
            decoded.append(message)
    except msgid.InvalidMessage as caught:
        error = caught
    found = iggy.decode_table(bytes(raw), layout)
    if all(m.offset < 1 << 63 and m.timestamp <= 253_402_300_799_999_999 for m in decoded):
        assert rows(found.table) == [row(message) for message in decoded]
        assert (found.error is None) == (error is None)
        assert found.length == len(iggy.encode_log(decoded, layout))


def row(message):
    """A message as a row of the table."""
    return {
        "offset": message.offset,
        "state": None if message.state is None else str(message.state),
        "timestamp": message.timestamp,
        "id": message.id.to_bytes(16, "little"),
        "checksum": message.checksum,
        "headers": [(key, {"kind": str(kind), "value": raw}) for key, (kind, raw) in message.headers.items()],
        "payload": message.payload,
    }


def rows(table):
    """A table's rows; times as microseconds."""
    import pyarrow as pa

    return [
        {**values, "timestamp": micros}
        for values, micros in zip(table.to_pylist(), table["timestamp"].cast(pa.int64()).to_pylist(), strict=True)
    ]


@pytest.mark.slow
def test_a_hundred_thousand_mutated_frames():
    """Nothing but the one error comes of them; a seed makes the run the same each time."""
    import random

    chance = random.Random(20261121)
    frames = [bytes.fromhex(row["hex"]) for row in MESSAGES.values()] + [ONE, framed(header() * 1), ONE + ONE]
    wrong = 0
    for _ in range(100_000):
        raw = bytearray(chance.choice(frames))
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(raw))
            match chance.randrange(4):
                case 0:
                    raw[place] = chance.randrange(256)
                case 1:
                    del raw[place:]
                    raw += b"\0"
                case 2:
                    raw[place:place] = chance.randbytes(3)
                case 3:
                    raw[place : place + 4] = chance.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"])
        layout = chance.choice(list(LAYOUTS))
        try:
            iggy.decode_log(bytes(raw), layout)
        except msgid.InvalidMessage as error:
            wrong += 0 <= error.offset <= len(raw)
        iggy.decode_table(bytes(raw), layout)
    assert 10_000 < wrong < 100_000


@given(st.lists(strategies.iggy_messages(), max_size=5), st.integers(1, 400), st.integers(0, 400))
def test_a_file_read_in_pieces(messages, chunk, cut):
    """Pieces of any size give the same messages, and where a half message at the end begins."""
    raw = iggy.encode_log(messages)
    short = raw[: max(0, len(raw) - cut)]
    whole = []
    error = None
    try:
        for message in iggy.read_log(io.BytesIO(short), chunk=chunk):
            whole.append(message)
    except msgid.TruncatedMessage as caught:
        error = caught
    assert whole == messages[: len(whole)]
    kept = len(iggy.encode_log(whole))
    if kept == len(short):
        assert error is None
    else:
        assert error is not None
        assert error.offset == kept
    found = iggy.decode_table(short)
    assert (found.length, found.table.num_rows) == (kept, len(whole))


def test_a_large_file_takes_constant_memory():
    """64 MB of messages are read with a few MB."""

    class Endless(io.RawIOBase):
        def __init__(self, size):
            self.left = size

        def read(self, size=-1):
            count = min(size // len(ONE) + 1, self.left // len(ONE))
            self.left -= count * len(ONE)
            return ONE * count

    tracemalloc.start()
    count = sum(1 for _ in iggy.read_log(Endless(len(ONE) * 200_000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200_000
    assert peak < 8_000_000


@given(
    st.lists(strategies.iggy_messages(), max_size=3),
    st.one_of(st.none(), st.tuples(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1))),
)
def test_poll_responses(messages, head):
    """A response comes back as it was; that of the first release has a count alone."""
    response = iggy.PollResponse(*(head or (None, None)), messages)
    raw = iggy.encode_poll(response)
    assert iggy.decode_poll(raw, first_release=head is None) == response
    with pytest.raises(msgid.TruncatedMessage):
        iggy.decode_poll(raw[:-1], first_release=head is None)
    with pytest.raises(msgid.InvalidMessage, match="after the end of the poll response"):
        iggy.decode_poll(raw + b"x", first_release=head is None)


@given(strategies.message_ids)
def test_a_version_1_id_is_the_128_bits(id):
    """A version-1 id's body goes into a message and comes out of it, unless it looks like a UUIDv4."""
    message = Message.new(b"", id=id)
    assert message.id == int.from_bytes(id.body, "little") == iggy.id_value(id) == iggy.id_value(str(id))
    if not (id.pid >> 12 == 4 and id.seconds >> 30 == 2):
        assert message.id_text == str(id)


@given(st.uuids(version=4))
def test_a_servers_uuid_is_shown_as_such(value):
    """Its bytes are on the wire in their order."""
    message = Message.new(b"", id=value)
    assert message.id_text == str(value)
    assert value.bytes in iggy.encode(message)
    assert iggy.id_value(str(value)) == iggy.id_value(value) == message.id


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "7F0000010000238F000000000001E240",
        "74b158ca-ddb3-498f-b0a9-9eec1c6197a",
        "{74b158ca-ddb3-498f-b0a9-9eec1c6197ae",
    ],
)
def test_what_is_no_id_of_a_message(value):
    """`InvalidMessageId`, as everywhere."""
    with pytest.raises(msgid.InvalidMessageId):
        iggy.id_value(value)


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
def test_json_that_is_no_message(text, reason):
    """One error, which quotes what was given."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        iggy.from_json(text)


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("Orders", "orders"),
        ("  my  Topic\t2 ", "my.topic.2"),
        ("a.b-c_d", "a.b-c_d"),
        ("ÄÖ", "äö"),
        ("x" * 255, "x" * 255),
    ],
)
def test_names(name, normal):
    """Lower case, trimmed, a dot for each run of white space; the normal form is its own."""
    assert msgid.normalize_name(name) == msgid.normalize_name(normal) == normal


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "blank"),
        (" \t", "blank"),
        ("a/b", "more than word characters"),
        ("a\x00", "more than word characters"),
        ("x" * 256, "256 bytes, not 1 to 255"),
        ("İ" * 127, "381 bytes, not 1 to 255"),
        ("é" * 128, "256 bytes, not 1 to 255"),
        (None, "a NoneType and not text"),
    ],
)
def test_what_is_no_name(name, reason):
    """The length is that of the normal form: 127 times U+0130 is 254 bytes, and 381 in lower case."""
    with pytest.raises(msgid.InvalidMessage, match=reason):
        msgid.normalize_name(name)


def test_errors_travel_between_processes():
    """They pickle, with reason and offset."""
    import copy
    import pickle

    error = msgid.TruncatedMessage("half", 7)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), other.offset) == (type(error), str(error), 7)


@given(data=st.data(), layout=st.sampled_from(["current", "previous"]), chunk=st.integers(1, 200))
def test_tables_of_a_file_are_the_table_of_its_bytes(data, layout, chunk):
    """However it is cut into chunks, and whatever is at its end: the same rows, places and error."""
    made = data.draw(st.lists(strategies.iggy_messages(layout), max_size=5))
    raw = iggy.encode_log(made, layout) + data.draw(st.binary(max_size=60))
    whole = iggy.decode_table(raw, layout, base=7)
    for length in (None, len(raw)):
        parts = list(iggy.read_tables(io.BytesIO(raw), layout, chunk=chunk, base=7, length=length))
        assert [row for part in parts for row in rows(part.table)] == rows(whole.table)
        assert [place for part in parts for place in part.positions] == list(whole.positions)
        assert sum(part.length for part in parts) == whole.length
        errors = [part.error for part in parts if part.error is not None]
        assert errors == [part.error for part in parts[-1:] if part.error is not None]
        # The words may differ: where the length is known, what cannot fit is known before all of it is read.
        assert [(type(e), e.offset) for e in errors] == [(type(e), e.offset) for e in [whole.error] if e is not None]


def test_a_broken_length_does_not_fill_the_memory():
    """A message that says it is longer than what is left is not waited for."""

    class Counted(io.BytesIO):
        most = 0

        def read(self, size=-1):
            Counted.most = max(Counted.most, self.tell() + size)
            return super().read(size)

    raw = ONE + ONE[:37] + b"\xff\xff\xff\xff" + bytes(1 << 20)
    found = list(iggy.read_tables(Counted(raw), chunk=1000, length=len(raw)))
    assert (found[0].table.num_rows, found[-1].error.offset) == (1, len(ONE))
    assert Counted.most <= 1000
