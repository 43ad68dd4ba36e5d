"""Each message format of the package, and a small one, passes the tests of `spark_ext.testing`."""

import json
from datetime import datetime, timezone

import pytest
from helpers.versions import since
from pyspark.sql import functions as F

import msgid
import spark_ext
from msgid import iggy, kafka, rocketmq
from msgid.danube import MessageID, StreamMessage
from spark_ext.formats.message_formats import message_format
from spark_ext.testing import MessageFormatTests

pytestmark = [pytest.mark.spark, since(4, 0)]

SECONDS = 1_700_000_000
AT = datetime.fromtimestamp(SECONDS, timezone.utc)
ID = "0156F7E71C361B21BC024CCDBE00000000"


def of_kafka(offset, headers=None, value=b"body"):
    """Return a row of Kafka, and its message as `msgid.kafka` reads it."""
    row = {"topic": "orders", "partition": 3, "offset": offset, "timestamp": AT, "key": b"k", "value": value}
    record = kafka.Record.of({**row, "headers": headers})
    message = {
        "id": record.message_id(), "source": record.source(), "topic": "orders", "partition": 3, "offset": offset,
        "timestamp": SECONDS * 10**6, "key": b"k", "payload": value,
    }  # fmt: skip
    return (*row.values(), headers), [message]


class TestKafka(MessageFormatTests):
    """Rows of Spark's source."""

    format = message_format("kafka")
    schema = (
        "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
        "headers array<struct<key: string, value: binary>>"
    )
    good = [of_kafka(7), of_kafka(8, value=None), of_kafka(9, [("message_id", ID.encode())])]
    malformed = [
        ((None, 3, 1, AT, None, b"no topic", None), b"no topic"),
        (("orders", 3, -1, AT, None, b"no offset", None), b"no offset"),
        (("orders", -1, 1, AT, None, b"no partition", None), b"no partition"),
    ]


def of_rocketmq(offset, properties):
    """Return a row of RocketMQ's connector, and its message as `msgid.rocketmq` reads it."""
    row = {
        "topic": "orders", "body": b"body", "properties": json.dumps(properties), "brokerName": "a", "queueId": 2,
        "queueOffset": offset, "storeTimestamp": SECONDS * 1000,
    }  # fmt: skip
    record = rocketmq.Record.of(row)
    message = {
        "id": record.message_id(), "source": record.source, "topic": "orders", "partition": 2, "offset": offset,
        "timestamp": SECONDS * 10**6, "payload": b"body", "attributes": properties,
    }  # fmt: skip
    return tuple(row.values()), [message]


class TestRocketMQ(MessageFormatTests):
    """Rows of the connector."""

    format = message_format("rocketmq")
    schema = (
        "topic string, body binary, properties string, brokerName string, queueId int, queueOffset bigint, "
        "storeTimestamp bigint"
    )
    good = [of_rocketmq(7, {}), of_rocketmq(8, {"UNIQ_KEY": ID, "KEYS": "k"})]
    malformed = [
        (("orders", b"bad", "{", "a", 2, 1, 0), b"bad"),
        (("orders", b"no broker", None, None, 2, 1, 0), b"no broker"),
    ]


DANUBE = [
    StreamMessage(n, MessageID(9, "/a/b", "", n), b"body", SECONDS * 1000, "p", attributes={"a": "1"}) for n in (4, 5)
]


def of_danube(message):
    place = message.msg_id
    return [{
        "id": str(place.position_id(SECONDS)), "source": place.source, "topic": "/a/b", "offset": place.topic_offset,
        "timestamp": SECONDS * 10**6, "payload": b"body", "attributes": {"a": "1"},
    }]  # fmt: skip


class TestDanube(MessageFormatTests):
    """Protobuf."""

    format, schema = message_format("danube"), "value binary"
    good = [((message.encode(),), of_danube(message)) for message in DANUBE]
    malformed = [((b"no message",), b"no message"), ((b"",), b"")]


class TestDanubeJson(MessageFormatTests):
    """JSON."""

    format, schema = message_format("danube-json"), "value string"
    good = [((message.to_json(),), of_danube(message)) for message in DANUBE]
    malformed = [(("{",), b"{")]


