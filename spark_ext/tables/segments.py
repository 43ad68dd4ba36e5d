"""Retention on Spark: report the expired segments of a message table, and delete them.

The rules are in `msgid.retention`.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from msgid._moments import aware
from msgid.retention.policy import GAP, cautious, checked_policy
from spark_ext._arguments import check_dataframe
from spark_ext.columns.expiry import has_expired
from spark_ext.tables.table_formats import table_format

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from msgid.retention import RetentionPolicy

_KEY: Final = ("source", "topic", "partition", "segment")
_EXPIRY: Final = "expiry of the topic"


class CleanedSegment(NamedTuple):
    """A segment of a message table, and what `clean` did with it.

    Examples
    --------
    >>> CleanedSegment("orders", 0, 0, 2, 10, None, True, True, "topic=orders/segment=0", "removed").action
    'removed'
    """

    topic: str | None
    partition: int | None
    segment: int | None
    messages: int
    bytes: int
    """Size of the payloads in bytes."""
    latest: datetime | None
    closed: bool
    expired: bool
    folder: str
    """Folder of the segment in the table; if the table lacks such folders, the name that a Parquet table would use."""
    action: str
    """``kept``, ``removed`` or ``marked``; in a dry run, the action that a run would take."""
    source: str | None = None
    """The log of the messages; None if the table does not have this column."""
    reason: str | None = None
    """Why a segment is kept although it has expired, or although a later segment exists."""


def segment_report(messages: DataFrame, policy: RetentionPolicy, now: datetime, allow_gaps: bool = False) -> DataFrame:
    """Return the size and age of each segment of a message table, and whether it has expired.

    Segments are separate per source, topic and partition: two streams with equal topic names do not mix.

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
        ``last_offset + 1``), ``expired`` (closed, and all messages have expired), ``action`` (``removed`` or ``kept``)
        and ``reason`` (why a segment is kept although a later one has messages, or although the default expiry is
        over). Rules and words are those of `msgid.retention.decide`. A message without a timestamp never expires.
        A segment that the next one overlaps is kept without a reason.
        Messages without a segment are one row per partition, never expired.

    Notes
    -----
    A topic that the policy names and the table lacks may be a misspelt name. So topics without an entry keep their
    messages for the longest of the default expiry and the expiries of such entries.

    Raises
    ------
    ValueError
        if a column has a type that cannot be compared: a topic that is not a string, a segment that is not an integer,
        a timestamp without a time zone.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> rows = [("orders", 0, first, first, datetime.fromtimestamp(first, timezone.utc), b"x") for first in (0, 1)]
    >>> table = spark.createDataFrame(rows, ["topic", "partition", "segment", "offset", "timestamp", "payload"])
    >>> policy, now = RetentionPolicy(default_expiry=60), datetime.fromtimestamp(1000, timezone.utc)
    >>> segment_report(table, policy, now).select("segment", "messages", "closed", "expired").show()
    +-------+--------+------+-------+
    |segment|messages|closed|expired|
    +-------+--------+------+-------+
    |      0|       1|  true|   true|
    |      1|       1| false|  false|
    +-------+--------+------+-------+
    """
    from pyspark.sql import Window

    check_dataframe(messages, "messages")
    checked_policy(policy)
    _check_types(messages)
    careful, why_longer = cautious(policy, ())
    if why_longer is not None:  # the topics matter
        careful, why_longer = cautious(policy, {row.topic for row in messages.select("topic").distinct().collect()})
    place = [name for name in _KEY[:-1] if name in messages.columns]
    grouped = messages.groupBy(*place, "segment").agg(
        F.count("*").alias("messages"),
        F.coalesce(F.sum(F.octet_length("payload")), F.lit(0)).alias("bytes"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.max("timestamp").alias("latest"),
        F.count("timestamp").alias("dated"),
    )
    columns = grouped.columns
    # A join: an expression with one branch per topic would be too deep.
    topics = [(topic, policy.expiry_of(topic)) for topic in policy.topics]
    own = messages.sparkSession.createDataFrame(topics, f"topic string, `{_EXPIRY}` bigint")
    grouped = grouped.join(F.broadcast(own), "topic", "left")
    later = [F.col(name).alias(f"later {name}") for name in place]
    starts = grouped.select(*later, F.col("segment").alias("start"))
    same = [F.col(name).eqNullSafe(F.col(f"later {name}")) for name in place]
    # Two rows per segment, in one order: where it ends, and where it starts if it has messages. The next start after an
    # end is where the log goes on.
    ends, filled = F.greatest("segment", "last_offset"), F.when(F.col("last_offset").isNotNull(), F.col("segment"))
    points = [F.struct(at.alias("at"), F.lit(end).alias("end")) for at, end in ((filled, False), (ends, True))]
    following = Window.partitionBy(*place).orderBy("point.at", "point.end").rowsBetween(1, Window.unboundedFollowing)
    grouped = grouped.withColumn("point", F.explode(F.array(*points)))
    grouped = grouped.withColumn("beyond", F.min(F.when(~F.col("point.end"), F.col("point.at"))).over(following))
    grouped = grouped.where("point.end")
    grouped = grouped.join(starts, reduce(and_, same, F.col("last_offset") + 1 == F.col("start")), "left")
    beyond = F.when(F.col("segment").isNotNull(), F.col("beyond"))
    followed = F.coalesce(F.col("start") > F.col("segment"), F.lit(False))
    closed = followed | (beyond.isNotNull() & (F.lit(allow_gaps) | F.col("last_offset").isNull()))
    known = F.col("dated") == F.col("messages")
    due, due_by_default = (
        F.coalesce(closed & known & has_expired("latest", F.col(_EXPIRY), now, used.default_expiry), F.lit(False))
        for used in (careful, policy)
    )
    judged = grouped.withColumn("closed", closed).withColumn("expired", due)
    judged = judged.withColumn("action", F.when(F.col("expired"), "removed").otherwise("kept"))
    gap = F.format_string(GAP, beyond, F.col("last_offset") + 1)
    reason = F.when(~F.col("closed") & beyond.isNotNull(), gap)
    if why_longer is not None:
        reason = reason.when(due_by_default & ~F.col("expired"), F.lit(why_longer))
    judged = judged.withColumn("reason", reason)
    order = [*place, "segment"]
    kept = [name for name in columns if name != "dated"]
    return judged.select(*kept, "closed", "expired", "action", "reason").orderBy(*order)


def _check_types(messages: DataFrame) -> None:
    """Check the types of columns: strings would be ordered as text, and a local time depends on the time zone."""
    from pyspark.sql.types import IntegralType, StringType, TimestampType

    for name, kind, wanted in (
        ("topic", StringType, "a string"),
        ("segment", IntegralType, "an integer"),
        ("timestamp", TimestampType, "a timestamp with a time zone"),
    ):
        found = messages.schema[name].dataType
        if not isinstance(found, kind):
            raise ValueError(f"{name} must be {wanted}, got {found.simpleString()}")


def clean(
    path: str,
    policy: RetentionPolicy,
    now: datetime,
    *,
    apply: bool = False,
    mark: bool = False,
    spark: SparkSession | None = None,
    format: str = "parquet",
    storage_options: dict[str, str] | None = None,
    allow_gaps: bool = False,
) -> list[CleanedSegment]:
    """Delete the expired segments of a message table, or mark their messages for deletion.

    A Delta table changes in one commit; rows that another writer adds during the run are checked too. In a Parquet
    table, the folder of a segment is renamed to a name that readers skip, and then deleted. If its files are not the
    files that were checked, the folder gets its name back. The next run completes a run that was interrupted. S3 and
    other stores cannot rename a folder: there the checked files are deleted one by one.

    Parameters
    ----------
    path : str
        the table. Parquet is partitioned by ``topic`` and ``segment``, and perhaps by ``source`` and ``partition``.
    policy : msgid.retention.RetentionPolicy
        retention by topic; with a disabled policy, no segment is deleted or reported.
    now : datetime.datetime
        current time, with a time zone.
    apply : bool
        whether to delete or mark. Default: a dry run, which only reports.
    mark : bool
        with ``apply``, set the state of the messages to ``marked_for_deletion``, and do not delete them.
    spark : SparkSession, optional
        default: the active session.
    format : str
        ``parquet``, ``delta``, or a format that `register_table_format` has made known.
    storage_options : dict of str to str, optional
        Delta: credentials and settings with which `deltalake` reaches the table's store.
    allow_gaps : bool
        whether a later segment closes a segment even if offsets between the two are missing. By default such a segment
        is kept, and has a ``reason``.

    Returns
    -------
    list of CleanedSegment
        every segment of the table, with its ``action``. A segment that is kept before a gap, or although it has
        expired, has a ``reason``. So has a segment for which the default expiry does not apply, because the policy
        names topics that the table lacks: see `segment_report`.

    Raises
    ------
    TableBusy
        if the table is being written to.
    ValueError
        if the table is not partitioned by these columns, if another system manages it, or if a column has a type that
        cannot be compared.
    FileNotFoundError
        if the table is missing.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> rows = [("orders", segment, segment, datetime.fromtimestamp(segment, timezone.utc), b"x") for segment in (0, 1)]
    >>> df = spark.createDataFrame(rows, ["topic", "segment", "offset", "timestamp", "payload"])
    >>> path = tempfile.mkdtemp() + "/messages"
    >>> df.write.partitionBy("topic", "segment").parquet(path)
    >>> policy, now = RetentionPolicy(default_expiry=60), datetime.fromtimestamp(1000, timezone.utc)
    >>> [(found.segment, found.action) for found in clean(path, policy, now, apply=True)]
    [(0, 'removed'), (1, 'kept')]
    >>> spark.read.parquet(path).count()
    1
    """
    tables = table_format(format)
    aware("now", now)
    if not checked_policy(policy).enabled:
        return []

    def judge(messages: DataFrame) -> list[dict[str, Any]]:
        return [row.asDict() for row in segment_report(messages, policy, now, allow_gaps).collect()]

    judged = tables.clean(_active(spark), path, judge, apply=apply, mark=mark, storage_options=storage_options)
    found = []
    for row, folder, kept in judged:
        action = "kept" if kept else "marked" if mark and row["expired"] else row["action"]
        found.append(_cleaned(row, folder or _folder_of(row), action, kept or row["reason"]))
    return found


def _folder_of(row: dict[str, Any]) -> str:
    """Return the name of the folder that a segment has in a Parquet table."""
    return "/".join(f"{name}={row[name]}" for name in _KEY if name in row)


def _cleaned(row: dict[str, Any], folder: str, action: str, reason: str | None) -> CleanedSegment:
    return CleanedSegment(
        row["topic"],
        row.get("partition"),
        row["segment"],
        row["messages"],
        row["bytes"],
        row["latest"],
        row["closed"],
        row["expired"],
        folder,
        action,
        row.get("source"),
        reason,
    )


def _active(spark: SparkSession | None) -> SparkSession:
    from pyspark.sql import SparkSession

    session = spark if spark is not None else SparkSession.getActiveSession()
    if session is None:
        raise ValueError("cannot read the table without an active Spark session: pass spark")
    return session
