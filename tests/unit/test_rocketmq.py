"""RocketMQ rows in plain Python: the required columns of a row, and which of the two IDs is used."""

import json
from types import SimpleNamespace

import pytest
from helpers.vector_files import SERVER_IDS, redelivered

import msgid
from msgid.processing import Message
from msgid.rocketmq import Record

V1 = "0156F7E71C361B21BC024CCDBE00000000"
OTHER = "0156F7E71C361B21BC024CCDBE00000001"
ROW = {
    "topic": "orders",
    "flag": 0,
    "body": b"hi",
    "properties": json.dumps({"UNIQ_KEY": V1.lower(), "KEYS": "order-7"}),
    "brokerName": "broker-a",
    "queueId": 2,
    "queueOffset": 7,
    "bornTimestamp": 1648047037000,
    "storeTimestamp": 1648047038000,
}


@pytest.mark.parametrize("properties", [None, "{}", {}, {"UNIQ_KEY": "not an id"}, {"KEYS": "7"}])
def test_message_id_without_unique_key_is_the_position(properties):
    """Without a valid `UNIQ_KEY` the ID is `position_id` of broker, topic and queue, offset and storing time."""
    expected = str(msgid.position_id("rocketmq:broker-a/orders/2", 7, 1648047038))
    assert Record.of({**ROW, "properties": properties}).message_id() == expected


def test_original_is_the_text_that_a_broker_finds():
    """Of running clients: Go's IDs end in lower case; those of the others are what `msgid.parse` prints."""
    lower = 0
    for client, id in ((row.client, row.id) for row in SERVER_IDS):
        record = Record.of({**ROW, "properties": {"UNIQ_KEY": id}})
        assert record.original == id
        if client.startswith("go remoting"):
            lower += id != str(msgid.parse(id))
        else:
            assert str(msgid.parse(record.message_id())) == id
    assert lower
    assert Record.of({**ROW, "properties": None}).original is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topic": ""}, "topic must be text, got ''"),
        ({"brokerName": None}, "a RocketMQ row must have brokerName"),
        ({"queueId": -1}, "queueId must be 0 to 2147483647, got -1"),
        ({"queueOffset": -1}, "queueOffset must be 0 to 281474976710655, got -1"),
        ({"storeTimestamp": "yesterday"}, "storeTimestamp must be an aware datetime"),
        ({"bornTimestamp": 1.5}, "bornTimestamp must be an aware datetime"),
        ({"properties": "{"}, "properties must be a JSON object, got '{'"),
        ({"properties": "[1]"}, "properties must be a mapping or a JSON object"),
        ({"properties": "[" * 100_000}, "properties must be a JSON object"),
        ({"body": 7}, "body must be text or bytes, got 7"),
    ],
)
def test_row_that_is_malformed_raises_one_error_that_quotes_it(changed, reason):
    with pytest.raises(msgid.InvalidMessage) as caught:
        Record.of({**ROW, **changed})
    assert reason in str(caught.value)


def test_redelivered_messages_have_the_log_of_their_retry_topic():
    """A push consumer's row has the first topic with the retry topic's queue and offset."""
    row = {**ROW, "topic": "orders", "queueId": 0, "queueOffset": 2}
    again = {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "0"}
    assert Record.of(row).source == "rocketmq:broker-a/orders/0"
    assert Record.of({**row, "properties": again}).source == "rocketmq:broker-a/%RETRY%billing/0"
    delayed = {"REAL_TOPIC": "orders", "REAL_QID": "3", "DELAY": "1"}
    assert Record.of({**row, "properties": delayed}).source == "rocketmq:broker-a/orders/0"
    for odd in ("", "x", "-1", "1" * 10, "\u0661"):
        with pytest.raises(msgid.InvalidMessage, match="no retry topic, and RETRY_TOPIC is 'orders'"):
            _ = Record.of({**row, "properties": {**again, "REAL_QID": odd}}).source


@pytest.mark.parametrize("topic", ["%DLQ%billing", "%RETRY%billing"])
def test_row_read_from_a_retry_or_dead_letter_topic_has_that_log(topic):
    """A dead letter keeps the properties of its last stay in the retry topic."""
    again = {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "3"}
    for properties in (again, {}, {"POP_CK": "0 1 2 3 1 broker-a 0 2"}):
        assert Record.of({**ROW, "topic": topic, "properties": properties}).source == f"rocketmq:broker-a/{topic}/2"


