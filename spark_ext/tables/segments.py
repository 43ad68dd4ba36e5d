"""Retention on Spark: which messages have expired, segment by segment, and the removal of whole expired segments.

The rules are `msgid.retention`'s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from msgid.messages import MessageState
from spark_ext._filesystem import filesystem
from spark_ext.columns._dialect import F
from spark_ext.columns.expiry import is_expired

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from msgid.retention import RetentionPolicy

__all__ = ["CleanedSegment", "TableBusy", "clean", "segment_report"]

_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_REMOVED: Final = ".removed-"
_MARKING: Final = ".marking-"
_BUSY: Final = ("_temporary", ".spark-staging")
"""What Spark has in a table's folder while it writes to it."""
_FOLDER: Final = re.compile(r"(\w+)=([^/]*)")


class TableBusy(RuntimeError):
    """A table is being written to, so `clean` cannot tell its old files from new ones.

    Examples
    --------
    >>> import os, tempfile
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> path = tempfile.mkdtemp()
    >>> os.mkdir(os.path.join(path, "_temporary"))  # what Spark has there while it writes
    >>> try:
    ...     clean(path, RetentionPolicy(default_expiry=60), datetime.now(timezone.utc))
    ... except TableBusy as busy:
    ...     print(str(busy).removeprefix(path))
    is being written to: there is _temporary
    """


class CleanedSegment(NamedTuple):
    """A segment of a message table, and what `clean` did with it.

    Examples
    --------
    >>> CleanedSegment("orders", 0, 0, 2, 10, None, True, True, "topic=orders/segment=0", "removed").action
    'removed'
    """

    topic: str | None
    partition: int | None
    segment: int
    messages: int
    bytes: int
    """Of the payloads."""
    latest: datetime | None
    closed: bool
    expired: bool
    folder: str
    action: str
    """``kept``, ``removed`` or ``marked``; in a dry run what would be done."""


