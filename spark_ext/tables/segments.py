"""Retention on Spark: report the expired segments of a message table.

The rules are in `msgid.retention`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid.retention import InvalidPolicy, Segment, decide
from msgid.retention.policy import checked_policy
from msgid.shared.moments import aware, unix_micros
from msgid.shared.validate import quote
from spark_ext._arguments import check_dataframe

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from pyspark.sql import DataFrame

    from msgid.retention import RetentionPolicy

_LOG: Final = ("source", "topic", "partition")


def segment_report(messages: DataFrame, policy: RetentionPolicy, now: datetime, allow_gaps: bool = False) -> DataFrame:
    """Return the size and age of each segment of a message table, and whether it has expired.

    Segments are separate per source, topic and partition: two streams with equal topic names do not mix. Spark groups
    the messages; the rows of the segments come to the driver, where `msgid.retention.decide` decides on each log.

    Parameters
    ----------
    messages : DataFrame
        message table of `spark_ext.messages`: with ``topic``, ``segment``, ``offset``, ``timestamp`` and ``payload``;
        with or without ``source`` and ``partition``.
    policy : msgid.retention.RetentionPolicy
        retention by topic.
    now : datetime.datetime
        current time, with a time zone.
    allow_gaps : bool
        whether a later segment closes a segment even if offsets between the two are missing.

    Returns
    -------
    DataFrame
        one row per segment: ``source``, ``topic``, ``partition``, ``segment``, ``messages``, ``bytes`` (of the
        payloads), ``first_offset``, ``last_offset``, ``latest``, ``closed`` (a later segment of the partition begins at
        ``last_offset + 1``), ``expired`` (closed, and all messages have expired), ``action`` (``delete`` or ``keep``)
        and ``reason`` (why a segment is kept although a later one has messages, or although the policy applies to it).
        Messages without a segment are one row per partition, never expired.

    Raises
    ------
    msgid.retention.InvalidPolicy
        if the policy names a topic that the table lacks: the name may be misspelt, and its messages would expire by
        the default.
    ValueError
        if a column has a type that cannot be compared: a topic that is not a string, a segment that is not an integer,
        a timestamp without a time zone.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> then = [datetime(2026, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)]
    >>> rows = [("orders", 0, first, first, then[first], b"x") for first in (0, 1)]
    >>> table = spark.createDataFrame(rows, ["topic", "partition", "segment", "offset", "timestamp", "payload"])
    >>> policy = RetentionPolicy(default_expiry="1 day")
    >>> segment_report(table, policy, then[2]).select("segment", "messages", "closed", "expired").show()
    +-------+--------+------+-------+
    |segment|messages|closed|expired|
    +-------+--------+------+-------+
    |      0|       1|  true|   true|
    |      1|       1| false|  false|
    +-------+--------+------+-------+
    """
    check_dataframe(messages, "messages")
    checked_policy(policy)
    _check_types(messages)
    moment = unix_micros(aware("now", now))
    log = [name for name in _LOG if name in messages.columns]
    micros = F.unix_micros("timestamp")
    grouped = messages.groupBy(*log, "segment").agg(
        F.count("*").alias("messages"),
        F.coalesce(F.sum(F.octet_length("payload")), F.lit(0)).alias("bytes"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.max(micros).alias("latest"),
        F.when(F.count("timestamp") == F.count("*"), F.min(micros)).alias("earliest"),
    )
    rows = grouped.orderBy(*log, "segment").collect()
    _check_topics(policy, {row["topic"] for row in rows})
    logs: dict[tuple[object, ...], list[int]] = {}
    for number, row in enumerate(rows):
        if row["segment"] is not None:
            logs.setdefault(tuple(row[name] for name in log), []).append(number)
    decisions: list[tuple[object, ...]] = [(False, False, "keep", None)] * len(rows)
    for numbers in logs.values():
        segments = [
            Segment(row["segment"], row["last_offset"], row["bytes"], False, row["earliest"], row["latest"])
            for row in (rows[number] for number in numbers)
        ]
        topic = rows[numbers[0]]["topic"]
        decided = decide(segments, policy, moment, topic=topic, allow_gaps=allow_gaps)
        for number, decision in zip(numbers, decided, strict=True):
            decisions[number] = (decision.closed, decision.expired, decision.action, decision.reason)
    facts = [(*row[:-1], *decision) for row, decision in zip(rows, decisions, strict=True)]
    schema = "closed boolean, expired boolean, action string, reason string"
    fields = [f"`{field.name}` {field.dataType.simpleString()}" for field in grouped.schema.fields[:-1]]
    report = messages.sparkSession.createDataFrame(facts, ", ".join([*fields, schema]))
    return report.withColumn("latest", F.timestamp_micros("latest")).orderBy(*log, "segment")


def _check_topics(policy: RetentionPolicy, present: Collection[str | None]) -> None:
    missing = sorted(set(policy.topics) - set(present))
    if missing:
        known = ", ".join(sorted(topic for topic in present if topic is not None)[:5]) or "none"
        raise InvalidPolicy(f"topics must name topics of the table ({known}), got {quote(missing[0])}")


def _check_types(messages: DataFrame) -> None:
    """Check the types of columns: strings would be ordered as text, and a local time depends on the time zone."""
    from pyspark.sql.types import IntegralType, StringType, TimestampType

    for name, kind, wanted in (
        ("topic", StringType, "a string"),
        ("segment", IntegralType, "an integer"),
        ("timestamp", TimestampType, "a timestamp with a time zone"),
    ):
        if name not in messages.columns:
            raise ValueError(f"messages must have the column {name!r}, got {messages.columns}")
        type = messages.schema[name].dataType
        if not isinstance(type, kind):
            raise ValueError(f"{name} must be {wanted}, got {type.simpleString()}")
