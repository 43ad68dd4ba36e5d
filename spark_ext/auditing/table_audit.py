"""Audit a DataFrame: `audit`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from msgid.audit.inputs import check_joined, check_named_by, checked_columns
from msgid.audit.known_columns import ids_inside
from msgid.audit.options import columns_in, rules_in
from msgid.audit.reduction import facts_of
from msgid.audit.report import report_of
from spark_ext._arguments import check_dataframe, check_name
from spark_ext._private import use_own_python
from spark_ext._shipping import check_workers
from spark_ext.auditing._engine import SparkEngine
from spark_ext.auditing._lists import Lists
from spark_ext.auditing._roles import Roles, check_moments, kind_of
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.columns.column_types import has_slash
from spark_ext.columns.identity import check_ids
from spark_ext.formats.message_formats import message_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from typing_extensions import Unpack

    from msgid.audit.facts import Facts
    from msgid.audit.options import AuditOptions
    from msgid.audit.reduction import Reduction, Relations
    from msgid.shared.known_tables import Columns


def audit(df: DataFrame, **options: Unpack[AuditOptions]) -> AuditReport:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    A table that `messages` or a job has written needs no arguments, and neither do the rows of the connectors of Kafka
    and RocketMQ: their columns are known.

    Spark runs the statements that `msgid.audit` runs with DuckDB. Most of the statements read at most 100,000 rows, and
    run in DuckDB on the driver. The JVM reads the rows once for the IDs and a few times for the positions, and repeated
    messages once more, with their contents. Python workers read the IDs of generators, 32 in a row, and values that are
    not IDs. The driver collects a bounded number of rows. ``rows_of`` of the report returns all rows of a check as a
    DataFrame.

    If an executor is lost, the audit ends with Spark's error, and can run again. If the session has a checkpoint
    folder, intermediate rows are written there, and the audit survives.

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
        ``timestamp`` are seconds, or if no time names its offset from UTC.
    TypeError
        If ``df`` is not a DataFrame of Spark, the name of a column is not text, or an option has another name.

    Examples
    --------
    >>> rows = [("orders", offset) for offset in (0, 1, 2, 6, 7, 7)]
    >>> report = audit(spark.createDataFrame(rows, ["source", "offset"]))
    >>> print(report)  # doctest: +ELLIPSIS
    3 messages lost, 1 duplicated in 6 rows
    re-read these ranges: orders 3 to 5
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
    named, rules = columns_in("audit", options, is_audit=True), rules_in(options)
    df, columns = audited(df, named)
    check_workers(df.sparkSession)
    engine = SparkEngine(df.sparkSession, rules.max_gaps)
    roles = Roles(df, columns, rules)
    relations = roles.relations(engine)
    facts, reduction = facts_of(engine, relations, rules, columns.given)
    facts = _with_moments(engine, df, columns, facts, relations, reduction)
    report = report_of(facts, rules)
    report._rows = Lists(engine, roles, reduction, rules, report.findings)
    return AuditReport(df.sparkSession, report)


def _with_moments(
    engine: SparkEngine, df: DataFrame, columns: Columns, facts: Facts, relations: Relations, reduction: Reduction
) -> Facts:
    """Return the facts with the number of rows without a moment.

    Raises
    ------
    ValueError
        If the unit or the zone of a column is wrong.
    """
    given = {"timestamp": columns.timestamp, "landed": columns.landed}
    if not any(given.values()):
        return facts
    numbers = "count(*), count(sent), count(landed), max(sent)", relations.base
    if columns.offset is not None:
        numbers = "sum(n), sum(timed), sum(dated), max(last_time)", reduction.relation("blocks")
    ((rows, timed, landed, last),) = engine.rows("SELECT {} FROM {}".format(*numbers))
    for (argument, name), read in zip(given.items(), (timed, landed), strict=True):
        if name is not None and rows:
            check_moments(df, argument, name, last if argument == "timestamp" else None, unread=not read)
    untimed, unlanded = (
        rows - read if rows and name is not None else 0
        for name, read in zip(given.values(), (timed, landed), strict=True)
    )
    return facts._replace(untimed=untimed, unlanded=unlanded)


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
    for name in (*columns.source, *([] if columns.incarnation is None else [columns.incarnation])):
        check_named_by(name, kind_of(df, name), df.schema[name].dataType.simpleString())
    check_joined(has_slash(df, columns.source))
    for argument, column in (("id", columns.id), ("parent", columns.parent)):
        if column is not None:
            check_ids(df, argument, column)
    return df, columns
