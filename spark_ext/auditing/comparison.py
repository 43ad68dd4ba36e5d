"""Compare two DataFrames: `compare` names the messages that were sent and did not land.

`digest` makes the rows of `msgid.audit.digest` by one aggregation, so that only the blocks that differ are read.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from msgid.audit.comparison import (
    CHANGED,
    LOST,
    NUMBER_OF_BLOCKS,
    Comparison,
    fault_of,
    is_by_position,
    not_compared,
    report_of_blocks,
    with_one_prefix,
)  # fmt: skip
from msgid.audit.definitions import MAX_MESSAGES, TABLE
from msgid.audit.digests import COLUMNS, SIZE, check_content, form_of, merge_digests, offset_of, ranges_of
from msgid.audit.options import columns_in, rules_in
from msgid.audit.reduction import statements
from msgid.audit.sides import check_contents, check_sent_columns, names_in_sent, with_hint
from msgid.shared.validate import integer
from spark_ext._arguments import check_dataframe
from spark_ext.auditing._engine import SparkEngine
from spark_ext.auditing._roles import (
    check_moments,
    content_of,
    kind_of,
    micros_of,
    offset_column,
    placed_columns,
    seconds_of,
    source_column,
)  # fmt: skip
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.auditing.table_audit import audited
from spark_ext.columns.building import null_text
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.fingerprint import fingerprint_of
from spark_ext.columns.identity import id_identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from msgid.audit.options import ColumnNames, Rules
    from msgid.audit.report import Report
    from msgid.shared.known_tables import Columns


_LOG: Final = "_msgid_log"
_BLOCK: Final = "_msgid_block"
_MOST_LOGS: Final = 1_000
"""The most logs that are a condition of a query."""
_HALVES: Final = {"lower_half": "hash & 4294967295", "upper_half": "shiftrightunsigned(hash, 32)"}
"""The halves of a hash. Sums of halves do not exceed 64 bits, which Spark would refuse."""


class Side(NamedTuple):
    """The rows of a side and their columns."""

    table: DataFrame
    columns: Columns
    is_listed: bool = False


def compare(
    sent: DataFrame,
    table: DataFrame,
    *,
    sent_columns: Mapping[str, Any] | None = None,
    digests: tuple[DataFrame, DataFrame] | None = None,
    max_messages: int = MAX_MESSAGES,
    timezone: str | None = None,
    **columns: Unpack[ColumnNames],
) -> AuditReport:
    """Return the report of the messages that were sent and did not land in a table, by their positions or IDs.

    If both sides have positions, messages are matched by them, and an ID that differs is a changed message. Otherwise
    they are matched by the value of their IDs, whatever the spelling. Each side is reduced to blocks of messages. The
    messages of the blocks that differ are grouped, all in the JVM, and the driver collects those that the report lists.

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
    timezone : str, optional
        Offset from UTC of times as text that do not name theirs, as `msgid.audit.AuditOptions` explains.
    **columns
        The columns of the table, as `msgid.audit.ColumnNames` explains. ``timestamp`` gives the time up to which the
        table is complete; its default is the time of the IDs. ``content`` is compared if both sides have it.

    Returns
    -------
    AuditReport
        The report. ``lost_messages``, ``changed_messages`` and repeated messages are errors; ``extra_messages`` have
        the severity ``info``, because ``sent`` may be a part of the sent messages. ``report.rows_of`` returns the rows
        of a check as a DataFrame.

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
    check_sent_columns(sent_columns)
    rules = rules_in({"timezone": timezone})
    named = columns_in("compare", columns)
    for argument, df in (("sent", sent), ("table", table)):
        check_dataframe(df, argument)
    here = side_of("table", table, named)
    there = side_of("sent", sent, names_in_sent(sent.columns, named, sent_columns))
    if digests is None:
        return AuditReport(table.sparkSession, report_of(*with_one_prefix(there, here), rules, most))
    for df in digests:
        check_dataframe(df, "digests")
        if not set(COLUMNS) <= set(df.columns):
            raise ValueError(f"`digests` must be two DataFrames that `digest` made, got the columns {df.columns}")
    of_sent, of_table = (merge_digests([one.select(*COLUMNS).toArrow()]) for one in digests)

    def compared(blocks: pa.Table) -> Report:
        return report_of(rows_in_blocks(there, blocks), rows_in_blocks(here, blocks), rules, most)

    return AuditReport(table.sparkSession, report_of_blocks(of_sent, of_table, compared))


