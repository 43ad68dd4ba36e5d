"""Compare the messages of two sides: `compare` names those that only one has, that differ, or that the table repeats.

DuckDB and Spark find such messages by the statements of `compare.sql`, and `report_of_groups` makes the report of both.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from msgid.audit._roles import check_moments
from msgid.audit._sources import read_error
from msgid.audit.definitions import FAULTS, MAX_MESSAGES, MAX_ROWS, MAX_SCOPES, TABLE
from msgid.audit.digests import SIZE, differing_blocks, last_time, loaded, offset_of, ranges_of, unplaced
from msgid.audit.duck import quoted
from msgid.audit.facts import Counted, Difference, NotChecked, merged, part_of
from msgid.audit.findings import APART, BARE, findings_of
from msgid.audit.lists import write
from msgid.audit.reduction import Reduction, moment, statements
from msgid.audit.report import Report, SentLog, add_uncompared
from msgid.audit.sides import Opened, Side, check_sent_columns, content_of_sides, names_in_sent, opened, settings_in
from msgid.ids.checked_bytes import is_uuid, uuid_bytes
from msgid.layout import CANONICAL_V0_PREFIX
from msgid.shared.validate import integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa
    from typing_extensions import Unpack

    from msgid.audit.duck import Duck
    from msgid.audit.options import Rules
    from msgid.audit.reduction import Engine
    from msgid.audit.sides import SideOptions
    from msgid.shared.known_tables import Columns

LOST, CHANGED, DUPLICATE, EXTRA = range(len(FAULTS))
"""The places of the faults in `FAULTS`."""
_STATEMENTS: Final = statements("compare.sql")
_WORDS: Final = {"lost": LOST, "changed": CHANGED, "duplicate": DUPLICATE, "extra": EXTRA}
BY_POSITION: Final = {"key": "off", "shown_key": "off", "key_id": "CAST(NULL AS STRING)", "block": "off >> 6"}
"""The words of messages that are matched by their positions: a block has 64 offsets."""
BY_ID: Final = {"key": "key_id", "shown_key": "id", "key_id": "id", "compared_id": "CAST(NULL AS STRING)"}
"""The words of messages that are matched by their IDs; the engine has the word of their blocks."""
NUMBER_OF_BLOCKS: Final = 1 << 16
"""The number of blocks of IDs: a power of 2. More blocks make the first pass slower, and the second one faster."""


class Group(NamedTuple):
    """The messages of one fault in one log: the first of them, and the least time of a sent row in microseconds.

    ``number`` is what the report counts: of a repeated message, the additional rows. ``rows`` counts the rows of both
    sides, and ``untimed`` the messages without a time. The group of all further logs of a fault has the scope None, and
    the number of these logs as its ``offset``.
    """

    fault: int
    scope: str | None
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
    **options: Unpack[SideOptions],
) -> Report:
    """Return the report of the messages that were sent and did not land in a table, by their positions or IDs.

    If both sides have positions, messages are matched by them, and an ID that differs is a changed message. Otherwise
    they are matched by the value of their IDs, whatever the spelling. A side may be larger than the memory.

    Args:
        sent: The messages that a producer had acknowledged, or all messages of a queue: a path as for `audit_file`, or
            a list of `pathlib.Path`; a table as for `audit_table`; or an iterable of IDs, of offsets, of tuples of the
            parts of the log's name and the offset, or of objects with ``topic``, ``partition`` and ``offset``.
        table: The landed messages, in the same forms.
        sent_columns: The names of these columns in ``sent``, by argument. Default: the same names, as far as ``sent``
            has them.
        digests: The digests of ``sent`` and of ``table`` that `digest` made of their present rows, as tables or paths.
            The digests of a path are merged. Only the rows of the blocks that differ are compared then. A side that is
            None cannot be read, so its messages are counted by block and not named.
        max_messages: Number of messages that the report lists in ``differences``; the findings count all.
        **options: The columns of the table, as `ColumnNames` explains, ``timezone``, ``memory`` and ``temp_dir``, as
            `AuditOptions` explains, and ``format``, ``delimiter`` and ``header`` of the files of the table, as
            `audit_file` explains. ``timestamp`` is for ``complete_until``; its default is the time of the IDs.
            ``content`` is compared if both sides have it.

    Returns:
        The report. ``lost_messages``, ``changed_messages`` and repeated messages are errors, and ``extra_messages``
        have the severity ``info``, because ``sent`` may be a part of the sent messages. ``report.rows`` returns the
        rows of a check.

    Raises:
        FileNotFoundError: if a path does not exist.
        TypeError: if a side is not a path, a table or an iterable of IDs or positions.
        ValueError: if a column is missing, or the sides cannot be matched.

    >>> sent = [("orders", 0, offset) for offset in range(5, 9)]
    >>> landed = {"topic": ["orders"] * 3, "partition": [0] * 3, "offset": [5, 7, 8]}
    >>> print(compare(sent, landed))
    1 message lost in 3 rows, compared with 4 sent
    re-read these ranges: kafka:kafka/orders/0 6
    not checked: changed_messages (without content on both sides)
    severity  check          scope                 count  example
    error     lost_messages  kafka:kafka/orders/0      1  offset 6
    >>> compare(["0156F7E71C361B21BC024CCDBE00000007"], ["0156f7e71c361b21bc024ccdbe00000007"]).findings
    []
    """
    most = integer("max_messages", max_messages, 0, 10_000_000)
    check_sent_columns(sent_columns)
    named, rules, duck, reading = settings_in("compare", options)

    def both_sides() -> tuple[Opened, Opened]:
        here = opened(duck, "table", table, lambda _: named, reading)
        return opened(duck, "sent", sent, lambda names: names_in_sent(names, named, sent_columns)), here

    def compared(blocks: pa.Table) -> Report:
        there, here = both_sides()
        for side in (there, here):
            offset_of(side.columns)
        return report_of_sides(duck, there, here, rules, most, blocks)

    if digests is not None:
        of_sent, of_table = (loaded(duck, one) for one in digests)
        return report_of_blocks(of_sent, of_table, None if sent is None or table is None else compared)
    there, here = both_sides()
    if not (there.is_empty or here.is_empty):  # an empty list fits any table
        there, here = with_one_prefix(there, here)
    return report_of_sides(duck, there, here, rules, most)


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
    report.sent_logs = _logs_of(sent, {one.scope for one in report.findings})
    if not any(one.check == "lost_messages" for one in report.findings):
        report.complete_until = moment(last_time(sent))
    differ = "1 block differs" if blocks.num_rows == 1 else f"{blocks.num_rows:,} blocks differ"
    report.notes.append(
        f"{differ}, and sent has {sent.num_rows:,}. The compared blocks have {read[0]:,} rows of sent and "
        f"{read[1]:,} of the table."
    )
    if blocks.num_rows and not report.findings:
        report.notes.append("These blocks have repeated messages of sent, or differ in columns that are not compared.")
    lacking = [unplaced(one) for one in (sent, landed)]
    if lacking[0]:
        report.complete_until = None
    add_uncompared(report, lacking, "offset")
    return report


def _logs_of(sent: pa.Table, names: set[str]) -> dict[str, SentLog]:
    """Return some logs of a digest."""
    ends = sent.group_by("source").aggregate([("rows", "sum"), ("low", "min"), ("high", "max")])
    values = zip(*(ends[name].to_pylist() for name in ("source", "rows_sum", "low_min", "high_max")), strict=True)
    return {log: SentLog(*numbers) for log, *numbers in values if log in names}


def _report_of_counts(blocks: pa.Table) -> Report:
    """Return the report of blocks whose rows cannot be read: of each block, the least number of its faults."""
    groups: dict[tuple[int, str], Group] = {}
    for row in blocks.to_pylist():
        scope, low, sent, landed = row.values()
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


def with_one_prefix(sent: Any, table: Any) -> tuple[Any, Any]:
    """Return two sides; a prefix of logs on one side is that of both.

    It is not if the sides name their logs by other numbers of columns: one column has the whole name. Listed positions
    do not have columns, and take the prefix.

    Args:
        sent: The side of the queue or the producer: a named tuple with ``columns`` and ``is_listed``.
        table: The side of the landed messages.

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


