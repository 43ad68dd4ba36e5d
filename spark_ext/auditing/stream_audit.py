"""Audit a stream: `audit_batches` updates a report from stored summaries of the micro-batches."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgid import layout
from msgid._moments import aware
from msgid._validate import check_installed, integer
from msgid.audit._sides import ARGUMENTS
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS, jump_of, rules_of
from msgid.audit.report import report_of
from spark_ext._filesystem import filesystem
from spark_ext.auditing._collecting import Summaries, facts_of
from spark_ext.auditing.digests import digest
from spark_ext.auditing.spark_report import AuditReport
from spark_ext.auditing.table_audit import audited, check_milliseconds, summaries_of
from spark_ext.tables._writers import writer_of
from spark_ext.tables.sinks import read_table, write_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from pyspark.sql import DataFrame

    from msgid.audit.definitions import Holes

_STORED: Final = ("ids", "logs", "parents", "times")
"""The summaries of a batch that are tables, in the order of `Summaries`."""


def audit_batches(
    path: str,
    report: Callable[[AuditReport], None],
    *,
    app_id: str | None = None,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    landed: str | None = None,
    content: str | Sequence[str] | None = None,
    parent: str | None = None,
    life: str | datetime | Sequence[datetime] | None = None,
    not_before: datetime | None = None,
    clock_jump: timedelta | str = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
    holes: Holes | None = None,
    without: Sequence[str] = (),
    last: int | None = None,
    digests: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that audits all rows of a stream so far, after each micro-batch.

    The rows of a batch are reduced to a summary, which is stored once, however often the batch is replayed. The report
    is made from the stored summaries: earlier rows are not read again. A summary has one row per 32 neighbouring IDs
    or offsets; with ``timestamp``, ``landed`` or ``content`` one row per message.

    Without ``last``, the summaries are kept forever, and each report reads all of them. Its time and the size of
    ``path`` grow with the stream, so pass ``last`` for a stream that does not end. The report then covers the latest
    batches alone and takes as long after a year as after a day; older summaries are deleted. The price of ``last``: the
    report does not see a repeated message or a parent whose first row is in an older batch, and a gap disappears from
    the report when the batches around it are too old.

    Parameters
    ----------
    path : str
        Folder of the summaries: Parquet tables ``ids``, ``logs``, ``parents`` and ``times``.
    report : callable
        Called with the `AuditReport` of all rows so far, after each batch.
    app_id : str, optional
        Name of the writer, as for `write_once`; required over Spark Connect.
    id, source, offset, timestamp, landed, content, parent, life : str, optional
        Columns, as for `audit`. They must be the same for all batches. A parent may be in any batch: until it arrives,
        its derived IDs are orphans in the report.
    not_before : datetime.datetime, optional
        As for `audit`.
    clock_jump : datetime.timedelta or str
        As for `audit`.
    max_gaps : int
        As for `audit`.
    holes : str, optional
        As for `audit`.
    without : sequence of str
        As for `audit`.
    last : int, optional
        Number of latest batches that the report covers, and whose summaries are kept. Default: all.
    digests : str, optional
        Folder in which the digest of each batch is kept, for `compare`: a table of `write_once`, which ``last`` does
        not shorten. `read_table` returns it.

    Returns
    -------
    callable
        A function of a micro-batch and its number.

    Raises
    ------
    ValueError
        If an argument is not allowed.

    Examples
    --------
    >>> import tempfile
    >>> def show(report):
    ...     print(report.local.summary)
    >>> update = audit_batches(tempfile.mkdtemp(), show, app_id="orders", id=None, offset="offset")
    >>> update(spark.createDataFrame([(0,), (1,)], ["offset"]), 0)
    0 errors, 0 warnings, 0 infos in 2 rows
    >>> update(spark.createDataFrame([(4,), (1,)], ["offset"]), 1)
    2 errors, 0 warnings, 0 infos in 4 rows

    In a query:

    >>> update = audit_batches("/data/audit", lambda report: report.to_html("/data/audit.html"))
    >>> query = stream.writeStream.foreachBatch(update)  # doctest: +SKIP
    """
    check_installed("an audit on Spark", "spark", "numpy", "pyarrow")
    jump = jump_of(clock_jump)
    most = integer("max_gaps", max_gaps, 0, 1_000_000)
    rules = rules_of(holes, without, not_before)
    kept = None if last is None else integer("last", last, 1, layout.UINT32_MASK)
    earliest = None if not_before is None else int(aware("not_before", not_before).timestamp())

    named: dict[str, Any] = dict(zip(ARGUMENTS, (id, source, offset, timestamp, content, life), strict=True))

    def update(batch: DataFrame, number: int) -> None:
        batch, chosen = audited(batch, **named, landed=landed, parent=parent)
        new = summaries_of(batch, chosen, earliest)
        if digests is not None:
            made = digest(batch, **named)
            write_once(made, number, digests, app_id=app_id)
        stored = {}
        for name in _STORED:
            summary: DataFrame | None = getattr(new, name)
            if summary is not None:
                write_once(summary, number, f"{path}/{name}", app_id=app_id)
                held = read_table(batch.sparkSession, f"{path}/{name}")
                recent = held if kept is None else held.where(held["batch"] > number - kept)
                stored[name] = recent.select(*summary.columns)
        ids, logs, parents, times = map(stored.get, _STORED)
        merged = Summaries(ids, logs, parents, times, new.is_binary)
        facts = facts_of(merged, chosen, jump, most, None, merge=True, shortest=rules.shortest)
        check_milliseconds(batch, chosen, facts)
        report(AuditReport(batch.sparkSession, report_of(facts, rules)))
        if kept is not None:
            for name in stored:
                _forget(f"{path}/{name}", writer_of(batch, app_id).name, number - kept)

    return update


def _forget(path: str, writer: str, number: int) -> None:
    """Delete the summary of a batch, if it is there."""
    files, base = filesystem(path)
    with suppress(FileNotFoundError):
        files.delete_dir(f"{base}/writer={writer}/batch={number}")