def side_of(which: str, df: DataFrame, named: dict[str, Any]) -> Side:
    """Return the rows of a side, completed, and their columns."""
    if df.isStreaming:
        raise ValueError(f"cannot compare a stream: {which} must be a table")
    try:
        return Side(*audited(df, named))
    except ValueError as error:
        words = with_hint(df.columns, str(error)) if which == "sent" else error
        raise ValueError(f"cannot compare {which}: {words}") from None


def report_of(sent: Side, table: Side, rules: Rules, most: int) -> Report:
    """Return the report of two sides that lists at most some messages."""
    by_position = is_by_position(sent.columns, table.columns)
    if not (sent.columns.content and table.columns.content):
        sent, table = (side._replace(columns=side.columns._replace(content=())) for side in (sent, table))
    sides = (sent, table)
    check_contents(*([(name, kind_of(side.table, name)) for name in side.columns.content] for side in sides))
    with_ids = all(side.columns.id is not None for side in sides)
    hashed = ("off, id, content" if with_ids else "off, content") if by_position else "id, content"
    engine = SparkEngine(table.table.sparkSession, 0)
    comparison = Comparison(
        engine, by_position, with_ids,
        hash=f"xxhash64({hashed})",
        block=f"CASE WHEN id IS NOT NULL THEN pmod(xxhash64(id), {NUMBER_OF_BLOCKS}) END",
    )  # fmt: skip
    for which, side in zip(("sent", "table"), sides, strict=True):
        rows = messages(side, rules, by_position=by_position)
        if which == "table":
            rows = rows.withColumn("time", F.lit(None).cast("bigint"))
        comparison.keep_blocks(which, engine.add(which, rows))

    def names_of(logs: list[Any]) -> dict[Any, str]:
        return {log: log if by_position else TABLE for log in logs}

    report = comparison.report(names_of, most, not_compared(sent.columns, table.columns, by_position))
    if sent.columns.timestamp is not None:
        blocks = comparison.relation("sent_blocks")
        ((number, timed, last),) = engine.rows(f"SELECT sum(n), sum(timed), max(last_time) FROM {blocks}")
        unread = bool(number) and not timed
        check_moments(sent.table, "timestamp", sent.columns.timestamp, last, unread=unread)
    report._rows = _Lists(sides, engine.frame(f"SELECT * FROM {comparison.relation('differing')}"), rules, by_position)
    return report


def messages(side: Side, rules: Rules, *others: Column, by_position: bool) -> DataFrame:
    """Return the log, the offset, the ID, the content and the time in microseconds of rows, and other columns."""
    df, columns, _ = side
    id, time = null_text(), micros_of(df, columns.timestamp, rules.timezone)
    if columns.id is not None:
        id = id_identity(df, columns.id)
    log, off = F.when(id.isNotNull(), F.lit(1)), F.lit(None).cast("bigint")
    if by_position:
        log, off = placed_columns(df, columns)
    values = {"log": log, "off": off, "id": id, "content": _content(df, columns), "time": time}
    rows = df.select(*(value.alias(name) for name, value in values.items()), *others)
    if columns.id is None or columns.timestamp is not None:
        return rows
    return rows.withColumn("time", seconds_of(F.col("id")) * 1_000_000)


def _content(df: DataFrame, columns: Columns) -> Column:
    """Return the fingerprint of the content; NULL if it is not compared."""
    for name in columns.content:  # an error has this name, and not that of a place
        fingerprint_of([(F.col(quoted_name(name)), df.schema[name])])
    return content_of(df, columns) if columns.content else F.lit(None).cast("binary")