def report_of_sides(
    duck: Duck, sent: Opened, table: Opened, rules: Rules, most: int, blocks: pa.Table | None = None
) -> Report:
    """Return the report of the messages of two sides in DuckDB.

    Args:
        duck: The connection.
        sent: The side of the queue or the producer.
        table: The side of the landed messages.
        rules: The rules of the options.
        most: Number of messages to list.
        blocks: The blocks that are compared, as `differing_blocks` returns them. Default: all.
    """
    by_position = is_by_position(sent.columns, table.columns)
    ranges = () if blocks is None else ranges_of(blocks["block"])
    both, sides = (sent, table), []
    for one in both:
        with _reading(one):
            sides.append(Side(duck, one, rules, ranges))
    scopes = _numbered_logs(duck, sides) if by_position else None
    wanted = None if blocks is None or scopes is None else _numbered_blocks(duck, blocks, scopes)
    with_ids = all(side.columns.id is not None for side in sides)
    hashed = ("off, id, content" if with_ids else "off, content") if by_position else "id, content"
    comparison = Comparison(
        duck, by_position, with_ids,
        hash=f"CAST(hash(hash({hashed}, text)) >> 1 AS BIGINT)",
        block=f"CASE WHEN id IS NOT NULL THEN CAST(hash(id) % {NUMBER_OF_BLOCKS} AS BIGINT) END",
    )  # fmt: skip
    for which, one, side, content in zip(("sent", "table"), both, sides, content_of_sides(duck, sides), strict=True):
        with _reading(one):
            rows = side.messages(by_position=by_position, content=content, is_timed=one is sent, blocks=wanted)
            comparison.keep_blocks(which, rows)

    def names_of(numbers: list[Any]) -> dict[Any, str]:
        if scopes is None:
            return dict.fromkeys(numbers, TABLE)
        asked = ", ".join(map(str, numbers)) or "NULL"
        return dict(duck.rows(f"SELECT log, name FROM {scopes} WHERE log IN ({asked})"))

    with _reading(sent):
        report = comparison.report(names_of, most, not_compared(sent.columns, table.columns, by_position))
        _check_times(duck, sides[0], comparison)
    lists = _Lists(duck, sides, comparison, by_position)
    report._rows, report._copy = lists, lists.write
    return report


