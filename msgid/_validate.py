"""Check untrusted numbers, times and optional packages, and quote invalid values in errors.

This module also defines the epoch 1970 and the last moment of the year 9999.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import Final, TypeGuard

from msgid.layout import EPOCH_UNIX

# --- quoting -----------------------------------------------------------------------------------------------------

QUOTED_LENGTH: Final = 64
"""The maximum number of characters of an invalid value in an error."""


def quote(value: object) -> str:
    """Return a short one-line text of any value for an error message; never raises.

    >>> quote("01AB"), quote(None), quote("9" * 10_000)[-20:]
    ("'01AB'", 'None', "9'... (10000 in all)")
    """
    if isinstance(value, str | bytes | bytearray):
        # ascii() keeps unusual characters visible, such as full-width digits and zero-width spaces.
        shown = ascii(value[:QUOTED_LENGTH])
        return shown if len(value) <= QUOTED_LENGTH else f"{shown}... ({len(value)} in all)"
    try:
        shown = ascii(value)
    except Exception:
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= QUOTED_LENGTH else f"{shown[:QUOTED_LENGTH]}..."


def is_utf8(value: object) -> bool:
    """Check whether a value is text that UTF-8 has bytes for: text of JSON may hold half a pair of surrogates.

    >>> is_utf8("a"), is_utf8(chr(0xD800)), is_utf8(b"a")
    (True, False, False)
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- optional packages -------------------------------------------------------------------------------------------


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Raise ImportError with the extra to install if a package that ``what`` needs is missing.

    >>> check_installed("parse_batch", "arrow", "no_such_package")
    Traceback (most recent call last):
    ImportError: parse_batch needs no_such_package: pip install 'msgid[arrow]'
    """
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise ImportError(f"{what} needs {package}: pip install 'msgid[{extra}]'", name=error.name) from None


# --- numbers -----------------------------------------------------------------------------------------------------

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
"""The largest value of an Arrow int64 and of a Spark bigint."""
UINT16_MAX: Final = (1 << 16) - 1
UINT32_MAX: Final = (1 << 32) - 1
UINT64_MAX: Final = (1 << 64) - 1
UINT128_MAX: Final = (1 << 128) - 1


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer, but not a bool (bool is a subclass of int in Python).

    >>> is_integer(7), is_integer(True), is_integer(7.0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is an integer or a float, but not a bool.

    >>> is_number(7), is_number(7.5), is_number(True), is_number("7")
    (True, True, False, False)
    """
    return isinstance(value, float) or is_integer(value)


def in_range(value: object, low: int, high: int) -> TypeGuard[int]:
    """Return whether a value is an integer of ``low`` to ``high``."""
    return is_integer(value) and low <= value <= high


def integer(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` as an int of ``low`` to ``high``, or raise TypeError or ValueError with its ``name``."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {quote(value)}")
    if not in_range(value, low, high):
        raise ValueError(f"{name} must be {low} to {high}, got {quote(value)}")
    return int(value)


# --- moments -----------------------------------------------------------------------------------------------------

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


def aware(name: str, value: object) -> datetime:
    """Return a datetime if it has a UTC offset, or raise TypeError or ValueError with its ``name``."""
    if not isinstance(value, datetime):
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
            raise ValueError(f"{name} must be Unix seconds within the years 1 to 9999, got {quote(at)}")
        return math.floor(at) - EPOCH_UNIX
    if not isinstance(at, datetime):
        raise TypeError(f"{name} must be an aware datetime or Unix seconds, got {quote(at)}")
    return (aware(name, at) - EPOCH) // _SECOND


def unix_micros(moment: datetime) -> int:
    """Return the microseconds since 1970 of an aware datetime, exactly.

    >>> unix_micros(datetime(2021, 1, 1, tzinfo=timezone.utc))
    1609459200000000
    """
    return (moment - UNIX_EPOCH) // timedelta(microseconds=1)
