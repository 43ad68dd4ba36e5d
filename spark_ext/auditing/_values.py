"""The values that an audit compares, as columns of one type each: offsets, logs, contents and IDs."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DecimalType, NullType, StringType, StructField

from msgid import layout
from msgid.audit._columns import LOG
from msgid.audit.definitions import PRINTABLE
from msgid.audit.facts import merged
from spark_ext._private import is_classic
from spark_ext._shipping import shipped
from spark_ext.columns._expressions import integer_column, quoted_name, type_of
from spark_ext.columns._identity import identity
from spark_ext.streaming._fingerprint import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from msgid._known_tables import Columns
    from msgid.audit._options import Rules
    from msgid.audit.facts import Facts


def text_of_ids(value: Column) -> Column:
    """Return the bytes of IDs as text: printable ASCII as it is, as a header of Kafka holds IDs, or the identity."""
    text = value.cast("string")
    return F.when(text.rlike(rf"\A(?:{PRINTABLE})?\z"), text).otherwise(identity(value))


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
    names = [F.col(quoted_name(name)).cast("string") for name in columns.source]
    parts = [part for name in names for part in (F.lit("/"), name)][1:]
    log = F.concat(F.lit(columns.prefix), *parts) if parts else F.lit(LOG)
    if columns.life is None:
        return log
    life = F.col(quoted_name(columns.life)).cast("string")
    return F.coalesce(F.concat(log, F.lit("@"), life), log)


def placed_columns(df: DataFrame, columns: Columns) -> tuple[Column, Column]:
    """Return the log and the offset of each row; NULL for a row that does not have both."""
    log, offset = source_column(df, columns), offset_column(df, str(columns.offset))
    placed = log.isNotNull() & offset.isNotNull()
    return F.when(placed, log).alias("source"), F.when(placed, offset).alias("offset")


def content_columns(df: DataFrame, columns: Columns) -> list[Column]:
    """Return the fingerprint of the content in a list, which is empty if content is not compared.

    The columns have the names of their places, because two sides of a comparison have other names. Text has the
    fingerprint of its bytes.
    """
    if not columns.content:
        return []
    values = []
    for place, name in enumerate(columns.content):
        kind, value = df.schema[name].dataType, F.col(quoted_name(name))
        is_text = isinstance(kind, StringType)
        field = StructField(f"{place:04}", BinaryType() if is_text else kind)
        values.append((value.cast("binary") if is_text else value, field))
    return [fingerprint_of(values).alias("content")]


def in_tasks(rows: DataFrame, key: str, tasks: int, facts_of: Callable[[pa.Table], Facts], rules: Rules) -> Facts:
    """Return the facts of some rows, made in tasks of whole keys, and merged on the driver."""

    def pickled(table: pa.Table) -> pa.Table:

        return pa.table({"facts": [pickle.dumps(merged([facts_of(table)], rules.max_gaps))]})

    task = F.pmod(F.hash(key), F.lit(tasks))
    parts = rows.groupBy(task).applyInArrow(shipped(pickled), "facts binary").collect()
    return merged([pickle.loads(part["facts"]) for part in parts], rules.max_gaps)


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
