"""Audit a DataFrame: `audit`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegralType, StringType

from msgid._known_tables import ids_inside
from msgid._moments import aware, check_unit
from msgid._validate import check_installed, integer
from msgid.audit._columns import checked_columns
from msgid.audit._sides import ARGUMENTS
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS, jump_of, rules_of
from msgid.audit.report import report_of
from spark_ext._arguments import check_dataframe, check_ids, check_name
from spark_ext._private import use_own_python
from spark_ext._shipping import check_workers
from spark_ext.auditing._collecting import Summaries, facts_of
from spark_ext.auditing._id_facts import parents_of
from spark_ext.auditing._small_table import small_facts
from spark_ext.auditing._values import text_of_ids
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.auditing.summaries import id_summary, log_summary, time_summary
from spark_ext.columns._expressions import quoted_name, type_of
from spark_ext.formats.message_formats import message_format

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from pyspark.sql import DataFrame

    from msgid._known_tables import Columns
    from msgid.audit.definitions import Holes
    from msgid.audit.facts import Facts


def audit(
    df: DataFrame,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    landed: str | None = None,
    content: str | Sequence[str] | None = None,
    parent: str | None = None,
    *,
    life: str | datetime | Sequence[datetime] | None = None,
    holes: Holes | None = None,
    without: Sequence[str] = (),
    not_before: datetime | None = None,
    clock_jump: timedelta | str = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
) -> AuditReport:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    A table that `messages` or a job has written needs no arguments, and neither do the rows of the connectors of Kafka
    and RocketMQ: their columns are known. Without ``offset``, IDs of the origin ``position`` give the positions.

    A table of at most 50,000 rows is collected by one action and audited on the driver. The rows of a larger table are
    read once for the IDs and once for the positions, in the JVM, and reduced to words of 32 numbers and blocks of
    65,536. The rules of `msgid.audit` read the blocks, and the words of those blocks alone in which something is
    missing or out of order: on the driver, or in Python workers if there are many. With ``timestamp``, ``landed`` or
    ``content``, each message is compared by itself, which takes more time, and the times are read once more for their
    number. The driver collects a bounded number of rows.

    If an executor is lost, the audit begins again, once, and then Spark computes lost parts again. So the table must
    not change during the audit.
    If the session has a checkpoint folder, the words and blocks are written there instead.

    Parameters
    ----------
    df : DataFrame
        Table, one row per message; no stream. Columns that are not named are found by their names, as for
        `msgid.audit.audit_table`; an empty name or list turns one off.
    id : str, optional
        Column of IDs, as text or binary; None if the table has positions alone.
    source : str or sequence of str, optional
        Columns whose values, joined by ``/``, name the log. Without any, the table is one log.
    offset : str, optional
        Column of offsets in the log.
    timestamp : str, optional
        Column of the messages' own times: timestamps, milliseconds since 1970, or text that names its offset from UTC.
    landed : str, optional
        Column of the times at which the rows were written.
    content : str or sequence of str, optional
        Columns by which rows of one ID or offset are compared.
    parent : str, optional
        Column of the IDs from which derived IDs were made.
    life : str or datetime.datetime or sequence of datetime.datetime, optional
        Column that names the life of a log that was deleted and created again; or the times at which logs were created
        again, for which ``timestamp`` is needed. Each life is a log of its own.
    holes : str, optional
        Offsets that are missing without a loss: ``markers``, ``committed`` or ``compacted``, as for
        `msgid.audit.audit_table`. Default: each missing offset is a loss.
    without : sequence of str
        Names of checks that are not made.
    not_before : datetime.datetime, optional
        Earliest time of an ID that is not a finding; with a time zone.
    clock_jump : datetime.timedelta or str
        Time between two IDs of a generator beyond which its clock has jumped forward. Default: 1 day.
    max_gaps : int
        Number of missing ranges that the report lists; the findings count all.

    Returns
    -------
    AuditReport
        The report: ``print`` shows its findings, `AuditReport.to_html` writes it as a page.

    Raises
    ------
    ValueError
        If the table does not have a column, a column has the wrong type, or ``df`` is a stream. Also if integers of
        ``timestamp`` are seconds.
    TypeError
        If ``df`` is not a DataFrame of Spark, or the name of a column is not text.

    Examples
    --------
    >>> rows = [("orders", offset) for offset in (0, 1, 2, 6, 7, 7)]
    >>> report = audit(spark.createDataFrame(rows, ["source", "offset"]), None, "source", "offset")
    >>> print(report)  # doctest: +ELLIPSIS
    2 errors, 0 warnings, 0 infos in 6 rows
    severity  check               scope   count  example
    error     missing_offsets     orders      3  3 to 5
    error     duplicate_messages  orders      1  offset 7
    not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
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
    check_installed("an audit on Spark", "spark", "numpy", "pyarrow")
    named: dict[str, Any] = dict(zip(ARGUMENTS, (id, source, offset, timestamp, content, life), strict=True))
    df, columns = audited(df, **named, landed=landed, parent=parent)
    rules = rules_of(holes, without, not_before)
    jump = jump_of(clock_jump)
    most = integer("max_gaps", max_gaps, 0, 1_000_000)
    earliest = None if not_before is None else int(aware("not_before", not_before).timestamp())
    check_workers(df.sparkSession)
    facts = small_facts(df, columns, earliest, jump, most, rules.shortest)
    if facts is None:
        facts = facts_of(summaries_of(df, columns, earliest), columns, jump, most, df, shortest=rules.shortest)
    check_milliseconds(df, columns, facts)
    return AuditReport(df.sparkSession, report_of(facts, rules))


def audited(df: DataFrame, **named: Any) -> tuple[DataFrame, Columns]:
    """Return the rows of a table and their columns; rows of a connector with their IDs, if another column has them.

    Args:
        df: The table.
        named: The arguments of `checked_columns` that name columns, all of them.
    """
    for argument, names in named.items():
        if argument == "life":
            continue
        for name in names if isinstance(names, Collection) and not isinstance(names, str) else (names,):
            if name is not None:
                check_name(f"`{argument}`", name)
    use_own_python(df.sparkSession)
    inside = ids_inside(df.columns, *(named[argument] for argument in ARGUMENTS if argument != "life"))
    df = df if inside is None else message_format(inside.format).audited_rows(df)
    columns = checked_columns(df.columns, **named)
    for argument, column in (("id", columns.id), ("parent", columns.parent)):
        if column is not None:
            kind = df.schema[df.columns.index(column)].dataType
            check_ids(f"`{argument}`", column, kind)
            value = F.col(quoted_name(column))
            if not isinstance(kind, StringType):
                df = df.withColumn(column, text_of_ids(value) if isinstance(kind, BinaryType) else value.cast("string"))
    return df, columns


def check_milliseconds(df: DataFrame, columns: Columns, facts: Facts) -> None:
    """Raise ValueError if integers of the timestamp column, which are milliseconds, are seconds of our years."""
    if columns.timestamp is not None and isinstance(type_of(df, columns.timestamp), IntegralType):
        last = max((log.last_time for log in facts.logs if log.last_time is not None), default=0) // 1_000
        check_unit("`timestamp`", last, 1_000)


def summaries_of(df: DataFrame, columns: Columns, earliest: int | None) -> Summaries:
    """Return the summaries of the rows of a table; ``earliest`` is the first Unix second of an ID, or None."""
    return Summaries(
        None if columns.id is None else id_summary(df, columns, earliest),
        None if columns.offset is None else log_summary(df, columns),
        None if columns.id is None or columns.parent is None else parents_of(df, columns),
        time_summary(df, columns),
    )