class _Lists:
    """The rows of each check of a comparison, as DataFrames."""

    def __init__(self, sides: tuple[Side, Side], differing: DataFrame, rules: Rules, by_position: bool) -> None:
        self._sent, self._table = sides
        self._differing, self._rules, self._by_position = differing, rules, by_position

    def __call__(self, check: str) -> DataFrame:
        """Return the rows of a check, in the order of their logs and offsets, or of their IDs."""
        fault = fault_of(check, self._by_position)
        key = ["log", "off" if self._by_position else "id"]
        if fault != CHANGED:
            return self._rows(self._sent if fault == LOST else self._table, fault).orderBy(*key).select("whole.*")
        first_first = Window.partitionBy(*key).orderBy("id", "content")
        one, other = (
            self._rows(side, CHANGED).select(
                *key, F.row_number().over(first_first).alias("number"), F.col("whole").alias(name)
            )
            for name, side in (("sent", self._sent), ("table", self._table))
        )
        columns = [
            F.col(f"{name}.{quoted_name(column)}").alias(f"{name}_{column}")
            for name, side in (("sent", self._sent), ("table", self._table))
            for column in side.table.columns
        ]
        return one.join(other, [*key, "number"], "full").orderBy(*key, "number").select(*columns)

    def _rows(self, side: Side, fault: int) -> DataFrame:
        """Return the rows of a side whose messages have a fault; ``whole`` has all columns of a row."""
        rows = messages(side, self._rules, F.struct("*").alias("whole"), by_position=self._by_position)
        key = ["log", "off" if self._by_position else "id"]
        return rows.join(self._differing.where(F.col("fault") == fault).select(*key), key, "left_semi")


# --- Digests ---


def digest(df: DataFrame, *, timezone: str | None = None, **columns: Unpack[ColumnNames]) -> DataFrame:
    """Return the digest of messages: per log and block, their number and the sums of their hashes.

    A block is 65,536 offsets. One aggregation in the JVM makes it, of a table or of a micro-batch. It has the rows of
    `msgid.audit.digest`. Store the digest of each day or batch once, such as with `write_once`, and pass the union of
    them to `compare`.

    Parameters
    ----------
    df : DataFrame
        Table, one row per message; no stream.
    timezone : str, optional
        Offset from UTC of times as text that do not name theirs.
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
    offset_of(named)
    hashed = F.xxhash64(F.concat(*_hashed(df, named))).alias("hash")
    rules = rules_in({"timezone": timezone})
    rows = messages(Side(df, named._replace(content=())), rules, hashed, by_position=True)
    text = statements("compare.sql")["digest"].format(**_HALVES, side="{side}")
    blocks = df.sparkSession.sql(text, side=rows).withColumnsRenamed({"log": "source", "n": "rows"})
    moments = {name: F.timestamp_micros(name) for name in ("first_time", "last_time")}
    return blocks.withColumns({"form": F.lit(form_of(named)), **moments}).select(*COLUMNS)


def _hashed(df: DataFrame, columns: Columns) -> list[Column]:
    """Return the bytes that the hash of a message has, as `msgid.audit` writes them."""
    values = [offset_column(df, offset_of(columns)).cast("string")]
    if columns.id is not None:
        values.append(id_identity(df, columns.id))
    for name in columns.content:
        check_content(name, kind_of(df, name), df.schema[name].dataType.simpleString())
        values.append(F.col(quoted_name(name)).cast("string"))
    contents = (
        F.concat(F.octet_length(value).cast("string").cast("binary"), F.lit(b":"), value.cast("binary"))
        for value in values
    )
    # Under `concatBinaryAsString`, Spark's `concat` of bytes is text.
    return [F.coalesce(one.cast("binary"), F.lit(b"-")) for one in contents]


def rows_in_blocks(side: Side, blocks: pa.Table) -> Side:
    """Return a side with the rows of some blocks.

    Conditions on the columns themselves let a source of files skip other logs and offsets.
    """
    df, columns = side.table, side.columns
    offset, logs = offset_of(columns), blocks["source"].unique().to_pylist()
    log, numbers = placed_columns(df, columns)
    marked = df.withColumns({_LOG: log, _BLOCK: numbers.bitwiseAND(-SIZE)})
    if len(logs) <= _MOST_LOGS:
        marked = marked.where(source_column(df, columns).isin(logs))
    if kind_of(df, offset) == "integer":
        ranges = (F.col(quoted_name(offset)).between(*ends) for ends in ranges_of(blocks["block"]))
        marked = marked.where(reduce(or_, ranges))
    pairs = list(zip(blocks["source"].to_pylist(), blocks["block"].to_pylist(), strict=True))
    asked = df.sparkSession.createDataFrame(pairs, f"{_LOG} string, {_BLOCK} bigint")
    return side._replace(table=marked.join(F.broadcast(asked), [_LOG, _BLOCK], "left_semi").drop(_LOG, _BLOCK))
