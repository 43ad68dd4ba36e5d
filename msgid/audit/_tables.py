"""Audits of data in memory: an Arrow table, or IDs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgid import layout
from msgid._validate import aware, integer
from msgid.audit._columns import check_installed, checked_columns, content_codes, micros, offsets, sources
from msgid.audit._ids import Ids, id_counts, kinds_of
from msgid.audit._logs import LogRows, log_facts
from msgid.audit._runs import GeneratorFacts, generator_facts
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS, MAX_ROWS, MAX_SCOPES
from msgid.audit.facts import Counted, Facts, GapFact, LogFact
from msgid.audit.report import report_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    import pyarrow as pa

    from msgid.audit._columns import Columns
    from msgid.audit._logs import Moments
    from msgid.audit.report import Report

__all__ = ["audit_ids", "audit_table", "bounded"]


def audit_table(
    table: pa.Table,
    *,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    landed: str | None = None,
    content: str | Sequence[str] | None = None,
    parent: str | None = None,
    not_before: datetime | None = None,
    clock_jump: int = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
) -> Report:
    """Return what the IDs and positions of a table say about its messages.

    A table of this library's jobs, or of the connectors of Kafka and RocketMQ, needs no arguments: its columns are
    known. Without ``offset``, IDs of the origin ``position`` give the positions.

    Args:
        table: Arrow table, one row per message.
        id: Column of IDs, as text or binary; None if the table has positions alone.
        source: Columns whose values, joined by ``/``, name the log. Default: the table is one log.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times.
        landed: Column of the times at which the rows were written.
        content: Columns by which rows of one ID or offset are compared.
        parent: Column of the IDs from which derived IDs were made.
        not_before: Earliest time of an ID that is not a finding, an aware datetime.
        clock_jump: Seconds between two IDs of a generator beyond which its clock has jumped forward.
        max_gaps: Number of missing ranges that the report lists; the findings count all.

    Returns:
        The report.

    Raises:
        ValueError: if the table does not have a column, or a column has the wrong type.

    >>> import pyarrow as pa
    >>> report = audit_table(pa.table({"offset": [0, 1, 2, 6, 7, 7]}), id=None, offset="offset")
    >>> print(report)
    2 errors, 0 warnings, 0 infos in 6 rows
    severity  check               scope  count  example
    error     missing_offsets     log        3  3 to 5
    error     duplicate_messages  log        1  offset 7
    >>> report.gaps
    [Gap(kind='offset', scope='log', first=3, last=5, count=3)]
    """
    check_installed()
    columns = checked_columns(table.column_names, id, source, offset, timestamp, landed, content, parent)
    earliest = None if not_before is None else int(aware("not_before", not_before).timestamp())
    clock_jump = integer("clock_jump", clock_jump, 1, layout.UINT32_MASK)
    max_gaps = integer("max_gaps", max_gaps, 0, 1_000_000)
    return report_of(_facts(table, columns, earliest, clock_jump, max_gaps))


def audit_ids(ids: Iterable[Any], **options: Any) -> Report:
    """Return what IDs alone say about their messages.

    Args:
        ids: IDs as text or bytes, or an Arrow array of them.
        options: ``not_before``, ``clock_jump`` and ``max_gaps`` of `audit_table`.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=7, clock=lambda: 1_800_000_000, sequence=0)
    >>> ids = generator.generate_batch(10).hex()
    >>> audit_ids(ids[:4] + ids[6:]).gaps
    [Gap(kind='sequence', scope='56:f7:e7:1c:36:1b/7', first=4, last=5, count=2)]
    """
    check_installed()
    import pyarrow as pa

    column = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(list(ids))
    return audit_table(pa.table({"id": column}), **options)


def _facts(table: pa.Table, columns: Columns, earliest: int | None, clock_jump: int, max_gaps: int) -> Facts:
    import numpy as np
    import pyarrow as pa

    def column(name: str) -> pa.ChunkedArray:
        return table[name]

    def moments(name: str | None, argument: str) -> Moments | None:
        return None if name is None else micros(argument, column(name))

    ids = Ids(column(columns.id) if columns.id is not None else pa.chunked_array([pa.nulls(table.num_rows)]))
    timestamp, landed = moments(columns.timestamp, "timestamp"), moments(columns.landed, "landed")
    content = content_codes([column(name) for name in columns.content])
    counted: list[Counted] = []
    made = GeneratorFacts([], [], [], [], [])
    if columns.id is not None:
        parents = None if columns.parent is None else Ids(column(columns.parent))
        counted += id_counts(ids, content, landed or timestamp, landed, parents, earliest)
        made = generator_facts(ids, clock_jump)
    of_id = (ids.unix * 1_000_000, ids.is_v1)
    if columns.offset is None:
        placed = ids.origins() == "position"
        node = ids.v1.node.astype(np.int64)
        nodes, codes = np.unique(node[placed], return_inverse=True)
        names = [layout.format_mac(int(one)) for one in nodes]
        log = np.full(len(ids), -1, np.int64)
        log[placed] = codes.reshape(-1)
        place = ids.v1.pid.astype(np.int64) << 32 | ids.v1.sequence.astype(np.int64)
        timestamp = landed = content = None
        unplaced = 0
    else:
        log, names = sources([column(name) for name in columns.source], table.num_rows, columns.prefix)
        place, valid = offsets(column(columns.offset))
        placed = valid & (log >= 0)
        unplaced = int((~placed).sum())
    shown = timestamp if timestamp is not None else of_id
    rows = LogRows(log, place, content, timestamp, landed, shown).take(placed)
    logs, gaps, found = log_facts(rows, names)
    kinds = kinds_of(ids) if columns.id is not None else []
    return bounded(
        table.num_rows, kinds, [*counted, *found, *made.counted], logs, made, [*gaps, *made.gaps], unplaced, columns,
        max_gaps,
    )  # fmt: skip


def bounded(
    rows: int,
    kinds: list[tuple[str, str | None, int]],
    counted: list[Counted],
    logs: list[LogFact],
    made: GeneratorFacts,
    gaps: list[GapFact],
    unplaced: int,
    columns: Columns,
    max_gaps: int,
) -> Facts:
    """Return the facts with their lists cut to the limits, the largest first, and the totals of all."""
    found = sorted((one for one in counted if one.count), key=lambda one: (one.check, -one.count, one.scope))
    totals: dict[str, tuple[int, int]] = {}
    listed = []
    for one in found:
        count, scopes = totals.get(one.check, (0, 0))
        totals[one.check] = count + one.count, scopes + 1
        if scopes < MAX_SCOPES:
            listed.append(one)
    faults = sorted(
        logs, key=lambda log: (-(log.missing + log.duplicates + log.conflicts + log.late), -log.rows, log[0])
    )
    runs = sorted(made.runs, key=lambda run: (-run.missing, -run.ids, run.node, run.pid, run.run))
    nodes = sorted(made.nodes, key=lambda node: (-node.generators, -node.ids, node.node))
    ranges = sorted(gaps, key=lambda gap: (gap.first - gap.last, gap.kind, gap.scope, gap.first))
    return Facts(
        rows, kinds[:MAX_ROWS], listed, totals, ranges[:max_gaps], len(ranges), faults[:MAX_ROWS], len(faults),
        runs[:MAX_ROWS], len(runs), nodes[:MAX_ROWS], len(nodes), made.rates, unplaced, columns.given,
    )  # fmt: skip
