"""When messages expire, and which segments may go: the rules alone, without a clock or a file.

The rules are those of the Iggy message-expiry document: an expiry is in seconds, a moment in microseconds since 1970;
None means the default, 0 never; a segment goes as a whole, once it is closed and every message in it has expired.

>>> policy = RetentionPolicy(default_expiry=3600, topics={"audit": 0})
>>> policy.expiry_of("orders"), policy.expiry_of("audit")
(3600, 0)
>>> is_expired(1_000_000, 10, now=11_000_000), is_expired(1_000_000, 10, now=10_999_999)
(True, False)

The rules are in `msgid.retention.policy`; the cleaner of Iggy's segment files is in `msgid.retention.cleaner`.
"""

from msgid.retention.policy import (
    DEFAULT_INTERVAL,
    DEFAULT_SEGMENT_BYTES,
    MICROSECONDS,
    NEVER,
    InvalidPolicy,
    RetentionPolicy,
    Segment,
    closes,
    is_expired,
    removable,
)

__all__ = [
    "DEFAULT_INTERVAL",
    "DEFAULT_SEGMENT_BYTES",
    "MICROSECONDS",
    "NEVER",
    "InvalidPolicy",
    "RetentionPolicy",
    "Segment",
    "closes",
    "is_expired",
    "removable",
]
