"""Real IDs, and the vectors of other libraries' tests, give the results of those libraries."""

import ipaddress
from datetime import timedelta

import pytest
from helpers import vector_files as vectors


@pytest.mark.parametrize("row", vectors.REAL_IDS, ids=lambda row: row.id)
def test_real_ids_of_public_logs_parse_to_what_rocketmq_printed(msgid, row):
    """Every real ID parses to its kind, and its fields equal the output of RocketMQ's Java."""
    id = msgid.parse(row.id)
    assert id.kind == row.kind
    assert str(id) == row.id.upper()
    if isinstance(id, msgid.MessageId):
        # This Java does not know version 1: it reads the first 4 bytes as the IP, and the pid from before the last 10.
        assert row.java_ip == ".".join(str(byte) for byte in bytes(id)[:4])
        assert row.java_pid == int.from_bytes(bytes(id)[5:7], "big")
        return
    assert id.host == ipaddress.ip_address(_without_leading_zeros(row.java_ip))
    if isinstance(id, msgid.BrokerOffsetId):
        host, port, offset = row.java_decoded.rsplit("|", 2)
        assert (id.host, id.port, id.offset) == (ipaddress.ip_address(host), int(port), int(offset))
    elif id.ambiguous:
        assert row.java_decoded == f"{id.host}|13950|56753002317824"  # taken for a broker offset
    else:
        assert id.pid == row.java_pid


def _without_leading_zeros(ip):
    return ":".join(group.lstrip("0") or "0" for group in ip.split(":")) if ":" in ip else ip


@pytest.mark.parametrize("row", vectors.UNIQ_ID_TIMES, ids=lambda row: f"{row.zone}-{row.id}-{row.now:%Y%m%d}")
def test_time_of_a_client_id_is_that_of_rocketmq(msgid, row):
    """The time of a client ID, near a time and in a time zone, is the millisecond that RocketMQ's Java returns."""
    assert msgid.ClientUniqueId.parse(row.id).time_near(near=row.now, timezone=row.zone) == row.born


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("near", ["before", "born", "stored", "after"])
def test_ids_of_running_clients_have_the_times_of_their_sends(msgid, near):
    """A message is stored in the millisecond of its ID, or born before it; Go's clients write whole seconds."""
    sent = [row for row in vectors.SERVER_IDS if row.tz]
    assert len(sent) == 88
    for row in sent:
        made = msgid.ClientUniqueId.parse(row.id).time_near(near=getattr(row, near), timezone=row.tz)
        assert row.before - SECOND <= made <= row.after, row


@pytest.mark.parametrize(
    ("text", "host", "port", "offset"),
    [
        ("7F0000010000238F000000000001E240", "127.0.0.1", 9103, 123456),  # apache/rocketmq MessageDecoderTest
        (
            "24084004018081003FAA1DDE2B3F898A00002A9F0000000000000CA0",
            "2408:4004:180:8100:3faa:1dde:2b3f:898a",
            10911,
            3232,
        ),
        ("0AAF0895000078BF000000000009BB4A", "10.175.8.149", 30911, 637770),  # rocketmq-client-go
        ("7F0000010000276B0000000000000400", "127.0.0.1", 10091, 1024),  # rocketmq-client-cpp
        ("20010db81234567800000000abcdef0100002A9F0000000000001234", "2001:db8:1234:5678::abcd:ef01", 10911, 4660),
        ("c000020a00002a9f00000000000004d2", "192.0.2.10", 10911, 1234),  # EventHorizon.RocketMQ, lower case
    ],
)
def test_broker_offset_ids_of_other_libraries_decode_and_encode_the_same(msgid, text, host, port, offset):
    id = msgid.parse(text)
    assert id == msgid.BrokerOffsetId(host, port, offset)
    assert (str(id.host), id.port, id.offset) == (host, port, offset)
    assert str(id) == text.upper()


def test_offset_that_is_negative_is_not_a_broker_offset(msgid):
    """EventHorizon.RocketMQ's test round-trips offset -42; the rule reads it as a client ID and loses nothing."""
    text = "20010DB800000000000000000000000100002A9FFFFFFFFFFFFFFFD6"
    assert msgid.parse(text).kind == "v0-client-unique"
    assert str(msgid.parse(text)) == text
    with pytest.raises(msgid.InvalidMessageId, match="no broker offset: port 10911, offset -42"):
        msgid.BrokerOffsetId.parse(text)


def test_id_of_16_bytes_starting_with_01_is_version_0(msgid):
    """NewLife's private 16-byte form starts with 01; an ID of 32 digits is always version 0."""
    text = "01AABBCCDDEEFF303900010932000000"
    assert msgid.parse(text).version == 0
    assert msgid.parse("C0A80001000030390000000000000001").kind == "v0-broker-offset"
