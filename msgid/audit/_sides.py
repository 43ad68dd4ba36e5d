"""The sides of a comparison: `compare` reads what was sent and what landed, and names the messages that differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._known_tables import ids_inside
from msgid._moments import UNIX_EPOCH
from msgid._validate import check_installed, integer, quote
from msgid.audit._columns import checked_columns, content_codes
from msgid.audit._comparing import codes_of, counted, differing, joint_keys, listed
from msgid.audit._inputs import read_file
from msgid.audit._tables import arrow_table, id_column, rows_of
from msgid.audit.definitions import MAX_MESSAGES, TABLE
from msgid.audit.report import comparison_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from msgid._known_tables import Columns
    from msgid.audit._ids import Ids
    from msgid.audit._rows import Rows
    from msgid.audit.report import Report

ARGUMENTS: Final = ("id", "source", "offset", "timestamp", "content")


def compare(
    sent: Any,
    table: Any,
    *,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    content: str | Sequence[str] | None = None,
    sent_columns: Mapping[str, Any] | None = None,
    max_messages: int = MAX_MESSAGES,
) -> Report:
    """Return the report of the messages that were sent and did not land in a table, by their positions or IDs.

    If both sides have positions, messages are matched by them, and an ID that differs is a changed message. Otherwise
    they are matched by the value of their IDs, whatever the spelling.

    Args:
        sent: The messages that a producer had acknowledged, or all messages of a queue: a path as for `audit_file`; a
            table as for `audit_table`; or an iterable of IDs, of offsets, of tuples of the parts of the log's name and
            the offset, or of objects with ``topic``, ``partition`` and ``offset``.
        table: The landed messages, in the same forms.
        id: Column of IDs, as for `audit_table`.
        source: Columns whose values, joined by ``/``, name the log.
        offset: Column of offsets in the log.
        timestamp: Column of the messages' own times, for ``complete_until``. Default: the times of the IDs.
        content: Columns by which messages are compared that are on both sides.
        sent_columns: The names of these columns in ``sent``, by argument. Default: the same names, as far as ``sent``
            has them.
        max_messages: Number of messages that the report lists in ``differences``; the findings count all.

    Returns:
        The report. ``lost_messages``, ``changed_messages`` and repeated messages are errors, and ``extra_messages``
        have the severity ``info``, because ``sent`` may be a part of what was sent.

    Raises:
        FileNotFoundError: if a path does not exist.
        TypeError: if a side is not a path, a table or an iterable.
        ValueError: if a column is missing, or the sides cannot be matched.

    >>> sent = [("orders", 0, offset) for offset in range(5, 9)]
    >>> landed = {"topic": ["orders"] * 3, "partition": [0] * 3, "offset": [5, 7, 8]}
    >>> print(compare(sent, landed))
    1 error, 0 warnings, 0 infos in 3 rows, compared with 4 sent
    severity  check          scope                 count  example
    error     lost_messages  kafka:kafka/orders/0      1  offset 6
    >>> compare(["0156F7E71C361B21BC024CCDBE00000007"], ["0156f7e71c361b21bc024ccdbe00000007"]).findings
    []
    """
    check_installed("a comparison in Python", "arrow", "numpy", "pyarrow")
    most = integer("max_messages", max_messages, 0, 10_000_000)
    named = dict(zip(ARGUMENTS, (id, source, offset, timestamp, content), strict=True))
    held = _read("table", table)
    here = _side("table", held, dict(named))
    given = _read("sent", sent)
    there = _side("sent", given, names_in_sent(given.table.column_names, named, sent_columns))
    if given.is_listed and here.columns.prefix and not there.columns.prefix:
        there = there._replace(columns=there.columns._replace(prefix=here.columns.prefix))
    return report_of_sides(there, here, most)


class _Read(NamedTuple):
    """A side as a table; positions that were listed take the prefix of the other side's logs."""

    table: pa.Table
    is_listed: bool


class Side(NamedTuple):
    """The rows of a side and their columns."""

    table: pa.Table
    columns: Columns


