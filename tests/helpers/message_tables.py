"""Tables of messages, as the tests of clean-up have them."""

from datetime import datetime, timedelta, timezone

from msgid.retention import RetentionPolicy

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
POLICY = RetentionPolicy(default_expiry=60, topics={"audit": 0, "brief": 1})
ONLY_DEFAULT = RetentionPolicy(default_expiry=60)
"""The policy of tables without the topic ``audit``."""
SCHEMA = "topic string, partition int, segment bigint, offset bigint, timestamp timestamp, state string, payload binary"


def rows(topic="orders", segments=4, partition=0):
    """Return two messages per segment, a minute apart per segment."""
    return [
        (topic, partition, 2 * n, 2 * n + k, START + timedelta(minutes=n, seconds=k), "available", b"abc")
        for n in range(segments)
        for k in range(2)
    ]


def now(seconds):
    """Return the moment so many seconds after the first message."""
    return START + timedelta(seconds=seconds)
