"""Kafka records in plain Python: the required columns of a row, and the same ID from every reader."""

import re
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import msgid
from msgid.errors import InvalidMessage
from msgid.kafka import Record
from msgid.processing import MemoryStore, Message, Processor, dumps
from msgid.shared.handler_message import key_text

V1 = "0156F7E71C361B21BC024CCDBE00000000"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
UUID_0 = "00000000-0000-0000-0000-000000000000"
HOSTILE_KEYS = [b"0xFF", b"\xff", b"0x", b"\0", b"0x00", b"0xff", b"0x30784646", "\U0001f600".encode(), b"\xed\xa0\x80"]
MOMENT = datetime(2022, 3, 23, 14, 50, 38, tzinfo=timezone.utc)
ROW = {"topic": "orders", "partition": 3, "offset": 1234, "timestamp": MOMENT, "key": b"k", "value": b"v"}


@pytest.mark.parametrize(
    "timestamp",
    [
        MOMENT.astimezone(timezone(timedelta(hours=9))),
        1648047038000,
        "1648047038000",
        "2022-03-23T14:50:38Z",
        "2022-03-23T14:50:38.000000789Z",
        "2022-03-23 14:50:38+00",
        "2022-03-23T23:50:38+0900",
        "2022-03-23 14:50:38.000Z",
        "2022-03-23T23:50:38.000+09:00",
    ],
)
def test_message_id_of_one_moment_in_any_spelling_is_the_same(timestamp):
    """A datetime of any zone, milliseconds and ISO 8601 text of one moment give one ID."""
    assert Record.of({**ROW, "timestamp": timestamp}).message_id() == Record.of(ROW).message_id()


@pytest.mark.parametrize(
    ("value", "as_id", "as_uuid"),
    [
        (V1.encode(), V1, V1),
        (V1.lower().encode(), V1, V1),
        (bytes.fromhex(V1), V1, V1),
        (b"7F0000010000238F000000000001E240", *["007F0000010000238F000000000001E240"] * 2),
        (UUID.upper().encode(), UUID, UUID),
        (bytes.fromhex(UUID.replace("-", "")), None, UUID),
        (b"orders-0-4200000", None, "6f726465-7273-2d30-2d34-323030303030"),
        (bytes(16), None, UUID_0),
        (bytes(15), None, None),
        (b"order 7", None, None),
        (b"\xff\xfe", None, None),
        (b"", None, None),
        (None, None, None),
    ],
)
def test_message_id_with_header_is_the_headers_id_or_else_the_position(value, as_id, as_uuid):
    """16 bytes are a UUID if the caller says so; `note` tells of a header that was not read."""
    record = Record.of({**ROW, "headers": [("other", b"x"), ("message_id", value)]})
    position = Record.of(ROW).message_id()
    assert [record.message_id(header_type=type) for type in ("id", "uuid")] == [as_id or position, as_uuid or position]
    assert record.message_id(header=None) == position
    told = "header message_id does not hold an ID"
    notes = [record.note(header_type=type) for type in ("id", "uuid")]
    assert notes == [None if as_id else told, None if as_uuid else told]


def test_note_without_the_header_is_none():
    for headers in (None, [("other", b"x")]):
        record = Record.of({**ROW, "headers": headers})
        assert record.note() is None
        assert record.note("other") == ("header other does not hold an ID" if headers == [("other", b"x")] else None)
    with pytest.raises(ValueError, match="header_type must be one of id, uuid, got 'guid'"):
        Record.of({**ROW, "headers": [("message_id", b"x")]}).message_id(header_type="guid")


def test_message_id_with_a_repeated_header_is_the_last_ones():
    """A header that is added later replaces the one before it, as Kafka's own `lastHeader` reads it."""
    headers = [{"key": "message_id", "value": UUID.encode()}, {"key": "message_id", "value": V1.encode()}]
    assert Record.of({**ROW, "headers": headers}).message_id() == V1


