"""Strict reading: untrusted text, bytes, numbers and moments become plain values or one clear error."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Final

from msgid import errors
from msgid.errors import InvalidMessageId, quote
from msgid.layout import EPOCH_UNIX, ID_LENGTH, V0_LENGTHS, VERSION_0, VERSION_1

__all__ = ["EPOCH", "aware", "id_bytes", "integer", "seconds_since_epoch"]

EPOCH: Final = datetime.fromtimestamp(EPOCH_UNIX, timezone.utc)

_SECOND: Final = timedelta(seconds=1)
_UNIX_MIN: Final = -62_135_596_800  # 0001-01-01T00:00:00Z, the first moment a datetime can hold
_UNIX_MAX: Final = 253_402_300_800  # the first it can no longer hold

_LENGTHS: Final = frozenset({ID_LENGTH, *V0_LENGTHS, *(1 + length for length in V0_LENGTHS)})


def id_bytes(value: object) -> bytes:
    """Turn the text or the bytes of an id of any version into its bytes, or raise `InvalidMessageId`.

    Text is ASCII hex digits in either case and nothing else. The bytes come back as they were given: 17 of version 1;
    16 or 28 of version 0, or 17 or 29 with its version byte in front.
    """
    if isinstance(value, str):
        digits = len(value)
        if digits & 1 or digits >> 1 not in _LENGTHS:
            raise InvalidMessageId(quote(value), errors.WRONG_LENGTH.format(length=digits))
        try:
            raw = bytes.fromhex(value)
        except ValueError:
            raw = b""
        # fromhex skips white space, so a text with some gives fewer bytes than its length asks for.
        if len(raw) != digits >> 1:
            raise InvalidMessageId(quote(value), errors.NOT_HEX)
    elif isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        if len(raw) not in _LENGTHS:
            raise InvalidMessageId(quote(raw), errors.WRONG_BYTE_LENGTH.format(length=len(raw)))
    else:
        raise InvalidMessageId(quote(value), f"a {type(value).__name__}; an id is given as text or bytes")
    if raw[0] != VERSION_0 and not (raw[0] == VERSION_1 and len(raw) == ID_LENGTH) and len(raw) not in V0_LENGTHS:
        raise InvalidMessageId(quote(value), errors.UNKNOWN_VERSION.format(version=raw[0]))
    return raw


def integer(name: str, value: object, low: int, high: int) -> int:
    """Give ``value`` back as an int of ``low`` to ``high``, or raise TypeError or ValueError naming it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {quote(value)}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low} to {high}, not {quote(value)}")
    return int(value)


def aware(name: str, value: object) -> datetime:
    """Give a datetime back if it carries a UTC offset, or raise TypeError or ValueError naming it."""
    if not isinstance(value, datetime):
        raise TypeError(f"{name} must be an aware datetime, not {quote(value)}")
    if value.utcoffset() is None:
        raise ValueError(f"{name} must be an aware datetime (with a tzinfo), not the naive {value.isoformat()}")
    return value


def seconds_since_epoch(name: str, at: object) -> int:
    """Count whole seconds from 2021-01-01T00:00:00Z to a moment, rounded down; negative before.

    ``at`` is an aware datetime, or Unix seconds as int or float. Numbers outside the years 1 to 9999 are refused:
    they are milliseconds or microseconds taken for seconds.
    """
    if isinstance(at, int | float) and not isinstance(at, bool):
        if not _UNIX_MIN <= at < _UNIX_MAX:
            raise ValueError(f"{name} must be Unix seconds within the years 1 to 9999, not {quote(at)}")
        return math.floor(at) - EPOCH_UNIX
    if not isinstance(at, datetime):
        raise TypeError(f"{name} must be an aware datetime or Unix seconds, not {quote(at)}")
    return (aware(name, at) - EPOCH) // _SECOND