def _numbered_logs(duck: Duck, sides: Sequence[Side]) -> str:
    """Return the relation of the logs of both sides, each with one number, which the sides have too."""
    names = " UNION ".join(f"SELECT name FROM {side.logs}" for side in sides)
    scopes = duck.kept("scopes", f"SELECT name, row_number() OVER (ORDER BY name) AS log FROM ({names})")
    for side in sides:
        side.number_logs(scopes)
    return scopes


def _numbered_blocks(duck: Duck, blocks: pa.Table, scopes: str) -> str:
    """Return the relation of some blocks of digests, by the numbers of their logs."""
    name = duck.new_name("blocks")
    duck.register(name, blocks.select(["source", "block"]))
    numbered = f"{name} AS b JOIN {scopes} AS s ON s.name = b.source"
    return duck.kept("wanted", f"SELECT s.log, b.block // {SIZE} AS block FROM {numbered}")


@contextmanager
def _reading(side: Opened) -> Iterator[None]:
    """Make an error of DuckDB one line that names the side."""
    try:
        yield
    except duckdb.Error as error:
        raise read_error(side.source, error) from None


def _check_times(duck: Duck, sent: Side, comparison: Comparison) -> None:
    """Raise ValueError if the times of sent are numbers of another unit, or text that is not read."""
    name = sent.columns.timestamp
    if name is not None:
        blocks = comparison.relation("sent_blocks")
        ((rows, timed, last),) = duck.rows(f"SELECT sum(n), sum(timed), max(last_time) FROM {blocks}")
        check_moments(duck, sent.source, "timestamp", name, last, unread=bool(rows) and not timed)


class Comparison(Reduction):
    """The statements of one comparison, and the relations that they have made.

    Args:
        engine: The engine that runs the statements.
        by_position: Whether messages are matched by their positions, or by their IDs.
        with_ids: Whether both sides have IDs, which are compared if messages are matched by their positions.
        **words: The engine's words for ``hash``, and for ``block`` of an ID.
    """

    def __init__(self, engine: Engine, by_position: bool, with_ids: bool, **words: Any) -> None:
        compared = {"compared_id": "id" if with_ids else "CAST(NULL AS STRING)"}
        own = {**words, **compared, **(BY_POSITION if by_position else BY_ID)}
        super().__init__(engine, **{**_WORDS, **own})
        self._by_position = by_position

    def text(self, name: str, **more: Any) -> str:
        """Return a statement with its words."""
        return _STATEMENTS[name].format_map({**self._words, **more})

    def keep_blocks(self, which: str, rows: str) -> None:
        """Make the blocks of a side, which reads all of its rows.

        Args:
            which: ``sent`` or ``table``.
            rows: The relation of its rows.
        """
        self._words[which] = rows
        self._words[f"{which}_blocks"] = self._engine.kept(f"{which}_blocks", self.text("blocks", side=rows))

    def report(self, names_of: Callable[[list[Any]], dict[Any, str]], most: int, not_checked: dict[str, str]) -> Report:
        """Return the report. The blocks of both sides are made.

        Args:
            names_of: Returns the names of some logs.
            most: Number of messages to list.
            not_checked: The checks that are not made, with the reasons.
        """
        blocks = [self._words[f"{which}_blocks"] for which in ("sent", "table")]
        counts = [SideCounts(*self.rows("counts", blocks=one)[0]) for one in blocks]
        self.keep("suspects")
        self.keep("differing")
        self.keep("groups")
        largest, listed = self.rows("largest", most=MAX_SCOPES), self.rows("listed", most=most)
        logs = self.rows("sent_logs", most=MAX_ROWS) if self._by_position else []
        names = names_of([*{row[1] for row in (*largest, *listed)} | {row[0] for row in logs}])
        groups = [Group(fault, names[log], *rest) for fault, log, *rest in largest]
        for fault, number, messages, rows, others, time, untimed in self.rows("rest", most=MAX_SCOPES):
            groups.append(Group(fault, None, number, messages, rows, others, None, time, untimed))
        differences = [(fault, names[log], *rest) for fault, log, *rest in listed]
        report = report_of_groups(groups, differences, (counts[0], counts[1]), not_checked, self._by_position)
        report.sent_logs = {names[log]: SentLog(*numbers) for log, *numbers in logs}
        return report


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
    checks = checks_of(by_position)
    counts = [Counted(checks[one.fault], one.scope, one.number, one.offset, one.offset, one.id) for one in groups]
    sent, lost = sides[0], [one for one in groups if one.fault == LOST]
    times = [time for time in (sent.first_lacking, *(one.time for one in lost)) if time is not None]
    is_known = not sent.untimed_lacking and not any(one.untimed for one in lost)
    findings = findings_of(merged([part_of(counts)], 0))
    alone = [sum(one.rows for one in groups if one.fault == fault) for fault in (LOST, EXTRA)]
    if all(10 * n >= 9 * (side.rows - side.lacking) > 0 for n, side in zip(alone, sides, strict=True)):
        meaning = BARE if _are_bare({*(one.id for one in groups), *(row[-1] for row in listed)}) else APART
        findings = [one._replace(meaning=meaning) if one.check == FAULTS["lost"] else one for one in findings]
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


