"""Kafka and RocketMQ rows as the message table: the same IDs as in plain Python, and no row is lost."""

import itertools
import json
import random
import re
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from helpers import deliveries
from helpers.covering import covering
from helpers.edges import session_zone
from helpers.rocketmq_log import read_record
from helpers.sessions import other_settings
from helpers.vector_files import ROCKETMQ as RECORDED
from helpers.vector_files import from_ms
from helpers.versions import since
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import InvalidMessage, kafka, rocketmq
from msgid.shared.moments import unix_micros
from spark_ext._settings import settings
from spark_ext.formats.message_formats import message_format
from spark_ext.testing import MessageFormatTests

pytestmark = pytest.mark.spark

V1 = "0156F7E71C361B21BC024CCDBE00000000"
UUID = "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"
MOMENT = datetime(2022, 3, 23, 14, 50, 38, 123456, tzinfo=timezone.utc)
KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int,"
    " headers array<struct<key: string, value: binary>>"
)
ROCKETMQ = (
    "topic string, flag int, body binary, properties string, brokerName string, queueId int, queueOffset long,"
    " bornTimestamp timestamp, storeTimestamp timestamp"
)


def kafka_row(**changed):
    """Return a row of Spark's Kafka source."""
    row = {"key": b"k", "value": b"v", "topic": "orders", "partition": 3, "offset": 7, "timestamp": MOMENT}
    return {**row, "timestampType": 0, "headers": None, **changed}


def rocketmq_row(**changed):
    """Return a row of RocketMQ's connector for Spark."""
    row = {"topic": "orders", "flag": 0, "body": b"hi", "properties": "{}", "brokerName": "a", "queueId": 2}
    return {**row, "queueOffset": 7, "bornTimestamp": MOMENT, "storeTimestamp": MOMENT, **changed}


DEAD = [
    {"key": f"__dlq.errors.{name}", "value": value and value.encode()}
    for name, value in (
        ("topic", "orders"),
        ("partition", "3"),
        ("offset", "2"),
        ("group", "billing"),
        ("message", None),
    )
]
"""The headers that Kafka 4.4 gives to a dead letter of a share group."""
KAFKA_ROWS = [
    kafka_row(),
    kafka_row(offset=8, value=None),
    kafka_row(offset=9, headers=[{"key": "message_id", "value": V1.lower().encode()}]),
    kafka_row(offset=10, headers=[{"key": "message_id", "value": bytes.fromhex(V1)}]),
    kafka_row(offset=11, headers=[{"key": "message_id", "value": UUID.upper().encode()}]),
    kafka_row(offset=12, headers=[{"key": "message_id", "value": b"orders-0-4200000"}]),
    kafka_row(offset=13, headers=[{"key": "message_id", "value": b"x"}, {"key": "message_id", "value": V1.encode()}]),
    kafka_row(offset=14, headers=[{"key": "message_id", "value": None}, {"key": "other", "value": b"\xff"}]),
    kafka_row(
        offset=15, headers=[{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"2"}]
    ),
    kafka_row(offset=16, headers=[{"key": name, "value": name.encode()} for name in ("a", "a", "a#2")]),
    kafka_row(offset=(1 << 48) - 1, timestamp=datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc)),
    kafka_row(offset=17, headers=[*DEAD, {"key": "message_id", "value": V1.encode()}]),
    kafka_row(topic=None),
    kafka_row(offset=18, headers=DEAD),
    kafka_row(offset=19, headers=DEAD[1:]),
    kafka_row(offset=20, headers=[*DEAD, {"key": "message_id", "value": b"order 7"}]),
    kafka_row(partition=None),
    kafka_row(offset=-1),
    kafka_row(offset=1 << 48),
    kafka_row(timestamp=None),
]


def collected(table):
    """Return the rows of a table in the order of their inputs."""
    return {(row["offset"], row["payload"]): row for row in table.collect()}


def judged(rows, payload, message_of):
    """Divide rows into those with their messages in plain Python, and malformed ones with their payloads."""
    good, malformed = [], []
    for row in rows:
        try:
            good.append((tuple(row.values()), [message_of(row)]))
        except InvalidMessage:
            malformed.append((tuple(row.values()), row[payload]))
    return good, malformed


