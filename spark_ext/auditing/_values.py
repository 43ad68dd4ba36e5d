"""The values that an audit compares, as columns of one type each, and the sizes up to which the driver takes them."""

from __future__ import annotations

import pickle
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DecimalType, IntegralType, NullType, StringType, StructField

from msgid import layout
from msgid._known_tables import Columns
from msgid.audit._columns import LOG
from msgid.audit._files import Side
from msgid.audit.facts import merged
from spark_ext._private import is_classic
from spark_ext._shipping import shipped
from spark_ext.columns._crc import word
from spark_ext.columns._expressions import hex_text, integer_column, null_text, quoted_name, type_of, v1_bytes
from spark_ext.columns._identity import identity
from spark_ext.columns._moments import micros_column
from spark_ext.streaming._fingerprint import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from msgid.audit._options import Rules
    from msgid.audit.facts import Facts


_LONGEST: Final = 256
"""Bytes of the longest ID or log name that is collected. A table with a longer one is audited on Spark alone."""


class Sizes(NamedTuple):
    """The sizes up to which an audit takes the simpler way.

    Attributes:
        table: Rows of a table that the driver collects, and audits as in Python.
        driver: Rows of a summary whose facts the driver makes.
        task: Rows of a summary whose facts a task makes; a node or a log with more is one task.
    """

    table: int = 50_000
    driver: int = 100_000
    task: int = 250_000


def text_of_ids(value: Column) -> Column:
    """Return the bytes of IDs as text: printable ASCII as it is, as a header of Kafka holds IDs, or the identity."""
    text = value.cast("string")
    return F.when(text.rlike(r"\A[ -~]*\z"), text).otherwise(identity(value))


def kind_of(df: DataFrame, name: str) -> str:
    """Return the kind of a column's type, as `msgid.audit` names it."""
    type = df.schema[name].dataType
    kinds = {IntegralType: "integer", StringType | BinaryType: "text", DecimalType: "decimal", NullType: "null"}
    return next((kind for one, kind in kinds.items() if isinstance(type, one)), type.simpleString())


def offset_column(df: DataFrame, name: str) -> Column:
    """Return the offsets of a column as bigint; NULL for a value that is not an offset."""
    value, type = F.col(quoted_name(name)), type_of(df, name)
    if isinstance(type, NullType):
        return F.lit(None).cast("bigint")
    if isinstance(type, DecimalType):
        offset = F.when(value == F.floor(value), value).try_cast("bigint")
    else:
        offset = integer_column(df, name)
    return F.when(offset.between(0, layout.OFFSET_MAX), offset)


def source_column(df: DataFrame, columns: Columns) -> Column:
    """Return the name of each row's log and its life; NULL if a part of it is NULL."""
    names = [F.col(quoted_name(name)).cast("string") for name in columns.source] or [F.lit(LOG)]
    log = reduce(lambda parts, name: F.concat(parts, F.lit("/"), name), names)
    log = F.concat(F.lit(columns.prefix), log) if columns.prefix else log
    if columns.life is None:
        return log
    life = F.col(quoted_name(columns.life)).cast("string")
    return F.coalesce(F.concat(log, F.lit("@"), life), log)


def placed_columns(df: DataFrame, columns: Columns) -> tuple[Column, Column]:
    """Return the log and the offset of each row; NULL for a row that does not have both."""
    if columns.offset is None:
        return null_text().alias("source"), F.lit(None).cast("bigint").alias("offset")
    log, offset = source_column(df, columns), offset_column(df, columns.offset)
    placed = log.isNotNull() & offset.isNotNull()
    return F.when(placed, log).alias("source"), F.when(placed, offset).alias("offset")


def id_seconds(id: Column) -> Column:
    """Return the Unix seconds of version-1 IDs; NULL for any other value."""
    raw = v1_bytes(hex_text(id))
    return word(F.substring(raw, layout.FIELDS["seconds"].start + 1, 4)) + layout.EPOCH_UNIX


