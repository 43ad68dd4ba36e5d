"""One identity through every delivery: a table per broker of delivery kinds, from recordings of real servers.

A row of a table says the log of a recorded delivery, and whence its ID comes.
"""

import base64
import gzip
import json
from collections import defaultdict
from dataclasses import replace

import pytest
from helpers import vector_files as vectors
from helpers.deliveries import KAFKA, ROCKETMQ, kinds_of

import msgid
from msgid import InvalidMessage, danube, iggy, kafka, rocketmq

OWN, POSITION, REFUSED = "own", "position", "refused"
"""The ID that the message carries, or that of its place, which is the first one. A third one would be a second ID."""

OF_ROCKETMQ = {
    "first": ("orders/0", OWN),
    "redelivered": ("%RETRY%billing/0", OWN),
    "dead": ("%DLQ%billing/0", OWN),
    "redriven": ("orders/0", OWN),
    "first in POP mode": ("popped/0", OWN),
    "redelivered in POP mode": ("%RETRY%popping_popped/0", OWN),
    "transaction": ("half/0", OWN),
    "delayed": ("later/0", OWN),
    "batch": ("orders/0", OWN),
    "compressed": ("orders/0", OWN),
    "gRPC": ("orders/0", OWN),
    "batch without UNIQ_KEY": ("orders/0", POSITION),
    "redelivered without UNIQ_KEY": ("%RETRY%billing/0", REFUSED),
}


@pytest.mark.parametrize("kind", OF_ROCKETMQ)
def test_rocketmq_delivery_has_its_log_and_the_id_of_its_first_delivery(kind):
    log, id = OF_ROCKETMQ[kind]
    for row in kinds_of(ROCKETMQ)[kind]:
        record = rocketmq.Record.of(row)
        assert (record.source, record.offset) == (f"rocketmq:{row['brokerName']}/{log}", row["queueOffset"])
        if id == REFUSED:
            for make in (record.message_id, record.message):
                with pytest.raises(InvalidMessage, match="UNIQ_KEY of a redelivered message must hold an ID"):
                    make()
            continue
        place = str(msgid.position_id(record.source, record.offset, record.stored))
        assert record.message(key="shop").id == (place if id == POSITION else msgid.parse(record.original).canonical)


def test_rocketmq_deliveries_are_all_in_the_table_and_have_one_place_each():
    """Two rows have one log and offset if and only if they have one place in the commit log; a message has one ID."""
    assert set(kinds_of(ROCKETMQ)) == set(OF_ROCKETMQ)
    places, ids = defaultdict(set), defaultdict(set)
    for row in ROCKETMQ:
        record = rocketmq.Record.of(row)
        places[record.source, record.offset].add((row["brokerName"], row["commitLogOffset"]))
        if record.original:
            ids[record.original].add(record.message_id())
    assert {len(found) for found in places.values()} == {1}
    assert len(places) == len({(row["brokerName"], row["commitLogOffset"]) for row in ROCKETMQ})
    assert {len(found) for found in ids.values()} == {1}
    kinds = [kind for kind, (_, id) in OF_ROCKETMQ.items() if id == OWN and kind.startswith("re")]
    again = {row["properties"]["UNIQ_KEY"] for kind in kinds for row in kinds_of(ROCKETMQ)[kind]}
    assert again == {row["properties"]["UNIQ_KEY"] for kind in kinds_of(ROCKETMQ) for row in kinds_of(ROCKETMQ)[kind]
                     if kind.startswith("first")}  # fmt: skip


def test_rocketmq_audit_of_all_deliveries_finds_repeated_ids_alone():
    """A table of first, redelivered, dead and redriven rows has neither a conflict nor a loss inside a log."""
    pa = pytest.importorskip("pyarrow")
    audit = pytest.importorskip("msgid.audit")
    names = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "body")
    columns = {name: [row[name] for row in ROCKETMQ] for name in names}
    properties = pa.array([list(row["properties"].items()) for row in ROCKETMQ], pa.map_(pa.string(), pa.string()))
    report = audit.audit_table(pa.table({**columns, "properties": properties}), without=["time_backwards"])
    checks = {found.check for found in report.findings}
    assert not checks & {"conflicting_messages", "duplicate_messages", "conflicting_ids"}
    assert "duplicate_ids" in checks


OF_KAFKA = {
    "first": OWN,
    "redelivered: first": OWN,
    "first, no ID": POSITION,
    "redelivered: first, no ID": POSITION,
    "tombstone": OWN,
    "redelivered: tombstone": OWN,
    "compressed batch": OWN,
    "redelivered: compressed batch": OWN,
    "transaction": OWN,
    "redelivered: transaction": OWN,
    "aborted": OWN,
    "dead, copied": REFUSED,
    "dead, bare": REFUSED,
}
"""A share group delivers a record again at its own place, with its headers; its dead letters have neither."""


