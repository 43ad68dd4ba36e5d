"""Audits of data in memory: an Arrow table, or IDs alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from msgid import layout
from msgid._validate import quote
from msgid.audit._columns import NEVER, audited, content_codes, micros, offsets, plain_column, sources
from msgid.audit._ids import Ids, id_facts
from msgid.audit._logs import LogRows, log_facts
from msgid.audit._options import columns_in, rules_in
from msgid.audit._runs import generator_facts
from msgid.audit.facts import NOTHING, Facts, merged
from msgid.audit.report import report_of
from msgid.ids._bytes import check_several, identity, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import AuditOptions, Rules
    from msgid.audit.report import Report


def audit_table(table: Any, **options: Unpack[AuditOptions]) -> Report:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    Args:
        table: Arrow table, one row per message; a DataFrame of pandas or polars; a dict of columns; a list of dicts,
            one per row; or a list, array or series of IDs.
        **options: The columns and the rules, as `AuditOptions` explains. Known columns need no argument.

    Returns:
        The report.

    Raises:
        TypeError: if ``table`` is not a table, or an option has another name.
        ValueError: if the table does not have a column, or a column has the wrong type.

    >>> import pyarrow as pa
    >>> report = audit_table(pa.table({"offset": [0, 1, 2, 6, 7, 7]}), id=None, offset="offset")
    >>> print(report)  # doctest: +ELLIPSIS
    3 messages lost, 1 duplicated in 6 rows
    re-read these ranges: log 3 to 5
    not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
    severity  check               scope  count  example
    error     missing_offsets     log        3  3 to 5
    error     duplicate_messages  log        1  offset 7
    >>> report.gaps
    [Gap(kind='offset', scope='log', first=3, last=5, count=3)]
    """
    named, rules = columns_in("audit_table", options, is_audit=True), rules_in(options)
    table, columns = audited(arrow_table(table), named)
    return report_of(facts_of_rows(rows_of(table, columns), columns, rules), rules)


