"""The facts that a UUID holds of itself: its version, and the time and the node of some versions."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final, NamedTuple

_GREGORIAN: Final = datetime(1582, 10, 15, tzinfo=timezone.utc)
_UNIX: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_VARIANT: Final = 0b10
"""The first two bits of byte 8, by section 4.1."""
_LAST_VERSION: Final = 8
_HAS_NODE: Final = (1, 6)


class UuidFacts(NamedTuple):
    """The facts of a UUID."""

    version: int | None
    """1 to 8, or None if the UUID does not have the variant of RFC 9562."""
    time: datetime | None
    """The time of versions 1, 6 and 7."""
    node: str | None
    """The node of versions 1 and 6, as a MAC address; it may be random."""

    def __str__(self) -> str:
        kind = "UUID" if self.version is None else f"UUID of version {self.version}"
        return f"{kind}, node {self.node}" if self.node else kind


def uuid_facts(raw: bytes) -> UuidFacts:
    """Return the facts of the 16 bytes of a UUID, by sections 5.1, 5.6 and 5.7 of RFC 9562.

    >>> from uuid import UUID
    >>> uuid_facts(UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").bytes).time.isoformat()
    '2022-02-22T19:22:22+00:00'
    >>> print(uuid_facts(UUID("c232ab00-9414-11ec-b3c8-9f6bdeced846").bytes))
    UUID of version 1, node 9f:6b:de:ce:d8:46
    >>> uuid_facts(UUID("1ec9414c-232a-6b00-b3c8-9f6bdeced846").bytes).time.isoformat()
    '2022-02-22T19:22:22+00:00'
    """
    version = raw[6] >> 4
    if raw[8] >> 6 != _VARIANT or not 1 <= version <= _LAST_VERSION:
        return UuidFacts(None, None, None)
    time = None
    if version in _HAS_NODE:
        low, middle, high = (int.from_bytes(part, "big") for part in (raw[:4], raw[4:6], raw[6:8]))
        high &= 0xFFF
        ticks = high << 48 | middle << 32 | low if version == 1 else low << 28 | middle << 12 | high
        time = _GREGORIAN + timedelta(microseconds=ticks // 10)
    elif version == 7:  # noqa: PLR2004
        time = _moment(int.from_bytes(raw[:6], "big"))
    return UuidFacts(version, time, raw[10:].hex(":") if version in _HAS_NODE else None)


def _moment(millis: int) -> datetime | None:
    """Return a time since 1970; None after the year 9999."""
    try:
        return _UNIX + timedelta(milliseconds=millis)
    except OverflowError:
        return None