def named(headers):
    """Return headers as the table has them: repeated names get numbers, or all of them if that name is taken."""
    if headers is None:
        return None
    names = [header["key"] for header in headers]
    before = [names[:n].count(name) for n, name in enumerate(names)]
    places = [f"{name}#{count + 1}" if count else name for name, count in zip(names, before, strict=True)]
    if len(set(places)) < len(places):
        places = [f"{n + 1}#{name}" for n, name in enumerate(places)]
    return {name: {"kind": "raw", "value": header["value"]} for name, header in zip(places, headers, strict=True)}


def of_kafka(header):
    """Return a function that returns the message of a row as `msgid.kafka` reads it."""

    def message_of(row):
        return {
            "id": kafka.Record.of(row).message_id("eu", header), "source": "kafka:eu/orders/3", "topic": "orders",
            "partition": 3, "offset": row["offset"], "timestamp": unix_micros(row["timestamp"]), "key": b"k",
            "payload": row["value"], "reason": kafka.Record.of(row).note(header), "headers": named(row["headers"]),
        }  # fmt: skip

    return message_of


@since(4, 0)
class TestKafka(MessageFormatTests):
    """Rows of Spark's source."""

    format, schema, options = message_format("kafka"), KAFKA, {"cluster": "eu"}
    good, malformed = judged(KAFKA_ROWS, "value", of_kafka("message_id"))


@pytest.mark.details
def test_kafka_headers_are_ignored_without_a_name(spark):
    """With ``id_header=None``, the place of each row is its identity; a dead letter is refused."""
    good, _ = judged(KAFKA_ROWS, "value", of_kafka(None))
    df = spark.createDataFrame([row for row, _ in good], KAFKA)
    found = ids.messages(df, "kafka", cluster="eu", id_header=None).collect()
    assert [(row["id"], row["reason"]) for row in found] == [(one["id"], one["reason"]) for _, (one,) in good]


@pytest.mark.details
@pytest.mark.parametrize("type", ["id", "uuid"])
def test_kafka_header_that_may_be_a_uuid_is_read_as_in_python(spark, type):
    """16 bytes are a UUID if the caller says so; other headers are read as before, with the same note."""
    held = [bytes.fromhex("74B158CADDB3498FB0A99EEC1C6197AE"), b"orders-0-4200000", bytes(15), V1.encode(), b"", None]
    rows = [kafka_row(offset=number, headers=[("message_id", value)]) for number, value in enumerate(held)]
    df = spark.createDataFrame([tuple(row.values()) for row in rows], KAFKA)
    found = ids.messages(df, "kafka", id_header_type=type).sort("offset").collect()
    records = [kafka.Record.of(row) for row in rows]
    assert [row["id"] for row in found] == [record.message_id(header_type=type) for record in records]
    assert [row["reason"] for row in found] == [record.note(header_type=type) for record in records]


def test_kafka_dead_letter_is_refused_with_the_place_of_its_first_delivery(spark):
    """Its own time and place would make a second ID; the reason names the first place."""
    rows = [kafka_row(headers=DEAD), kafka_row(offset=8, headers=DEAD[3:])]
    df = spark.createDataFrame([tuple(row.values()) for row in rows], KAFKA)
    found = ids.messages(df, "kafka").sort("offset").collect()
    assert [(row.state, row.id) for row in found] == [("poisoned", None)] * 2
    for row, place in zip(found, ("orders/3/2", "?/?/?"), strict=True):
        assert row.reason.startswith("invalid message: a dead letter of a share group must have an ID of its own")
        assert row.reason.endswith(f"Its first place is '{place}'")


def test_malformed_kafka_values_are_poisoned_and_do_not_stop_the_query(spark, ansi):
    """Numbers out of range, text that is not a number, a time without offset, an empty topic and invalid base64."""
    schema = (
        "value string, topic string, partition string, offset string, timestamp string, "
        "headers array<struct<key: string, value: string>>"
    )
    good = ("aGk=", "orders", "3", "7", "2022-03-23T14:50:38Z", None)
    cases = [
        (good, None),
        ((*good[:2], str(2**31), *good[3:]), "no valid partition"),
        (("aGk=", "", *good[2:]), "no topic"),
        ((*good[:5], [("a", "!"), ("b", None)]), "headers: invalid base64"),
        ((*good[:4], good[4].removesuffix("Z"), None), "no valid timestamp"),
        ((*good[:4], "1648047038", None), "no valid timestamp"),  # seconds
        ((*good[:3], "seven", *good[4:]), "no offset of 0 to 281474976710655"),
        (("a", *good[1:]), "value: invalid base64"),
    ]
    df = spark.createDataFrame([row for row, _ in cases], schema)
    found = ids.messages(df, "kafka", encoding="base64").collect()
    assert [row["reason"] for row in found] == [reason and f"invalid message: {reason}" for _, reason in cases]
    assert bytes(found[-1]["original"]) == b"a"