@pytest.mark.parametrize(
    ("checkpoint", "group", "topic"),
    [
        ("0 1795917982147 11000 0 0 broker-a 2 7", None, "orders"),
        ("0 1795918014305 11000 6 1 broker-a 2 7", "billing", "%RETRY%billing_orders"),
        ("0 1795918014305 11000 6 2 broker-a 2 7", "billing", "%RETRY%billing+orders"),
        ("0 1795918014305 11000 6 1 broker-a 2 7", None, None),
        ("0 1795918014305 11000 6 1 broker-a 2 7", "", None),
        ("0 1795918014305 11000 6 3 broker-a 2 7", "billing", None),
        ("0 1795918014305 11000 6", "billing", None),
        ("", "billing", None),
    ],
)
def test_row_of_pop_mode_has_the_log_that_its_checkpoint_names(checkpoint, group, topic):
    """The fifth field says whether the message was in its own topic; without the group, the log is not known."""
    properties = {"POP_CK": checkpoint} | ({} if group is None else {"ORIGIN_GROUP": group})
    record = Record.of({**ROW, "properties": {**properties, "UNIQ_KEY": V1}})
    assert record.message_id() == V1
    if topic is None:
        with pytest.raises(msgid.InvalidMessage, match="no retry topic, and POP_CK is '"):
            _ = record.source
    else:
        assert record.source == f"rocketmq:broker-a/{topic}/2"


@pytest.mark.parametrize("unique", [None, "order 17"])
@pytest.mark.parametrize(
    ("topic", "properties"),
    [
        ("orders", {"RETRY_TOPIC": "orders", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "0"}),
        ("orders", {"RETRY_TOPIC": "orders"}),
        ("orders", {"ORIGIN_MESSAGE_ID": "7F0000010000AE8300000000000FA740"}),
        ("orders", {"POP_CK": "0 1795918014305 11000 6 1 broker-a 0 3", "ORIGIN_GROUP": "billing"}),
        ("%RETRY%billing", {}),
        ("%DLQ%billing", {}),
    ],
)
def test_redelivered_row_without_an_id_is_refused(topic, properties, unique):
    """The place is not that of the first delivery, so the message would get a second ID."""
    row = {**ROW, "topic": topic, "properties": properties | ({} if unique is None else {"UNIQ_KEY": unique})}
    for make in (Record.of(row).message_id, Record.of(row).message):
        with pytest.raises(msgid.InvalidMessage, match=f"of a redelivered message must hold an ID .*, got {unique!r}"):
            make()


REDELIVERED = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "properties", "body")


def test_audit_of_recorded_redeliveries_finds_no_conflict():
    """A push consumer's 18 rows of 6 messages: each ID is there three times, and no position has two messages."""
    pytest.importorskip("pyarrow")
    audit = pytest.importorskip("msgid.audit")
    table = redelivered(REDELIVERED)
    pushed = table.filter([topic == "retryr" for topic in table["topic"].to_pylist()])
    assert pushed.num_rows == 18
    assert {finding.check: finding.count for finding in audit.audit_table(pushed).findings} == {"duplicate_ids": 12}
    everything = {finding.check: finding.count for finding in audit.audit_table(table).findings}
    assert everything == {"duplicate_ids": 20, "duplicate_messages": 8}  # a second consumer read the retry topic


def test_half_a_pair_of_surrogates_in_a_property_is_the_fault_of_its_row():
    """Text of JSON may have it, and text of Arrow may not: the other rows are audited."""
    pa = pytest.importorskip("pyarrow")
    audit = pytest.importorskip("msgid.audit")
    half = r"\ud800"
    held = [f'{{"UNIQ_KEY": "{half}"}}', f'{{"RETRY_TOPIC": "t", "REAL_TOPIC": "%RETRY%{half}", "REAL_QID": "0"}}',
            *[json.dumps({"UNIQ_KEY": V1})] * 2]  # fmt: skip
    columns = {name: [value] * 4 for name, value in ROW.items() if name != "properties"}
    table = pa.table({**columns, "queueOffset": [7, 0, 8, 9], "properties": held})
    report = audit.audit_table(table)
    assert {finding.check: finding.count for finding in report.findings} == {
        "duplicate_ids": 1, "malformed_ids": 1, "missing_ids": 1}  # fmt: skip
    assert report.unplaced == 1


@pytest.mark.parametrize("as_text", [False, True])
def test_audit_of_rows_reads_the_ids_in_their_properties(as_text):
    """A repeated output is found, and a redelivered message is not in conflict with the message of another topic."""
    pa = pytest.importorskip("pyarrow")
    audit = pytest.importorskip("msgid.audit")
    rows = [
        {**ROW, "queueOffset": n, "body": b"%d" % n, "properties": {"UNIQ_KEY": id} if id else None}
        for n, id in enumerate([V1, V1, None, "no id"])
    ]
    again = {"UNIQ_KEY": OTHER, "RETRY_TOPIC": ROW["topic"], "REAL_TOPIC": "%RETRY%g", "REAL_QID": str(ROW["queueId"])}
    rows.append({**ROW, "queueOffset": 0, "body": b"again", "properties": again})
    type = pa.string() if as_text else pa.map_(pa.string(), pa.string())
    held = [
        row["properties"] and (json.dumps(row["properties"]) if as_text else list(row["properties"].items()))
        for row in rows
    ]
    columns = {name: [row[name] for row in rows] for name in (*ROW, "queueOffset", "body") if name != "properties"}
    table = pa.table({**columns, "properties": pa.array(held, type)})
    found = {finding.check: finding.count for finding in audit.audit_table(table).findings}
    assert found == {"conflicting_ids": 1, "malformed_ids": 1}
    # Without times there are not any positions; the IDs of the properties are read all the same.
    untimed = audit.audit_table(table.drop_columns("storeTimestamp"))
    assert {finding.check: finding.count for finding in untimed.findings} == {**found, "missing_ids": 1}
    # The caller's own columns are used as they are.
    own = audit.audit_table(
        table, id=None, source=["brokerName", "topic", "queueId"], offset="queueOffset", content="body"
    )
    assert {finding.check: finding.count for finding in own.findings} == {"conflicting_messages": 1}


