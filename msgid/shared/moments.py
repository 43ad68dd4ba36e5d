"""Moments: datetimes, Unix seconds, milliseconds since 1970 and text, read by one rule.

Seconds and microseconds are rounded down, before 1970 too. `spark_ext.columns.moment_columns` is the same for columns.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeGuard

from msgid.errors import InvalidMessage
from msgid.layout import EPOCH_UNIX
from msgid.shared.validate import INT64_MAX, INT64_MIN, in_range, integer, integer_of_text, is_integer, is_number, quote

EPOCH: Final = datetime.fromtimestamp(EPOCH_UNIX, timezone.utc)
"""The epoch of the seconds of an ID."""
UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
"""The epoch of Iggy, Danube and Spark."""

UNIX_SECONDS_MIN: Final = -62_135_596_800
"""The first second of the year 1, in Unix seconds: the minimum of a datetime and of a Spark timestamp."""
UNIX_SECONDS_MAX: Final = 253_402_300_799
"""The last second of the year 9999, in Unix seconds: the maximum of a datetime and of a Spark timestamp."""

_SECOND: Final = timedelta(seconds=1)


def last_moment(units_per_second: int) -> int:
    """Return the last moment of the year 9999 since 1970, for a unit that occurs ``units_per_second`` times per second.

    >>> last_moment(1_000)
    253402300799999
    """
    return (UNIX_SECONDS_MAX + 1) * units_per_second - 1


_SIZES: Final = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_HINTED: Final = 10**9
"""Seconds since 1970 of 2001; three times as many are of 2065."""
SECONDS_OF_OUR_YEARS: Final = (_HINTED, 3 * _HINTED - 1)
"""A number of a row within them is not in milliseconds: `check_unit` refuses it."""
_LAST_MILLISECOND: Final = last_moment(1_000)
_LARGEST_OFFSET: Final = timedelta(hours=18)
"""The largest offset from UTC in text, as in Spark; Python's limit is a day."""
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-]\d\d)(?::?([0-5]\d))?)", re.ASCII
)


_UNITS: Final = ("microseconds", "milliseconds", "seconds", "minutes", "hours", "days", "weeks")
_PART: Final = re.compile(rf"(\d{{1,12}}(?:\.\d{{1,6}})?) ?({'|'.join(f'{unit[:-1]}s?' for unit in _UNITS)})", re.ASCII)


def duration(name: str, value: object, *, positive: bool = False) -> timedelta:
    """Return a duration, given as a timedelta or as text such as ``"1 day"``.

    Args:
        name: Name of the argument, for the error.
        value: A timedelta, or numbers with units from microseconds to weeks: ``"7 days"``, ``"1 hour 30 minutes"``.
        positive: Whether 0 is refused, too.

    Raises:
        TypeError: if the value is neither a timedelta nor text, such as a number without a unit.
        ValueError: if the value is negative, or the text is not a duration.

    >>> duration("within", "1 hour 30 minutes") == duration("within", timedelta(minutes=90))
    True
    >>> duration("within", 60)
    Traceback (most recent call last):
    TypeError: within must be a timedelta or text such as '1 day', got 60: timedelta(seconds=60)?
    """
    allowed = f"{name} must be a timedelta or text such as '1 day'"
    length = _duration_of(value) if isinstance(value, str) else value
    if is_number(length):
        raise TypeError(f"{allowed}, got {quote(value)}: timedelta(seconds={quote(value)})?")
    if length is None or (isinstance(length, timedelta) and length < timedelta(0)):
        raise ValueError(f"{allowed}, of 0 or more, got {quote(str(value))}")
    if not isinstance(length, timedelta):
        raise TypeError(f"{allowed}, got {quote(value)}")
    if positive and not length:
        raise ValueError(f"{allowed}, above 0, got {quote(str(value))}")
    return length


def micros_in(name: str, value: object, *, positive: bool = False) -> int:
    """Return the microseconds in a `duration`."""
    return duration(name, value, positive=positive) // timedelta(microseconds=1)


def _duration_of(text: str) -> timedelta | None:
    """Return the duration that a text names, or None."""
    text = " ".join(text.split())
    parts = _PART.findall(text)
    if not parts or text != " ".join(match.group() for match in _PART.finditer(text)):
        return None
    try:
        return sum((timedelta(**{f"{unit.rstrip('s')}s": float(number)}) for number, unit in parts), timedelta(0))
    except OverflowError:
        return None


def is_datetime(value: object) -> TypeGuard[datetime]:
    """Return whether a value is a datetime. pandas' NaT has that type, but is not a moment: it differs from itself."""
    return isinstance(value, datetime) and value == value  # noqa: PLR0124