@pytest.mark.details
def test_rocketmq_properties_with_a_repeated_name_have_its_last_value(spark, ansi):
    """As in Python, and the offset ID beside them; the text of JSON's null is the same as missing properties."""
    schema = "topic string, body string, brokerName string, queueId long, queueOffset long, storeTimestamp long, " + (
        "properties string, offsetMsgId string"
    )
    texts = ['{"UNIQ_KEY": "x", "KEYS": "a", "UNIQ_KEY": "74b158ca-ddb3-498f-b0a9-9eec1c6197ae"}', "null", "[1]"]
    rows = [("orders", "b", "a", 2, n, 0, text, "AC11") for n, text in enumerate(texts)]
    rows.append(("orders", "b", "a", 2**31, 9, 0, None, None))
    found = ids.messages(spark.createDataFrame(rows, schema), "rocketmq").collect()
    names = [name.split()[0] for name in schema.split(", ")]
    for given, row in zip(rows[:2], found, strict=False):
        assert row["id"] == rocketmq.Record.of(dict(zip(names, given, strict=True))).message_id()
    expected = {"UNIQ_KEY": "74b158ca-ddb3-498f-b0a9-9eec1c6197ae", "KEYS": "a", "offsetMsgId": "AC11"}
    assert found[0]["attributes"] == expected
    reasons = [None, None, "invalid message: properties: not a JSON object", "invalid message: no valid queueId"]
    assert [row["reason"] for row in found] == reasons


@pytest.mark.details
def test_kafka_export_in_json_has_the_ids_of_the_source(spark, tmp_path):
    """Spark's own JSON of a Kafka DataFrame, and milliseconds, give the IDs of the source in any time zone."""
    rows = [tuple(row.values()) for row in KAFKA_ROWS[:9]]
    df = spark.createDataFrame(rows, KAFKA)
    expected = [row["id"] for row in ids.messages(df, "kafka").collect()]
    with session_zone(spark, "Asia/Tokyo"):
        df.coalesce(1).write.json(str(tmp_path / "export"))
        export = spark.read.schema(KAFKA.replace("binary", "string").replace("timestamp timestamp", "timestamp string"))
        read = ids.messages(export.json(str(tmp_path / "export")), "kafka", encoding="base64").collect()
        millis = df.withColumn("timestamp", F.unix_millis("timestamp"))
        assert [row["id"] for row in read] == expected
        assert [row["id"] for row in ids.messages(millis, "kafka").collect()] == expected


ROWS = {
    "kafka": (kafka_row, KAFKA, "offset", "timestamp"),
    "rocketmq": (rocketmq_row, ROCKETMQ, "queueOffset", "storeTimestamp"),
}
TIMES = [
    ("timestamp_seconds(0)", "timestamp_seconds(253402300800)"),
    ("timestamp_seconds(0)", "timestamp_seconds(-62135596801)"),
    ("0L", "-62135596800001L"),
    ("'0'", "'0000-12-31T00:00:00Z'"),
]


@pytest.mark.details
@pytest.mark.parametrize(("times", "format"), covering(TIMES, list(ROWS), strength=1))
def test_time_outside_the_years_1_to_9999_is_poisoned(spark, times, format):
    """A producer may send any number as the time. No ID is made of it, and the other rows are read."""
    good, odd = times
    row_of, schema, offset, name = ROWS[format]
    df = spark.createDataFrame([tuple(row_of(**{offset: n}).values()) for n in (1, 2)], schema)
    changed = df.withColumn(name, F.expr(f"IF({offset} = 2, {odd}, {good})"))
    found = ids.messages(changed, format).orderBy("offset").select("reason", "id").collect()
    assert [row.reason for row in found] == [None, f"invalid message: no valid {name}"]
    assert [row.id is None for row in found] == [False, True]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("timestamp_ntz'2022-03-23 14:50:38' AS timestamp", "timestamp must be a column of timestamps with time zone"),
        ("1.5D AS offset", "offset must be a column of integers, got double"),
        ("1 AS value", "a key, value or body must be binary or text, got int"),
        ("'h' AS headers", "headers must be an array of structs of key and value, got string"),
        ("array('a') AS headers", "headers must be an array of structs of key and value, got array"),
        ("array(named_struct('name', 'a', 'value', X'01')) AS headers", "headers must be an array of structs of key"),
    ],
)
def test_kafka_columns_of_another_type_are_refused_before_the_query_runs(spark, change, reason):
    """A column whose value would depend on the session, or be rounded, is an error that names it."""
    name = change.rpartition(" ")[2]
    df = spark.createDataFrame([tuple(kafka_row().values())], KAFKA).drop(name).selectExpr("*", change)
    with pytest.raises(ValueError, match=reason):
        ids.messages(df, "kafka")
    with pytest.raises(ValueError, match=f"must have the column '{name}'" if name != "headers" else "encoding must be"):
        ids.messages(df.drop(name), "kafka", encoding="utf-8" if name != "headers" else "latin")


