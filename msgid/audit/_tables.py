"""Audits of data in memory: an Arrow table, or IDs alone."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgid._known_tables import ids_inside
from msgid._moments import aware
from msgid._validate import check_installed, integer, quote
from msgid.audit._columns import checked_columns, content_codes, micros, offsets, plain_column, sources, with_lives
from msgid.audit._ids import Ids
from msgid.audit._rows import Places, Rows, facts_of_rows
from msgid.audit.definitions import CLOCK_JUMP, MAX_GAPS, jump_of, rules_of
from msgid.audit.report import report_of
from msgid.ids._bytes import check_several, identity, plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    import pyarrow as pa
    from numpy.typing import NDArray

    from msgid._known_tables import Columns
    from msgid.audit._logs import Moments
    from msgid.audit.definitions import Holes
    from msgid.audit.report import Report


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
    life: str | datetime | Sequence[datetime] | None = None,
    holes: Holes | None = None,
    without: Sequence[str] = (),
    not_before: datetime | None = None,
    clock_jump: timedelta | str = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
) -> Report:
    """Return the report of the lost, repeated and late messages in a table, by their IDs and positions.

    A table of this library's jobs, or of the connectors of Kafka and RocketMQ, needs no arguments: its columns are
    known. So are columns named as the arguments. A column that is not named is found by its name; an empty name, or an
    empty list, turns it off. Without ``offset``, IDs of the origin ``position`` give the positions.

    Args:
        table: Arrow table, one row per message; a DataFrame of pandas or polars; a dict of columns; a list of dicts,
            one per row; or a list, array or series of IDs.
        id: Column of IDs, as text or binary; None if the table has positions alone.
        source: Columns whose values, joined by ``/``, name the log. Without any, the table is one log.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times.
        landed: Column of the times at which the rows were written.
        content: Columns by which rows of one ID or offset are compared.
        parent: Column of the IDs from which derived IDs were made.
        life: Column that names the life of a log that was deleted and created again; or the times at which logs were
            created again, for which ``timestamp`` is needed. Each life is a log of its own.
        holes: Offsets that are missing without a loss. ``markers``: the topic has transactions, so a single offset may
            be a marker, and a longer gap may be an aborted transaction, which is a finding of severity ``info``.
            ``committed``: the same, but no transaction was aborted, so a longer gap is a loss. ``compacted``: any
            offset may be missing. Default: each missing offset is a loss.
        without: Names of checks that are not made.
        not_before: Earliest time of an ID that is not a finding, an aware datetime.
        clock_jump: Time between two IDs of a generator beyond which its clock has jumped forward, as a timedelta or as
            text such as ``"1 day"``.
        max_gaps: Number of missing ranges that the report lists; the findings count all.

    Returns:
        The report.

    Raises:
        TypeError: if ``table`` is not a table.
        ValueError: if the table does not have a column, or a column has the wrong type.

    >>> import pyarrow as pa
    >>> report = audit_table(pa.table({"offset": [0, 1, 2, 6, 7, 7]}), id=None, offset="offset")
    >>> print(report)  # doctest: +ELLIPSIS
    2 errors, 0 warnings, 0 infos in 6 rows
    severity  check               scope  count  example
    error     missing_offsets     log        3  3 to 5
    error     duplicate_messages  log        1  offset 7
    not checked: conflicting_messages (without content); conflicting_ids and 13 others (without IDs); ...
    >>> report.gaps
    [Gap(kind='offset', scope='log', first=3, last=5, count=3)]
    """
    check_installed("an audit in Python", "arrow", "numpy", "pyarrow")
    table = arrow_table(table)
    inside = ids_inside(table.column_names, id, source, offset, timestamp, content)
    if inside is not None:
        table = inside.audited_rows(table)
    columns = checked_columns(table.column_names, id, source, offset, timestamp, landed, content, parent, life)
    rules = rules_of(holes, without, not_before)
    earliest = None if not_before is None else int(aware("not_before", not_before).timestamp())
    jump = jump_of(clock_jump)
    max_gaps = integer("max_gaps", max_gaps, 0, 1_000_000)
    facts = facts_of_rows(rows_of(table, columns), columns, earliest, jump, max_gaps, rules.shortest)
    return report_of(facts, rules)


def arrow_table(table: Any) -> pa.Table:
    """Return a table of Arrow, pandas or polars, a dict of columns, or a list of rows or IDs, as an Arrow table."""
    import numpy as np
    import pyarrow as pa

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


def audit_ids(
    ids: Iterable[Any],
    *,
    without: Sequence[str] = (),
    not_before: datetime | None = None,
    clock_jump: timedelta | str = CLOCK_JUMP,
    max_gaps: int = MAX_GAPS,
) -> Report:
    """Return the report of missing, repeated and malformed IDs, without positions of messages.

    Args:
        ids: IDs as `msgid.parse` accepts them, and UUIDs: an iterable, a NumPy or Arrow array as for
            `msgid.parse_batch`, or a series of pandas or polars. NaN and masked values are NULL.
        without: Names of checks that are not made.
        not_before: Earliest time of an ID that is not a finding, an aware datetime.
        clock_jump: Time between two IDs of a generator beyond which its clock has jumped forward, as a timedelta or as
            text such as ``"1 day"``.
        max_gaps: Number of missing ranges that the report lists; the findings count all.

    Raises:
        TypeError: if ``ids`` is a single text or bytes.

    >>> from msgid import Generator
    >>> generator = Generator(node="56:f7:e7:1c:36:1b", pid=7, clock=lambda: 1_800_000_000, sequence=0)
    >>> ids = generator.generate_batch(10).hex()
    >>> audit_ids(ids[:4] + ids[6:]).gaps
    [Gap(kind='sequence', scope='56:f7:e7:1c:36:1b/7', first=4, last=5, count=2)]
    """
    check_installed("an audit in Python", "arrow", "numpy", "pyarrow")
    import pyarrow as pa

    table = pa.table({"id": id_column(ids)})
    return audit_table(table, without=without, not_before=not_before, clock_jump=clock_jump, max_gaps=max_gaps)


def _holds_ids(values: object) -> bool:
    """Return whether a sequence begins with a value of this library, which Arrow does not know."""
    first = next((value for value in values if value is not None), None) if isinstance(values, Sequence) else None
    return hasattr(first, "canonical")


def id_column(ids: Iterable[Any]) -> pa.Array | pa.ChunkedArray:
    """Return IDs in any container that `msgid.parse_batch` accepts as an Arrow column."""
    import numpy as np
    import pyarrow as pa

    check_several(ids)
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        return ids
    if isinstance(ids, np.ndarray):
        ids = _elements(ids)
    return pa.array(_of_one_type([None if _is_missing(id) else plain(id) for id in ids]))


def _elements(ids: NDArray[Any]) -> list[Any]:
    """Return the IDs of a NumPy array: text in ASCII as text, a row of bytes as bytes, and None if masked."""
    import numpy as np

    if isinstance(ids, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(ids).reshape(len(ids), math.prod(ids.shape[1:]))
        return [None if any(masked) else id for masked, id in zip(mask.tolist(), _elements(ids.data), strict=True)]
    if ids.dtype.kind == "S":
        return [id.decode("ascii", "backslashreplace") for id in ids.tolist()]
    return [bytes(id) for id in ids] if ids.ndim > 1 and ids.dtype == np.uint8 else list(ids)


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

    def moments(name: str | None, argument: str) -> Moments | None:
        return None if name is None else micros(argument, column(name))

    places, timestamp = None, moments(columns.timestamp, "timestamp")
    if columns.offset is not None:
        log, names = sources([column(name) for name in columns.source], table.num_rows, columns.prefix)
        life = None if columns.life is None else column(columns.life)
        log, names = with_lives(log, names, life, columns.lives, timestamp)
        places = Places(log, names, *offsets(column(columns.offset)))
    return Rows(
        table.num_rows,
        None if columns.id is None else Ids(column(columns.id), "id"),
        None if columns.parent is None else Ids(column(columns.parent), "parent"),
        content_codes([table[name] for name in columns.content]),
        timestamp,
        moments(columns.landed, "landed"),
        places,
    )