def test_base64_text_stands_for_its_bytes():
    """An export in base64 gives the record of the bytes; text that is not base64 is not read as something else."""
    row = {**ROW, "key": "aw==", "value": "dg==", "headers": [{"key": "h", "value": "aGk="}]}
    expected = Record.of({**ROW, "headers": [("h", b"hi")]})
    assert Record.of(row, encoding="base64") == expected
    with pytest.raises(msgid.InvalidMessage, match="value must be base64, got 'd'"):
        Record.of({**ROW, "value": "d"}, encoding="base64")
    with pytest.raises(ValueError, match="encoding must be one of utf-8, base64, got 'latin'"):
        Record.of(ROW, encoding="latin")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topic": None}, "a Kafka row must have topic"),
        ({"topic": 7}, "topic must be text, got 7"),
        ({"partition": -1}, "partition must be 0 to 2147483647, got -1"),
        ({"partition": 1 << 31}, "partition must be 0 to 2147483647, got 2147483648"),
        ({"partition": "3"}, "partition must be 0 to"),
        ({"offset": 1 << 48}, "offset must be 0 to 281474976710655, got 281474976710656"),
        ({"offset": 1.0}, "offset must be 0 to"),
        ({"offset": True}, "offset must be 0 to"),
        ({"timestamp": "2022-03-23T14:50:38"}, "timestamp must be an aware datetime"),
        ({"timestamp": datetime(2022, 3, 23)}, "timestamp must be an aware datetime"),
        ({"timestamp": "2022-13-23T14:50:38Z"}, "timestamp must be an aware datetime"),
        ({"timestamp": "2022-03-23T14:50:38Z\n"}, "timestamp must be an aware datetime"),
        ({"timestamp": 1 << 80}, "timestamp must be an aware datetime"),
        ({"value": 7}, "value must be text or bytes, got 7"),
        ({"headers": 7}, "headers must be a list of pairs of name and value, got 7"),
        ({"headers": [7]}, "a header must be a pair of name and value, got 7"),
        ({"headers": [(7, b"")]}, "a header's name must be text, got 7"),
    ],
)
def test_row_that_is_malformed_raises_one_error_that_quotes_it(changed, reason):
    with pytest.raises(msgid.InvalidMessage) as caught:
        Record.of({**ROW, **changed})
    assert reason in str(caught.value)


def by_methods(**fields):
    """Return a consumer's message whose fields are methods, as in confluent-kafka; kafka-python has attributes."""
    return SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})


@pytest.mark.parametrize(("kind", "timestamp"), [(by_methods, (1, 1648047038000)), (SimpleNamespace, 1648047038000)])
def test_from_consumer_gives_the_record_of_the_row(kind, timestamp):
    """A consumer in Python finds the same record, and so the same ID, as a reader of Spark's rows."""
    fields = {**ROW, "timestamp": timestamp, "headers": [("h", b"hi")]}
    assert Record.from_consumer(kind(**fields)) == Record.of({**ROW, "headers": [("h", b"hi")]})


def test_from_consumer_of_a_message_without_a_time_raises_the_one_error():
    """An empty timestamp is a missing one, and so is Kafka's number -1."""
    words = "timestamp is missing in the message orders/3/1234: make a Record with a time"
    for timestamp in ((), None, -1, (0, -1)):
        with pytest.raises(msgid.InvalidMessage, match=words):
            Record.from_consumer(by_methods(**{**ROW, "timestamp": timestamp}))


@pytest.mark.parametrize("error", [lambda: "_PARTITION_EOF", lambda: 7])
def test_record_of_an_error_event_is_refused(error):
    """Such an event of confluent-kafka has an offset, but it is not a message."""
    event = SimpleNamespace(
        topic=lambda: "orders", partition=lambda: 0, offset=lambda: 7, timestamp=lambda: (0, -1), error=error
    )
    with pytest.raises(InvalidMessage, match=f"cannot make a record of an error event: {error()}"):
        Record.from_consumer(event)