def aware(name: str, value: object) -> datetime:
    """Return a datetime if it has a UTC offset, or raise TypeError or ValueError with its ``name``."""
    if not is_datetime(value):
        raise TypeError(f"{name} must be an aware datetime, got {quote(value)}")
    if value.utcoffset() is None:
        raise ValueError(f"{name} must be an aware datetime (with a tzinfo), got the naive {value.isoformat()}")
    return value


def seconds_since_epoch(name: str, at: object) -> int:
    """Return the whole seconds from 2021-01-01T00:00:00Z to a time, rounded down; negative before 2021.

    ``at`` is an aware datetime, or Unix seconds as int or float. Numbers outside the years 1 to 9999 are rejected,
    because they are usually milliseconds or microseconds.
    """
    if is_number(at):
        if not UNIX_SECONDS_MIN <= at < UNIX_SECONDS_MAX + 1:
            raise ValueError(
                f"{name} must be Unix seconds within the years 1 to 9999, got {quote(at)}{unit_hint(at, 1)}"
            )
        return math.floor(at) - EPOCH_UNIX
    if not is_datetime(at):
        raise TypeError(f"{name} must be an aware datetime or Unix seconds, got {quote(at)}")
    return (aware(name, at) - EPOCH) // _SECOND


def unit_hint(moment: float, per_second: int) -> str:
    """Return a hint if a number is a time of our years, 2001 to 2064, in another unit than the expected one.

    Args:
        moment: The number, since 1970.
        per_second: How often the expected unit occurs per second.

    >>> unit_hint(1_700_000_000, 1), unit_hint(1_700_000_000, 1_000)
    ('', ': seconds?')
    """
    for unit, size in _SIZES.items():
        if size != per_second and _HINTED * size <= moment < 3 * _HINTED * size:
            return f": {unit}?"
    return ""


def check_unit(name: str, moment: object, per_second: int, error: type[ValueError] = ValueError) -> None:
    """Raise an error with its ``name`` if an integer, or its digits, is a time of our years in another unit."""
    number = integer_of_text(moment) if isinstance(moment, str) else moment
    hint = unit_hint(number, per_second) if is_integer(number) else ""
    if hint:
        unit = next(unit for unit, size in _SIZES.items() if size == per_second)
        raise error(f"{name} must be {unit} since 1970, got {quote(moment)}{hint}")


def micros_since_1970(name: str, value: object) -> int:
    """Return microseconds since 1970, or raise TypeError or ValueError with their ``name``."""
    micros = integer(name, value, INT64_MIN, INT64_MAX)
    check_unit(name, micros, 1_000_000)
    return micros


def moment(name: str, value: int | datetime) -> int:
    """Return a time, given as an aware datetime or in microseconds since 1970, in microseconds since 1970."""
    return unix_micros(aware(name, value)) if isinstance(value, datetime) else micros_since_1970(name, value)


def unix_micros(moment: datetime) -> int:
    """Return the microseconds since 1970 of an aware datetime, exactly.

    >>> unix_micros(datetime(2021, 1, 1, tzinfo=timezone.utc))
    1609459200000000
    """
    return (moment - UNIX_EPOCH) // timedelta(microseconds=1)


def moment_of(name: str, value: Any) -> datetime:
    """Return the moment that a row of an export holds, whatever the session's time zone is.

    Args:
        name: Name of the column, for the error.
        value: An aware datetime, milliseconds since 1970 as an integer or its digits, or ISO 8601 text with ``Z`` or
            an offset such as ``+09:00``, ``+0900`` or ``+09``. Digits after those of microseconds are cut off.

    Returns:
        An aware datetime in UTC.

    Raises:
        InvalidMessage: if the value is anything else, text without an offset included.

    >>> moment_of("timestamp", 1648047038000) == moment_of("timestamp", "2022-03-23T23:50:38+09:00")
    True
    """
    if is_datetime(value) and value.utcoffset() is not None:
        return value.astimezone(timezone.utc)
    millis = integer_of_text(value) if isinstance(value, str) else value
    if in_range(millis, -_LAST_MILLISECOND, _LAST_MILLISECOND):
        try:
            return UNIX_EPOCH + timedelta(milliseconds=int(millis))
        except OverflowError:
            pass
    match = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if match:
        day, time, fraction, hours, minutes = match.groups()
        try:
            micros = (fraction or "0").ljust(6, "0")[:6]
            moment = datetime.fromisoformat(f"{day}T{time}.{micros}{hours or '+00'}:{minutes or '00'}")
            if abs(moment.utcoffset() or timedelta()) <= _LARGEST_OFFSET:
                return moment.astimezone(timezone.utc)
        except (ValueError, OverflowError):
            pass
    raise InvalidMessage(
        f"{name} must be an aware datetime, milliseconds since 1970 or ISO 8601 text with an offset, got {quote(value)}"
    )
