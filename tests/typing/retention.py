"""User code on durations and retention, which mypy checks: each annotation is the type that the user must get."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgid
import spark_ext
from msgid.processing import MemoryStore
from msgid.retention import Cleaner, RetentionPolicy, is_expired
from msgid.retention.cleaner import SegmentFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

policy = RetentionPolicy("7 days", {"orders": timedelta(hours=1), "audit": 0, "other": None}, interval="1 minute")
seconds: int = policy.default_expiry
expired: bool = is_expired(0, "1 day", now=5)
cleaner = Cleaner("/var/iggy/streams", policy)
found: list[SegmentFile] = cleaner.clean(apply=True)
cleaner.clean(dry_run=False)  # type: ignore[call-arg]  # apply
RetentionPolicy(["orders"])  # type: ignore[arg-type]  # a duration

now: datetime = datetime.now(timezone.utc)
store = MemoryStore(remember="90 days")
MemoryStore(remember=90)  # type: ignore[arg-type]  # a duration has a unit

id = msgid.parse("C0A8F001103E214D29547ACFD6E30000")
if isinstance(id, msgid.ClientUniqueId):
    at: datetime = id.time_near(now, timezone="Asia/Shanghai")
    none = id.time  # type: ignore[attr-defined]  # the time of such an ID needs another one


def read(orders: DataFrame) -> DataFrame:
    """Return the rows of a stream without duplicates."""
    return spark_ext.deduplicate(orders, timestamp="at", within=timedelta(days=1))
