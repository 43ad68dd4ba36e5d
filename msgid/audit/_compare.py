"""Compare the messages of two sides: `compare` names those that only one has, that differ, or that the table repeats.

Python and Spark group such messages by fault and log, and `report_of_groups` makes the report of both.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msgid._contents import codes as codes_of_contents
from msgid._validate import integer
from msgid.audit._columns import NEVER, content_codes, kind_of, plain_column
from msgid.audit._digest_tables import SIZE, differing_blocks, last_time, loaded, places_of, rows_in_blocks, unplaced
from msgid.audit._files import Side, names_in_sent, side_of
from msgid.audit._logs import moment
from msgid.audit._options import columns_in
from msgid.audit._spans import numbered
from msgid.audit._tables import rows_of
from msgid.audit.definitions import FAULTS, MAX_MESSAGES, TABLE
from msgid.audit.facts import Counted, Difference, NotChecked, merged, part_of
from msgid.audit.report import APART, Report, add_uncompared, findings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import ColumnNames
    from msgid.audit._tables import Rows


LOST, CHANGED, DUPLICATE, EXTRA = range(len(FAULTS))
"""The places of the faults in `FAULTS`."""


class Group(NamedTuple):
    """The messages of one fault in one log: the first of them, and the least time of a sent row in microseconds.

    ``number`` is what the report counts: of a repeated message, the additional rows. ``rows`` counts the rows of both
    sides, and ``untimed`` the messages without a time.
    """

    fault: int
    scope: str
    number: int
    messages: int = 0
    rows: int = 0
    offset: int | None = None
    id: str | None = None
    time: int | None = None
    untimed: int = 0


class SideCounts(NamedTuple):
    """The rows of a side, its last time in microseconds, and the rows without a position or an ID, with their times."""

    rows: int
    last: int | None = None
    lacking: int = 0
    first_lacking: int | None = None
    untimed_lacking: int = 0


def compare(
    sent: Any,
    table: Any,
    *,
    sent_columns: Mapping[str, Any] | None = None,
    digests: tuple[Any, Any] | None = None,
    max_messages: int = MAX_MESSAGES,
    **columns: Unpack[ColumnNames],
) -> Report:
    """Return the report of the messages that were sent and did not land in a table, by their positions or IDs.

    If both sides have positions, messages are matched by them, and an ID that differs is a changed message. Otherwise
    they are matched by the value of their IDs, whatever the spelling.

    Args:
        sent: The messages that a producer had acknowledged, or all messages of a queue: a path as for `audit_file`; a
            table as for `audit_table`; or an iterable of IDs, of offsets, of tuples of the parts of the log's name and
            the offset, or of objects with ``topic``, ``partition`` and ``offset``.
        table: The landed messages, in the same forms.
        sent_columns: The names of these columns in ``sent``, by argument. Default: the same names, as far as ``sent``
            has them.
        digests: The digests of ``sent`` and of ``table`` that `digest` made of their present rows, as tables or paths.
            The digests of a path are merged. Only the rows of the
            blocks that differ are read then: of a Parquet file, the row groups with such rows. A side that is None
            cannot be read, so its messages are counted by block and not named.
        max_messages: Number of messages that the report lists in ``differences``; the findings count all.
        **columns: The columns of the table, as `ColumnNames` explains. ``timestamp`` is for ``complete_until``; its
            default is the time of the IDs. ``content`` is compared if both sides have it.

    Returns:
        The report. ``lost_messages``, ``changed_messages`` and repeated messages are errors, and ``extra_messages``
        have the severity ``info``, because ``sent`` may be a part of the sent messages.

    Raises:
        FileNotFoundError: if a path does not exist.
        TypeError: if a side is not a path, a table or an iterable.
        ValueError: if a column is missing, or the sides cannot be matched.

    >>> sent = [("orders", 0, offset) for offset in range(5, 9)]
    >>> landed = {"topic": ["orders"] * 3, "partition": [0] * 3, "offset": [5, 7, 8]}
    >>> print(compare(sent, landed))
    1 message lost in 3 rows, compared with 4 sent
    read again: kafka:kafka/orders/0 6
    not checked: changed_messages (without content on both sides)
    severity  check          scope                 count  example
    error     lost_messages  kafka:kafka/orders/0      1  offset 6
    >>> compare(["0156F7E71C361B21BC024CCDBE00000007"], ["0156f7e71c361b21bc024ccdbe00000007"]).findings
    []
    """
    most = integer("max_messages", max_messages, 0, 10_000_000)
    named = columns_in("compare", columns)

    def named_there(names: Sequence[str]) -> dict[str, Any]:
        return names_in_sent(names, named, sent_columns)

    def compared(blocks: pa.Table) -> Report:
        here = rows_in_blocks("table", table, lambda _: named, blocks)
        return report_of_sides(rows_in_blocks("sent", sent, named_there, blocks), here, most)

    if digests is not None:
        of_sent, of_table = (loaded(one) for one in digests)
        return report_of_blocks(of_sent, of_table, None if sent is None or table is None else compared)
    here, there = side_of("table", table, lambda _: named), side_of("sent", sent, named_there)
    listed = [side for side in (there, here) if side.is_listed]
    if all(side.table.num_rows for side in listed):  # an empty list fits any table
        there, here = with_one_prefix(there, here)
    return report_of_sides(there, here, most)


def report_of_blocks(sent: pa.Table, landed: pa.Table, compared: Callable[[pa.Table], Report] | None) -> Report:
    """Return the report of two digests.

    Args:
        sent: The digest of the queue or the producer.
        landed: The digest of the table.
        compared: Returns the report of the rows of some blocks; None if a side cannot be read.
    """
    blocks = differing_blocks(sent, landed)
    digested = [sum(blocks[side].to_pylist()) for side in ("sent", "landed")]
    report = compared(blocks) if compared is not None and blocks.num_rows else None
    if report is None or (report.sent or 0) < digested[0] or report.rows < digested[1]:  # rows are gone by now
        report = _report_of_counts(blocks)
    read = report.rows_read = report.sent or 0, report.rows
    report.sent, report.rows = sum(sent["rows"].to_pylist()), sum(landed["rows"].to_pylist())
    if not any(one.check == "lost_messages" for one in report.findings):
        report.complete_until = moment(last_time(sent))
    report.notes.append(
        f"{blocks.num_rows:,} blocks differ, and sent has {sent.num_rows:,}. The compared blocks have {read[0]:,} rows "
        f"of sent and {read[1]:,} of the table."
    )
    if blocks.num_rows and not report.findings:
        report.notes.append("These blocks have repeated messages of sent, or differ in columns that are not compared.")
    lacking = [unplaced(one) for one in (sent, landed)]
    if lacking[0]:
        report.complete_until = None
    add_uncompared(report, lacking, "offset")
    return report


def _report_of_counts(blocks: pa.Table) -> Report:
    """Return the report of blocks whose rows cannot be read: of each block, the least number of its faults."""
    groups: dict[tuple[int, str], Group] = {}
    for scope, low, sent, landed in _tuples(blocks):
        fault = LOST if sent > landed else EXTRA if sent < landed else CHANGED
        before = groups.get((fault, scope), Group(fault, scope, 0, id=f"{low} to {low + SIZE - 1}"))
        groups[fault, scope] = before._replace(number=before.number + (abs(sent - landed) or 1))
    reason = "rows of the digests cannot be read: the counts are the least that the digests show"
    not_checked = dict.fromkeys(("lost_messages", "changed_messages", "extra_messages") if groups else (), reason)
    return report_of_groups([*groups.values()], [], (SideCounts(0), SideCounts(0)), not_checked, by_position=True)


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


def with_one_prefix(sent: Side, table: Side) -> tuple[Side, Side]:
    """Return two sides; a prefix of logs on one side is that of both.

    It is not if the sides name their logs by other numbers of columns: one column has the whole name. Listed positions
    do not have columns, and take the prefix.

    Raises:
        ValueError: if one side alone names its logs.
    """
    one, other = sent.columns, table.columns
    if one.offset is None or other.offset is None:
        return sent, table
    if bool(one.source) != bool(other.source):
        raise ValueError(
            "cannot compare sent with the table: both must name their logs, or neither, got the columns "
            f"{list(one.source)} and {list(other.source)}: pass `source` and `offset`, and `sent_columns` if sent has "
            "other names"
        )
    if sent.is_listed or table.is_listed or len(one.source) == len(other.source):
        sent = sent._replace(columns=one._replace(prefix=one.prefix or other.prefix))
        table = table._replace(columns=other._replace(prefix=other.prefix or one.prefix))
    return sent, table


def report_of_sides(sent: Side, table: Side, most: int) -> Report:
    """Return the report of the messages of two sides.

    Args:
        sent: The side of the queue or the producer.
        table: The side of the landed messages.
        most: Number of messages to list.
    """
    by_position = is_by_position(sent.columns, table.columns)
    sides = [rows_of(side.table, side.columns._replace(content=())) for side in (sent, table)]
    landed = np.repeat([0, 1], [one.number for one in sides])
    times = np.concatenate([one.times for one in sides])
    time = pa.array(times, mask=times == NEVER)
    id = pa.concat_arrays([_texts(one) for one in sides])
    contents = _contents(sent, table)
    keys, scope, offset = ["id"], pa.repeat(TABLE, len(id)), pa.nulls(len(id), pa.int64())
    if by_position:
        places = (places_of(*pair) for pair in zip((sent, table), sides, strict=True))
        scope, offset = (pa.concat_arrays(parts) for parts in zip(*places, strict=True))
        keys = ["scope", "offset"]
        if all(one.ids is not None for one in sides):
            codes = codes_of_contents(pa.chunked_array([id]))
            contents = codes if contents is None else numbered(codes, contents)
    rows = pa.table({
        "scope": scope, "offset": offset, "id": id, "content": np.zeros(len(id)) if contents is None else contents,
        "sent": 1 - landed, "landed": landed, "time": pc.if_else(landed == 0, time, None),
    })  # fmt: skip
    valid = rows[keys[-1]].is_valid()
    messages = _differing(rows.filter(valid), keys)
    # The example of a group is its first message, whether that has an ID or not.
    first, nulls = pc.ScalarAggregateOptions(skip_nulls=False), pc.CountOptions("only_null")
    groups = messages.group_by(["fault", "scope"], use_threads=False).aggregate([
        ("number", "sum"), ([], "count_all"), ("rows", "sum"), ("offset", "first", first), ("id", "first", first),
        ("time", "min"), ("time", "count", nulls),
    ])  # fmt: skip
    listed = _tuples(messages.select(["fault", "scope", "offset", "id"]).slice(0, most))
    counts = [_counts(time.filter(side), pc.invert(valid).filter(side)) for side in (landed == 0, landed == 1)]
    not_checked = not_compared(sent.columns, table.columns, by_position)
    return report_of_groups(
        list(starmap(Group, _tuples(groups))), listed, (counts[0], counts[1]), not_checked, by_position
    )


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _texts(side: Rows) -> pa.Array:
    text = pa.large_string()
    return pa.nulls(side.number, text) if side.ids is None else side.ids.identities().cast(text)


def _counts(time: pa.Array, lacks: pa.ChunkedArray) -> SideCounts:
    lacking = time.filter(lacks.combine_chunks())
    return SideCounts(len(time), pc.max(time).as_py(), len(lacking), pc.min(lacking).as_py(), lacking.null_count)


def _contents(sent: Side, table: Side) -> NDArray[np.int64] | None:
    """Return a number for each row of both sides, equal if and only if the contents are; None if not compared."""
    names = [side.columns.content for side in (sent, table)]
    if not all(names):
        return None
    by_place = [
        pa.table({str(place): plain_column(side.table[name]) for place, name in enumerate(side.columns.content)})
        for side in (sent, table)
    ]
    check_contents(*([kind_of(field.type) for field in side.schema] for side in by_place))
    try:
        joined = pa.concat_tables(by_place, promote_options="permissive")
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"cannot compare sent with the table: content has other types: {reason}") from None
    return content_codes(joined.columns, joined.num_rows)


def check_contents(sent: Sequence[str], table: Sequence[str]) -> None:
    """Raise ValueError if the contents of two sides have other kinds of types, so that no two values are equal.

    Args:
        sent: The kind of each column's type, of Arrow or of Spark.
        table: The same for the table.
    """
    words = "cannot compare sent with the table: content must"
    if len(sent) != len(table):
        raise ValueError(f"{words} be as many columns, got {sent} and {table}")
    for one, other in zip(sent, table, strict=True):
        if one != other and "null" not in (one, other):
            raise ValueError(f"{words} have one type on both sides, got {one} and {other}; cast one of them")


def not_compared(sent: Columns, table: Columns, by_position: bool) -> dict[str, str]:
    """Return the checks that a comparison does not make, with the reason."""
    is_compared = (sent.content and table.content) or (by_position and sent.id and table.id)
    return {} if is_compared else {"changed_messages": "without content on both sides"}


def report_of_groups(
    groups: Sequence[Group],
    listed: Sequence[Sequence[Any]],
    sides: tuple[SideCounts, SideCounts],
    not_checked: dict[str, str],
    by_position: bool,
) -> Report:
    """Return the report of the messages in which two sides differ.

    Args:
        groups: All groups of such messages.
        listed: The messages that the report lists: the place of the fault, the scope, the offset and the ID of each.
        sides: The counts of sent and of the table.
        not_checked: The checks that were not made, with the reasons.
        by_position: Whether messages are matched by their positions, or by their IDs.
    """
    checks = list(FAULTS.values())
    if not by_position:
        checks[DUPLICATE] = "duplicate_ids"
    counts = [Counted(checks[one.fault], one.scope, one.number, one.offset, one.offset, one.id) for one in groups]
    sent, lost = sides[0], [one for one in groups if one.fault == LOST]
    times = [time for time in (sent.first_lacking, *(one.time for one in lost)) if time is not None]
    is_known = not sent.untimed_lacking and not any(one.untimed for one in lost)
    findings = findings_of(merged([part_of(counts)], 0))
    alone = [sum(one.rows for one in groups if one.fault == fault) for fault in (LOST, EXTRA)]
    if all(10 * n >= 9 * (side.rows - side.lacking) > 0 for n, side in zip(alone, sides, strict=True)):
        findings = [one._replace(meaning=APART) if one.check == FAULTS["lost"] else one for one in findings]
    total = sum(one.messages for one in groups)
    cut = f"The report lists {len(listed):,} of {total:,} messages; the findings count all."
    report = Report(
        sides[1].rows, findings, notes=[cut] if total > len(listed) else [],
        not_checked=[NotChecked(*one) for one in not_checked.items()], sent=sent.rows,
        differences=[Difference(list(FAULTS)[fault], *rest) for fault, *rest in listed],
        complete_until=moment(min(times, default=sent.last) if is_known else None),
    )  # fmt: skip
    add_uncompared(report, [side.lacking for side in sides], "offset" if by_position else "id")
    return report


def _differing(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Return the messages with a fault, which is a place in `FAULTS`, in the order of a report.

    Args:
        rows: The rows of both sides: ``scope``, ``offset``, ``id``, a number that is equal if and only if the
            ``content`` is, ``sent`` and ``landed``, which are 1 in the rows of that side, and the ``time`` of those of
            sent.
        keys: The columns by which rows are one message.

    Returns:
        ``fault``, ``scope``, ``offset``, the first ``id`` of the sent rows, or of the others if they do not have one,
        the ``number`` of repeated rows or 1, the least ``time``, and the number of ``rows`` of both sides.
    """
    both = [("sent", "sum"), ("landed", "sum")]
    contents = rows.group_by([*keys, "content"]).aggregate(both).rename_columns([*keys, "content", "sent", "landed"])
    is_one_side = pc.or_(pc.equal(contents["sent"], 0), pc.equal(contents["landed"], 0))
    of_messages = contents.append_column("is_one_side", is_one_side).group_by(keys)
    *found, sent, landed, is_changed = of_messages.aggregate([*both, ("is_one_side", "any")]).combine_chunks().columns
    cases = (pc.equal(landed, 0), pc.equal(sent, 0), is_changed, pc.greater(landed, sent))
    fault = pc.case_when(pc.make_struct(*cases), LOST, EXTRA, CHANGED, DUPLICATE)
    number = pc.if_else(pc.equal(fault, DUPLICATE), pc.subtract(landed, sent), 1)
    faults = pa.table([*found, fault, number], [*keys, "fault", "number"]).filter(pc.is_valid(fault))
    faulty = rows.join(faults, keys, join_type="inner").sort_by([("landed", "ascending"), ("id", "ascending")])
    names = ["fault", "scope", "offset", "number"]
    of_each = faulty.group_by([*dict.fromkeys([*names, *keys])], use_threads=False)
    firsts = of_each.aggregate([("id", "first"), ("time", "min"), ([], "count_all")])
    messages = firsts.select([*names, "id_first", "time_min", "count_all"])
    order = [(name, "ascending") for name in ("fault", "scope", "offset", "id")]
    return messages.rename_columns([*names, "id", "time", "rows"]).sort_by(order)