def test_message_of_a_record_is_its_id_key_value_and_time():
    """A processor takes it as it is; the settings of the ID are those of `message_id`."""
    record = Record.of({**ROW, "headers": [("order", UUID.encode())]})
    position = str(msgid.position_id("kafka:eu/orders/3", 1234, MOMENT))
    assert record.message_id(cluster="eu") == Record.of({**ROW, "value": None}).message_id(cluster="eu") == position
    assert record.message() == Message(record.message_id(), "k", b"v", 1648047038000000)
    assert Record.of({**ROW, "value": None}).message().body is None  # a tombstone
    assert record.message(cluster="eu", header="order").id == UUID
    assert record.message(cluster="eu", header=None).id == record.message_id("eu", None)
    assert (
        Record.of({**ROW, "headers": [("id", bytes(16))]}).message(cluster="eu", header="id", header_type="uuid").id
        == UUID_0
    )
    assert record.message(key="customer 7").key == "customer 7"
    with pytest.raises(InvalidMessage, match="key must be text, got b'customer 7'"):
        record.message(key=b"customer 7")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"headers": [("message_id", None)]}, "header message_id must hold an ID or a UUID, got b'': send str"),
        (
            {"timestamp": "1970-01-20T16:13:20Z"},
            "of kafka:kafka/orders/3 at offset 1234 is 1970-01-20T16:13:20",
        ),
    ],
)
def test_message_of_a_record_without_an_identity_or_a_time_of_its_own_is_refused(changed, reason):
    """A header without a value is not an ID, and seconds in the place of milliseconds are a time of January 1970."""
    with pytest.raises(InvalidMessage) as caught:
        Record.of({**ROW, **changed}).message()
    assert reason in str(caught.value)


def test_message_without_a_key_shares_its_state_with_no_other_message():
    """Its ID is the key, so that records without a key do not change one state; an empty key is a key."""
    records = [Record.of({**ROW, "key": None, "offset": offset}) for offset in (1, 2)]
    assert [record.message().key for record in records] == [record.message_id() for record in records]
    assert Record.of({**ROW, "key": b""}).message().key == ""


@given(st.lists(st.one_of(st.binary(max_size=9), st.sampled_from(HOSTILE_KEYS)), min_size=2, max_size=9, unique=True))
def test_messages_with_other_keys_have_other_states(keys):
    """Different bytes become different texts, and a store accepts each of them."""
    processor = Processor(MemoryStore(), lambda state, message, context: message.body, list, name="last")
    for offset, key in enumerate(keys):
        processor.handle(Record.of({**ROW, "key": key, "value": key, "offset": offset}).message())
    assert [processor.history(key_text(key))[-1].state for key in keys] == [dumps(key) for key in keys]


@pytest.mark.parametrize(
    ("key", "text"),
    [(b"customer 7", "customer 7"), (b"\xff\x00", "0xFF00"), (b"a\0b", "0x610062"), (b"0xAB", "0x30784142"),
     (b"0xab", "0xab"), ("é".encode(), "é"), ("é".encode("latin-1"), "0xE9"), (b"", "")],
)  # fmt: skip
def test_text_of_a_key(key, text):
    """UTF-8 is text; other bytes, a NUL character, and text that looks like bytes become hex digits."""
    assert key_text(key) == text


ABOUT = {
    "topic": "orders",
    "partition": "0",
    "offset": "2",
    "group": "billing",
    "delivery.count": "5",
    "message": "limit",
}
DEAD = [(f"__dlq.errors.{name}", value.encode()) for name, value in ABOUT.items()]
LETTER = {"topic": "orders-dlq", "partition": 0, "offset": 9, "timestamp": 1790000700000, "value": b"5"}


@pytest.mark.parametrize("header", ["message_id", None])
@pytest.mark.parametrize(
    ("headers", "place"),
    [(DEAD, "orders/0/2"), (DEAD[3:], "?/?/?"), ([*DEAD, DEAD[0], ("message_id", None)], "orders/0/2")],
)
def test_dead_letter_of_a_share_group_without_an_id_is_refused(headers, place, header):
    """It has neither the headers nor the time of its record, so its own place would be a second ID."""
    record = Record.of({**LETTER, "headers": headers})
    for make in (record.message, record.message_id):
        if make == record.message and header and len(headers) > len(DEAD):
            continue  # the empty header is named instead
        with pytest.raises(InvalidMessage, match=re.escape(f"Its first place is '{place}'")):
            make(header=header)


def test_dead_letter_of_a_share_group_with_an_id_keeps_it():
    """A program that wrote the ID into a header of the dead letter gets it back."""
    id = "0156F7E71C361B21BC024CCDBE00000000"
    assert Record.of({**LETTER, "headers": [*DEAD, ("message_id", id.encode())]}).message().id == id
