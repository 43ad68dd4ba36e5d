"""Audit a DataFrame: `audit`."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegralType, StringType
from pyspark.util import inheritable_thread_target

from msgid import layout
from msgid._known_tables import ids_inside
from msgid._moments import check_unit
from msgid.audit._columns import check_joined, check_named_by, checked_columns
from msgid.audit._options import columns_in, rules_in
from msgid.audit._tables import facts_of_rows, rows_of
from msgid.audit.definitions import COUNTED
from msgid.audit.facts import NOTHING, Facts, merged, part_of
from msgid.audit.report import report_of
from spark_ext._arguments import check_dataframe, check_ids, check_name
from spark_ext._private import use_own_python
from spark_ext._settings import settings
from spark_ext._shipping import check_workers
from spark_ext.auditing._reductions import generator_facts, id_facts, log_facts, orphans
from spark_ext.auditing._values import Sizes, collected, keep, kind_of, text_of_ids
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.auditing.summaries import (
    counter_words,
    foreign_generators,
    id_summary,
    id_words,
    log_summary,
    position_words,
    unread_times,
    with_fields,
)  # fmt: skip
from spark_ext.columns._expressions import has_slash, quoted_name, type_of
from spark_ext.formats.message_formats import message_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import AuditOptions, Rules
    from msgid.audit.facts import Facts


def audit(df: DataFrame, **options: Unpack[AuditOptions]) -> AuditReport:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    A table that `messages` or a job has written needs no arguments, and neither do the rows of the connectors of Kafka
    and RocketMQ: their columns are known.

    A table of at most 50,000 rows is collected by one action and audited on the driver. The rows of a larger table are
    read once for the IDs and once for the positions, in the JVM, and reduced to words of 32 numbers and blocks of
    65,536. The rules of `msgid.audit` read the blocks, and the words of those blocks alone in which something is
    missing or out of order: on the driver, or in Python workers if there are many. With ``timestamp``, ``landed`` or
    ``content``, each message is compared by itself, which takes more time, and the times are read once more for their
    number. The driver collects a bounded number of rows.

    If an executor is lost, the audit ends with Spark's error, and can run again. If the session has a checkpoint
    folder, the words and blocks are written there, and the audit survives.

    Parameters
    ----------
    df : DataFrame
        Table, one row per message; no stream.
    **options
        The columns and the rules, as `msgid.audit.AuditOptions` explains. Known columns need no argument.

    Returns
    -------
    AuditReport
        The report: ``print`` shows its findings, and its ``to_html`` writes it as a page.

    Raises
    ------
    ValueError
        If the table does not have a column, a column has the wrong type, or ``df`` is a stream. Also if integers of
        ``timestamp`` are seconds.
    TypeError
        If ``df`` is not a DataFrame of Spark, the name of a column is not text, or an option has another name.

    Examples
    --------
    >>> rows = [("orders", offset) for offset in (0, 1, 2, 6, 7, 7)]
    >>> report = audit(spark.createDataFrame(rows, ["source", "offset"]))
    >>> print(report)  # doctest: +ELLIPSIS
    3 messages lost, 1 duplicated in 6 rows
    read again: orders 3 to 5
    not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
    severity  check               scope   count  example
    error     missing_offsets     orders      3  3 to 5
    error     duplicate_messages  orders      1  offset 7
    >>> report.gaps.show()
    +------+------+-----+----+-----+
    |  kind| scope|first|last|count|
    +------+------+-----+----+-----+
    |offset|orders|    3|   5|    3|
    +------+------+-----+----+-----+
    """
    check_dataframe(df, other="msgid.audit audits other tables and files")
    if df.isStreaming:
        raise ValueError("cannot audit a stream: audit the table that it writes")
    return audit_of(df, options, Sizes())


def audit_of(df: DataFrame, options: Mapping[str, Any], sizes: Sizes) -> AuditReport:
    """Return the report of a table; the sizes decide what the driver does by itself."""
    named, rules = columns_in("audit", options, is_audit=True), rules_in(options)
    df, columns = audited(df, named)
    check_workers(df.sparkSession)
    side = collected(df, columns, sizes)
    if side is None:
        # With long offsets, Spark refuses the text that the functions of the reductions return.
        with settings(df.sparkSession, {"spark.sql.execution.arrow.useLargeVarTypes": "false"}):
            facts = facts_of(df, columns, rules, sizes)
    else:
        facts = facts_of_rows(rows_of(*side), columns, rules)
    check_milliseconds(df, columns, facts)
    return AuditReport(df.sparkSession, report_of(facts, rules))


