"""The version-0 values: their fields, and when a client ID was made."""

import ipaddress
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from helpers.strategies import EDGES32, UINT16, hosts, offsets
from hypothesis import example, given
from hypothesis import strategies as st

UTC = timezone.utc


@given(hosts, st.integers(0, 65535), offsets)
def test_broker_offset_id_of_any_fields_keeps_them(msgid, host, port, offset):
    id = msgid.BrokerOffsetId(host, port, offset)
    assert (id.version, id.kind, id.host, id.port, id.offset) == (0, "v0-broker-offset", host, port, offset)
    assert msgid.BrokerOffsetId(str(host), port, offset) == id
    assert bytes(id) == host.packed + port.to_bytes(4, "big") + offset.to_bytes(8, "big")


@given(hosts, UINT16, EDGES32, EDGES32, UINT16)
def test_client_unique_id_of_any_fields_keeps_them(msgid, host, pid, loader_hash, elapsed_ms, counter):
    id = msgid.ClientUniqueId(host, pid, loader_hash, elapsed_ms, counter)
    assert (id.version, id.host, id.pid, id.loader_hash, id.elapsed_ms, id.counter) == (
        0, host, pid, loader_hash, elapsed_ms, counter,
    )  # fmt: skip
    assert id.kind == ("v0-ambiguous" if id.ambiguous else "v0-client-unique")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("localhost", 1, 1), ValueError, "host must be an IPv4 or IPv6 address, got 'localhost'"),
        (("127.0.0.1:10911", 1, 1), ValueError, "host must be"),
        (("127.0.0.01", 1, 1), ValueError, "host must be"),
        (("", 1, 1), ValueError, "host must be"),
        (("fe80::1%eth0", 1, 1), ValueError, "without a zone"),
        ((2130706433, 1, 1), TypeError, "got 2130706433"),
        ((b"\x7f\0\0\1", 1, 1), TypeError, "host must be"),
        ((None, 1, 1), TypeError, "got None"),
        (("::1", 65536, 1), ValueError, "port must be 0 to 65535, got 65536"),
        (("::1", -1, 1), ValueError, "port must be 0 to 65535, got -1"),
        (("::1", "80", 1), TypeError, "port must be an integer, got '80'"),
        (("::1", 1, 2**48), ValueError, "offset must be 0 to 281474976710655, got 281474976710656"),
        (("::1", 1, -1), ValueError, "offset must be"),
        (("::1", 1, 1.0), TypeError, "offset must be an integer"),
    ],
)
def test_broker_offset_id_of_bad_fields_raises(msgid, arguments, error, message):
    with pytest.raises(error, match=message):
        msgid.BrokerOffsetId(*arguments)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("pid", 2**16, ValueError),
        ("loader_hash", 2**32, ValueError),
        ("loader_hash", -1, ValueError),
        ("elapsed_ms", 2**32, ValueError),
        ("elapsed_ms", 1.5, TypeError),
        ("counter", 2**16, ValueError),
        ("counter", True, TypeError),
    ],
)
def test_client_unique_id_of_bad_fields_raises(msgid, field, value, error):
    fields = {"pid": 0, "loader_hash": 0, "elapsed_ms": 0, "counter": 0, field: value}
    with pytest.raises(error, match=f"{field} must be .* got {value}"):
        msgid.ClientUniqueId("10.0.0.1", **fields)


def client(msgid, elapsed):
    return msgid.ClientUniqueId("10.0.0.1", 1, 2, int(elapsed / timedelta(milliseconds=1)), 0)


DAY = 86_400_000  # milliseconds


