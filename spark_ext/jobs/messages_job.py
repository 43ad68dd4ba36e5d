"""The job ``messages``: write messages of any format to one table; as a batch or a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from msgid.iggy._wire import LAYOUTS
from msgid.kafka import CLUSTER, ID_HEADER
from msgid.messages import MessageState
from msgid.schemas import SchemaRegistry
from spark_ext._filesystem import resolve
from spark_ext.formats._iggy_files import segments
from spark_ext.formats._iggy_reading import LOST
from spark_ext.formats.iggy_source import IggyDataSource
from spark_ext.formats.message_formats import ENCODED
from spark_ext.formats.message_table import IGGY_COLUMNS, messages
from spark_ext.jobs._exports import read_export
from spark_ext.jobs._files import check_output, column_of, follow, read_rows, reader_of, written
from spark_ext.jobs._formats import BadInput, Files, formats_in, input_of, names_of, warn_of_folders
from spark_ext.jobs._job_tables import BatchWriter, Input, Table, read_stream, unreadable_files, write_run
from spark_ext.tables import table_formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from msgid.iggy._wire import Layout
    from msgid.messages import Encoding
    from msgid.schemas import Framing, Policy
    from spark_ext.jobs._bad_files import BadFile

MESSAGES, CHECKPOINT = "messages", "checkpoint"
LISTED = 1000
"""How many ranges of lost bytes a summary lists; their number is in its ``reasons``."""
_BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
"""The columns of Spark's format ``binaryFile``, which a stream must be given."""
_POISONED = str(MessageState.POISONED)
SEGMENTS = ("topic", "partition", "segment")
FOLDERS = ("source", *SEGMENTS)
"""Parquet: one folder per segment of a source, so that two streams with equal topic names have folders of their own."""


class Source(NamedTuple):
    """How to read the input: the arguments of `spark_ext.messages`, with the schema registry as a file."""

    format: str
    column: str | None = None
    """The column of encoded messages in Parquet files. Default: ``value``."""
    layout: Layout = "auto"
    topic: str | None = None
    partition: int | None = None
    logged: bool | None = None
    registry: str | None = None
    subject: str | None = None
    policy: Policy = "none"
    framing: Framing = "none"
    cluster: str = CLUSTER
    id_header: str = ID_HEADER
    encoding: Encoding = "utf-8"
    files: str | None = None
    """The format of files of Kafka or RocketMQ: ``parquet`` or ``json``. Default: by their endings."""

    def read(
        self,
        spark: SparkSession,
        path: str | Files,
        *,
        stream: bool = False,
        schema: StructType | None = None,
    ) -> DataFrame:
        """Read the input, a path or some of its files, as a DataFrame for `spark_ext.messages`."""
        reader, names = reader_of(spark, path, stream=stream), names_of(path)
        if self.format == "iggy":
            spark.dataSource.register(IggyDataSource)
            try:
                segments(input_of(path))
            except OSError as error:
                raise BadInput(str(error)) from None
            place = resolve(input_of(path))  # the source's workers do not see the session's default file system
            names = place if "://" in place else path if isinstance(path, str) else path.names
            reader = reader.format("iggy").option("layout", self.layout)
            read: DataFrame = reader.option("columns", ",".join(IGGY_COLUMNS)).load(names)
            return read
        if self.format not in ENCODED:
            return read_export(spark, path, self.format, self.files, stream=stream, schema=schema)
        if self.format.endswith("json"):
            warn_of_folders(path)
            return reader.text(names)  # type: ignore[no-any-return]
        endings = formats_in(input_of(path))
        if self.column is None and len(endings) > 1 and "parquet" in endings:
            raise BadInput(f"cannot read Parquet files and other files in one folder, got {input_of(path)}")
        if self.column is not None or endings == {"parquet"}:
            rows = read_rows(spark, path, "parquet", stream=stream, schema=schema)
            column_of(rows, self.column or "value")
            return rows
        # Each file is one message, or one poll response.
        reader = reader.format("binaryFile").schema(_BINARY_FILE).option("recursiveFileLookup", "true")
        read = reader.load(names)
        return read.select(F.col("content").alias("value"))

    def table(self, df: DataFrame) -> DataFrame:
        """Return the message table of the rows that `read` returned."""
        try:
            if self.registry is not None and not Path(self.registry).exists():
                raise BadInput(f"no schema registry {self.registry}")
            registry = None if self.registry is None else SchemaRegistry(self.registry)
            return messages(
                df,
                self.format,
                column="value" if self.column is None else self.column,
                layout=self.layout,
                topic=self.topic,
                partition=self.partition,
                logged=self.logged,
                registry=registry,
                subject=self.subject,
                policy=self.policy,
                framing=self.framing,
                cluster=self.cluster,
                id_header=self.id_header,
                encoding=self.encoding,
            )
        except (ValueError, OSError) as error:
            raise BadInput(str(error)) from None


