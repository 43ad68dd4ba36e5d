"""The version-0 values: their fields, and when a client ID was made."""

import ipaddress
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from helpers.strategies import EDGES32, UINT16, hosts, offsets
from hypothesis import given
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
    """Each error quotes the argument and names the allowed values."""
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
    """Each error names the field, quotes the value and names the allowed values."""
    fields = {"pid": 0, "loader_hash": 0, "elapsed_ms": 0, "counter": 0, field: value}
    with pytest.raises(error, match=f"{field} must be .* got {value}"):
        msgid.ClientUniqueId("10.0.0.1", **fields)


def client(msgid, elapsed):
    return msgid.ClientUniqueId("10.0.0.1", 1, 2, int(elapsed / timedelta(milliseconds=1)), 0)


def test_time_of_a_message_that_is_stored_when_its_id_is_made_is_that_moment(msgid):
    """Born and stored times are often the millisecond of the ID, and a broker's clock may be behind the client's."""
    made = datetime(2026, 11, 24, 12, tzinfo=UTC)
    id = client(msgid, made - made.replace(day=1, hour=0))
    for ahead in (timedelta(0), timedelta(milliseconds=1), timedelta(hours=14), timedelta(days=1)):
        assert id.time_near(near=made - ahead) == made
    assert id.time_near(near=made - timedelta(days=1, milliseconds=1)) == datetime(2026, 10, 24, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("elapsed", "near", "tz", "made"),
    [
        # Just after the start of a month, an ID from the last day belongs to the month before.
        (timedelta(days=30, hours=23), "2026-06-01T00:00:01+00:00", "UTC", "2026-05-31T23:00:00+00:00"),
        # An ID may be up to a day later than ``near``, also in the next month.
        (timedelta(days=1), "2026-06-02T00:00:00+00:00", "UTC", "2026-06-02T00:00:00+00:00"),
        (timedelta(days=1), "2026-06-01T00:00:00+00:00", "UTC", "2026-06-02T00:00:00+00:00"),
        (timedelta(days=1, milliseconds=1), "2026-06-01T00:00:00+00:00", "UTC", "2026-05-02T00:00:00.001000+00:00"),
        (timedelta(hours=8), "2026-05-31T23:59:59+00:00", "UTC", "2026-06-01T08:00:00+00:00"),
        # January: the month before is in the previous year.
        (timedelta(days=20), "2026-01-01T00:00:00+00:00", "UTC", "2025-12-21T00:00:00+00:00"),
        # The month began in the producer's time zone, not in UTC.
        (timedelta(0), "2026-06-15T00:00:00+00:00", "Asia/Shanghai", "2026-05-31T16:00:00+00:00"),
        # Milliseconds are elapsed time, not wall-clock time: at the change to summer time an hour is missing.
        (timedelta(days=20), "2026-03-30T00:00:00+00:00", "America/New_York", "2026-03-21T05:00:00+00:00"),
        # 30.5 days are not a part of February, April or June.
        (timedelta(days=30.5), "2026-03-01T00:00:01+00:00", "UTC", "2026-01-31T12:00:00+00:00"),
        (timedelta(days=30.5), "2026-07-15T00:00:00+00:00", "UTC", "2026-05-31T12:00:00+00:00"),
        (timedelta(days=28.5), "2028-03-01T00:00:01+00:00", "UTC", "2028-02-29T12:00:00+00:00"),
        (timedelta(days=28.5), "2026-03-01T00:00:01+00:00", "UTC", "2026-01-29T12:00:00+00:00"),
        (timedelta(days=31, milliseconds=-1), "2027-01-01T00:00:00+00:00", "UTC", "2026-12-31T23:59:59.999000+00:00"),
        # At the end of summer time, October is an hour longer; March is an hour shorter.
        (timedelta(days=31), "2026-11-01T00:00:00+00:00", "Europe/Berlin", "2026-10-31T22:00:00+00:00"),
        (timedelta(days=31, hours=-1), "2026-04-01T00:00:00+00:00", "Europe/Berlin", "2026-01-31T22:00:00+00:00"),
        # Values of 2**31 ms and more are unsigned.
        (timedelta(milliseconds=2**31), "2026-06-30T00:00:00+00:00", "UTC", "2026-06-25T20:31:23.648000+00:00"),
    ],
)
def test_time_at_the_edges_of_a_month_is_found(msgid, elapsed, near, tz, made):
    """A month can begin or end, change its clock or change its year at such a time."""
    assert client(msgid, elapsed).time_near(near=datetime.fromisoformat(near), timezone=tz).isoformat() == made


@given(
    st.integers(0, 2**32 - 1) | st.integers(27, 32).map(lambda days: days * 86_400_000),
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
    """Each error quotes the argument and names the allowed values."""
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