def segment_report(messages: DataFrame, policy: RetentionPolicy, now: datetime) -> DataFrame:
    """Say of each segment of a message table what is in it, and whether it has expired.

    Parameters
    ----------
    messages : DataFrame
        as `spark_ext.messages` gives it: with ``topic``, ``segment``, ``offset``, ``timestamp`` and ``payload``; with
        ``partition`` or without.
    policy : msgid.retention.RetentionPolicy
        what expires when.
    now : datetime.datetime
        aware: the moment that is asked about.

    Returns
    -------
    DataFrame
        a row a segment: ``topic``, ``partition``, ``segment``, ``messages``, ``bytes`` (of the payloads),
        ``first_offset``, ``last_offset``, ``latest``, ``closed`` (it is not its partition's last) and ``expired``
        (closed, and every message in it has expired; what did not decode never has).

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> rows = [("orders", 0, first, first, datetime.fromtimestamp(first, timezone.utc), b"x") for first in (0, 9)]
    >>> table = spark.createDataFrame(rows, ["topic", "partition", "segment", "offset", "timestamp", "payload"])
    >>> policy, now = RetentionPolicy(default_expiry=60), datetime.fromtimestamp(1000, timezone.utc)
    >>> segment_report(table, policy, now).select("segment", "messages", "closed", "expired").show()
    +-------+--------+------+-------+
    |segment|messages|closed|expired|
    +-------+--------+------+-------+
    |      0|       1|  true|   true|
    |      9|       1| false|  false|
    +-------+--------+------+-------+
    """
    from pyspark.sql import Window

    place = [name for name in ("topic", "partition") if name in messages.columns]
    grouped = messages.groupBy(*place, "segment").agg(
        F.count("*").alias("messages"),
        F.coalesce(F.sum(F.octet_length("payload")), F.lit(0)).alias("bytes"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.max("timestamp").alias("latest"),
        F.count("timestamp").alias("dated"),
    )
    expiry = F.lit(policy.default_expiry)
    for topic in policy.topics:
        expiry = F.when(F.col("topic") == topic, F.lit(policy.expiry_of(topic))).otherwise(expiry)
    closed = F.col("segment") < F.max("segment").over(Window.partitionBy(*place))
    known = F.col("dated") == F.col("messages")
    expired = F.coalesce(F.col("closed") & known & is_expired("latest", expiry, now), F.lit(False))
    return grouped.withColumn("closed", closed).withColumn("expired", expired).drop("dated").orderBy(*place, "segment")


def clean(
    path: str,
    policy: RetentionPolicy,
    now: datetime,
    dry_run: bool = True,
    *,
    mark: bool = False,
    spark: SparkSession | None = None,
) -> list[CleanedSegment]:
    """Remove the expired segments of a message table, or mark their messages for deletion.

    A segment goes at once: its folder is renamed to one that readers do not see, and then deleted. Stopped half way and
    run again, it does the rest. On a store without a rename of folders (S3) it is not at once.

    Parameters
    ----------
    path : str
        the table: Parquet, partitioned by ``topic`` and ``segment``, and by ``partition`` where there are some.
    policy : msgid.retention.RetentionPolicy
        what expires when; where it is disabled nothing does.
    now : datetime.datetime
        aware: the moment that is asked about.
    dry_run : bool
        say what would be done, and do nothing.
    mark : bool
        set the messages' state to ``marked_for_deletion``, and keep them.
    spark : SparkSession, optional
        default: the active one.

    Returns
    -------
    list of CleanedSegment
        every segment that was there.

    Raises
    ------
    TableBusy
        the table is being written to.
    ValueError
        it is not partitioned so, or a segment is in several folders.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import datetime, timezone
    >>> from msgid.retention import RetentionPolicy
    >>> rows = [("orders", segment, segment, datetime.fromtimestamp(segment, timezone.utc), b"x") for segment in (0, 9)]
    >>> df = spark.createDataFrame(rows, ["topic", "segment", "offset", "timestamp", "payload"])
    >>> path = tempfile.mkdtemp() + "/messages"
    >>> df.write.partitionBy("topic", "segment").parquet(path)
    >>> policy, now = RetentionPolicy(default_expiry=60), datetime.fromtimestamp(1000, timezone.utc)
    >>> [(found.segment, found.action) for found in clean(path, policy, now, dry_run=False)]
    [(0, 'removed'), (9, 'kept')]
    >>> spark.read.parquet(path).count()
    1
    """
    if not policy.enabled:
        return []
    table = _Table(path)
    before = table.folders()
    if not dry_run:
        table.finish_removals()
    if not before:
        return []
    rows = segment_report(_read(spark, path), policy, now).collect()
    if table.folders() != before:
        raise TableBusy(f"the files of {path} changed while they were looked at")
    found = []
    for row in rows:
        key = (row["topic"], row.asDict().get("partition"), row["segment"])
        folder = table.names[key]
        action = ("marked" if mark else "removed") if row["expired"] else "kept"
        if not dry_run and row["expired"]:
            table.mark(folder) if mark else table.remove(folder)
        parts = (row["messages"], row["bytes"], row["latest"], row["closed"], row["expired"])
        found.append(CleanedSegment(*key, *parts, folder, action))
    return found


class _Table:
    """The folders and files of a message table."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files, self._base = filesystem(path)
        self.names: dict[tuple[str | None, int | None, int], str] = {}

    def folders(self) -> dict[str, set[tuple[str, int, Any]]]:
        """Give the segments' folders, each with its files, their sizes and times.

        Raises:
            TableBusy: something is being written.
            ValueError: files are elsewhere than in a segment's folder, or a segment's are in several.
        """
        import pyarrow.fs as pafs

        found: dict[str, set[tuple[str, int, Any]]] = {}
        for info in self._files.get_file_info(pafs.FileSelector(self._base, recursive=True)):
            inner = info.path[len(self._base.rstrip("/")) + 1 :]
            if any(part.startswith(_BUSY) for part in inner.split("/")):
                raise TableBusy(f"{self.path} is being written to: there is {inner}")
            if f"/{_REMOVED}" in f"/{inner}" or not info.base_name.endswith(".parquet"):
                continue
            if info.base_name.startswith((_MARKING, "_", ".")) or info.type != pafs.FileType.File:
                continue
            folder = inner.rpartition("/")[0]
            values = dict(_FOLDER.findall(folder))
            if not {"topic", "segment"} <= values.keys() or not values["segment"].isdigit():
                raise ValueError(f"{self.path} is not partitioned by topic and segment: there is {inner}")
            number = values.get("partition", _NO_VALUE)
            key = (
                None if values["topic"] == _NO_VALUE else unquote(values["topic"]),
                None if number == _NO_VALUE else int(number),
                int(values["segment"]),
            )
            if self.names.setdefault(key, folder) != folder:
                raise ValueError(f"segment {key[2]} of topic {key[0]!r} is in both {self.names[key]} and {folder}")
            found.setdefault(folder, set()).add((info.base_name, info.size, info.mtime_ns))
        return found

    def finish_removals(self) -> None:
        """Delete what an earlier run had renamed."""
        import pyarrow.fs as pafs

        for info in self._files.get_file_info(pafs.FileSelector(self._base, recursive=True)):
            if info.type == pafs.FileType.Directory and info.base_name.startswith(_REMOVED):
                self._files.delete_dir(info.path)

    def remove(self, folder: str) -> None:
        """Take a segment's folder out of sight, and delete it."""
        parent, _, name = f"{self._base}/{folder}".rpartition("/")
        if self._files.type_name not in ("local", "hdfs"):
            self._files.delete_dir(f"{self._base}/{folder}")  # a store without a rename of folders
            return
        hidden = f"{parent}/{_REMOVED}{name}"
        self._files.move(f"{self._base}/{folder}", hidden)
        self._files.delete_dir(hidden)

    def mark(self, folder: str) -> None:
        """Set the state in a segment's files, each replaced as a whole; those that have it already stay as they are."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.fs as pafs
        import pyarrow.parquet as pq

        state = str(MessageState.MARKED_FOR_DELETION)
        for info in self._files.get_file_info(pafs.FileSelector(f"{self._base}/{folder}")):
            if not info.base_name.endswith(".parquet") or info.base_name.startswith("."):
                continue
            with self._files.open_input_file(info.path) as file:
                held = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
                old_times = any(held.schema.column(n).physical_type == "INT96" for n in range(len(held.schema)))
                rows = held.read()
            if pc.all(pc.fill_null(pc.equal(rows["state"], state), False)).as_py():
                continue
            place = rows.column_names.index("state")
            marked = rows.set_column(place, rows.field(place), pa.repeat(pa.scalar(state), rows.num_rows))
            parent = info.path.rpartition("/")[0]
            partial, sums = f"{parent}/{_MARKING}{info.base_name}", f"{parent}/.{info.base_name}.crc"
            with self._files.open_output_stream(partial) as out:
                pq.write_table(marked, out, use_deprecated_int96_timestamps=old_times)  # as Spark has written them
            if self._files.get_file_info(sums).type == pafs.FileType.File:
                self._files.delete_file(sums)  # Hadoop's checksums, on a local disk, of what the file was
            self._files.move(partial, info.path)


def _read(spark: SparkSession | None, path: str) -> DataFrame:
    """Read a table, with the topic as the text that it is: Spark would guess a number."""
    from pyspark.sql import SparkSession
    from pyspark.sql.types import IntegerType, LongType, StringType, StructType

    session = spark if spark is not None else SparkSession.getActiveSession()
    if session is None:
        raise ValueError("there is no active Spark session: hand one in")
    types = {"topic": StringType(), "partition": IntegerType(), "segment": LongType()}
    schema = StructType()
    for field in session.read.parquet(path).schema:
        schema.add(field.name, types.get(field.name, field.dataType))
    return session.read.schema(schema).parquet(path)