def received(**changed):
    """Return a message as the Python client shows it."""
    shown = {"topic": "orders", "message_id": V1, "body": b"hi", "keys": {"order-7"}, "tag": "A", "properties": {}}
    return SimpleNamespace(**{**shown, "born_timestamp": 1648047037000, "corrupted": False, **changed})


def test_message_of_a_record_is_its_id_key_body_and_time():
    """The time is that of the producer, so it is the same for each delivery; without it, the storing time."""
    assert Record.of(ROW).message() == Message(V1, "order-7", b"hi", 1648047037000000)
    assert Record.of({**ROW, "bornTimestamp": None}).message().timestamp == 1648047038000000
    assert Record.of(ROW).message(key="customer 5").key == "customer 5"
    with pytest.raises(msgid.InvalidMessage, match="key must be text, got 5"):
        Record.of(ROW).message(key=5)
    without = Record.of({**ROW, "properties": None})
    assert without.message().key == without.message().id == without.message_id()


def test_message_of_a_record_with_several_keys_names_the_choice():
    """The key decides which state changes, so the first of several is never taken in silence."""
    record = Record.of({**ROW, "properties": {"KEYS": "order-7 customer-5"}})
    with pytest.raises(msgid.InvalidMessage, match=r"key must be given .*, got \['order-7', 'customer-5'\]"):
        record.message()
    assert record.message(key="order-7").key == "order-7"


def test_message_of_a_record_whose_unique_key_is_not_an_id_is_refused():
    """A redelivered message has another position, so its ID would change; `message_id` and `original` still tell."""
    for held in ("order 17", ""):
        record = Record.of({**ROW, "properties": {"UNIQ_KEY": held}})
        with pytest.raises(msgid.InvalidMessage, match=f"UNIQ_KEY must hold an ID or a UUID, got '{held}'"):
            record.message()
        assert record.original == held


def test_record_of_a_python_consumer_is_the_message_of_the_row():
    """The ID, the key, the body and the time are those of the same message read as a row; the position is not known."""
    record = Record.from_consumer(received())
    assert record.message() == Record.of(ROW).message()
    assert (record.original, record.properties) == (V1, {"UNIQ_KEY": V1, "KEYS": "order-7", "TAGS": "A"})
    assert Record.from_consumer(received(message_id=V1.lower())).original == V1.lower()
    assert Record.from_consumer(received(keys=set(), tag=None, born_timestamp=None)).message().key == V1
    assert Record.from_consumer(received(properties={"KEYS": "x", "size": "7"})).properties["KEYS"] == "order-7"
    with pytest.raises(msgid.InvalidMessage, match="does not have a broker, a queue and an offset"):
        _ = record.source


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"corrupted": True}, f"cannot make a record of message {V1}: its checksum is wrong"),
        ({"body": 7}, "body must be text or bytes, got 7"),
        ({"topic": None}, "topic must be text, got None"),
        ({"born_timestamp": "yesterday"}, "bornTimestamp must be an aware datetime"),
        ({"properties": 7}, "properties must be a mapping"),
        ({"keys": 7}, "keys must be a set of text, got 7"),
        ({"keys": {7}}, "keys must be a set of text, got {7}"),
        ({"message_id": "order 17"}, "its own ID is: 'order 17'"),
        ({"message_id": ""}, "its own ID is: None"),
    ],
)
def test_message_of_a_python_consumer_that_is_malformed_raises_one_error(changed, reason):
    """A wrong checksum is an error, and so is an ID that is not known while the position is not known either."""
    with pytest.raises(msgid.InvalidMessage) as caught:
        Record.from_consumer(received(**changed)).message()
    assert reason in str(caught.value)


def test_other_objects_are_not_messages_of_a_consumer():
    for other in (None, {}, SimpleNamespace(topic="orders")):
        with pytest.raises(msgid.InvalidMessage, match="a message of a consumer must have"):
            Record.from_consumer(other)


def test_position_of_a_record_is_whole_or_missing():
    for part in ({"broker": "a"}, {"queue": 0}, {"offset": 0}, {"stored": 0}):
        with pytest.raises(msgid.InvalidMessage):
            Record("orders", **part)
