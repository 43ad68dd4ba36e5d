"""RocketMQ: what its clients and its broker say of the IDs, and consumers to which messages are delivered again."""

import re
import uuid
from collections import Counter
from datetime import timedelta

import pytest
from helpers.vector_files import from_ms
from systems.rocketmq_broker import CLIENT_ZONE

import msgid
from msgid.audit import audit_table
from msgid.rocketmq import Record

pytestmark = pytest.mark.systems

SECOND = timedelta(seconds=1)


def topic_of(rocketmq, type="NORMAL", queues=2):
    """Create a topic with a new name."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    rocketmq.ask("create", name, type=type, queues=queues)
    return name


def in_log(rocketmq, topic):
    """Return the records of a topic in the broker's commit log, by their bodies."""
    found = {}
    for record in rocketmq.records():
        if record.topic == topic:
            assert record.body not in found
            found[record.body] = record
    return found


def offset_id(rocketmq, record):
    """Return the broker-offset ID of a record."""
    return str(msgid.BrokerOffsetId("127.0.0.1", rocketmq.port, record.position))


def checks(report):
    """Return the number of each check's findings.

    Without a network card in the namespace, the gRPC client takes random bytes as its node. Half of such nodes have the
    bit of a synthetic node.
    """
    return {finding.check: finding.count for finding in report.findings if finding.check != "synthetic_node"}


