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
    assert id.host == ipaddress.ip_address(row.java_ip)
    if isinstance(id, msgid.BrokerOffsetId):
        host, port, offset = row.java_decoded.rsplit("|", 2)
        assert (id.host, id.port, id.offset) == (ipaddress.ip_address(host), int(port), int(offset))
    elif id.ambiguous:
        assert row.java_decoded == f"{id.host}|13950|56753002317824"  # taken for a broker offset
    else:
        assert id.pid == row.java_pid


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