BROKEN_PROPERTIES = [
    *("[", "nullx", "{a:1}", '{"a":NaN}', f'{{"UNIQ_KEY":"{V1}","a":"\t"}}', "{'a':'x'}", '{"a":1},"b":{}'),
    *(f'{{"UNIQ_KEY":"{V1}"}}{rest}' for rest in (" x", ",", "}", "]", "{", "],[{", "}{", ",{}", "\0", "/**/")),
    f'{{"UNIQ_KEY":"{V1}"}},"end":{{}}}}',
]


def recorded_rows():
    """Yield the recorded messages of a commit log: delayed, redelivered, of transactions and batches."""
    for kept in RECORDED["records"]:
        row = read_record(bytes.fromhex(kept["hex"])).row("broker-a")
        times = {name: from_ms(row[name]) for name in ("bornTimestamp", "storeTimestamp")}
        yield {**row, "properties": json.dumps(row["properties"], ensure_ascii=False), **times}


ROCKETMQ_ROWS = [
    rocketmq_row(),
    rocketmq_row(queueOffset=8, properties=json.dumps({"UNIQ_KEY": V1.lower(), "KEYS": "order-7"})),
    rocketmq_row(queueOffset=9, properties=json.dumps({"UNIQ_KEY": "7F0000010000238F000000000001E240"})),
    rocketmq_row(queueOffset=10, properties=json.dumps({"UNIQ_KEY": "own key"})),
    rocketmq_row(queueOffset=11, properties=None),
    rocketmq_row(queueOffset=12, properties=f'  {{"UNIQ_KEY":"{V1}"}}\n'),
    *(rocketmq_row(properties=text) for text in BROKEN_PROPERTIES),
    rocketmq_row(brokerName=None),
    rocketmq_row(queueId=-1),
    rocketmq_row(storeTimestamp=None),
    rocketmq_row(queueOffset=None),
    *recorded_rows(),
]


PROPERTY_VALUES = {
    "UNIQ_KEY": (V1, "own key"),
    "RETRY_TOPIC": ("orders", ""),
    "REAL_TOPIC": ("%RETRY%billing", "orders"),
    "REAL_QID": ("3", "x", "1234567890"),
    "POP_CK": ("0 1 2 0 0 a 0 3", "0 1 2 6 1 a 0 3", "0 1 2 6 2 a 0 3", "0 1 2 6 9 a 0 3", "0 1", ""),
    "ORIGIN_GROUP": ("billing", ""),
    "ORIGIN_MESSAGE_ID": ("7F0000010000AE83",),
}
"""The properties that a broker gives to redelivered messages, and odd values."""


def delivered_rows():
    """Yield rows of 1,000 combinations of these properties, each with one of its values or without it."""
    topics = ("orders", "orders", "%RETRY%billing", "%DLQ%billing")
    combinations = list(itertools.product(topics, *((None, *values) for values in PROPERTY_VALUES.values())))
    for number, (topic, *held) in enumerate(random.Random(59).sample(combinations, 1_000)):
        properties = {name: value for name, value in zip(PROPERTY_VALUES, held, strict=True) if value is not None}
        yield rocketmq_row(topic=topic, queueOffset=number, properties=json.dumps(properties), body=b"%d" % number)


def source_of(row):
    """Return the log of a row in plain Python, or its kind of ID alone."""
    try:
        return rocketmq.Record.of(row).source, row["queueOffset"]
    except InvalidMessage:
        return "rocketmq", None


def id_of(row, read=rocketmq.Record.of):
    """Return the ID of a row in plain Python; None if it is refused."""
    try:
        return read(row).message_id()
    except InvalidMessage:
        return None