def audited(df: DataFrame, named: Mapping[str, Any]) -> tuple[DataFrame, Columns]:
    """Return the rows of a table and their columns; rows of a connector with their IDs, if another column has them.

    Args:
        df: The table.
        named: The arguments that name columns, all of them.
    """
    for argument, names in named.items():
        for name in names if isinstance(names, Collection) and not isinstance(names, str) else (names,):
            if name is not None:
                check_name(f"`{argument}`", name)
    use_own_python(df.sparkSession)
    inside = ids_inside(df.columns, named)
    df = df if inside is None else message_format(inside.format).audited_rows(df)
    columns = checked_columns(df.columns, named)
    for name in (*columns.source, *([] if columns.life is None else [columns.life])):
        check_named_by(name, kind_of(df, name), df.schema[name].dataType.simpleString())
    check_joined(has_slash(df, columns.source))
    for argument, column in (("id", columns.id), ("parent", columns.parent)):
        if column is not None:
            kind = df.schema[column].dataType
            check_ids(f"`{argument}`", column, kind)
            value = F.col(quoted_name(column))
            if not isinstance(kind, StringType):
                df = df.withColumn(column, text_of_ids(value) if isinstance(kind, BinaryType) else value.cast("string"))
    return df, columns


def check_milliseconds(df: DataFrame, columns: Columns, facts: Facts) -> None:
    """Raise ValueError if integers of the timestamp column, which are milliseconds, are seconds of our years."""
    if columns.timestamp is not None and isinstance(type_of(df, columns.timestamp), IntegralType):
        last = max((log.last_time.timestamp() for log in facts.logs if log.last_time is not None), default=0)
        check_unit("`timestamp`", int(last * 1_000), 1_000)


def facts_of(df: DataFrame, columns: Columns, rules: Rules, sizes: Sizes) -> Facts:
    """Return the facts of a large table.

    Args:
        df: The rows.
        columns: Their columns.
        rules: The rules of the audit.
        sizes: The sizes of the driver and of a task.
    """

    def of_ids() -> tuple[int, list[Facts]]:
        """Return the number of rows and the facts of the IDs, and of the logs if IDs give the positions."""
        ids = keep(with_fields(id_words(id_summary(df, columns, rules.earliest))))
        parts = id_facts(ids, df, columns, rules, sizes)
        kinds = list(chain.from_iterable(part.kinds for part in parts))
        origins = {origin for kind, origin, _ in kinds if kind == layout.KIND_V1}
        foreign = keep(foreign_generators(ids)) if origins & {"derived", "position"} else None
        foreign = None if foreign is None or foreign.isEmpty() else foreign
        if columns.parent is not None:
            parts.append(part_of(orphans(df, columns, foreign)))
        if origins & set(COUNTED) or foreign is not None:
            parts += generator_facts(counter_words(ids, foreign), rules, sizes)
        if columns.offset is None and "position" in origins:
            parts += log_facts(position_words(ids, foreign), columns, rules, df, sizes)
        return sum(n for _, _, n in kinds), parts

    def of_logs() -> tuple[int, int, list[Facts]]:
        """Return the number of rows, of those in no log, and the facts of the logs."""
        placed = keep(log_summary(df, columns))
        n = F.col("rows")
        (held,) = placed.agg(F.sum(n), F.sum(F.when(F.col("source").isNull(), n))).collect()
        return held[0] or 0, held[1] or 0, log_facts(placed, columns, rules, df, sizes)

    # Kept rows end the plan: with the plans of the rows in each, planning would take longer than the work.
    parts: list[Facts] = []
    rows = unplaced = 0
    # The two read the table each by itself. Side by side, one uses the cores while the other one is planned.
    with ThreadPoolExecutor(1) as pool:
        target = inheritable_thread_target(df.sparkSession)(of_logs)
        logs = None if columns.offset is None else pool.submit(target)
        if columns.id is not None:
            rows, parts = of_ids()
    if logs is not None:
        rows, unplaced, of_positions = logs.result()
        parts += of_positions
    untimed, unlanded = unread_times(df, columns)
    own = NOTHING._replace(rows=rows, unplaced=unplaced, untimed=untimed, unlanded=unlanded, columns=columns.given)
    return merged([*parts, own], rules.max_gaps)