@pytest.mark.parametrize("kind", OF_KAFKA)
def test_kafka_delivery_has_its_log_and_the_id_of_its_first_delivery(kind):
    first = {row["offset"]: row for row in KAFKA if row["topic"] == "orders"}
    for row in kinds_of(KAFKA)[kind]:
        record = kafka.Record.of(row)
        assert record.source() == f"kafka:kafka/{row['topic']}/0"
        if OF_KAFKA[kind] != REFUSED:
            place = str(msgid.position_id(record.source(), record.offset, record.timestamp))
            assert record.message().id == (
                dict(record.headers)["message_id"].decode() if OF_KAFKA[kind] == OWN else place
            )
            assert record.message() == kafka.Record.of(first[row["offset"]]).message()
            continue
        about = {name.removeprefix("__dlq.errors."): value for name, value in record.headers}
        place = f"orders/0/{about['offset'].decode()}"
        for make in (record.message_id, record.message):
            with pytest.raises(InvalidMessage, match=f"Its first place is '{place}'"):
                make()
        original = first[int(about["offset"])]
        assert record.timestamp != kafka.Record.of(original).timestamp
        assert record.value == (kafka.Record.of(original).value if kind == "dead, copied" else None)


def test_kafka_deliveries_are_all_in_the_table():
    assert set(kinds_of(KAFKA)) == set(OF_KAFKA)


OF_BROKER = json.loads((vectors.FOLDER / "danube_broker.json").read_text())["messages"]


def dead_letter(message):
    """Return the dead letter of a recorded message as the source of the broker v0.15.1 makes it."""
    place = message.msg_id
    about = {"topic": place.topic_name, "topic-offset": place.topic_offset, "producer-id": place.producer_id}
    attributes = {f"x-original-{name}": str(value) for name, value in about.items()}
    attributes |= {"x-delivery-attempt": "4", "x-poison-policy": "dead_letter", "x-failure-reason": "no"}
    letters = danube.MessageID(0, f"{place.topic_name}-dlq", place.broker_addr, 0)
    return replace(message, msg_id=letters, request_id=0, attributes=message.attributes | attributes)


OF_DANUBE = {
    "first": (lambda message: message, "danube:/default/orders", POSITION),
    "redelivered, other broker": (
        lambda message: replace(message, msg_id=message.msg_id._replace(broker_addr="http://b:1"), request_id=9),
        "danube:/default/orders",
        POSITION,
    ),
    "dead": (dead_letter, "danube:/default/orders-dlq", POSITION),
    "dead, without its first place": (
        lambda message: replace(dead_letter(message), attributes={"x-poison-policy": "dead_letter"}),
        "danube:/default/orders-dlq",
        REFUSED,
    ),
    "redriven with its attributes": (
        lambda message: replace(dead_letter(message), msg_id=message.msg_id._replace(topic_offset=99)),
        "danube:/default/orders",
        REFUSED,
    ),
}


@pytest.mark.parametrize("kind", OF_DANUBE)
def test_danube_delivery_has_its_log_and_the_id_of_its_first_delivery(kind):
    """The messages are those of a running broker; the forms of dead letters are those of its source."""
    pytest.importorskip("google.protobuf")
    deliver, log, id = OF_DANUBE[kind]
    for row in OF_BROKER:
        first = danube.StreamMessage.decode(bytes.fromhex(row["hex"]))
        message = danube.StreamMessage.decode(deliver(first).encode())
        assert message.msg_id.log == log
        if id == REFUSED:
            with pytest.raises(InvalidMessage, match="no ID: "):
                message.message_id()
        else:
            assert message.first_place.key == first.msg_id.key
            assert message.message_id() == first.message_id() == str(first.msg_id.position_id(first.time))


SERVERS = json.loads((vectors.FOLDER / "iggy_servers.json").read_text())["servers"]
OF_IGGY = {"poll": ("poll_0_100_gz", 0), "poll again of two": ("poll_1_2_gz", 1), "in the file": ("log_gz", 0)}


@pytest.mark.parametrize("kind", OF_IGGY)
@pytest.mark.parametrize("release", SERVERS)
def test_iggy_delivery_has_the_offset_and_the_id_of_its_first_delivery(release, kind):
    """A message has one ID in each poll and in the file, also in JSON and as a UUID in either order."""
    server, (name, start) = SERVERS[release], OF_IGGY[kind]
    raw = gzip.decompress(base64.b64decode(server["plain"][name]))
    response = (
        None if kind == "in the file" else iggy.decode_poll(raw, server["layout"] if release != "0.4.300" else "m45")
    )
    messages = iggy.decode_log(raw) if response is None else response.messages
    polled = server["plain"]["polled"][start : start + len(messages)]
    assert [(message.offset, str(message.id)) for message in messages] == [(row["offset"], row["id"]) for row in polled]
    assert response is None or response.partition == server["first_number"]
    for message in messages:
        assert iggy.from_json(iggy.to_json(message)).id == message.id
        for order in ("bytes", "number"):
            assert iggy.id_value(iggy.id_text(message.id, uuid=order), uuid=order) == message.id
