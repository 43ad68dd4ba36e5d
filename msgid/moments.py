"""Moments as Iggy, Danube and Spark count them: from 1970. Ids count from 2021: `msgid.layout`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

__all__ = ["UNIX_EPOCH", "unix_micros"]

UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def unix_micros(moment: datetime) -> int:
    """Give the microseconds since 1970 of an aware datetime, exactly.

    >>> unix_micros(datetime(2021, 1, 1, tzinfo=timezone.utc))
    1609459200000000
    """
    return (moment - UNIX_EPOCH) // timedelta(microseconds=1)
