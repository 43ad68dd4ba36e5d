"""Retention rules: which messages have expired, and which segments may be deleted. They read no clock and no file.

The rules follow Iggy's message-expiry document. An expiry is in seconds; None means the default, and 0 means never. A
timestamp is in microseconds since 1970. A segment is deleted as a whole, when it is closed and every message in it has
expired.

>>> policy = RetentionPolicy(default_expiry=3600, topics={"audit": 0})
>>> policy.expiry_of("orders"), policy.expiry_of("audit")
(3600, 0)
>>> is_expired(1_000_000, 10, now=11_000_000), is_expired(1_000_000, 10, now=10_999_999)
(True, False)

`Cleaner` deletes the expired segments of a folder of Iggy's files.
"""

from msgid.retention.cleaner import Cleaner
from msgid.retention.policy import (
    InvalidPolicy,
    RetentionPolicy,
    Segment,
    decide,
    is_expired,
)

__all__ = [
    "Cleaner",
    "InvalidPolicy",
    "RetentionPolicy",
    "Segment",
    "decide",
    "is_expired",
]
