"""Digests of messages on Spark: `digest` makes the rows of `msgid.audit.digest` by one aggregation."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import functions as F

from msgid.audit._digest_tables import COLUMNS, HALF, MOST_RANGES, SIZE, check_content, form_of, offset_of, ranges_of
from msgid.audit._options import columns_in
from spark_ext._arguments import check_dataframe
from spark_ext.auditing._values import kind_of, offset_column, placed_columns, source_column
from spark_ext.auditing.summaries import time_column
from spark_ext.auditing.table_audit import audited
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import ColumnNames

_LOG: Final = "_msgid_log"
_BLOCK: Final = "_msgid_block"


def digest(df: DataFrame, **columns: Unpack[ColumnNames]) -> DataFrame:
    """Return the digest of messages: per log and block, their number and the sums of their hashes.

    A block is 65,536 offsets. One aggregation in the JVM makes it, of a table or of a micro-batch. It has the rows of
    `msgid.audit.digest`. Store the digest of each day or batch once, such as with `write_once`, and pass the union of
    them to `compare`.

    Parameters
    ----------
    df : DataFrame
        Table, one row per message; no stream.
    **columns
        The columns, as `msgid.audit.ColumnNames` explains. ``timestamp`` is by default the time of the IDs, and
        ``content`` must be text, binary or integers.

    Returns
    -------
    DataFrame
        The columns ``source``, ``form``, ``rows``, ``low``, ``high``, ``first_time``, ``last_time``,
        ``lower``, ``upper``.

    Raises
    ------
    ValueError
        If a column is missing or has the wrong type, the table does not have offsets, or ``df`` is a stream.

    Examples
    --------
    >>> made = digest(spark.createDataFrame([(0,), (1,), (70_000,)], ["offset"]), offset="offset")
    >>> made.select("source", "form", "rows", "low", "high").orderBy("low").show()
    +------+------+----+-----+-----+
    |source|  form|rows|  low| high|
    +------+------+----+-----+-----+
    |   log|offset|   2|    0|    1|
    |   log|offset|   1|70000|70000|
    +------+------+----+-----+-----+
    """
    check_dataframe(df)
    if df.isStreaming:
        raise ValueError("cannot make a digest of a stream: call `digest` in its foreachBatch")
    sums = _sums_of(df, columns_in("digest", columns))
    return sums.withColumns({name: F.timestamp_micros(name) for name in ("first_time", "last_time")})


def _sums_of(df: DataFrame, named: dict[str, Any]) -> DataFrame:
    """Return the digest of a table by one aggregation; the times are microseconds.

    Args:
        df: The table.
        named: The arguments of `digest` that name columns.
    """
    df, columns = audited(df, named)
    offset_of(columns)
    log, place = placed_columns(df, columns)
    rows = df.select(
        log, place, time_column(df, columns).alias("time"), _block_of(place).alias("block"),
        F.xxhash64(F.concat(*_hashed(df, columns))).alias("hash"),
    )  # fmt: skip
    hashed = F.col("hash")
    sums = rows.groupBy("source", "block").agg(
        F.count(F.lit(1)).alias("rows"), F.min("offset").alias("low"), F.max("offset").alias("high"),
        F.min("time").alias("first_time"), F.max("time").alias("last_time"),
        F.sum(hashed.bitwiseAND(HALF)).alias("lower"), F.sum(F.shiftrightunsigned(hashed, 32)).alias("upper"),
    )  # fmt: skip
    return sums.withColumn("form", F.lit(form_of(columns))).select(*COLUMNS)


def _block_of(offset: Column) -> Column:
    return offset.bitwiseAND(-SIZE)


def _hashed(df: DataFrame, columns: Columns) -> list[Column]:
    """Return the bytes that the hash of a message has, as `msgid.audit` writes them."""
    values = [offset_column(df, offset_of(columns)).cast("string")]
    if columns.id is not None:
        values.append(identity(F.col(quoted_name(columns.id))))
    for name in columns.content:
        check_content(name, kind_of(df, name), df.schema[name].dataType.simpleString())
        values.append(F.col(quoted_name(name)).cast("string"))
    told = (
        F.concat(F.octet_length(value).cast("string").cast("binary"), F.lit(b":"), value.cast("binary"))
        for value in values
    )
    # Under `concatBinaryAsString`, Spark's `concat` of bytes is text.
    return [F.coalesce(one.cast("binary"), F.lit(b"-")) for one in told]


def rows_in_blocks(df: DataFrame, columns: Columns, blocks: pa.Table) -> DataFrame:
    """Return the rows of some blocks.

    Conditions on the columns themselves let a source of files skip other logs and offsets.

    Args:
        df: The rows.
        columns: Their columns.
        blocks: The blocks.
    """
    offset, logs = offset_of(columns), blocks["source"].unique().to_pylist()
    log, place = placed_columns(df, columns)
    marked = df.withColumns({_LOG: log, _BLOCK: _block_of(place)})
    if len(logs) <= MOST_RANGES:
        marked = marked.where(source_column(df, columns).isin(logs))
    if kind_of(df, offset) == "integer":
        ranges = ranges_of(np.unique(blocks["block"].to_numpy()), MOST_RANGES)
        marked = marked.where(reduce(or_, (F.col(quoted_name(offset)).between(*ends) for ends in ranges)))
    pairs = list(zip(blocks["source"].to_pylist(), blocks["block"].to_pylist(), strict=True))
    asked = df.sparkSession.createDataFrame(pairs, f"{_LOG} string, {_BLOCK} bigint")
    return marked.join(F.broadcast(asked), [_LOG, _BLOCK], "left_semi").drop(_LOG, _BLOCK)