class Lost(NamedTuple):
    """Bytes of a segment that was deleted, or begun anew, before they were read."""

    source: str
    segment: int | None
    """The number that is the name of the segment's file."""
    reason: str
    """The range of the bytes, and how they were lost."""


class Summary(NamedTuple):
    """The numbers of messages in the table."""

    states: list[tuple[str, int]]
    """Number of messages in each state."""
    reasons: list[tuple[str, int]]
    """Number of poisoned rows by cause: decoding, checksum, schema, or lost bytes of a segment."""
    without_id: int
    """Number of messages that were decoded but do not have an ID."""
    unreadable: Sequence[BadFile] = ()
    """The input files that cannot be read. Their messages are missing, and a later run tries again."""
    layouts: Sequence[tuple[str, int]] = ()
    """Number of messages in each layout of Iggy's bytes, oldest layout first."""
    lost: Sequence[Lost] = ()
    """The bytes of Iggy's segments that were gone before they were read, up to `LISTED` of them."""

    @property
    def rows(self) -> int:
        """The number of all messages."""
        return sum(count for _, count in self.states)

    def lines(self, input: str) -> list[str]:
        """Return the summary of the messages of an input as lines of text."""
        width = len(f"{self.rows:,}")
        lines = [f"{self.rows:>{width},} messages of {input}"]
        for state, rows in self.states:
            why = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons) if state == _POISONED else ""
            lines.append(f"{rows:>{width},} {state}" + (f" ({why})" if why else ""))
        lines += [f"{rows:>{width},} in Iggy's layout {layout}" for layout, rows in self.layouts]
        if self.without_id:
            lines.append(f"{self.without_id:>{width},} without an ID")
        return lines + [f"lost: {lost.source}, segment {lost.segment}: {lost.reason}" for lost in self.lost]


def run(
    spark: SparkSession,
    input: str,
    output: str,
    source: Source,
    *,
    mode: str = "error",
    by_segment: bool = False,
    table_format: str = "parquet",
) -> Summary:
    """Read messages and write their table.

    Args:
        spark: the session.
        input: a file or folder. A file that cannot be read is left out.
        output: the output folder; its folders ``messages`` and ``unreadable``, the list of files left out, are written.
        source: how to read the input.
        mode: Spark's save mode, ``error`` or ``overwrite``.
        by_segment: partition the table by topic, partition and segment, as `spark_ext.clean` needs; Parquet also by
            source.
        table_format: ``parquet`` or ``delta``: the format of the tables.

    Raises:
        BadInput: if the options do not fit the input.
    """
    table = _table(source, by_segment, table_format)
    write_run(spark, _input(input, source), [table], output, mode, table_format)
    return summary(spark, output)


