"""`MessageId` as a value."""

import copy
import pickle
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from helpers.strategies import EDGES32, UINT16, ids, message_ids, moments, nodes
from hypothesis import given

from msgid import layout

TEXT = "0156F7E71C361B21BC024CCDBE00000000"


@given(ids)
def test_id_in_any_form_reads_back(msgid, id):
    """Every kind of ID is read from its text, in either case, and from its bytes, as the same kind."""
    for form in (str(id), str(id).lower(), id.hex, bytes(id), bytearray(bytes(id)), memoryview(bytes(id))):
        assert (type(id) if isinstance(id, msgid.MessageId) else type(id).parse)(form) == id
    assert str(id) == id.hex == bytes(id).hex().upper()


@given(nodes, UINT16, EDGES32, EDGES32)
def test_from_fields_of_any_values_keeps_them(msgid, node, pid, seconds, sequence):
    id = msgid.MessageId.from_fields(node=node, pid=pid, seconds=seconds, sequence=sequence)
    assert (id.version, id.node, id.pid, id.seconds, id.sequence) == (1, node, pid, seconds, sequence)
    assert id.mac.replace(":", "") == f"{node:012x}"
    assert id.origin == layout.origin_of(node)
    assert id.time == datetime(2021, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)


@given(message_ids)
def test_body_and_uuid_of_an_id_make_it_again(msgid, id):
    assert id.body == bytes(id)[1:] == id.uuid.bytes
    assert msgid.MessageId.from_body(id.body) == msgid.MessageId.from_uuid(id.uuid) == id


@given(message_ids, message_ids)
def test_order_of_ids_is_that_of_their_bytes(msgid, one, other):
    """IDs of a kind are ordered by their bytes; the time key orders them by (seconds, sequence, node, pid)."""
    for compare in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__"):
        assert getattr(one, compare)(other) == getattr(bytes(one), compare)(bytes(other))
    key = [(id.seconds, id.sequence, id.node, id.pid) for id in (one, other)]
    assert (one.time_key < other.time_key) == (key[0] < key[1])
    assert len(one.time_key) == 16


@given(ids)
def test_id_compared_with_text_or_bytes_is_never_equal(msgid, id):
    assert id != str(id)
    assert id != bytes(id)
    assert str(id) not in {id}
    with pytest.raises(TypeError):
        id < str(id)  # noqa: B015
    assert hash(id) == hash(copy.copy(id))


def test_ids_of_two_kinds_are_never_equal(msgid):
    text = "7F0000010000238F000000000001E240"
    assert msgid.BrokerOffsetId.parse(text) != msgid.ClientUniqueId.parse(text)


@given(ids)
def test_id_pickled_copied_or_evaluated_is_equal(msgid, id):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(id, protocol)) == id
    assert copy.copy(id) is id
    assert copy.deepcopy([id])[0] is id
    assert eval(repr(id), {type(id).__name__: type(id)}) == id


# The bytes before and after the value's own bytes, by protocol.
P2 = b"\x80\x02cmsgid\n"
P4 = b"\x80\x04\x95%c\x00\x00\x00\x00\x00\x00\x00\x8c\x05msgid\x94"
BODY = b"\x01V\xf7\xe7\x1c6\x1b!\xbc\x02L\xcd\xbe\x00\x00\x00\x00"
LATIN = b"\x01V\xc3\xb7\xc3\xa7\x1c6\x1b!\xc2\xbc\x02L\xc3\x8d\xc2\xbe\x00\x00\x00\x00"  # without bytes in protocol 2
VALUES = {
    "ID": lambda msgid: msgid.MessageId(TEXT),
    "BROKER": lambda msgid: msgid.BrokerOffsetId("127.0.0.1", 9103, 123456),
    "CLIENT": lambda msgid: msgid.ClientUniqueId("10.0.0.1", 1, 2, 3, 4),
    "IPV6": lambda msgid: msgid.BrokerOffsetId("::1", 1, 2),
}
PINNED = [
    ("ID", 2, P2 + b"MessageId\nq\x00c_codecs\nencode\nq\x01X\x16\x00\x00\x00" + LATIN
     + b"q\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\x05\x85q\x06Rq\x07."),
    ("ID", 3, b"\x80\x03cmsgid\nMessageId\nq\x00C\x11" + BODY + b"q\x01\x85q\x02Rq\x03."),
    ("ID", 4, P4 % 47 + b"\x8c\tMessageId\x94\x93\x94C\x11" + BODY + b"\x94\x85\x94R\x94."),
    ("BROKER", 2, P2 + b"BrokerOffsetId\nq\x00X\t\x00\x00\x00127.0.0.1q\x01M\x8f#J@\xe2\x01\x00\x87q\x02Rq\x03."),
    ("BROKER", 4, P4 % 52 + b"\x8c\x0eBrokerOffsetId\x94\x93\x94\x8c\t127.0.0.1\x94M\x8f#J@\xe2\x01\x00\x87\x94R\x94."),
    ("CLIENT", 2, P2 + b"ClientUniqueId\nq\x00(X\x08\x00\x00\x0010.0.0.1q\x01K\x01K\x02K\x03K\x04tq\x02Rq\x03."),
    ("CLIENT", 4, P4 % 52 + b"\x8c\x0eClientUniqueId\x94\x93\x94(\x8c\x0810.0.0.1\x94K\x01K\x02K\x03K\x04t\x94R\x94."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "protocol", "golden"), PINNED, ids=lambda value: str(value)[:20])
