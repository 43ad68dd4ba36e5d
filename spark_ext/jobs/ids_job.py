"""The job ``ids``: take the ids in a file of messages apart, or give its rows ids; once, or as files come.

The parts are usable by themselves: `with_assigned_ids`, `split_malformed`, `with_id_columns`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from msgid import layout
from spark_ext.columns._expressions import CORRUPT, hex_text, is_v1, misfit_reason, no_id_reason, quoted_name
from spark_ext.columns.making import assign_ids, generate_id, position_id
from spark_ext.columns.reading import try_parse_id
from spark_ext.columns.v0 import try_parse_v0, try_translate_v0
from spark_ext.jobs._files import BadInput, check_output, column_of, follow, guess_format, read_rows, written
from spark_ext.jobs._job_tables import BatchWriter, Input, Table, read_stream, unreadable_files, write_run
from spark_ext.jobs._moments import moment_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

    from spark_ext.jobs._bad_files import BadFile

__all__ = [
    "Assignment",
    "Count",
    "Summary",
    "examples",
    "run",
    "run_stream",
    "split_malformed",
    "summary",
    "with_assigned_ids",
    "with_id_columns",
]

REASON = "reason"
_NO_POSITION = "no position can be told: it takes a source, an offset, and a time in Unix seconds or with its time zone"
IDS, QUARANTINE, CHECKPOINT = "ids", "quarantine", "checkpoint"


class Count(NamedTuple):
    """How many rows have ids of a kind and, of version 1, an origin."""

    kind: str
    origin: str | None
    rows: int


class Summary(NamedTuple):
    """What the output folder holds: how many rows of each kind and origin, and how many were kept aside."""

    counts: list[Count]
    malformed: int
    unreadable: Sequence[BadFile] = ()
    """The input files whose rows are missing: they cannot be read, and a later run tries again."""

    @property
    def rows(self) -> int:
        """All rows read."""
        return sum(count.rows for count in self.counts) + self.malformed


class Assignment(NamedTuple):
    """How rows without ids get theirs: which function, and the columns it takes."""

    how: str
    source: tuple[str, ...] = ()
    offset: str | None = None
    at: str | None = None
    order_by: tuple[str, ...] = ()
    zone: str | None = None
    """Time zone of times that do not name their offset from UTC. Default: such a time is refused."""


def with_assigned_ids(df: DataFrame, column: str, assignment: Assignment) -> DataFrame:
    """Add a column of ids to rows that have none.

    A row of which no position can be told (no source, offset or time, or none that reads as one) gets NULL.

    Raises:
        BadInput: a column is missing or not named, the name is taken, or rows of a stream are to be numbered.
    """
    how, source, offset, at, order_by, zone = assignment
    if column in df.columns:
        raise BadInput(f"the input has a column {column!r} already; --column names another for the new ids")
    if how == "generate":
        return df.withColumn(column, generate_id())
    if how == "assign":
        if df.isStreaming:
            raise BadInput("--assign assign numbers the rows of a batch; with --stream use position or generate")
        keys = [column_of(df, name) for name in order_by]
        return df.transform(assign_ids, name=column, order_by=keys or None)
    if not source or offset is None or at is None:
        raise BadInput("--assign position needs --source, --offset and --at: the columns that say where a row stands")
    names = [column_of(df, name).cast("string") for name in source]
    log = F.concat(names[0], *(part for name in names[1:] for part in (F.lit("/"), name)))
    place = column_of(df, offset).try_cast("bigint")
    moment = moment_in(df, at, zone)
    fits = place.between(0, layout.OFFSET_MAX)
    return df.withColumn(column, F.when(fits, position_id(log, F.when(fits, place), moment)))


def with_id_columns(df: DataFrame, column: str = "id") -> DataFrame:
    """Add what the ids in a column say, one column a field, each named after the column: ``id_kind``, ``id_time`` ...

    Fields that an id's kind does not have are NULL; all are, and ``id_kind`` too, where it is no id.

    Raises:
        BadInput: there is no such column, or a name is taken already.
    """
    id = column_of(df, column)
    text = hex_text(id)
    v1, v0 = try_parse_id(id), try_parse_v0(id)
    parts = {
        "kind": F.when(is_v1(text), F.lit(layout.KIND_V1)).otherwise(v0.kind),
        "canonical": F.when(is_v1(text), F.upper(text)).otherwise(try_translate_v0(id)),
        "time": v1.time,
        "mac": v1.mac,
        "origin": v1.origin,
        "sequence": v1.sequence,
        "host": v0.host,
        "port": v0.port,
        "offset": v0.offset,
        "pid": F.coalesce(v1.pid, v0.pid),
        "loader_hash": v0.loader_hash,
        "elapsed_ms": v0.elapsed_ms,
        "counter": v0.counter,
    }
    added = {f"{column}_{name}": part for name, part in parts.items()}
    taken = sorted(set(added) & set(df.columns))
    if taken:
        raise BadInput(f"the input has a column {taken[0]!r} already; rename it, or the column of ids")
    return df.withColumns(added)


def split_malformed(df: DataFrame, column: str = "id") -> tuple[DataFrame, DataFrame]:
    """Part the rows that hold an id from those that do not; the latter get a column ``reason``.

    Every row is in one of the two, as it was read.
    """
    return _split(df, no_id_reason(hex_text(column_of(df, column))))


def _split(df: DataFrame, why: Column) -> tuple[DataFrame, DataFrame]:
    if REASON in df.columns:
        raise BadInput(f"the input has a column {REASON!r} already; rename it")
    marked = df.withColumn(REASON, F.coalesce(misfit_reason(df), why))
    good = marked.where(F.col(REASON).isNull()).drop(REASON, CORRUPT)
    return good, marked.where(F.col(REASON).isNotNull())


def run(
    spark: SparkSession,
    input: str,
    output: str,
    *,
    column: str = "id",
    format: str | None = None,
    mode: str = "error",
    assign: Assignment | None = None,
    table_format: str = "parquet",
) -> Summary:
    """Read messages, write them as a table with their ids taken apart, and keep malformed rows aside.

    A file that cannot be read is listed in the folder ``unreadable`` of the output, with the reason, and left out.

    Args:
        spark: the session.
        input: a file or folder; what Spark can read.
        output: a folder: ``ids`` and ``quarantine`` in it are written.
        column: the column of ids; ``value`` for a text file.
        format: one of `FORMATS`; default: by the path's ending.
        mode: Spark's save mode, ``error`` or ``overwrite``.
        assign: the rows have no ids; give them some so, in the new column.
        table_format: ``parquet`` or ``delta``: the format of the tables.

    Raises:
        BadInput: the input has no such column, or columns of names that the job adds.
    """
    write_run(spark, _input(input, format), _tables(column, assign), output, mode, table_format)
    return summary(spark, output, column)


def run_stream(
    spark: SparkSession,
    input: str,
    output: str,
    *,
    column: str = "id",
    format: str | None = None,
    assign: Assignment | None = None,
    interval: float | None = None,
    table_format: str = "parquet",
) -> Summary:
    """Do what `run` does to the files of a folder that have not been done yet, from a checkpoint in the output folder.

    Each micro-batch is written once to ``ids`` and to ``quarantine`` (`spark_ext.write_once`), also if it is replayed
    after a crash. A file that cannot be read is listed in ``unreadable``, with the reason. A later run reads it once it
    was repaired; a run without an end tries again after a micro-batch if the file has changed.

    Args:
        spark: the session.
        input: a folder, into which files are moved whole.
        output: a folder: ``ids``, ``quarantine``, ``unreadable`` and ``checkpoint`` in it are written.
        column: as for `run`.
        format: as for `run`.
        assign: as for `run`.
        interval: seconds between looks for new files, without an end. Default: do what is there, and return.
        table_format: as for `run`.

    Raises:
        BadInput: as for `run`; also where rows are to be numbered, or a table belongs to another query or a batch run.
    """
    source, tables = _input(input, format), _tables(column, assign)
    messages = read_stream(spark, source, lambda schema: read_rows(spark, input, format, stream=True, schema=schema))
    # What does not go together is said now, not by the first batch.
    rows = {f"{output}/{table.name}": table.rows(messages) for table in tables}
    checkpoint = f"{output}/{CHECKPOINT}"
    check_output(rows, table_format, checkpoint)
    writer = BatchWriter(source, messages.schema, tables, output, checkpoint, table_format)
    writer.read_repaired(spark)
    follow(messages, writer.write, checkpoint, interval)
    return summary(spark, output, column)


def _input(path: str, format: str | None) -> Input:
    format = format or guess_format(path)
    return Input(path, lambda spark, files, schema: read_rows(spark, files, format, schema=schema))


def _tables(column: str, assign: Assignment | None) -> list[Table]:
    return [
        Table(IDS, lambda df: _parts(df, column, assign)[0]),
        Table(QUARANTINE, lambda df: _parts(df, column, assign)[1]),
    ]


def _parts(df: DataFrame, column: str, assign: Assignment | None) -> tuple[DataFrame, DataFrame]:
    if assign is None:
        good, malformed = split_malformed(df, column)
    else:
        df = with_assigned_ids(df, column, assign)
        good, malformed = _split(df, F.when(df[quoted_name(column)].isNull(), F.lit(_NO_POSITION)))
    return with_id_columns(good, column), malformed


def summary(spark: SparkSession, output: str, column: str = "id") -> Summary:
    """Count what a run has written to its output folder."""
    kind, origin = (F.col(quoted_name(f"{column}_{name}")).alias(name) for name in ("kind", "origin"))
    counted = written(spark, f"{output}/{IDS}")
    found = [] if counted is None else counted.groupBy(kind, origin).count().collect()
    places: dict[str, int] = {name: place for place, name in enumerate((*layout.KINDS, *layout.ORIGINS))}
    counts = sorted(
        (Count(row["kind"], row["origin"], row["count"]) for row in found),
        key=lambda count: (places[count.kind], places.get(count.origin or "", -1)),
    )
    aside = written(spark, f"{output}/{QUARANTINE}")
    return Summary(counts, 0 if aside is None else aside.count(), tuple(unreadable_files(output)))


def examples(spark: SparkSession, output: str, column: str, rows: int) -> DataFrame | None:
    """Give some of the rows written, of each kind as many; None where there are none."""
    rows_written = written(spark, f"{output}/{IDS}")
    kinds = sorted({count.kind for count in summary(spark, output, column).counts}, key=list[str](layout.KINDS).index)
    if rows_written is None or not kinds:
        return None
    names = [column, *(f"{column}_{name}" for name in ("kind", "time", "mac", "host", "pid", "offset", "sequence"))]
    shown = rows_written.select(*(quoted_name(name) for name in names))
    shares = [rows // len(kinds) + (place < rows % len(kinds)) for place in range(len(kinds))]
    parts = [
        shown.where(F.col(quoted_name(f"{column}_kind")) == kind).limit(share)
        for kind, share in zip(kinds, shares, strict=True)
    ]
    return reduce(DataFrame.union, parts)