KEY = iggy.HeaderKey.of(5, iggy.HeaderKind.INT32)
IGGY = [
    iggy.Message.new(b"body", id=n + 1, offset=n, timestamp=SECONDS * 10**6, headers=headers, layout="h64")
    for n, headers in enumerate([{}, {"k": 1}, {KEY: "v"}], 7)
]


def of_iggy(message, source="iggy"):
    return {
        "id": message.id_text, "source": source, "offset": message.offset, "timestamp": message.timestamp,
        "checksum": (message.checksum + 2**63) % 2**64 - 2**63, "payload": b"body", "layout": "h64",
        "headers": {
            str(key): {"kind": str(header.kind), "value": header.raw} for key, header in message.headers.items()
        },
    }  # fmt: skip


RAWS = [iggy.encode(message, "h64") for message in IGGY]


class TestIggyMessage(MessageFormatTests):
    """Encoded messages."""

    format, schema = message_format("iggy-message"), "value binary"
    good = [((raw,), [of_iggy(message)]) for raw, message in zip(RAWS, IGGY, strict=True)]
    malformed = [((b"no message",), b"no message"), ((RAWS[0][:-1],), RAWS[0][:-1]), ((RAWS[0] * 2,), RAWS[0] * 2)]


class TestIggyMessageOfVersion1(MessageFormatTests):
    """IDs of version 1, because the caller says so."""

    format, schema, options = message_format("iggy-message"), "value binary", {"version_1": True}
    good = [
        ((raw,), [{**of_iggy(message), "id": iggy.id_text(message.id, version_1=True)}])
        for raw, message in zip(RAWS, IGGY, strict=True)
    ]
    malformed = [((b"no message",), b"no message")]


class TestIggyPoll(MessageFormatTests):
    """Poll responses of several messages."""

    format, schema = message_format("iggy-poll"), "value binary"
    good = [
        ((iggy.encode_poll(iggy.PollResponse(3, 9, IGGY), "h64"),), [{**of_iggy(one), "partition": 3} for one in IGGY]),
        ((iggy.encode_poll(iggy.PollResponse(3, 9, []), "h64"),), []),
    ]
    malformed = [((b"no response",), b"no response")]


class TestIggyJson(MessageFormatTests):
    """JSON of one message, of several, and of a server."""

    format, schema = message_format("iggy-json"), "value string"
    good = [
        ((iggy.to_json(IGGY[0]),), [of_iggy(IGGY[0])]),
        ((f"[{','.join(map(iggy.to_json, IGGY[1:]))}]",), [of_iggy(one) for one in IGGY[1:]]),
    ]
    malformed = [(("{",), b"{"), (('{"messages": [1]}',), b'{"messages": [1]}')]


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


class Nats(spark_ext.MessageFormat):
    """A small format of one's own: a stream and a sequence number."""

    name, columns, time = "nats", ("stream", "sequence", "time", "data"), "time"

    def rows(self, df, options):
        fits = F.coalesce(F.col("sequence").between(0, 2**48 - 1) & F.col("time").isNotNull(), F.lit(False))
        malformed = F.when(F.col("stream").isNull() | ~fits, F.lit("no place"))
        source = F.concat(F.lit("nats:"), "stream")
        return {
            "id": spark_ext.position_id(source, F.when(malformed.isNull(), F.col("sequence")), "time"),
            "source": source, "topic": F.col("stream"), "offset": F.col("sequence"), "timestamp": F.col("time"),
            "payload": F.col("data"), "malformed": malformed,
        }  # fmt: skip


class TestNats(MessageFormatTests):
    """The small format."""

    format, schema = Nats(), "stream string, sequence bigint, time timestamp, data binary"
    good = [
        (
            ("orders", n, AT, b"body"),
            [{"id": str(msgid.position_id("nats:orders", n, SECONDS)), "offset": n, "payload": b"body"}],
        )
        for n in (1, 2)
    ]
    malformed = [((None, 1, AT, b"bad"), b"bad"), (("orders", -1, AT, b"worse"), b"worse")]
