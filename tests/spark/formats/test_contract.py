"""The formats of Danube and Iggy pass the tests of `spark_ext.testing`, with any messages."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from helpers import strategies
from helpers.versions import since
from pyspark.sql import functions as F

from msgid import iggy
from msgid.danube import MessageID
from spark_ext import messages
from spark_ext.formats.message_formats import message_format
from spark_ext.testing import MessageFormatTests

pytestmark = [pytest.mark.spark, since(4, 0)]

SECONDS = 1_700_000_000
AT = datetime.fromtimestamp(SECONDS, timezone.utc)


def danube_message(number, drawn):
    """Return a drawn message that fits the columns of the table, in a topic of its own."""
    offset = drawn.msg_id.topic_offset % 2**48
    place = MessageID(drawn.msg_id.producer_id, f"{drawn.msg_id.topic_name}{number}", "", offset)
    return replace(drawn, publish_time=drawn.publish_time % 10**13, msg_id=place)


DANUBE = [danube_message(*one) for one in enumerate(strategies.many(strategies.danube_messages, 50))]
DANUBE += [
    replace(DANUBE[0], msg_id=MessageID(producer, "/a", "", 3), schema_id=producer, request_id=producer, attributes={})
    for producer in (2**63 - 1, 2**63, 2**64 - 1)
]
"""Messages of any producer; the last three have numbers of the upper half of a uint64."""
LETTER = replace(
    DANUBE[0],
    msg_id=MessageID(0, "/a-dlq", "", 0),
    attributes={"x-original-topic": "/a", "x-original-topic-offset": "9", "x-original-producer-id": str(2**64 - 1)},
)
DANUBE.append(LETTER)
NO_LETTER = replace(LETTER, attributes={"x-original-topic": "/a"})


def of_danube(message):
    place, id = message.msg_id, message.schema_id
    bits = id if id is None or id < 2**63 else id - 2**64
    schema = {"id": bits, "version": message.schema_version}
    return [{
        "id": message.message_id(), "source": place.log, "topic": place.topic_name,
        "offset": place.topic_offset, "timestamp": message.publish_time * 1000, "payload": message.payload,
        "attributes": message.attributes, "schema": None if set(schema.values()) == {None} else schema,
    }]  # fmt: skip


class TestDanube(MessageFormatTests):
    """Protobuf."""

    format, schema, options = message_format("danube"), "value binary", {"logged": True}
    good = [((message.encode(),), of_danube(message)) for message in DANUBE]
    malformed = [((raw,), raw) for raw in (b"no message", b"", b"\xff", NO_LETTER.encode())]


@pytest.mark.details
def test_danube_topics_have_a_log_if_one_offset_is_above_0(spark):
    """The producer does not matter. A dead letter has its ID by another topic, and a large offset does not give one."""
    places = [(7, "/a", 0), (9, "/a", 1), (7, "/b", 0), (8, "/b", 0), (7, "/c", 2**63 + 1), (7, "/c", 2**48)]
    made = [replace(LETTER, msg_id=MessageID(p, topic, "", n), attributes={}) for p, topic, n in places]
    made += [LETTER, NO_LETTER]
    df = spark.createDataFrame([(n, one.encode()) for n, one in enumerate(made)], "n int, value binary")
    rows = [messages(df.where(F.col("n") == n), "danube", logged=True).first() for n in range(len(made))]
    together = {(row.topic, row.offset, row.reason): row.id for row in messages(df, "danube").collect()}
    no_log, no_id = (
        "no ID: a topic without a log, so all messages have offset 0",
        "no ID: offset {} has more than 48 bits",
    )
    no_place = "attribute x-original-producer-id of a dead letter must be 1 to 18446744073709551615, got ''"
    assert together == {
        ("/a", 0, None): rows[0].id,
        ("/a", 1, None): rows[1].id,
        ("/b", 0, no_log): None,
        ("/c", None, no_id.format(2**63 + 1)): None,
        ("/c", 2**48, no_id.format(2**48)): None,
        ("/a-dlq", 0, None): LETTER.message_id(),
        ("/a-dlq", 0, f"invalid message: no ID: {no_place}"): None,
    }
    assert [row.state for row in rows] == ["available"] * 7 + ["poisoned"]


DANUBE_TEXT = replace(DANUBE[0], producer_name="p").to_json()
NO_PLACE = DANUBE_TEXT.replace('"msg_id"', '"subscription_name": null, "msg"')
SURROGATE_NAME = DANUBE_TEXT.replace('"producer_name": "', '"producer_name": "\\ud800')


class TestDanubeJson(MessageFormatTests):
    """JSON."""

    format, schema, options = message_format("danube-json"), "value string", {"logged": True}
    good = [((message.to_json(),), of_danube(message)) for message in DANUBE]
    malformed = [((text,), text.encode()) for text in ("{", '{"a": 1.5}', "{}", NO_PLACE, SURROGATE_NAME)]


IGGY = [
    iggy.Message.new(one.payload, id=one.id, offset=n, timestamp=SECONDS * n, headers=one.headers, layout="h64")
    for n, one in enumerate(strategies.many(strategies.iggy_messages("h64"), 50))
]


def of_iggy(message, source="iggy:t"):
    return {
        "id": message.id_text, "source": source, "topic": "t", "offset": message.offset, "layout": "h64",
        "timestamp": message.timestamp, "checksum": (message.checksum + 2**63) % 2**64 - 2**63,
        "payload": message.payload,
        "headers": {str(key): {"kind": str(one.kind), "value": one.raw} for key, one in message.headers.items()},
    }  # fmt: skip


OF_TOPIC = {"topic": "t", "layout": "h64"}
"""The layout is passed, because checksums cannot show it if every payload is empty."""
RAWS = [iggy.encode(message, "h64") for message in IGGY]


class TestIggyMessage(MessageFormatTests):
    """Encoded messages."""

    format, schema, options = message_format("iggy-message"), "value binary", OF_TOPIC
    good = [((raw,), [of_iggy(message)]) for raw, message in zip(RAWS, IGGY, strict=True)]
    malformed = [((b"no message",), b"no message"), ((RAWS[0][:-1],), RAWS[0][:-1]), ((RAWS[0] * 2,), RAWS[0] * 2)]


def test_ids_of_iggy_are_of_version_1_if_the_caller_says_so(spark):
    """With ``version_1=True``, the 16 bytes are those of a version-1 ID after its first byte."""
    df = spark.createDataFrame([(raw,) for raw in RAWS], "value binary")
    rows = messages(df, "iggy-message", version_1=True, **OF_TOPIC).collect()
    assert [row["id"] for row in rows] == [iggy.id_text(message.id, version_1=True) for message in IGGY]


class TestIggyPoll(MessageFormatTests):
    """Poll responses of several messages."""

    format, schema, options = message_format("iggy-poll"), "value binary", OF_TOPIC
    good = [
        (
            (iggy.encode_poll(iggy.PollResponse(3, 9, IGGY), "h64"),),
            [{**of_iggy(one, "iggy:t#3"), "partition": 3} for one in IGGY],
        ),
        ((iggy.encode_poll(iggy.PollResponse(3, 9, []), "h64"),), []),
    ]
    malformed = [((raw,), raw) for raw in (b"no response", bytes(12) + b"\xff" * 4)]


def test_ids_of_iggy_are_those_of_a_number_if_the_caller_says_so(spark):
    """With ``uuid="number"``, the bytes of a UUID are from the last to the first, in each format."""
    df = spark.createDataFrame([(raw,) for raw in RAWS], "value binary")
    rows = messages(df, "iggy-message", uuid="number", **OF_TOPIC).collect()
    assert [row["id"] for row in rows] == [iggy.id_text(message.id, uuid="number") for message in IGGY]
    with pytest.raises(ValueError, match="uuid must be 'bytes' with version_1=True"):
        messages(df, "iggy-message", uuid="number", version_1=True)
    with pytest.raises(ValueError, match="uuid must be"):
        messages(df, "iggy-message", uuid="halves")


@pytest.mark.parametrize("format", ["iggy-poll", "iggy-json"])
def test_polls_of_several_partitions_have_a_log_each(spark, format):
    """The response names its partition, and the topic only the caller; a JSON message alone does not."""
    polls = [
        iggy.encode_poll(iggy.PollResponse(number, 9, IGGY[:2]), "h64")
        if format == "iggy-poll"
        else f'{{"partition_id": {number}, "current_offset": 9, "count": 2, "messages": [{iggy.to_json(IGGY[0])}]}}'
        for number in (0, 7, 2**32 - 1)
    ]
    if format == "iggy-json":
        polls.append(iggy.to_json(IGGY[0]))
        polls.append('{"partition_id": -1, "messages": []}')
    df = spark.createDataFrame([(poll,) for poll in polls], f"value {'binary' if format == 'iggy-poll' else 'string'}")
    found = {
        (row.source, row.partition) for row in messages(df, format, layout="h64").where("id is not null").collect()
    }
    alone = {("iggy", None)}  # a partition of more than 31 bits is NULL
    assert found == {("iggy#0", 0), ("iggy#7", 7)} | alone
    named = messages(df, format, layout="h64", topic="t").where("id is not null").collect()
    assert {row.source for row in named} == {"iggy:t#0", "iggy:t#7", "iggy:t"}
    fixed = messages(df, format, layout="h64", partition=5).where("id is not null").collect()
    assert {(row.source, row.partition) for row in fixed} == {("iggy#5", 5)}
    if format == "iggy-json":
        (wrong,) = messages(df, format).where("id is null").collect()
        assert wrong.reason == "invalid message: partition_id must be an integer of 0 to 4294967295, got -1"


SURROGATE_KEY = '{"offset":0,"timestamp":1,"id":7,"payload":"","headers":{"\\ud800":{"kind":"raw","value":"AQ=="}}}'


class TestIggyJson(MessageFormatTests):
    """JSON of one message, of several, and of a server."""

    format, schema, options = message_format("iggy-json"), "value string", OF_TOPIC
    good = [
        ((iggy.to_json(IGGY[0]),), [of_iggy(IGGY[0])]),
        ((f"[{','.join(map(iggy.to_json, IGGY[1:]))}]",), [of_iggy(one) for one in IGGY[1:]]),
        (('{"messages": []}',), []),
    ]
    malformed = [((text,), text.encode()) for text in ("{", "[1", '{"messages": [1]}', SURROGATE_KEY)]


class TestIggySegments(MessageFormatTests):
    """Rows of ``format("iggy")``."""

    format = message_format("iggy")
    schema = (
        "source string, stream string, topic string, partition int, segment bigint, offset bigint, state string, "
        "timestamp timestamp, id_text string, checksum bigint, checksum_ok boolean, layout string, "
        "headers map<string, struct<kind: string, value: binary>>, payload binary, reason string, original binary"
    )
    good = [
        (
            ("iggy:1/2#3", "1", "2", 3, 0, 7, None, AT, "a-b", 5, True, "h64", {}, b"body", None, None),
            [{"id": "a-b", "source": "iggy:1/2#3", "topic": "2", "partition": 3, "segment": 0, "offset": 7,
              "timestamp": SECONDS * 10**6, "payload": b"body", "layout": "h64"}],
        ),
    ]  # fmt: skip
    malformed = [((*["iggy:1/2#3"], *[None] * 5, "poisoned", *[None] * 7, "torn", b"torn"), b"torn")]