def names_in_sent(
    names: Sequence[str], named: Mapping[str, Any], sent_columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments that name columns for the side of ``sent``.

    Args:
        names: The columns of ``sent``.
        named: The arguments for the table.
        sent_columns: The arguments of the caller for ``sent``, or None.
    """
    if sent_columns is None:

        def kept(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value if value in names else None
            return [name for name in value if name in names] or None

        found = {argument: kept(value) for argument, value in named.items()}
        if found["offset"] is None or (
            named["source"] is not None and kept(named["source"]) != _plain(named["source"])
        ):
            found["source"] = found["offset"] = None
        return {**found, "id": found["id"] or "id"}
    wrong = sorted(set(sent_columns) - set(ARGUMENTS))
    if wrong:
        raise ValueError(f"sent_columns must name {', '.join(ARGUMENTS)}, got {quote(wrong[0])}")
    return {**dict.fromkeys(ARGUMENTS), "id": "id", **sent_columns}


def _plain(names: str | Sequence[str]) -> str | list[str]:
    return names if isinstance(names, str) else list(names)


def _read(which: str, value: Any) -> _Read:
    """Return a side as a table: of a path, a table, or an iterable of IDs or positions."""
    import pyarrow as pa

    if isinstance(value, str | os.PathLike):
        return _Read(read_file(value)[0], is_listed=False)
    if isinstance(value, pa.Table | Mapping) or hasattr(value, "__dataframe__"):
        return _Read(arrow_table(value), is_listed=False)
    if isinstance(value, bytes | bytearray | memoryview) or not hasattr(value, "__iter__"):
        raise TypeError(f"{which} must be a path, a table or an iterable of IDs or positions, got {quote(value)}")
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return _Read(pa.table({"offset" if pa.types.is_integer(value.type) else "value": value}), is_listed=True)
    if type(value).__module__.partition(".")[0] == "numpy" and (value.dtype.kind not in "iu" or value.ndim > 1):
        return _Read(pa.table({"value": id_column(value)}), is_listed=True)
    items = list(value)
    if items and all(map(_is_offset, items)):
        return _Read(pa.table({"offset": [int(item) for item in items]}), is_listed=True)
    if not items:  # of either kind
        return _Read(pa.table({"id": pa.array([], pa.string()), "offset": pa.array([], pa.int64())}), is_listed=True)
    positions = [_position(item) for item in items]
    if not any(positions):
        return _Read(pa.table({"value": id_column(items)}), is_listed=True)
    if not all(positions):
        wrong = quote(items[positions.index(None)])
        raise TypeError(f"{which} must have IDs alone or positions alone, got {wrong} among positions")
    columns = list(zip(*(pair for pair in positions if pair is not None), strict=True))
    return _Read(pa.table({"source": pa.array(columns[0]), "offset": pa.array(columns[1])}), is_listed=True)


def _is_offset(item: object) -> bool:
    return isinstance(item, Integral) and not isinstance(item, bool)


def _position(item: Any) -> tuple[str, int] | None:
    """Return the log and the offset of a position; None for any other value."""
    if all(hasattr(item, name) and not callable(getattr(item, name)) for name in ("topic", "partition", "offset")):
        item = (item.topic, item.partition, item.offset)
    is_pair = isinstance(item, tuple | list) and len(item) > 1 and _is_offset(item[-1])
    return ("/".join(map(str, item[:-1])), int(item[-1])) if is_pair else None


def _side(which: str, read: _Read, named: dict[str, Any]) -> Side:
    """Return a side with its columns."""
    table = read.table
    if read.is_listed:
        named = dict.fromkeys(ARGUMENTS)
        if "offset" in table.column_names:
            named |= {"offset": "offset", "id": "id", "source": "source" if "source" in table.column_names else None}
    if table.column_names == ["value"]:
        named["id"] = "value"
    inside = ids_inside(table.column_names, *(named[name] for name in ARGUMENTS))
    if inside is not None:
        table = inside.audited_rows(table)
    try:
        columns = checked_columns(table.column_names, **named, landed=None, parent=None)
    except ValueError as error:
        raise ValueError(f"cannot compare {which}: {error}") from None
    return Side(table, columns)


def is_by_position(sent: Columns, table: Columns) -> bool:
    """Return whether messages are matched by their positions, or by their IDs.

    Raises:
        ValueError: if both sides have neither.
    """
    if sent.offset is not None and table.offset is not None:
        return True
    if sent.id is None or table.id is None:
        has = {False: "positions", True: "IDs"}
        raise ValueError(
            "cannot compare sent with the table: both must have positions, or both must have IDs, got "
            f"{has[sent.id is not None]} and {has[table.id is not None]}"
        )
    return False


def report_of_sides(sent: Side, table: Side, most: int) -> Report:
    """Return the report of the messages of two sides.

    Args:
        sent: The side of the queue or the producer.
        table: The side of the landed messages.
        most: Number of messages to list.
    """
    import numpy as np

    by_position = is_by_position(sent.columns, table.columns)
    rows = [rows_of(side.table, side.columns._replace(content=())) for side in (sent, table)]
    landed = np.repeat([False, True], [one.number for one in rows])
    ids_of = [one.ids for one in rows if one.ids is not None]
    both_ids = joint_keys(ids_of) if len(ids_of) == len(rows) else None
    contents = _contents(sent, table)
    offset, scopes, names = None, np.zeros(len(landed), np.int64), [TABLE]
    if by_position:
        offset, scopes, names, valid = _joint_places(rows)
        keys: tuple[NDArray[Any], ...] = (scopes, offset)
        if both_ids is not None:
            contents = codes_of((*both_ids[0], both_ids[1], *(() if contents is None else (contents,))))
    else:
        assert both_ids is not None
        keys, valid = both_ids
    kept = np.flatnonzero(valid)
    found = differing(
        tuple(key[kept] for key in keys), None if contents is None else contents[kept], landed[kept]
    )  # fmt: skip
    found = found._replace(row=kept[found.row])

    def text(row: int) -> str | None:
        ids = rows[row >= rows[0].number].ids
        return None if ids is None else _text_of(ids, row - rows[0].number * int(row >= rows[0].number))

    facts = counted(found, scopes, names, text, offset)._replace(rows=rows[1].number)
    lacking = [int((~valid[side]).sum()) for side in (~landed, landed)]
    return comparison_report(
        facts, rows[0].number, listed(found, scopes, names, text, offset, most), len(found.row),
        lacking, unchecked(sent.columns, table.columns, by_position), complete_until(*_until(rows[0], found)),
    )  # fmt: skip


def _joint_places(
    rows: list[Rows],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str], NDArray[np.bool_]]:
    """Return the offsets, the places of the logs' names, these names, and which rows of both sides have a position."""
    import numpy as np

    places = [one.places for one in rows if one.places is not None]
    names = sorted({name for one in places for name in one.names})
    at = {name: place for place, name in enumerate(names)}
    logs = [np.append([at[name] for name in one.names], 0).astype(np.int64)[one.log] for one in places]
    valid = np.concatenate([one.valid & (one.log >= 0) for one in places])
    return np.concatenate([one.offset for one in places]), np.concatenate(logs), names, valid


def _contents(sent: Side, table: Side) -> NDArray[np.int64] | None:
    """Return a number for each row of both sides, equal if and only if the contents are; None if not compared."""
    import pyarrow as pa

    names = [side.columns.content for side in (sent, table)]
    if not all(names):
        return None
    if len(names[0]) != len(names[1]):
        raise ValueError(f"cannot compare sent with the table: content must be as many columns, got {names}")
    numbered = [
        pa.table({str(place): side.table[name] for place, name in enumerate(side.columns.content)})
        for side in (sent, table)
    ]
    try:
        joined = pa.concat_tables(numbered, promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"cannot compare sent with the table: content has other types: {reason}") from None
    return content_codes(joined.columns)


def _text_of(ids: Ids, row: int) -> str | None:
    return ids.text(row) if ids.is_v1[row] else ids.others[ids.other[row]].identity


def _until(sent: Rows, found: Any) -> tuple[int | None, int | None]:
    """Return the last time of the sent messages, and the first time of a lost one, in microseconds."""
    import numpy as np

    times = sent.timestamp
    if times is None and sent.ids is not None:
        times = (sent.ids.unix * 1_000_000, sent.ids.is_v1)
    if times is None or not times[1].any():
        return None, None
    lost = np.zeros(len(times[0]), bool)
    lost[found.row[found.fault == 0]] = True
    if (lost & ~times[1]).any():
        return None, None
    first = times[0][lost]
    return int(times[0][times[1]].max()), int(first.min()) if len(first) else None


def complete_until(last: int | None, lost: int | None) -> Any:
    """Return the moment before which all messages have landed, from times in microseconds; None without times."""
    from datetime import timedelta

    micros = last if lost is None else lost
    return None if micros is None else UNIX_EPOCH + timedelta(microseconds=micros)


def unchecked(sent: Columns, table: Columns, by_position: bool) -> dict[str, str]:
    """Return the checks that a comparison does not make, with the reason."""
    missing = {}
    if not ((sent.content and table.content) or (by_position and sent.id and table.id)):
        missing["changed_messages"] = "without content on both sides"
    return missing