def arrow_table(table: Any) -> pa.Table:
    """Return a table of Arrow, pandas or polars, a dict of columns, or a list of rows or IDs, as an Arrow table."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table({name: id_column(values) if _holds_ids(values) else values for name, values in table.items()})
    several = isinstance(table, pa.Array | pa.ChunkedArray | np.ndarray | Sequence)
    several = several and not isinstance(table, str | bytes)
    if several and len(table) and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return arrow_table({name: [row.get(name) for row in table] for name in names})
    if hasattr(table, "__arrow_c_stream__") and hasattr(table, "columns"):  # not a series
        return pa.table(table)
    if several or (hasattr(table, "to_numpy") and hasattr(table, "name")):
        return pa.table({"id": id_column(table)})
    hint = "; audit_file reads a file" if isinstance(table, str | os.PathLike) else ""
    raise TypeError(f"table must be a table of Arrow, pandas or polars, got {quote(table)}{hint}")


def audit_ids(ids: Iterable[Any], **options: Unpack[AuditOptions]) -> Report:
    """Return the report of missing, repeated and malformed IDs, without positions of messages.

    Args:
        ids: IDs as `msgid.parse` accepts them, and UUIDs: an iterable, a NumPy or Arrow array as for
            `msgid.parse_batch`, or a series of pandas or polars. NaN and masked values are NULL.
        **options: The rules, as `AuditOptions` explains.

    Raises:
        TypeError: if ``ids`` is a single text or bytes.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=7, clock=lambda: 1_800_000_000, sequence=0)
    >>> ids = generator.generate_batch(10).hex()
    >>> audit_ids(ids[:4] + ids[6:]).gaps
    [Gap(kind='sequence', scope='56:f7:e7:1c:36:1b/7', first=4, last=5, count=2)]
    """
    return audit_table(pa.table({"id": id_column(ids)}), **options)


def _holds_ids(values: object) -> bool:
    """Return whether a sequence begins with a value of this library, which Arrow does not know."""
    first = next((value for value in values if value is not None), None) if isinstance(values, Sequence) else None
    return hasattr(first, "canonical")


def id_column(ids: Iterable[Any]) -> pa.Array | pa.ChunkedArray:
    """Return IDs in any container that `msgid.parse_batch` accepts as an Arrow column."""
    check_several(ids)
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return ids
    if isinstance(ids, np.ndarray):
        values = ids.tolist()  # None if masked; a row of bytes is a list of them
        ids = [None if None in row else bytes(row) for row in values] if ids.ndim > 1 else values
    return pa.array(_of_one_type([None if _is_missing(id) else plain(id) for id in ids]))


def _is_missing(id: object) -> bool:
    """Return whether a value stands for a missing one: None, or NaN, NaT or NA of pandas."""
    return id is None or (isinstance(id, float) and id != id) or type(id).__name__ in ("NAType", "NaTType")  # noqa: PLR0124


def _of_one_type(ids: list[object]) -> list[object]:
    """Return IDs as Arrow takes them: bytes among texts become their identity, and other values their text."""
    types = {type(id) for id in ids if id is not None}
    if len(types) <= 1 and types <= {str, bytes}:
        return ids
    return [identity(id) if isinstance(id, bytes) and id else None if id is None else str(id) for id in ids]


def rows_of(table: pa.Table, columns: Columns) -> Rows:
    """Return the rows of an Arrow table as an audit compares them."""

    def column(name: str) -> pa.ChunkedArray:
        return plain_column(table[name])

    def moments(argument: str, name: str | None) -> NDArray[np.int64]:
        return np.full(table.num_rows, NEVER) if name is None else micros(argument, column(name))

    places, timestamp = None, moments("timestamp", columns.timestamp)
    if columns.offset is not None:
        places = Places(*sources(table, columns), offsets(column(columns.offset)))
    ids = None if columns.id is None else Ids(column(columns.id), "id")
    return Rows(
        table.num_rows,
        ids,
        None if columns.parent is None else Ids(column(columns.parent), "parent"),
        content_codes([table[name] for name in columns.content], table.num_rows),
        timestamp,
        moments("landed", columns.landed),
        timestamp if columns.timestamp or ids is None else ids.times,
        places,
    )


# --- The facts of rows in memory, which a small table on Spark has too ---


class Places(NamedTuple):
    """The places of rows in their logs.

    Attributes:
        log: The place of the row's log in ``names``; -1 if the row does not have a log.
        names: The names of the logs, sorted.
        offset: The offset of each row; -1 if the row does not have one.
    """

    log: NDArray[np.int64]
    names: list[str]
    offset: NDArray[np.int64]


class Rows(NamedTuple):
    """The rows of a table as arrays; None for IDs, parents and places that the table does not have.

    Moments are microseconds since 1970, or `NEVER`. ``times`` are the own times of the rows, or else those of the IDs.
    """

    number: int
    ids: Ids | None
    parents: Ids | None
    content: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    landed: NDArray[np.int64]
    times: NDArray[np.int64]
    places: Places | None


def facts_of_rows(rows: Rows, columns: Columns, rules: Rules) -> Facts:
    """Return the facts of the rows of a table with some columns."""
    ids, content, timestamp, landed = rows.ids, rows.content, rows.timestamp, rows.landed
    untimed = int((timestamp == NEVER).sum()) if columns.timestamp else 0
    unlanded = int((landed == NEVER).sum()) if columns.landed else 0
    parts = [NOTHING._replace(rows=rows.number, untimed=untimed, unlanded=unlanded, columns=columns.given)]
    if ids is not None:
        near = landed if columns.landed else timestamp
        parts += id_facts(ids, content, near, landed, rows.parents, rules.earliest)
        parts.append(generator_facts(ids, rules))
    if rows.places is not None:
        log, names, offset = rows.places
        placed = (log >= 0) & (offset >= 0)
        in_logs = LogRows(log, offset, content, timestamp, landed, rows.times).take(placed)
        parts.append(log_facts(in_logs, names, rules)._replace(unplaced=int((~placed).sum())))
    elif ids is not None:
        log, names, offset = _positions(ids)
        never = np.full(len(log), NEVER)
        parts.append(log_facts(LogRows(log, offset, 0 * log, never, never, ids.times).take(log >= 0), names, rules))
    return merged(parts, rules.max_gaps)


def _positions(ids: Ids) -> Places:
    """Return the places that IDs name, which are positions in a log."""
    placed = (ids.origins() == "position") & ~ids.counted
    node = ids.v1.node.astype(np.int64)
    nodes, codes = np.unique(node[placed], return_inverse=True)
    log = np.full(len(ids), -1, np.int64)
    log[placed] = codes.reshape(-1)
    offset = ids.v1.pid.astype(np.int64) << 32 | ids.v1.sequence.astype(np.int64)
    return Places(log, [layout.format_mac(int(one)) for one in nodes], offset)