def audited(rows, **options):
    """Return the report of an audit of rows as they are."""
    import pyarrow as pa

    names = ("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "body")
    columns = {name: [row[name] for row in rows] for name in names}
    properties = pa.array([list(row["properties"].items()) for row in rows], pa.map_(pa.string(), pa.string()))
    return audit_table(pa.table({**columns, "properties": properties}), **options)


def words(name, count):
    return [f"{name} {n}" for n in range(count)]


def test_receipts_of_the_remoting_client_name_the_records_of_the_log(rocketmq):
    """Single messages and batches: position, queue and times; a batch's receipt joins the IDs with commas."""
    topic = topic_of(rocketmq)
    receipts = rocketmq.ask("send", topic, bodies=words("single", 20))
    receipts += rocketmq.ask("batch", topic, bodies=words("batch", 7))
    records = in_log(rocketmq, topic)
    bodies = [text.encode() for text in [*words("single", 20), *words("batch", 7)]]
    sent = []
    for receipt in receipts:
        pairs = zip(receipt["msgId"].split(","), receipt["offsetMsgId"].split(","), strict=True)
        sent += [(receipt, place, id, offset) for place, (id, offset) in enumerate(pairs)]
    for body, (receipt, place, id, offset) in zip(bodies, sent, strict=True):
        record = Record.of(records[body].row(rocketmq.name))
        assert (record.original, offset_id(rocketmq, records[body])) == (id, offset)
        assert (record.queue, record.offset) == (receipt["queueId"], receipt["queueOffset"] + place)
        assert record.source == f"rocketmq:{receipt['broker']}/{topic}/{receipt['queueId']}"
        assert msgid.parse(offset).offset == records[body].position
        for near in (record.stored, record.born, from_ms(receipt["before"]), from_ms(receipt["after"])):
            made = msgid.parse(id).time_near(near=near, timezone=CLIENT_ZONE)
            assert from_ms(receipt["before"]) <= made <= from_ms(receipt["after"])


def test_broker_finds_messages_by_the_ids_that_are_built_from_its_log(rocketmq):
    """By the offset ID that `BrokerOffsetId` builds, and by the text of `Record.original`; not by other spellings."""
    topic = topic_of(rocketmq)
    rocketmq.ask("send", topic, bodies=words("remoting", 5))
    rocketmq.ask("grpc", topic, bodies=words("grpc", 5), kind="NORMAL")
    for body, record in in_log(rocketmq, topic).items():
        [found] = [rocketmq.ask("by_offset_id", topic, id=offset_id(rocketmq, record))]
        original = Record.of(record.row(rocketmq.name)).original
        assert (found["commitLogOffset"], found["msgId"]) == (record.position, original)
        [found] = rocketmq.rows("by_unique_key", topic, id=original)
        assert (found["body"], found["commitLogOffset"]) == (body, record.position)
        canonical = msgid.parse(original).canonical
        assert str(msgid.parse(canonical)) == original
        for other in {original.lower(), canonical} - {original}:
            with pytest.raises(AssertionError, match="no message"):
                rocketmq.ask("by_unique_key", topic, id=other)


@pytest.mark.variants
def test_mqadmin_finds_a_message_by_each_of_its_ids(rocketmq):
    """With the commands of the guide to RocketMQ: the ID of its place, and the ID of its producer."""
    topic = topic_of(rocketmq)
    [receipt] = rocketmq.ask("send", topic, bodies=["one"])
    [record] = in_log(rocketmq, topic).values()
    place, own = offset_id(rocketmq, record), receipt["msgId"]
    for command, id in (("queryMsgById", place), ("queryMsgById", own), ("queryMsgByUniqueKey", own)):
        found = rocketmq.mqadmin(command, "-t", topic, "-i", id)
        assert re.search(rf"Queue ID: +{record.row(rocketmq.name)['queueId']}\n", found), found
        assert re.search("Queue Offset: +0\n", found), found


@pytest.mark.parametrize("kind", ["NORMAL", "FIFO", "DELAY", "TRANSACTION"])
def test_rows_of_the_grpc_client_have_the_ids_that_it_returned(rocketmq, kind):
    """An audit finds nothing, though a transaction takes two sequence numbers; a lost row is found.

    A slow client commits a transaction that the broker asks about meanwhile, and the broker then writes the row twice.
    """
    topic = topic_of(rocketmq, kind)
    bodies = words(kind, 12)
    ids = rocketmq.ask("grpc", topic, bodies=bodies, kind=kind)
    rows = landed(rocketmq, topic, bodies)
    by_body = {row["body"].decode(): Record.of(row) for row in rows}
    assert [by_body[body].original for body in bodies] == ids == [by_body[body].message_id() for body in bodies]
    for record in by_body.values():
        assert abs(msgid.parse(record.original).time - record.born) <= 2 * SECOND
    assert checks(audited(rows)) == written_again(rows)
    [queue] = {row["queueId"] for row in rows[:1]}
    inner = max(row["queueOffset"] for row in rows if row["queueId"] == queue) - 1
    if inner > 0:
        kept = [row for row in rows if (row["queueId"], row["queueOffset"]) != (queue, inner)]
        assert checks(audited(kept))["missing_offsets"] == 1


def landed(rocketmq, topic, bodies, times=1):
    """Return the rows of a topic once each body is there so many times; a body may be there more often."""
    for _ in range(60):
        rows = rocketmq.rows("pull", topic)
        found = Counter(row["body"].decode() for row in rows)
        if all(found[body] >= times for body in bodies):
            return rows
    raise AssertionError(f"{topic} has {dict(found)}, and must have {bodies} {times} times")


def written_again(rows):
    """Return what an audit finds of the rows that the broker wrote more than once."""
    again = len(rows) - len({row["body"] for row in rows})
    return {"duplicate_ids": again} if again else {}


def test_delayed_message_has_the_offset_id_of_the_schedule(rocketmq):
    """The receipt names the copy in the schedule topic; the copy that is delivered has the same `UNIQ_KEY`."""
    topic = topic_of(rocketmq)
    receipts = rocketmq.ask("send", topic, bodies=words("later", 4), level=1)
    rows = {row["body"].decode(): row for row in landed(rocketmq, topic, words("later", 4))}
    for body, receipt in zip(words("later", 4), receipts, strict=True):
        row = rows[body]
        assert row["msgId"] == receipt["msgId"]
        scheduled = rocketmq.ask("by_offset_id", topic, id=receipt["offsetMsgId"])
        assert scheduled["topic"] == "SCHEDULE_TOPIC_XXXX"
        assert scheduled["queueOffset"] == receipt["queueOffset"]
        assert scheduled["properties"]["REAL_TOPIC"] == topic
        assert scheduled["commitLogOffset"] < row["commitLogOffset"]
        assert Record.of(row).source == f"rocketmq:broker-a/{topic}/{row['queueId']}"
        assert Record.of({**scheduled, "brokerName": "broker-a"}).source == "rocketmq:broker-a/SCHEDULE_TOPIC_XXXX/0"
        assert from_ms(row["javaTime"]) == msgid.parse(row["msgId"]).time_near(
            near=from_ms(row["storeTimestamp"]), timezone=CLIENT_ZONE
        )
    assert checks(audited(list(rows.values()))) == {}


def test_transactions_of_the_remoting_client_have_no_offset_id(rocketmq):
    """The receipt has the ID, and the place in the topic of half messages."""
    topic = topic_of(rocketmq, "TRANSACTION")
    receipts = rocketmq.ask("transactions", topic, bodies=words("half", 4))
    assert {receipt["offsetMsgId"] for receipt in receipts} == {None}
    rows = landed(rocketmq, topic, words("half", 4))
    assert {row["msgId"] for row in rows} == {receipt["msgId"] for receipt in receipts}
    assert checks(audited(rows)) == written_again(rows)


def test_redelivered_rows_are_duplicates_and_never_conflicts(rocketmq):
    """A push consumer's rows of the retry topic have the first topic with other offsets."""
    topic = topic_of(rocketmq, queues=1)
    rocketmq.ask("send", topic, bodies=words("again", 3))
    rows = rocketmq.rows("push", topic, group=f"group-{topic}", count=9, again=2)
    assert {(row["body"], row["reconsumeTimes"]) for row in rows} == {
        (b"again %d" % i, n) for i in range(3) for n in range(3)
    }
    rows = list({row["commitLogOffset"]: row for row in rows}.values())
    positions = {(Record.of(row).source, row["queueOffset"]) for row in rows}
    assert len(positions) == len(rows)
    assert {Record.of(row).source for row in rows if row["reconsumeTimes"]} == {
        f"rocketmq:broker-a/%RETRY%group-{topic}/0"
    }
    assert checks(audited(rows)) == {"duplicate_ids": len(rows) - 3}
    assert checks(audited([row for row in rows if not row["reconsumeTimes"]])) == {}


def test_dead_letters_have_their_own_log_and_keep_the_id_when_a_program_sends_them_again(rocketmq):
    """They keep the properties of their last stay in the retry topic; a program copies the ID and the keys alone."""
    topic = topic_of(rocketmq, queues=1)
    group = f"group-{topic}"
    receipts = rocketmq.ask("send", topic, bodies=words("dead", 3))
    pushed = rocketmq.rows("push", topic, group=group, count=6, again=9, most=1)
    dead = landed(rocketmq, f"%DLQ%{group}", words("dead", 3))
    assert {Record.of(row).source for row in dead} == {f"rocketmq:broker-a/%DLQ%{group}/0"}
    rocketmq.ask("again", topic, **{"from": f"%DLQ%{group}"})
    redriven = landed(rocketmq, topic, words("dead", 3), times=2)
    assert {Record.of(row).source for row in redriven} == {f"rocketmq:broker-a/{topic}/0"}
    ids = {receipt["msgId"] for receipt in receipts}
    for rows in (pushed, dead, redriven):
        assert {Record.of(row).original for row in rows} == ids
    everything = {(row["commitLogOffset"]): row for row in [*pushed, *dead, *redriven]}.values()
    assert set(checks(audited(everything, without=["time_backwards"]))) == {"duplicate_ids"}


def test_rows_of_pop_mode_have_the_log_of_their_retry_topic(rocketmq):
    """A broker may switch the mode on for a group; the redelivered rows then have other properties."""
    topic = topic_of(rocketmq, queues=1)
    group = f"group-{topic}"
    rocketmq.ask("send", topic, bodies=words("pop", 3))
    rows = rocketmq.rows("push", topic, group=group, count=6, again=1, pop=True)
    assert {(row["body"], row["reconsumeTimes"]) for row in rows} == {
        (b"pop %d" % i, n) for i in range(3) for n in range(2)
    }
    rows = list({row["commitLogOffset"]: row for row in rows}.values())
    assert {Record.of(row).source for row in rows if row["reconsumeTimes"]} == {
        f"rocketmq:broker-a/%RETRY%{group}_{topic}/0"
    }
    retried = landed(rocketmq, f"%RETRY%{group}_{topic}", words("pop", 3))
    assert {row["commitLogOffset"] for row in retried} >= {
        row["commitLogOffset"] for row in rows if row["reconsumeTimes"]
    }
    assert checks(audited(rows)) == {"duplicate_ids": len(rows) - 3}


def test_injected_faults_are_found(rocketmq):
    """Of 400 rows, 7 in one range are lost, 3 are repeated and 1 is changed."""
    topic = topic_of(rocketmq, queues=1)
    rocketmq.ask("send", topic, bodies=words("order", 400))
    rows = sorted(rocketmq.rows("pull", topic), key=lambda row: row["queueOffset"])
    # The rows landed in the millisecond of their IDs, which count from the first of a month eight hours earlier.
    assert checks(audited(rows, landed="storeTimestamp")) == checks(audited(rows)) == {}
    report = audited([*rows[:100], *rows[107:], *rows[:3], {**rows[200], "body": b"changed"}])
    assert checks(report) == {
        "missing_offsets": 7, "duplicate_messages": 3, "conflicting_messages": 1, "duplicate_ids": 3,
        "conflicting_ids": 1,
    }  # fmt: skip
    [gap] = [gap for gap in report.gaps if gap.kind == "offset"]
    assert (gap.scope, gap.first, gap.last) == (f"rocketmq:broker-a/{topic}/0", 100, 106)