def _are_bare(ids: Iterable[str | None]) -> bool:
    """Return whether identities of messages on one side alone have a UUID both with its dashes and as bare bytes."""
    known = set(ids)
    return any(is_uuid(id) and CANONICAL_V0_PREFIX + uuid_bytes(id).hex().upper() in known for id in known)


def fault_of(check: str, by_position: bool) -> int:
    """Return the place of the fault that a check counts.

    Args:
        check: The name of the check.
        by_position: Whether messages are matched by their positions, or by their IDs.

    Raises:
        ValueError: if a comparison does not have rows of the check.
    """
    checks = checks_of(by_position)
    if check not in checks:
        raise ValueError(f"a comparison has the rows of {', '.join(checks)}, got {quote(check)}")
    return checks.index(check)


def checks_of(by_position: bool) -> list[str]:
    """Return the check of each fault."""
    checks = list(FAULTS.values())
    if not by_position:
        checks[DUPLICATE] = "duplicate_ids"
    return checks


class _Lists:
    """The rows of each check of a comparison. It keeps the connection, and so the relations, as long as it lives."""

    def __init__(self, duck: Duck, sides: Sequence[Side], comparison: Comparison, by_position: bool) -> None:
        self._duck, self._comparison, self._by_position = duck, comparison, by_position
        self._sent, self._table = sides

    def __call__(self, check: str) -> pa.Table:
        """Return the rows of a check as an Arrow table."""
        return self._duck.table(self._query(check))

    def write(self, check: str, path: str | PathLike[str]) -> None:
        """Write the rows of a check to a file."""
        write(self._duck, self._query(check), path)

    def _query(self, check: str) -> str:
        """Return the query of the rows of a check, in the order of their logs and offsets, or of their IDs."""
        fault = fault_of(check, self._by_position)
        if fault == CHANGED:
            return self._changed()
        rows = self._rows(self._sent if fault == LOST else self._table, fault)
        return f"SELECT whole.* FROM ({rows}) ORDER BY log, {self._key}"

    @property
    def _key(self) -> str:
        return "off" if self._by_position else "id"

    def _rows(self, side: Side, fault: int) -> str:
        """Return the query of the rows of a side whose messages have a fault."""
        same = f"d.fault = {fault} AND d.log = r.log AND d.{self._key} = r.{self._key}"
        differing = self._comparison.relation("differing")
        rows = side.whole_rows(by_position=self._by_position)
        return f"SELECT * FROM ({rows}) AS r WHERE EXISTS (SELECT 1 FROM {differing} AS d WHERE {same})"

    def _changed(self) -> str:
        """Return the query of the rows of both sides, side by side: the first with the first of each message."""
        key = self._key
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY log, {key} ORDER BY hash(whole)) AS number FROM ({rows})"
            for rows in (self._rows(side, CHANGED) for side in (self._sent, self._table))
        )
        columns = [
            f"{name}.whole.{quoted(column)} AS {quoted(f'{shown}_{column}')}"
            for name, shown, side in (("sent", "sent", self._sent), ("landed", "table", self._table))
            for column in side.source.readable
        ]
        one, other = numbered
        return (
            f"SELECT {', '.join(columns)} FROM ({one}) AS sent "
            f"FULL JOIN ({other}) AS landed USING (log, {key}, number) ORDER BY log, {key}, number"
        )