def rows_by_role(df: DataFrame, columns: Columns, *others: Column) -> DataFrame:
    """Return the rows of a table with one column per role, which is NULL if the table does not have it; and others.

    ``id`` and ``parent`` are text. ``source`` and ``offset`` are NULL in a row that does not have both. ``timestamp``,
    ``landed`` and ``time``, which is the timestamp or else the time of the ID, are microseconds since 1970. ``content``
    is the fingerprint of the content.
    """
    id, parent = (null_text() if name is None else F.col(quoted_name(name)) for name in (columns.id, columns.parent))
    timestamp = micros_column(df, columns.timestamp)
    return df.select(
        id.alias("id"), parent.alias("parent"), *placed_columns(df, columns), timestamp.alias("timestamp"),
        micros_column(df, columns.landed).alias("landed"), _content(df, columns).alias("content"),
        (timestamp if columns.timestamp else id_seconds(id) * 1_000_000).alias("time"), *others,
    )  # fmt: skip


def _content(df: DataFrame, columns: Columns) -> Column:
    """Return the fingerprint of the content, or NULL if content is not compared.

    The columns have the names of their places, because two sides of a comparison have other names. Text has the
    fingerprint of its bytes.
    """
    values = []
    for place, name in enumerate(columns.content):
        kind, value = df.schema[name].dataType, F.col(quoted_name(name))
        is_text = isinstance(kind, StringType)
        field = StructField(f"{place:04}", BinaryType() if is_text else kind)
        values.append((value.cast("binary") if is_text else value, field))
    return fingerprint_of(values) if values else F.lit(None).cast("binary")


def facts_in(
    rows: DataFrame, key: str, facts_of: Callable[[pa.Table], Facts], rules: Rules, sizes: Sizes
) -> list[Facts]:
    """Return the facts of the rows of a summary: of few on the driver, else in tasks of whole keys.

    Args:
        rows: The rows.
        key: The column whose values are each in one task.
        facts_of: Returns the facts of some rows.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """

    def pickled(table: pa.Table) -> pa.Table:
        return pa.table({"facts": [pickle.dumps(merged([facts_of(table)], rules.max_gaps))]})

    table = rows.limit(sizes.driver + 1).toArrow()
    if table.num_rows <= sizes.driver:
        return [facts_of(table)]
    rows = keep(rows)
    task = F.pmod(F.hash(key), F.lit(rows.count() // sizes.task + 1))
    parts = rows.groupBy(task).applyInArrow(shipped(pickled), "facts binary").collect()
    return [pickle.loads(part["facts"]) for part in parts]


def keep(df: DataFrame) -> DataFrame:
    """Return a DataFrame with the same rows, which is computed once, and which a later query does not plan again.

    If the session has a checkpoint folder, the rows are there, and survive the loss of an executor. Else they are a
    local checkpoint: if an executor is lost, the audit ends with Spark's error.
    """
    spark = df.sparkSession
    if is_classic(spark):
        has_folder = spark.sparkContext.getCheckpointDir() is not None
    else:
        has_folder = spark.conf.get("spark.checkpoint.dir", None) is not None
    return df.checkpoint() if has_folder else df.localCheckpoint()


# --- A table of few rows, on the driver ---


def collected(rows: DataFrame, columns: Columns, sizes: Sizes) -> Side | None:
    """Return the rows of `rows_by_role` with the roles that are given; None if they are too many or too long."""
    names = [name for name, is_given in columns.given.items() if is_given]
    names += ["source"] if columns.offset else []
    long = (F.coalesce(F.octet_length(name) > _LONGEST, F.lit(False)) for name in ("id", "parent", "source"))
    is_long = reduce(or_, long)
    # take() reads as few partitions as it needs; a result as Arrow would need all.
    held = rows.select(is_long, *(F.when(~is_long, F.col(name)) for name in names)).take(sizes.table + 1)
    if len(held) > sizes.table or any(row[0] for row in held):
        return None
    moment, values = pa.timestamp("us"), [*zip(*held, strict=True)][1:] or [()] * len(names)
    types = {"offset": pa.int64(), "timestamp": moment, "landed": moment, "content": pa.binary()}
    table = pa.table({name: pa.array(of, types.get(name, pa.string())) for name, of in zip(names, values, strict=True)})
    roles = {name: (name,) if name in ("source", "content") else name for name in names}
    return Side(table, Columns(**{"id": None, **roles}))  # type: ignore[arg-type]