@pytest.mark.details
def test_rocketmq_place_of_a_delivery_is_that_of_python(spark):
    """Combinations of the properties that a broker sets have the log, the offset and the ID of Python, or a reason."""
    rows = list(delivered_rows())
    df = spark.createDataFrame([tuple(row.values()) for row in rows], ROCKETMQ)
    found = {bytes(row.payload): row for row in ids.messages(df, "rocketmq").collect()}
    for row in rows:
        one = found[row["body"]]
        assert (one.source, one.offset) == source_of(row), row
        assert one.id == id_of(row), row
        assert (one.state == "poisoned") == (one.id is None), row
        if one.id is None:
            assert "UNIQ_KEY of a redelivered message must hold an ID or a UUID, got " in one.reason
        elif one.offset is None:
            assert one.reason == "no position: the retry topic of a redelivered message is unknown"
    kinds = {(one.id is None, one.offset is None) for one in found.values()}
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}
    audited = message_format("rocketmq").audited_rows(df).sort("queueOffset").collect()
    expected = rocketmq.audited_rows(pa.Table.from_pylist(rows)).to_pylist()
    columns = ("id", "topic", "queueId", "queueOffset")
    key = lambda row: bytes(row["body"])  # noqa: E731
    for one, other in zip(sorted(audited, key=key), sorted(expected, key=key), strict=True):
        assert [one[name] for name in columns] == [other[name] for name in columns]


OF_DELIVERIES = {
    "kafka": (deliveries.KAFKA, KAFKA.replace(" timestamp,", " long,").replace("timestampType int, ", "")),
    "rocketmq": (
        deliveries.ROCKETMQ,
        ROCKETMQ.replace("Timestamp timestamp", "Timestamp long").replace("flag int, ", ""),
    ),
}


@pytest.mark.parametrize("format", OF_DELIVERIES)
def test_recorded_deliveries_have_the_ids_logs_and_refusals_of_python(spark, format):
    """First, redelivered, dead and redriven rows of running brokers; each refused row is poisoned with its reason."""
    rows, schema = OF_DELIVERIES[format]
    rows = [{**row, "properties": json.dumps(row.get("properties"))} for row in rows]
    names = [field.split(" ")[0] for field in schema.split(", ") if not field.startswith(("value: ", "value:"))]
    df = spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema)
    read = {"kafka": kafka.Record.of, "rocketmq": rocketmq.Record.of}[format]
    refused = 0
    for given, row in zip(rows, ids.messages(df, format).collect(), strict=True):
        record = read(given)
        source = record.source() if format == "kafka" else record.source
        assert (row.source, row.offset) == (source, record.offset)
        id = id_of(given, read)
        assert (row.id, row.state) == (id, "available" if id else "poisoned")
        if id is None:
            with pytest.raises(InvalidMessage, match=re.escape(row.reason.partition(", got")[0].partition(". ")[0])):
                record.message_id()
            refused += 1
    assert refused == {"kafka": 12, "rocketmq": 1}[format]


def of_rocketmq(row):
    """Return the message of a row as `msgid.rocketmq` reads it."""
    record = rocketmq.Record.of(row)
    keys = record.properties.get("KEYS")
    return {
        "id": record.message_id(), "source": record.source, "topic": row["topic"], "partition": row["queueId"],
        "offset": row["queueOffset"], "timestamp": unix_micros(row["storeTimestamp"]), "payload": row["body"],
        "key": keys and keys.encode(), "attributes": row["properties"] and record.properties,
    }  # fmt: skip


@since(4, 0)
@pytest.mark.details
class TestRocketMQ(MessageFormatTests):
    """Rows of the connector, and the recorded messages of a commit log."""

    format, schema = message_format("rocketmq"), ROCKETMQ
    good, malformed = judged(ROCKETMQ_ROWS, "body", of_rocketmq)


@pytest.mark.details
@pytest.mark.parametrize("format", ["kafka", "rocketmq"])
def test_rows_have_the_same_ids_under_other_settings(spark, ansi, format):
    """Also malformed rows, which are poisoned."""
    one = {"kafka": TestKafka, "rocketmq": TestRocketMQ}[format]
    df = spark.createDataFrame([row for row, _ in [*one.good, *one.malformed]], one.schema)
    with settings(spark, other_settings()):
        found = ids.messages(df, format, **one.options).collect()
    assert [row["id"] for row in found] == [*(made["id"] for _, (made,) in one.good), *[None] * len(one.malformed)]
