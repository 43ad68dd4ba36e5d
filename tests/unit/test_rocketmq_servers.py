"""IDs, positions, times and records of RocketMQ are those that running clients and brokers of 5.4.0 recorded."""

import json
from datetime import timedelta

import pytest
from helpers.rocketmq_log import read_record
from helpers.vector_files import ROCKETMQ, SERVER_IDS, from_ms

import msgid
from msgid.rocketmq import Record

BROKER, BROKER_6 = ROCKETMQ["broker"], ROCKETMQ["ipv6_broker"]
RECORDS = [(BROKER, kept) for kept in ROCKETMQ["records"]] + [(BROKER_6, kept) for kept in BROKER_6["records"]]
CLOCK_MS = 2000
"""The Java clients make an ID before the message is born, and count up to a second ahead of the clock."""


def name_of(kept):
    """Return the name of a record in the list of tests."""
    return f"{kept[1]['topic']}@{kept[1]['position']}"


def offset_id(broker, position):
    """Return the text of the ID of a position in the commit log of a broker."""
    return str(msgid.BrokerOffsetId(broker["host"], broker["port"], position))


def time_differs_ms(id, at):
    """Return how far the time of an ID is from a time, in milliseconds; of version 0 in the nearest quarter hour."""
    if id.version == 1:
        return id.time.timestamp() * 1000 - at
    made = id.time_near(near=from_ms(at) + timedelta(hours=14)).timestamp() * 1000  # the client may be east of UTC
    quarter = 900_000
    return (made - at + quarter // 2) % quarter - quarter // 2


@pytest.mark.parametrize("kept", RECORDS, ids=name_of)
def test_record_of_a_commit_log_has_the_place_the_times_and_the_id_of_the_broker(kept):
    """Each row of the log is a `Record`, its broker-offset ID is built from its place, and its ID is `UNIQ_KEY`."""
    broker, known = kept
    read = read_record(bytes.fromhex(known["hex"]))
    names = {name: getattr(read, name) for name in known if name in read._fields}
    assert names == {name: tuple(known[name]) if name.endswith("host") else known[name] for name in names}
    assert read.size * 2 == len(known["hex"])
    built = msgid.BrokerOffsetId(*read.store_host, read.position)
    assert str(built) == offset_id(broker, read.position)
    assert msgid.parse(str(built)) == built
    row = {**read.row(broker["name"]), "offsetMsgId": str(built)}
    record = Record.of(row)
    assert record == Record.of({**row, "properties": json.dumps(read.properties, ensure_ascii=False)})
    assert (record.stored, record.born) == (from_ms(known["stored"]), from_ms(known["born"]))
    assert (record.queue, record.offset, record.body) == (read.queue, read.queue_offset, read.body)
    assert record.source == f"rocketmq:{broker['name']}/{known['topic']}/{read.queue}"
    unique = known["properties"].get("UNIQ_KEY")
    assert record.original == unique
    if unique is None:
        assert record.message_id() == str(msgid.position_id(record.source, record.offset, record.stored))
        return
    id = msgid.parse(unique)
    assert record.message_id() == id.canonical
    assert abs(time_differs_ms(id, known["born"])) <= CLOCK_MS
    client = known.get("client")
    if client:
        assert (client["msgId"], client["offsetMsgId"]) == (unique, record.offset_id)
        assert (client["storeSize"], client["bodyCRC"]) == (read.size, read.body_crc)


def test_redelivered_record_names_the_first_place_of_its_message():
    """`ORIGIN_MESSAGE_ID` is the offset ID of the first send, in the log as at a consumer."""
    first = {sent["offsetMsgId"]: sent for sent in ROCKETMQ["sent_before_redelivery"]}
    in_log = [read_record(bytes.fromhex(kept["hex"])) for _, kept in RECORDS]
    rows = [row for row in ROCKETMQ["redelivered"] if row["reconsumeTimes"]]
    rows += [record.row(BROKER["name"]) for record in in_log if record.reconsume]
    assert rows
    for row in rows:
        sent = first[row["properties"]["ORIGIN_MESSAGE_ID"]]
        record = Record.of(row)
        assert record.original == sent["msgId"] == sent["uniq"] == sent["transactionId"]
        assert record.source == f"rocketmq:{sent['broker']}/{row['properties']['REAL_TOPIC']}/{record.queue}"


def test_each_place_in_a_log_is_one_place_in_the_commit_log():
    """Also of redelivered messages: source and offset of two rows are equal if and only if their offset IDs are."""
    found = {(Record.of(row).source, row["queueOffset"], row["offsetMsgId"]) for row in ROCKETMQ["redelivered"]}
    found |= {
        (f"rocketmq:{sent['broker']}/{sent['topic']}/{sent['queueId']}", sent["queueOffset"], sent["offsetMsgId"])
        for sent in ROCKETMQ["sent_before_redelivery"]
    }
    assert len({place[:2] for place in found}) == len({offset for *_, offset in found}) == len(found)
    for row in ROCKETMQ["redelivered"]:
        assert row["offsetMsgId"] == offset_id(BROKER, row["commitLogOffset"])
        assert Record.of(row).original == row["msgId"]
        assert Record.of(row).stored == from_ms(row["storeTimestamp"])


@pytest.mark.parametrize("row", SERVER_IDS, ids=lambda row: f"{row.client}-{row.number}")
def test_id_of_a_running_client_names_its_process_and_its_send(row):
    """The process, and the second or the millisecond of the send; msgid's own IDs in a Python client, too."""
    id = msgid.parse(row.id)
    assert id.pid == row.pid & 0xFFFF
    assert offset_id(BROKER, row.physical) == row.offset_id
    if id.version == 1:
        assert id.mac in {value for name, value in ROCKETMQ["network"].items() if name.startswith("eth")}
        # A Java client counts seconds on a clock of its own, which is up to a second ahead.
        assert row.before - timedelta(seconds=1) <= id.time <= row.after + timedelta(seconds=1)
    else:
        network = ROCKETMQ["network"]
        assert str(id.host) in {"127.0.0.1", network["ipv4"], network["ipv6"]}


@pytest.mark.parametrize("client", dict.fromkeys(row.client for row in SERVER_IDS))
def test_audit_of_the_ids_of_a_running_client_finds_only_what_is_missing(client):
    """The vectors are a part of what each client sent, so numbers are missing. No ID is from the future, or wraps."""
    pa, audit = pytest.importorskip("pyarrow"), pytest.importorskip("msgid.audit")
    rows = [row for row in SERVER_IDS if row.client == client]
    moment = pa.timestamp("us", "UTC")
    table = pa.table({
        "id": [row.id for row in rows],
        "timestamp": pa.array([row.born for row in rows], moment),
        "landed": pa.array([row.stored for row in rows], moment),
    })  # fmt: skip
    assert {one.check for one in audit.audit_table(table).findings} <= {"missing_sequences"}
