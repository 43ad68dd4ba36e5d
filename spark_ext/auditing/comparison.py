"""Compare two DataFrames: `compare` names the messages that were sent and did not land.

`digest` makes the rows of `msgid.audit.digest` by one aggregation, so that only the blocks that differ are read.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from msgid._validate import integer
from msgid.audit import _compare
from msgid.audit._compare import CHANGED, DUPLICATE, EXTRA, LOST, Group, SideCounts
from msgid.audit._digest_tables import COLUMNS, HALF, SIZE, check_content, form_of, merge_digests, offset_of, ranges_of
from msgid.audit._files import Side, names_in_sent
from msgid.audit._options import columns_in
from msgid.audit.definitions import MAX_MESSAGES, TABLE
from spark_ext._arguments import check_dataframe
from spark_ext.auditing import _values
from spark_ext.auditing._values import Sizes, kind_of, rows_by_role
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.auditing.table_audit import audited
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import ColumnNames
    from msgid.audit.report import Report


_LOG: Final = "_msgid_log"
_BLOCK: Final = "_msgid_block"
_MOST_LOGS: Final = 1_000
"""The most logs that are a condition of a query."""


def compare(
    sent: DataFrame,
    table: DataFrame,
    *,
    sent_columns: Mapping[str, Any] | None = None,
    digests: tuple[DataFrame, DataFrame] | None = None,
    max_messages: int = MAX_MESSAGES,
    **columns: Unpack[ColumnNames],
) -> AuditReport:
    """Return the report of the messages that were sent and did not land in a table, by their positions or IDs.

    If both sides have positions, messages are matched by them, and an ID that differs is a changed message. Otherwise
    they are matched by the value of their IDs, whatever the spelling. Sides of at most 50,000 rows are compared on the
    driver. Larger ones are grouped by message in the JVM, and the driver collects the messages that differ.

    Parameters
    ----------
    sent : DataFrame
        The messages that a producer had acknowledged, or all messages of a queue.
    table : DataFrame
        The landed messages.
    sent_columns : dict of str, optional
        The names of these columns in ``sent``, by argument. Default: the same names, as far as ``sent`` has them.
    digests : tuple of DataFrame, optional
        The digests of ``sent`` and of ``table`` that `digest` made; of several days, their union. The driver collects
        them, 64 bytes per block, and Spark reads only the rows of the blocks that differ.
    max_messages : int
        Number of messages that the report lists in ``differences``; the findings count all.
    **columns
        The columns of the table, as `msgid.audit.ColumnNames` explains. ``timestamp`` gives the time up to which the
        table is complete; its default is the time of the IDs. ``content`` is compared if both sides have it.

    Returns
    -------
    AuditReport
        The report. ``lost_messages``, ``changed_messages`` and repeated messages are errors; ``extra_messages`` have
        the severity ``info``, because ``sent`` may be a part of the sent messages.

    Raises
    ------
    ValueError
        If a column is missing, a side is a stream, or the sides cannot be matched.

    Examples
    --------
    >>> sent = spark.createDataFrame([("orders", 0, n) for n in range(5, 9)], ["topic", "partition", "offset"])
    >>> report = compare(sent, sent.where("offset <> 6"))
    >>> print(report)
    1 message lost in 3 rows, compared with 4 sent
    re-read these ranges: kafka:kafka/orders/0 6
    not checked: changed_messages (without content on both sides)
    severity  check          scope                 count  example
    error     lost_messages  kafka:kafka/orders/0      1  offset 6
    >>> report.differences.show()
    +-----+--------------------+------+----+
    |fault|               scope|offset|  id|
    +-----+--------------------+------+----+
    | lost|kafka:kafka/orders/0|     6|NULL|
    +-----+--------------------+------+----+
    """
    most = integer("max_messages", max_messages, 0, 10_000_000)
    named = columns_in("compare", columns)
    for argument, df in (("sent", sent), ("table", table)):
        check_dataframe(df, argument)
    here = side_of("table", table, named)
    there = side_of("sent", sent, names_in_sent(sent.columns, named, sent_columns))
    if digests is None:
        return AuditReport(table.sparkSession, report_of(*_compare.with_one_prefix(there, here), most, Sizes()))
    for df in digests:
        check_dataframe(df, "digests")
        if not set(COLUMNS) <= set(df.columns):
            raise ValueError(f"`digests` must be two DataFrames that `digest` made, got the columns {df.columns}")
    of_sent, of_table = (merge_digests([one.select(*COLUMNS).toArrow()]) for one in digests)

    def compared(blocks: pa.Table) -> Report:
        return report_of(rows_in_blocks(there, blocks), rows_in_blocks(here, blocks), most, Sizes())

    return AuditReport(table.sparkSession, _compare.report_of_blocks(of_sent, of_table, compared))


def side_of(which: str, df: DataFrame, named: dict[str, Any]) -> Side:
    """Return the rows of a side, completed, and their columns."""
    if df.isStreaming:
        raise ValueError(f"cannot compare a stream: {which} must be a table")
    try:
        return Side(*audited(df, named))
    except ValueError as error:
        raise ValueError(f"cannot compare {which}: {error}") from None


def report_of(sent: Side, table: Side, most: int, sizes: Sizes) -> Report:
    """Return the report of two sides that lists at most some messages; small sides are compared on the driver."""
    by_position = _compare.is_by_position(sent.columns, table.columns)
    if not (sent.columns.content and table.columns.content):
        sent, table = (side._replace(columns=side.columns._replace(content=())) for side in (sent, table))
    sides = (sent, table)
    _compare.check_contents(*([kind_of(side.table, name) for name in side.columns.content] for side in sides))
    sent, table = (side._replace(table=rows_by_role(side.table, side.columns)) for side in sides)
    small = [_values.collected(side.table, side.columns, sizes) for side in (sent, table)]
    if small[0] is not None and small[1] is not None:
        return _compare.report_of_sides(small[0], small[1], most)
    with_ids = sent.columns.id is not None and table.columns.id is not None
    rows = [_messages(side.table, by_position, with_ids) for side in (sent, table)]
    counts = [_counts(side) for side in rows]
    differing = _values.keep(_differing(rows[0], rows[1], ["scope", "offset"] if by_position else ["id"]))
    groups = differing.groupBy("fault", "scope").agg(
        F.sum("number"), F.count(F.lit(1)), F.sum("rows"), F.min("offset"),
        F.min_by("id", "offset") if by_position else F.min("id"), F.min("time"), F.count_if(F.col("time").isNull()),
    ).collect()  # fmt: skip
    listed = differing.select("fault", "scope", "offset", "id").orderBy("fault", "scope", "offset", "id").limit(most)
    not_checked = _compare.not_compared(sent.columns, table.columns, by_position)
    held = [Group(*row) for row in groups]
    return _compare.report_of_groups(held, listed.collect(), (counts[0], counts[1]), not_checked, by_position)


def _messages(rows: DataFrame, by_position: bool, with_ids: bool) -> DataFrame:
    """Return the scope, the offset, the ID, the hash of the compared values, and the time in microseconds of rows."""
    id, content, scope, offset = identity("id"), F.col("content"), F.lit(TABLE), F.lit(None).cast("bigint")
    if by_position:
        scope, offset = F.col("source"), F.col("offset")
    valid = (scope if by_position else id).isNotNull()
    compared = F.xxhash64(content, id) if by_position and with_ids else F.xxhash64(content)
    values = {"scope": scope, "offset": offset, "id": id, "content": compared, "time": F.col("time"), "valid": valid}
    return rows.select(*(value.alias(name) for name, value in values.items()))


def _counts(rows: DataFrame) -> SideCounts:
    lacks, time = ~F.col("valid"), F.col("time")
    (row,) = rows.agg(
        F.count(F.lit(1)), F.max(time), F.count_if(lacks), F.min(F.when(lacks, time)),
        F.count_if(lacks & time.isNull()),
    ).collect()  # fmt: skip
    return SideCounts(*row)


def _differing(sent: DataFrame, table: DataFrame, keys: list[str]) -> DataFrame:
    """Return the messages with a fault, which is a place in `FAULTS`, with the number of their repeated rows."""
    both = sent.withColumn("landed", F.lit(False)).unionByName(table.withColumn("landed", F.lit(True))).where("valid")
    landed = F.col("landed")
    names = [*dict.fromkeys(["scope", "offset", *keys])]
    # One shuffle serves both groups: the rows of a message are in one task.
    contents = both.repartition(*keys).groupBy(*names, "content").agg(
        F.count_if(~landed).alias("sent"), F.count_if(landed).alias("held"),
        F.min(F.when(~landed, F.col("id"))).alias("id_sent"), F.min("id").alias("any_id"),
        F.min(F.when(~landed, F.col("time"))).alias("time"),
    )  # fmt: skip
    of_one_side = (F.col("sent") == 0) | (F.col("held") == 0)
    messages = contents.groupBy(*names).agg(
        F.sum("sent").alias("sent"), F.sum("held").alias("held"), F.max(of_one_side).alias("is_changed"),
        F.coalesce(F.min("id_sent"), F.min("any_id")).alias("first_id"), F.min("time").alias("time"),
    )  # fmt: skip
    sent_rows, held = F.col("sent"), F.col("held")
    fault = F.when(held == 0, LOST).when(sent_rows == 0, EXTRA).when(F.col("is_changed"), CHANGED)
    fault = fault.when(held > sent_rows, DUPLICATE)
    number = F.when(fault == DUPLICATE, held - sent_rows).otherwise(F.lit(1).cast("bigint"))
    first_id, rows = F.col("first_id").alias("id"), (sent_rows + held).alias("rows")
    found = messages.select("scope", "offset", first_id, "time", fault.alias("fault"), number.alias("number"), rows)
    return found.where("fault IS NOT NULL")


# --- Digests ---


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
    df, named = audited(df, columns_in("digest", columns))
    hashed, block = F.col("hash"), _block_of(F.col("offset"))
    rows = rows_by_role(df, named._replace(content=()), F.xxhash64(F.concat(*_hashed(df, named))).alias("hash"))
    sums = rows.groupBy("source", block.alias("block")).agg(
        F.count(F.lit(1)).alias("rows"), F.min("offset").alias("low"), F.max("offset").alias("high"),
        F.timestamp_micros(F.min("time")).alias("first_time"), F.timestamp_micros(F.max("time")).alias("last_time"),
        F.sum(hashed.bitwiseAND(HALF)).alias("lower"), F.sum(F.shiftrightunsigned(hashed, 32)).alias("upper"),
        F.lit(form_of(named)).alias("form"),
    )  # fmt: skip
    return sums.select(*COLUMNS)


def _block_of(offset: Column) -> Column:
    return offset.bitwiseAND(-SIZE)


def _hashed(df: DataFrame, columns: Columns) -> list[Column]:
    """Return the bytes that the hash of a message has, as `msgid.audit` writes them."""
    values = [_values.offset_column(df, offset_of(columns)).cast("string")]
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


def rows_in_blocks(side: Side, blocks: pa.Table) -> Side:
    """Return a side with the rows of some blocks.

    Conditions on the columns themselves let a source of files skip other logs and offsets.
    """
    df, columns = side.table, side.columns
    offset, logs = offset_of(columns), blocks["source"].unique().to_pylist()
    log, place = _values.placed_columns(df, columns)
    marked = df.withColumns({_LOG: log, _BLOCK: _block_of(place)})
    if len(logs) <= _MOST_LOGS:
        marked = marked.where(_values.source_column(df, columns).isin(logs))
    if kind_of(df, offset) == "integer":
        ranges = (F.col(quoted_name(offset)).between(*ends) for ends in ranges_of(blocks["block"]))
        marked = marked.where(reduce(or_, ranges))
    pairs = list(zip(blocks["source"].to_pylist(), blocks["block"].to_pylist(), strict=True))
    asked = df.sparkSession.createDataFrame(pairs, f"{_LOG} string, {_BLOCK} bigint")
    return side._replace(table=marked.join(F.broadcast(asked), [_LOG, _BLOCK], "left_semi").drop(_LOG, _BLOCK))
