"""IDs from a position in a log or from a parent."""

import hashlib
from datetime import datetime, timedelta, timezone

import pytest
from helpers.strategies import ids, message_ids, moments, names, offsets
from hypothesis import given
from hypothesis import strategies as st

from msgid import layout

UTC = timezone.utc
EPOCH = datetime(2021, 1, 1, tzinfo=UTC)
PARENT = "0156F7E71C361B21BC024CCDBE00000000"


def bits(text):
    return "".join(f"{byte:08b}" for byte in text)


@given(names, offsets, moments)
def test_position_id_of_any_row_is_laid_out_by_the_rule(msgid, source, offset, at):
    """The node holds 44 bits of the source's SHA-256, the pid and sequence the offset, and the seconds the time."""
    id = msgid.position_id(source, offset, at)
    assert id.origin == "position"
    node = bits(id.node.to_bytes(6, "big"))
    assert node[:4] + node[8:] == bits(hashlib.sha256(source.encode()).digest())[:44]
    assert node[4:8] == "1011"
    assert id.pid << 32 | id.sequence == offset
    assert id.seconds == (at - EPOCH) // timedelta(seconds=1) % 2**32


@given(ids, names)
def test_derived_id_of_any_parent_is_laid_out_by_the_rule(msgid, parent, name):
    """Node, pid and sequence hold 92 bits of SHA-256(parent's bytes, 0, name); the seconds are the parent's, or 0."""
    id = msgid.derive_id(parent, name)
    h = bits(hashlib.sha256(bytes(parent) + b"\0" + name.encode()).digest())
    node = bits(id.node.to_bytes(6, "big"))
    assert node[:4] + node[8:] == h[:44]
    assert node[4:8] == "1111"
    assert f"{id.pid:016b}" == h[44:60]
    assert f"{id.sequence:032b}" == h[60:92]
    assert id.origin == "derived"
    assert id.seconds == getattr(parent, "seconds", 0)


@given(ids, st.lists(names, min_size=1, max_size=4), st.none() | moments)
def test_several_names_are_nested_calls(msgid, parent, names, at):
    """Each name is that of an output of the output before it; a time is that of the first, which the others inherit."""
    nested = msgid.derive_id(parent, names[0], at=at)
    for name in names[1:]:
        nested = msgid.derive_id(nested, name)
    assert msgid.derive_id(parent, *names, at=at) == nested


@given(message_ids, st.integers(-(10**30), 10**30))
def test_name_that_is_an_integer_is_its_decimal_digits(msgid, parent, name):
    assert msgid.derive_id(parent, name) == msgid.derive_id(parent, str(name))


def test_ids_of_pinned_inputs_never_change(msgid):
    at = datetime(2022, 3, 23, 14, 50, 38, tzinfo=UTC)
    assert str(msgid.position_id("kafka://orders/3", 1234, at)) == "013B0121EF30BE0000024CCDBE000004D2"
    assert str(msgid.position_id("", 0, EPOCH)) == "01EB3B0C44298F00000000000000000000"
    assert str(msgid.position_id("заказы", 2**48 - 1, at)) == "01CB359203E8DBFFFF024CCDBEFFFFFFFF"
    assert str(msgid.derive_id(PARENT, "invoice")) == "01DF8354A8161BB5AE024CCDBE2DFA320C"


def test_lease_without_a_name_is_random_and_with_one_the_same(msgid):
    """The same run has the same node; without a name, each call returns another node."""
    assigned_node = msgid.ids.derived.assigned_node
    assert assigned_node("nightly") == assigned_node("nightly") != assigned_node("hourly")
    assert len({assigned_node() for _ in range(100)}) == 100
    assert all(layout.origin_of(assigned_node()) == "assigned" for _ in range(100))


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        (EPOCH, 0),
        (EPOCH - timedelta(microseconds=1), 2**32 - 1),
        (datetime(1960, 1, 1, tzinfo=UTC), (datetime(1960, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1) % 2**32),
        (datetime(2157, 2, 7, 6, 28, 16, tzinfo=UTC), 0),
        (1_609_459_200, 0),
        (1_609_459_200.999, 0),
        (1_609_459_199.5, 2**32 - 1),
        (0, -1_609_459_200 % 2**32),
        (-0.5, -1_609_459_201 % 2**32),
        (datetime(2021, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), 0),
    ],
)
def test_time_before_2021_or_after_2157_is_taken_modulo(msgid, at, seconds):
    """Every time of a message is accepted: its seconds are rounded down and taken modulo 2**32."""
    assert msgid.position_id("log", 0, at).seconds == msgid.derive_id(PARENT, "x", at=at).seconds == seconds


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("position_id", ("log", -1, 0), ValueError, "offset must be 0 to 281474976710655, got -1"),
        ("position_id", ("log", 2**48, 0), ValueError, "offset must be 0 to 281474976710655, got 281474976710656"),
        ("position_id", ("log", "7", 0), TypeError, "offset must be an integer, got '7'"),
        ("position_id", ("log", 7, datetime(2026, 1, 1)), ValueError, "an aware datetime .* naive 2026-01-01T00:00:00"),
        ("position_id", ("log", 7, "2026-01-01"), TypeError, "an aware datetime or Unix seconds, got '2026-01-01'"),
        ("position_id", ("log", 7, None), TypeError, "got None"),
        ("position_id", ("log", 7, True), TypeError, "got True"),
        ("position_id", ("log", 7, float("nan")), ValueError, "got nan"),
        ("position_id", ("log", 7, 1_700_000_000_000), ValueError, "within the years 1 to 9999, got 1700000000000"),
        ("position_id", ("log", 7, 253_402_300_800), ValueError, "within the years 1 to 9999, got 253402300800"),
        ("position_id", ("log", 7, -62_135_596_800.5), ValueError, "within the years 1 to 9999, got -62135596800.5"),
        ("position_id", (b"log", 7, 0), TypeError, "source must be text, got b'log'"),
        ("position_id", ("\ud800", 7, 0), ValueError, r"source must be text that UTF-8 can encode, got '\\ud800'"),
        ("derive_id", (PARENT, None), TypeError, "name must be text, got None"),
        ("derive_id", (PARENT, 1.0), TypeError, "name must be text, got 1.0"),
        ("derive_id", (PARENT, True), TypeError, "name must be text, got True"),
        ("derive_id", (PARENT, "\udfff"), ValueError, "UTF-8"),
        ("derive_id", (PARENT, 10**5000), ValueError, "name must be a shorter integer"),
        ("derive_id", (PARENT, "x", datetime(2026, 1, 1)), TypeError, "name must be text, got datetime"),
    ],
)
def test_function_with_bad_arguments_raises(msgid, name, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(msgid, name)(*arguments)
