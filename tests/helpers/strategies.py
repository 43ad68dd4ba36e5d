"""The Hypothesis strategies of all tests."""

import ipaddress
import uuid
from datetime import datetime, timezone

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import msgid
from msgid import danube, iggy


def many(strategy, count):
    """Return many values of a strategy, for the rows of one query.

    Hypothesis draws the simplest value of a strategy first. One example that is a long list has that value in each row.
    """
    drawn = []

    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(value):
        drawn.append(value)

    draw()
    return drawn


def share_of_examples(count):
    """Return settings for a slow property: ``count`` examples of the usual 30, and as many more as a profile has."""
    return settings(max_examples=count * settings().max_examples // 30)


UINT16 = st.integers(0, 2**16 - 1)
UINT32 = st.integers(0, 2**32 - 1)
# Not uniform: the IDs have few or many bits set, because most errors occur at the limits.
EDGES32 = st.one_of(UINT32, st.integers(0, 3), st.integers(2**32 - 3, 2**32 - 1))

nodes = st.one_of(st.integers(0, 2**48 - 1), st.sampled_from([0, 2**48 - 1, 0x56F7E71C361B]))


def _message_id(**fields):
    import msgid  # the backend under test

    return msgid.MessageId.from_fields(**fields)


def _v0_id(kind, *arguments, **fields):
    import msgid  # the backend under test

    return getattr(msgid, kind)(*arguments, **fields)


message_ids = st.builds(_message_id, node=nodes, pid=UINT16, seconds=EDGES32, sequence=EDGES32)

# The text of an IPv6 address with runs of zero groups is the difficult case.
_zero_heavy = st.lists(st.one_of(st.just(0), st.just(0), UINT16), min_size=8, max_size=8).map(
    lambda groups: ipaddress.IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))
)
hosts = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6), _zero_heavy)

offsets = st.one_of(st.integers(0, 2**48 - 1), st.integers(0, 2**20), st.sampled_from([0, 2**40, 2**48 - 1]))

broker_offset_ids = st.builds(_v0_id, st.just("BrokerOffsetId"), hosts, st.integers(0, 65535), offsets)
client_unique_ids = st.builds(
    _v0_id, st.just("ClientUniqueId"), hosts, pid=UINT16, loader_hash=EDGES32, elapsed_ms=EDGES32, counter=UINT16
)
v0_ids = st.one_of(broker_offset_ids, client_unique_ids)
ids = st.one_of(message_ids, v0_ids)

# Any time of a datetime, except the first and last day.
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda naive: naive.replace(tzinfo=timezone.utc))

# Text that can be encoded as UTF-8: any text without lone surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

# Messages, with payloads and headers of every limiting size and with IDs of every kind.
BYTES = st.binary(max_size=300)
keys = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(lambda key: len(key.encode()) <= 255)


def _header(kind):
    name = str(kind)
    if kind is iggy.HeaderKind.RAW:
        values = st.binary(min_size=1, max_size=255)
    elif kind is iggy.HeaderKind.STRING:
        values = keys
    elif kind is iggy.HeaderKind.BOOL:
        values = st.booleans()
    elif name.startswith("float"):
        values = st.floats(width=int(name[5:]))
    else:
        bits = int(name.lstrip("uint"))
        signed = not name.startswith("u")
        values = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)
    return values.map(lambda value: iggy.Header.of(value, kind))


iggy_header = st.one_of(*map(_header, iggy.HeaderKind))
iggy_headers = st.dictionaries(keys, iggy_header, max_size=4)
# Layouts since release 0.7.0 allow keys of every kind.
_typed_keys = iggy_header.filter(lambda header: header.kind is not iggy.HeaderKind.STRING).map(
    lambda header: iggy.HeaderKey(*header)
)
iggy_typed_headers = st.dictionaries(st.one_of(keys, _typed_keys), iggy_header, max_size=4)
uint64 = st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([0, 2**63 - 1]))
# UUIDs of version 7 as the servers 0.4.1 to 0.5.0 make them: time, version, variant and random bits.
uuids_v7 = st.integers(0, 2**128 - 1).map(
    lambda bits: uuid.UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)
)
iggy_ids = st.one_of(st.integers(0, 2**128 - 1), message_ids, st.uuids(version=4), uuids_v7)
timestamps = st.integers(0, 253_402_300_799_999_999)


def iggy_messages(layout="m45", **fixed):
    """Return a strategy for messages that fit the columns of a table; ``fixed`` has strategies of single fields."""
    typed = iggy.LAYOUTS[layout].typed_keys
    fields = {
        "id": iggy_ids,
        "offset": uint64,
        "timestamp": timestamps,
        "state": st.sampled_from(msgid.MessageState),
        "headers": iggy_typed_headers if typed else iggy_headers,
        "origin_timestamp": timestamps,
        "payload": BYTES,
    }
    return st.builds(iggy.Message.new, layout=st.just(layout), **(fields | fixed))


texts = st.text(st.characters(codec="utf-8"), max_size=20)
full_uint64 = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1]))
topics = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=20)
danube_ids = st.builds(danube.MessageID, full_uint64, topics, texts, full_uint64)
danube_messages = st.builds(
    danube.StreamMessage,
    full_uint64,
    danube_ids,
    BYTES,
    full_uint64,
    texts,
    subscription_name=st.none() | texts,
    attributes=st.dictionaries(texts, texts, max_size=3),
    schema_id=st.none() | full_uint64,
    schema_version=st.none() | UINT32,
    routing_key=st.none() | texts,
)