def test_pickle_of_each_kind_has_pinned_bytes(msgid, name, protocol, golden):
    """Pickles of today stay readable: their bytes are fixed and name only public classes."""
    id = VALUES[name](msgid)
    assert pickle.dumps(id, protocol) == golden
    assert pickle.loads(golden) == id
    if protocol == 4:  # protocol 5 differs from 4 only in its version byte
        assert pickle.dumps(id, 5) == golden[:1] + b"\x05" + golden[2:]


@pytest.mark.parametrize("kind", ["ID", "IPV6", "CLIENT"])
def test_attribute_of_an_id_cannot_be_changed(msgid, kind):
    """Attributes cannot be set, added or deleted, and the value does not have a ``__dict__``."""
    id = VALUES[kind](msgid)
    for name in ("pid", "_bytes", "hex", "anything"):
        with pytest.raises(AttributeError, match=f"is immutable: cannot set '{name}'"):
            setattr(id, name, 1)
        with pytest.raises(AttributeError, match=f"is immutable: cannot delete '{name}'"):
            delattr(id, name)
    assert not hasattr(id, "__dict__")


def test_format_of_an_id_is_its_text(msgid):
    value = msgid.MessageId(TEXT)
    assert f"{value}" == TEXT
    assert f"{value:>40}" == " " * 6 + TEXT
    assert f"{value!r}" == f"MessageId('{TEXT}')"
    assert "%s" % value == TEXT  # noqa: UP031


@given(moments)
def test_time_near_a_moment_resolves_the_wrap(msgid, moment):
    """The low 32 bits of the seconds and a nearby time give the exact time, also after 2157."""
    value = msgid.MessageId(TEXT)
    epoch = datetime(2021, 1, 1, tzinfo=timezone.utc)
    if moment < epoch:
        with pytest.raises(ValueError, match="near must not be before 2021-01-01"):
            value.time_near(moment)
        return
    elapsed = (moment - epoch) // timedelta(seconds=1)
    id = msgid.MessageId.from_fields(node=0, pid=0, seconds=elapsed % 2**32, sequence=0)
    made = epoch + timedelta(seconds=elapsed)
    years = timedelta(days=68 * 365)
    latest = datetime(9999, 12, 31, tzinfo=timezone.utc)
    for near in (moment, max(moment - years, epoch), min(moment, latest - years) + years):
        if abs(near - made) < timedelta(seconds=2**31 - 1):
            assert id.time_near(near) == made


def test_time_near_an_invalid_moment_raises(msgid):
    value = msgid.MessageId(TEXT)
    with pytest.raises(ValueError, match=r"naive 2026-01-01T00:00:00"):
        value.time_near(datetime(2026, 1, 1))
    with pytest.raises(TypeError, match="near must be an aware datetime, got '2026'"):
        value.time_near("2026")
    beyond = (datetime(9999, 12, 31, tzinfo=timezone.utc) - datetime(2021, 1, 1, tzinfo=timezone.utc)).days + 1
    last = msgid.MessageId.from_fields(node=0, pid=0, seconds=beyond * 86_400 % 2**32, sequence=0)
    with pytest.raises(ValueError, match="past the year 9999"):
        last.time_near(datetime(9999, 12, 31, tzinfo=timezone.utc))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("node", 2**48, ValueError),
        ("pid", 2**16, ValueError),
        ("seconds", -1, ValueError),
        ("seconds", 2**32, ValueError),
        ("sequence", 2**32, ValueError),
        ("sequence", 1.0, TypeError),
        ("pid", None, TypeError),
        ("pid", True, TypeError),
    ],
)
def test_from_fields_out_of_range_raises(msgid, field, value, error):
    fields = {"node": 0, "pid": 0, "seconds": 0, "sequence": 0, field: value}
    with pytest.raises(error, match=rf"{field} must be .* got {value}"):
        msgid.MessageId.from_fields(**fields)


V0 = "7F0000010000238F000000000001E240"
OTHER_BODIES = [b"", b"x" * 15, b"x" * 17, "x" * 16, 16, None]
OTHER_UUIDS = [str(uuid.UUID(int=1)), b"x" * 16, 1, None]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        *(("from_body", value, "the body of an id is 16 bytes") for value in OTHER_BODIES),
        *(("from_uuid", value, r"from_uuid takes a uuid\.UUID") for value in OTHER_UUIDS),
        *(("__call__", value, "must be of version 1") for value in (V0, f"00{V0}")),
    ],
)
def test_value_made_of_something_else_raises_invalid_message_id(msgid, name, value, reason):
    """A body has 16 bytes, a UUID is not text, which could be that of an ID, and `MessageId` is of version 1."""
    with pytest.raises(msgid.InvalidMessageId, match=reason):
        msgid.MessageId(value) if name == "__call__" else getattr(msgid.MessageId, name)(value)


@pytest.mark.parametrize(
    ("first_byte", "origin"),
    [
        (0x00, "mac"),
        (0x02, "mac"),  # a locally administered address of a card
        (0xAC, "mac"),
        (0x01, "random"),  # only the multicast bit, as RFC 9562 requires
        (0x0D, "random"),
        (0x03, "random"),
        (0xF3, "random"),
        (0x07, "assigned"),
        (0x0B, "position"),
        (0x0F, "derived"),
        (0xFF, "derived"),
    ],
)
def test_origin_of_a_node_follows_its_low_bits(msgid, first_byte, origin):
    id = msgid.MessageId.from_fields(node=first_byte << 40 | 123, pid=0, seconds=0, sequence=0)
    assert id.origin == origin