def run_stream(
    spark: SparkSession,
    input: str,
    output: str,
    source: Source,
    *,
    interval: float | None = None,
    by_segment: bool = False,
    table_format: str = "parquet",
) -> Summary:
    """Run the job on the new messages of a folder, from a checkpoint in the output folder.

    Each micro-batch is written once (`spark_ext.write_once`), also if it is replayed after a crash. Segment files may
    grow: a message is read when all its bytes are written. Any other file that cannot be read is listed in
    ``unreadable`` with the reason, and a later run reads it after its repair.

    Args:
        spark: the session.
        input: a folder.
        output: the output folder; its folders ``messages`` and ``checkpoint`` are written.
        source: how to read the input.
        interval: seconds between two looks for new messages. Default: read the new messages, and return.
        by_segment: as for `run`; needs ``table_format="delta"``, because a segment may be in many micro-batches.
        table_format: as for `run`.

    Raises:
        BadInput: as for `run`; also if the table belongs to another query or a batch run.
    """
    if by_segment and not table_formats.table_format(table_format).batches_share_segments:
        raise BadInput("by_segment of a stream needs table_format='delta': in Parquet, each batch is a folder")
    files, table = _input(input, source), _table(source, by_segment, table_format)
    df = read_stream(spark, files, lambda schema: source.read(spark, input, stream=True, schema=schema))
    checkpoint = f"{output}/{CHECKPOINT}"
    # Wrong options raise here, not in the first micro-batch.
    check_output({f"{output}/{MESSAGES}": table.rows(df)}, table_format, checkpoint)
    writer = BatchWriter(files, df.schema, [table], output, checkpoint, table_format)
    writer.read_repaired(spark)
    follow(df, writer.write, checkpoint, interval)
    return summary(spark, output)


def _input(path: str, source: Source) -> Input:
    return Input(path, lambda spark, files, schema: source.read(spark, files, schema=schema))


def _table(source: Source, by_segment: bool, table_format: str) -> Table:
    columns = SEGMENTS if table_formats.table_format(table_format).batches_share_segments else FOLDERS
    return Table(MESSAGES, source.table, columns if by_segment else ())


def summary(spark: SparkSession, output: str) -> Summary:
    """Count the messages that a run has written to its output folder."""
    table = written(spark, f"{output}/{MESSAGES}")
    if table is None:
        return Summary([], [], 0, tuple(unreadable_files(output)))
    is_lost = F.col("reason").startswith(LOST)
    why = (
        F.when(is_lost, "lost")
        .when(F.col("reason").startswith("checksum"), "checksum")
        .when(F.col("reason").startswith("schema"), "schema")
        .otherwise("decoding")
    )
    poisoned = F.col("state") == _POISONED
    layout = F.col("layout") if "layout" in table.columns else F.lit(None).cast("string")  # an earlier version's table
    why = F.when(poisoned & F.col("reason").isNotNull(), why).alias("why")
    counted = table.groupBy("state", layout.alias("layout"), why, F.col("id").isNull().alias("bare")).count().collect()
    states = {str(state): 0 for state in MessageState}
    reasons = dict.fromkeys(("decoding", "checksum", "schema", "lost"), 0)
    layouts = dict.fromkeys(LAYOUTS, 0)
    without_id = 0
    for row in counted:
        rows = row["count"]
        states[row["state"]] += rows
        if row["layout"] is not None:
            layouts[row["layout"]] += rows
        if row["why"] is not None:
            reasons[row["why"]] += rows
        if row["bare"] and not (row["state"] == _POISONED and row["why"] in (None, "decoding", "lost")):
            without_id += rows
    lost = table.where(poisoned & is_lost).select("source", "segment", "reason") if reasons["lost"] else None
    gone = [] if lost is None else lost.orderBy("source", "segment", "reason").limit(LISTED).collect()
    return Summary(
        [(state, rows) for state, rows in states.items() if rows],
        [(reason, rows) for reason, rows in reasons.items() if rows],
        without_id,
        tuple(unreadable_files(output)),
        [(name, rows) for name, rows in layouts.items() if rows],
        [Lost(row["source"], row["segment"], row["reason"].removeprefix(LOST)) for row in gone],
    )