@example(ms=DAY, near=datetime(2026, 6, 1), zone="UTC")  # a day after `near`, in the next month
@example(ms=DAY + 1, near=datetime(2026, 6, 1), zone="UTC")
@example(ms=31 * DAY - 1, near=datetime(2027, 1, 1), zone="UTC")  # the end of a year
@example(ms=29 * DAY - 1, near=datetime(2028, 3, 1), zone="UTC")  # a leap day
@example(ms=61 * DAY // 2, near=datetime(2026, 3, 1, 0, 0, 1), zone="UTC")  # February does not have 30 days
@example(ms=31 * DAY, near=datetime(2026, 11, 1), zone="Europe/Berlin")  # October has an hour more
@example(ms=31 * DAY - 3_600_000, near=datetime(2026, 4, 1), zone="Europe/Berlin")  # March has an hour less
@given(
    st.integers(0, 2**32 - 1) | st.integers(27, 32).map(lambda days: days * DAY),
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
    st.sampled_from(["UTC", "Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe"]),
)
def test_time_is_in_the_month_from_whose_start_the_id_counts(msgid, ms, near, zone):
    """The time is that many milliseconds after the start of its month, at most a day after ``near``, and the nearest.

    An error says that no such month exists; 31 days of 24 hours are in none.
    """
    near, elapsed = near.replace(tzinfo=UTC), timedelta(milliseconds=ms)

    def start(year, month):
        return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)

    last = (near + timedelta(days=1)).astimezone(ZoneInfo(zone))
    months = [(start(last.year, last.month - n), start(last.year, last.month - n + 1)) for n in range(4)]
    times = [first + elapsed for first, following in months if first + elapsed < following]
    times = [time for time in times if time - near <= timedelta(days=1)]
    id = msgid.ClientUniqueId("10.0.0.1", 1, 2, ms, 0)
    if times:
        assert id.time_near(near, timezone=zone) == min(times, key=lambda time: abs(time - near))
    else:
        with pytest.raises(ValueError, match=f"cannot tell the time of {id}: {ms} ms are not part of a month"):
            id.time_near(near, timezone=zone)


def test_time_in_a_zone_or_its_name_is_the_same_and_utc_by_default(msgid):
    id, near = client(msgid, timedelta(days=3)), datetime(2026, 6, 15, tzinfo=UTC)
    assert id.time_near(near=near) == id.time_near(near=near, timezone="UTC") == datetime(2026, 6, 4, tzinfo=UTC)
    shanghai = id.time_near(near=near, timezone=ZoneInfo("Asia/Shanghai"))
    assert shanghai == id.time_near(near=near.astimezone(ZoneInfo("Asia/Tokyo")), timezone="Asia/Shanghai")
    assert shanghai.tzinfo is UTC


@pytest.mark.parametrize(
    ("near", "tz", "error", "message"),
    [
        (datetime(2026, 1, 1), "UTC", ValueError, "near must be an aware datetime .* got the naive 2026-01-01"),
        ("2026-01-01", "UTC", TypeError, "near must be an aware datetime, got '2026-01-01'"),
        (datetime(2026, 1, 1, tzinfo=UTC), "Nowhere/Land", ValueError, "time zone, .* got 'Nowhere/Land'"),
        (datetime(2026, 1, 1, tzinfo=UTC), "../etc/passwd", ValueError, "time zone"),
        (datetime(2026, 1, 1, tzinfo=UTC), "", ValueError, "time zone"),
        (datetime(2026, 1, 1, tzinfo=UTC), 8, TypeError, "timezone must be a tzinfo or the name of a time zone, got 8"),
        (
            datetime(1, 1, 1, tzinfo=UTC),
            "UTC",
            ValueError,
            "near must be at least three months from the first and the last year",
        ),
        (datetime(9999, 12, 31, tzinfo=UTC), "Asia/Tokyo", ValueError, "near must be at least three months"),
    ],
)
def test_time_near_an_invalid_moment_or_zone_raises(msgid, near, tz, error, message):
    with pytest.raises(error, match=message):
        client(msgid, timedelta(days=40)).time_near(near=near, timezone=tz)


def test_ids_whose_bytes_begin_alike_are_ordered_by_their_length(msgid):
    """The address of a long ID may have the bytes of a whole short one; the IDs differ, and the short one is less."""
    short = msgid.BrokerOffsetId("127.0.0.1", 9103, 123456)
    long = msgid.BrokerOffsetId(ipaddress.ip_address(bytes(short)), 1, 2)
    assert bytes(long).startswith(bytes(short))
    assert short != long
    assert short < long
    assert sorted([long, short]) == [short, long]
