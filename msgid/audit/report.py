"""The report of an audit: findings, gaps, logs, generators and nodes, made from the facts of a table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit.definitions import CHECKS, FAULTS, MALFORMED_KIND, NULL_KIND, SEVERITIES, TABLE, Check, check_names
from msgid.audit.facts import (
    LISTS,
    NAMED,
    Counted,
    Finding,
    Gap,
    NotChecked,
    part_of,
    plural,
    ranges,
    span,
    unchecked,
)
from msgid.audit.options import Rules
from msgid.shared.validate import INT64_MAX, integer, quote, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from msgid.audit.definitions import Severity
    from msgid.audit.facts import Difference, Facts, GeneratorRow, KindRow, LogRow, NodeRow

_EDGES: Final = "losses before the first row of a log and after its last"

_GAPS: Final = {"offset": "missing_offsets", "sequence": "missing_sequences"}
"""The check of each kind of gap."""
_TWO_READINGS: Final = (
    "Numbers are missing in a topic with transactions. An aborted transaction causes it, and so does a loss. A digest "
    "of the queue tells them apart."
)
_BACK_OR_SHARED: Final = (
    "Times of a generator go back while its numbers go on. In a compacted topic, most numbers are missing. So a clock "
    "that was set back, a restart, and two processes with one node and pid look alike."
)
_WITHOUT: Final = {
    "id": "without IDs", "counter": "no ID carries a counter", "offset": "without offsets",
    "content": "without content", "landed": "without a landing time", "timestamp": "without a timestamp",
    "parent": "without a parent",
}  # fmt: skip
"""Why a check is not made, by the column that it needs."""
_WRONG_COLUMN: Final = (
    "Most values are not IDs. The wrong column or the wrong file usually causes it. An ID inside other text must be "
    "cut out first."
)
APART: Final = (
    "At least 9 of 10 compared messages are on one side alone. Sides that name their logs or IDs in two ways usually "
    "cause it, or the wrong file."
)
BARE: Final = (
    "One side has UUIDs, and the other one their 16 bytes or 32 digits, which are IDs of version 0. An engine that has "
    "no type of UUIDs usually causes it: cast that column to UUIDs, or to text with dashes."
)
_SENT: Final = "sent"
"""The scope of a finding about the sent side of a comparison."""
_VALUES: Final = {
    "offset": "a valid offset or source",
    "timestamp": "a valid timestamp",
    "landed": "a valid landing time",
    "id": "a valid ID",
}
"""The value that a row lacks, by the column that cannot be read."""
_NO_TABLE: Final = "the report does not have its table, such as one of digests or of another process"
_CUT: Final = {"gaps": "missing ranges", "logs": "logs", "generators": "runs of generators", "nodes": "nodes"}
"""The lists that may be cut, and their rows in words."""
_OF_TWO_SIDES: Final = (*FAULTS.values(), "duplicate_ids", "uncompared_messages")
"""The checks of a comparison."""


class Unread(NamedTuple):
    """Rows without a value that checks need.

    Attributes:
        what: The value that they lack.
        rows: Their number, by the check that counts them or by the column.
    """

    what: str
    rows: dict[str, int]


class SentLog(NamedTuple):
    """A log of the sent side of a comparison.

    Attributes:
        rows: Number of its rows.
        first_offset: Its least offset.
        last_offset: Its greatest offset.
    """

    rows: int
    first_offset: int
    last_offset: int


@dataclass(eq=False, repr=False)
class Report:
    """The lost, repeated and late messages of a table, by their IDs and positions.

    Attributes:
        rows: Number of rows in the table.
        findings: The faults, the most severe first; see `Finding`.
        gaps: The missing ranges, largest first; see `Gap`.
        logs: The logs, those with most faults first. Each has a ``source``, its ``rows``, ``first_offset``,
            ``last_offset``, ``first_time`` and ``last_time``, and the numbers of ``missing``, ``duplicates``,
            ``conflicts`` and ``late``.
        generators: The runs of generators, those with most missing numbers first. Each has a ``node``, a ``pid``, a
            ``run`` from 1, the number of ``ids``, ``first_time``, ``last_time``, ``first_sequence``, ``last_sequence``
            and ``missing``.
        nodes: The nodes of these generators. Each has a ``node``, its ``origin``, the number of ``generators`` at the
            same time, and the reason why it is ``shared``, or None.
        kinds: Numbers of ``rows`` by ``kind`` and ``origin``.
        notes: The limits of the table and of the report.
        unplaced: Number of rows without a source or a valid offset, if the table has offsets; they count in no log.
        untimed: Number of rows without a valid timestamp, if a column of timestamps was passed.
        unlanded: Number of rows without a valid landing time, if a column of landing times was passed.
        not_checked: The checks that were not made: ``check`` and ``reason``.
        differences: The messages in which two sides differ: ``fault``, ``scope``, ``offset`` and ``id``; see `compare`.
        sent: Number of rows of the other side; None unless the report is of `compare`.
        complete_until: The moment before which all sent messages have landed; None if it is not known.
        unread: The values that rows lack, for `failure`.
        rows_read: The rows of sent and of the table in the blocks that a comparison of digests read; None for other
            reports.
        title: Names the report in JSON and on the page. The commands write their options, the time and the version.
        sent_logs: The logs of the sent side of a comparison, by name, for the page. A log is missing here if its
            numbers are not known.

    >>> import msgid.audit
    >>> report = msgid.audit.audit_ids(["0156F7E71C361B21BC024CCDBE00000007"] * 2)
    >>> print(report)  # doctest: +ELLIPSIS
    1 ID repeated in 2 rows
    not checked: missing_offsets and 4 others (without offsets); conflicting_ids (without content); ...
    severity  check          scope  count  example
    error     duplicate_ids  table      1  0156F7E71C361B21BC024CCDBE00000007
    """

    rows: int
    findings: list[Finding]
    gaps: list[Gap] = field(default_factory=list)
    logs: list[LogRow] = field(default_factory=list)
    generators: list[GeneratorRow] = field(default_factory=list)
    nodes: list[NodeRow] = field(default_factory=list)
    kinds: list[KindRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unplaced: int = 0
    untimed: int = 0
    unlanded: int = 0
    not_checked: list[NotChecked] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    sent: int | None = None
    complete_until: datetime | None = None
    unread: list[Unread] = field(default_factory=list)
    rows_read: tuple[int, int] | None = None
    title: str = ""
    sent_logs: dict[str, SentLog] = field(default_factory=dict)
    _rows: Callable[[str], Any] | None = field(default=None, init=False)
    _copy: Callable[[str, str | PathLike[str]], None] | None = field(default=None, init=False)

    def counts(self) -> dict[str, int]:
        """Return the number of findings of each severity.

        >>> import msgid.audit
        >>> msgid.audit.audit_ids([None]).counts()
        {'error': 0, 'warning': 1, 'info': 0}
        """
        return {severity: sum(f.severity == severity for f in self.findings) for severity in SEVERITIES}

    def failures(self, fail_on: Severity = "error", allow: Mapping[str, int] | None = None) -> list[Finding]:
        """Return the findings that are at least as severe, in the order of a report: lost messages first.

        Args:
            fail_on: ``error``, ``warning`` or ``info``.
            allow: The largest number of each check that is not a failure, by the name of the check: that of all its
                findings together.

        Raises:
            ValueError: if ``fail_on`` is another word, or ``allow`` has an unknown check or a negative number.
        """
        if fail_on not in SEVERITIES:
            raise ValueError(f"fail_on must be {', '.join(SEVERITIES[:-1])} or {SEVERITIES[-1]}, got {quote(fail_on)}")
        worst = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        allowed = {check: integer("allow", most, 0, INT64_MAX) for check, most in (allow or {}).items()}
        check_names("allow", allowed)
        totals = Counter[str]()
        for finding in self.findings:
            totals[finding.check] += finding.count
        severe = (one for one in self.findings if one.severity in worst)
        return in_order(one for one in severe if totals[one.check] > allowed.get(one.check, 0))

    def failure(self, fail_on: Severity = "error", allow: Mapping[str, int] | None = None) -> str | None:
        """Return one line with the number of such findings and all of their checks; None without findings.

        The line begins with lost messages. It names each check once, with its total count, and the log, generator or
        node with most.

        Without such findings, the line says that nothing was checked if the table is empty. It says which value is
        missing if most rows lack one that the checks need: a valid offset and source, timestamp or landing time, or a
        valid ID in a table without offsets.

        Args:
            fail_on: ``error``, ``warning`` or ``info``.
            allow: The largest number of each check that is not a failure.

        >>> import msgid.audit
        >>> report = msgid.audit.audit_ids([None, None])
        >>> report.failure("warning")
        '1 finding of severity warning or above: 2 missing_ids in table'
        >>> report.failure("warning", {"missing_ids": 2})
        """
        failed = self.failures(fail_on, allow)
        if not failed:
            return self._unchecked(allow or {})
        which = "error" if fail_on == "error" else f"{fail_on} or above"
        by_check: dict[str, list[Finding]] = {}
        for finding in failed:
            by_check.setdefault(finding.check, []).append(finding)
        return f"{plural(len(failed), 'finding')} of severity {which}: {', '.join(map(_in_short, by_check.values()))}"

    def _unchecked(self, allow: Mapping[str, int]) -> str | None:
        """Return one line that says why the rows were not checked, or None."""
        if not (self.rows if self.sent is None else self.sent):
            return f"no rows{'' if self.sent is None else f' in {_SENT}'}: nothing was checked"
        for what, numbers in self.unread:
            number = sum(rows for check, rows in numbers.items() if rows > allow.get(check, 0))
            if 2 * number > self.rows:
                lack = "does not have" if number == 1 else "do not have"
                return f"{number:,} of {plural(self.rows, 'row')} {lack} {what}"
        return None

    def __str__(self) -> str:
        wrong = dict.fromkeys(f"{f.check}: {f.meaning}" for f in self.findings if f.meaning in (_WRONG_COLUMN, APART))
        return "\n".join((*self.verdict, *wrong, *_laid_out(self.findings)))

    @property
    def verdict(self) -> list[str]:
        """The lines above the findings: the conclusion, and the checks that were not made."""
        skipped = [*unchecked(self.not_checked), *([_EDGES] if self.logs and self.sent is None else [])]
        return [*self.conclusion, *([f"not checked: {'; '.join(skipped)}"] if skipped else [])]

    @property
    def conclusion(self) -> list[str]:
        """The summary, the ranges to re-read, and the time up to which the table is complete, as lines."""
        until = self.complete_until
        complete = [] if until is None else [f"complete: each message before {until.isoformat()} has landed"]
        return [self.summary, *_lost_in_short(self), *complete]

    @property
    def summary(self) -> str:
        """The errors in messages, the numbers of other findings, and of rows, in one line."""
        errors = Counter[str]()
        for finding in self.findings:
            if finding.severity == "error":
                errors[CHECKS[finding.check].words] += finding.count
        parts, last = [] if errors else ["no errors"], ""
        for words, number in errors.items():
            noun, _, state = words.partition(" ")
            parts.append(f"{number:,} {state}" if noun == last else f"{plural(number, noun)} {state}")
            last = noun
        parts += [plural(n, severity) for severity, n in self.counts().items() if n and severity != "error"]
        lacking = {"offset": self.unplaced, "timestamp": self.untimed, "landed": self.unlanded}
        asides = [f", {n:,} without {_VALUES[name]}" for name, n in lacking.items() if n]
        aside = "".join(asides).replace(" without", " of them without", 1)
        sent = "" if self.sent is None else f", compared with {self.sent:,} sent"
        return f"{', '.join(parts)} in {plural(self.rows, 'row')}{aside}{sent}"

    def __repr__(self) -> str:
        return f"<Report: {self.summary}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the values of the report; a copy of them in another process cannot read the table."""
        return {**self.__dict__, "_rows": None, "_copy": None}

    def rows_of(self, check: str) -> Any:
        """Return all rows of a check as an Arrow table, or as a DataFrame on Spark.

        - ``missing_offsets`` and ``missing_sequences`` have one row per range: the log or the generator, ``first``,
          ``last`` and ``count``.
        - A check of messages, such as ``duplicate_messages``, has each row of each such message: its log, its offset
          and the columns of the table. A check of IDs has the columns of the table.
        - ``lost_messages`` has the rows of the sent table.

        Args:
            check: The name of a check that was made; see `msgid.audit.CHECKS`.

        Raises:
            ValueError: if the check is unknown or was not made, or the report does not have the table: it was copied
                to another process, or made from digests.

        >>> import msgid.audit
        >>> report = msgid.audit.audit_table({"offset": [1, 2, 5, 9]}, offset="offset")
        >>> report.rows_of("missing_offsets").select(["first", "last", "count"]).to_pylist()
        [{'first': 3, 'last': 4, 'count': 2}, {'first': 6, 'last': 8, 'count': 3}]
        """
        self._check_rows(check)
        if self._rows is None:
            raise ValueError(f"cannot return the rows of {check}: {_NO_TABLE}")
        return self._rows(check)

    def write_rows(self, check: str, path: str | PathLike[str]) -> None:
        """Write all rows of a check to a file of CSV, JSON lines or Parquet, by its ending.

        Args:
            check: The name of a check that was made, as for `rows_of`.
            path: The file. A file that exists is replaced.

        Raises:
            ValueError: if `rows_of` raises it, or the ending is another one.
            OSError: if the file cannot be written.
        """
        self._check_rows(check)
        if self._copy is None:
            raise ValueError(f"cannot write the rows of {check}: {_NO_TABLE}")
        self._copy(check, path)

    def _check_rows(self, check: str) -> None:
        """Raise ValueError if a check is unknown or was not made."""
        check_names("check", [check])
        reasons = {one.check: one.reason for one in self.not_checked}
        if check in _complete_checks(self) or any(one.check == check for one in self.findings):
            return
        other = "it needs a comparison" if self.sent is None else "a comparison does not make it"
        raise ValueError(f"cannot return the rows of {check}: it was not checked ({reasons.get(check, other)})")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON has: moments are text."""
        listed = {name: [_plain(row) for row in getattr(self, name)] for name in LISTS}
        named = ("title", "summary", "rows", "unplaced", "untimed", "unlanded", "sent")
        numbers = {name: getattr(self, name) for name in named}
        until = None if self.complete_until is None else self.complete_until.isoformat()
        return {**numbers, "complete_until": until, **listed, "notes": self.notes}

    def to_json(self) -> str:
        """Return the report as JSON: one object with the names of the attributes.

        >>> import json, msgid.audit
        >>> json.loads(msgid.audit.audit_ids([None]).to_json())["findings"][0]["check"]
        'missing_ids'
        """
        return json.dumps(self.to_dict(), indent=1)

    def to_openmetrics(self) -> str:
        """Return the report as OpenMetrics text: the numbers of rows and of each check that was made.

        A check that found nothing is 0, and one that was not made is left out. ``msgid_audit_complete_until_seconds``
        is the Unix time before which all sent messages have landed.

        >>> import msgid.audit
        >>> text = msgid.audit.audit_ids([None]).to_openmetrics()
        >>> [line for line in text.splitlines() if "missing_ids" in line]
        ['msgid_audit_messages{check="missing_ids",severity="warning"} 1']
        """
        return _metrics(self)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one self-contained HTML page, and write it to a file if a path is given.

        Args:
            path: The file to write, in UTF-8.
        """
        from msgid.audit._page import page, saved

        return saved(page(self), path)

    def _repr_html_(self) -> str:
        """Return the charts and tables as a part of a page, for notebooks."""
        from msgid.audit._page import fragment

        return fragment(self)


def report_of(facts: Facts, rules: Rules = Rules()) -> Report:  # noqa: B008  # it is immutable
    """Return the report of the facts of a table, by the rules of the caller."""
    skipped = _skipped(rules)
    facts = facts._replace(
        counts=[one for one in facts.counts if one.check not in skipped],
        gaps=[gap for gap in facts.gaps if _GAPS[gap.kind] not in skipped],
        lengths={**facts.lengths, **({"gaps": 0} if set(_GAPS.values()) <= set(skipped) else {})},
    )
    not_checked, unread = _not_checked(facts, rules)
    same = {name: getattr(facts, name) for name in (*_CUT, "kinds", "rows", "unplaced", "untimed", "unlanded")}
    return Report(
        findings=findings_of(facts, rules),
        notes=_notes(facts),
        not_checked=not_checked,
        unread=unread,
        **same,
    )


def add_uncompared(report: Report, lacking: Sequence[int], column: str) -> None:
    """Add a finding for each side with rows that a comparison cannot match.

    Args:
        report: The report of the comparison.
        lacking: Number of such rows of sent and of the table.
        column: The column whose value they lack.
    """
    sides = zip((_SENT, TABLE), lacking, strict=True)
    counts = [Counted("uncompared_messages", side, rows, text=f"without {_VALUES[column]}") for side, rows in sides]
    report.findings = in_order([*report.findings, *findings_of(part_of(counts))])


def findings_of(facts: Facts, rules: Rules = Rules()) -> list[Finding]:  # noqa: B008  # it is immutable
    """Return the findings of facts, in the order of a report."""
    malformed = sum(number for kind, _, number in facts.kinds if kind == MALFORMED_KIND)
    values = sum(number for kind, _, number in facts.kinds if kind != NULL_KIND)

    def check_of(name: str, scope: str, example: str | None) -> Check:
        check = CHECKS[name]
        if name == "uncompared_messages" and scope == TABLE:
            return check._replace(severity="warning")  # each sent message has another row
        if name == "malformed_ids" and 2 * malformed > values:
            return Check("error", _WRONG_COLUMN)
        if rules.holes == "compacted" and (name == "clock_backwards" or (name == "shared_node" and example is None)):
            return Check("info", _BACK_OR_SHARED)
        return Check("info", _TWO_READINGS) if rules.holes == "markers" and name in _GAPS.values() else check

    def finding(check: str, scope: str, count: int, example: str | None) -> Finding:
        known = check_of(check, scope, example)
        return Finding(check, known.severity, scope, count, example, known.meaning)

    scopes = ((one, plural(one.x or 0, "other") if one.scope is None else one.scope) for one in facts.counts)
    return in_order(finding(one.check, scope, one.count, _example(one)) for one, scope in scopes)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, the most severe first: lost before changed, and changed before repeated, as in `CHECKS`."""
    order = list(CHECKS)
    return sorted(
        findings,
        key=lambda f: (SEVERITIES.index(f.severity), order.index(f.check), f.example is None, -f.count, f.scope),
    )


def _in_short(findings: Sequence[Finding]) -> str:
    """Return the findings of one check as a part of a line: their total, and the largest of them."""
    largest, total = findings[0], sum(one.count for one in findings)
    why = f" ({largest.example})" if largest.check == "uncompared_messages" else ""
    where = f"in {shown(largest.scope)}{why}"
    return f"{total:,} {largest.check} {where if len(findings) == 1 else f'({largest.count:,} of them {where})'}"


def _skipped(rules: Rules) -> dict[str, str]:
    """Return the checks that the caller leaves out, each with the reason."""
    compacted = dict.fromkeys(_GAPS.values(), "holes='compacted': compare with the queue")
    return (compacted if rules.holes == "compacted" else {}) | dict.fromkeys(rules.without, "left out by the caller")


def _not_checked(facts: Facts, rules: Rules) -> tuple[list[NotChecked], list[Unread]]:
    """Return the checks that the table or the caller does not allow, in the order of `CHECKS`, and what cannot be read.

    A value that cannot be read counts only if a check needs it that is made otherwise.
    """
    given = {**facts.columns, "offset": facts.columns["offset"] or bool(facts.logs), "counter": bool(facts.generators)}
    needs = {name: check.needs for name, check in CHECKS.items() if "sent" not in check.needs}
    if rules.earliest is not None:
        needs["future_ids"] = ("id",)
    reasons = _skipped(rules)
    for name, needed in needs.items():
        lacking = [need for need in needed if not given[need]]
        if lacking and name not in reasons:
            reasons[name] = _WITHOUT[lacking[0]]
    unread: list[Unread] = []
    for column, number in (("offset", facts.unplaced), ("timestamp", facts.untimed), ("landed", facts.unlanded)):
        checks = [name for name, needed in needs.items() if column in needed and name not in reasons]
        if number and checks:
            unread.append(Unread(_VALUES[column], {column: number}))
            if number == facts.rows:
                reasons |= dict.fromkeys(checks, f"no row has {_VALUES[column]}")
    if not facts.columns["offset"]:
        rows = {
            check: sum(number for kind, _, number in facts.kinds if kind == of)
            for check, of in (("missing_ids", NULL_KIND), ("malformed_ids", MALFORMED_KIND))
            if check not in reasons
        }
        unread.append(Unread(_VALUES["id"], rows))
    not_checked = [NotChecked(check, reasons[check]) for check in CHECKS if check in reasons]
    if facts.holes and "missing_offsets" not in reasons:
        gaps = "gap" if facts.holes == 1 else "gaps"
        length = "one offset" if rules.producers == 1 else f"up to {rules.producers:,} offsets"
        marker = "is a marker" if facts.holes == 1 else "are markers"
        reason = f"{facts.holes:,} {gaps} of {length} {marker} or a loss: compare with the queue"
        not_checked.append(NotChecked("missing_offsets", reason))
    return not_checked, unread


def _example(c: Counted) -> str | None:
    form = CHECKS[c.check].example
    if c.scope is None or c.x is None or not form:
        return c.text
    return form.format(x=c.x, y=c.y, seconds=(c.y or 0) / 1e6, span=span(c.x, c.y or 0))


def _notes(facts: Facts) -> list[str]:
    notes = []
    v0 = [(origin, n) for kind, origin, n in facts.kinds if kind.startswith("v0-")]
    if uuids := sum(n for origin, n in v0 if origin is not None):
        notes.append(
            f"{uuids:,} of {sum(n for _, n in v0):,} version-0 IDs may be UUIDs that were written without dashes, by "
            "their bits. One in 64 IDs of a client has these bits by chance. Write UUIDs with dashes."
        )
    if facts.logs:
        notes.append(
            "A loss before the first offset of a log or after its last leaves no trace in the table. Compare "
            "first_offset and last_offset with those of the queue."
        )
    if facts.generators:
        notes.append("A loss before the first sequence number of a run or after its last leaves no trace either.")
    in_utc = "A time as text is valid if it names its offset from UTC."
    for rows, lack in (
        (facts.untimed, f"a valid timestamp, which time_backwards needs. {in_utc}"),
        (facts.unlanded, f"a valid landing time, which late_messages and future_ids need. {in_utc}"),
        (facts.unplaced, "a source or a valid offset, and so do not count in any log."),
    ):
        if rows:
            notes.append(f"{rows:,} {'row lacks' if rows == 1 else 'rows lack'} {lack}")
    for name, what in _CUT.items():
        total, listed = facts.lengths.get(name, 0), len(getattr(facts, name))
        if total > listed:
            notes.append(f"The report lists {listed:,} of {total:,} {what}; the findings count all.")
    return notes


def _plain(row: Any) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row._asdict().items()}


def lost_ranges(report: Report) -> list[Gap]:
    """Return the ranges of lost offsets: the gaps of a table, or the neighboring lost messages of a comparison."""
    if report.sent is None:
        is_lost = any(one.check == "missing_offsets" and one.severity == "error" for one in report.findings)
        return [gap for gap in report.gaps if gap.kind == "offset"] if is_lost else []
    return [
        Gap("offset", one.scope, one.first, one.last, one.count)
        for one in ranges(report.differences)
        if one.fault == "lost" and one.first is not None and one.last is not None
    ]


def _lost_in_short(report: Report) -> list[str]:
    """Return the ranges of lost offsets, or the lost IDs of a comparison by IDs, as at most one line."""
    largest = sorted(lost_ranges(report), key=lambda gap: -gap.count)
    lost_offsets = [f"{shown(gap.scope)} {span(gap.first, gap.last)}" for gap in largest]
    ids = [shown(one.id or "") for one in report.differences if one.fault == "lost" and one.offset is None]
    lost = sum(one.count for one in report.findings if one.check in ("lost_messages", "missing_offsets"))
    listed = sum(gap.count for gap in largest)
    names = (ids or lost_offsets)[:NAMED]
    rest = (lost if ids else len(lost_offsets)) - len(names)
    if not names:
        return []
    if lost_offsets and listed < lost:
        names.append(f"and others: the report lists {listed:,} of {lost:,} lost messages")
    elif rest:
        names.append(f"and {plural(rest, 'other' if ids else 'other range')}")
    uncompared = (one for one in report.findings if (one.check, one.scope) == ("uncompared_messages", TABLE))
    unread = report.unplaced + sum(one.count for one in uncompared)
    aside = f"; {plural(unread, 'row')} that cannot be read may be among these" if unread else ""
    return [f"{'lost' if ids else 're-read these ranges'}: {', '.join(names)}{aside}"]


def _laid_out(findings: list[Finding]) -> list[str]:
    """Return the findings as lines of a table; none without findings."""
    if not findings:
        return []
    head = ("severity", "check", "scope", "count", "example")
    rows = [head, *((f.severity, f.check, shown(f.scope), f"{f.count:,}", shown(f.example or "")) for f in findings)]
    a, b, c, d, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [f"{row[0]:{a}}  {row[1]:{b}}  {row[2]:{c}}  {row[3]:>{d}}  {row[4]}".rstrip() for row in rows]


def _complete_checks(report: Report) -> list[str]:
    """Return the checks that were made in full."""
    left_out = {one.check for one in report.not_checked}
    of_one_side = [name for name, check in CHECKS.items() if "sent" not in check.needs]
    return [check for check in (of_one_side if report.sent is None else _OF_TWO_SIDES) if check not in left_out]


def _metrics(report: Report) -> str:
    """Return the metrics of a report, with the end mark of OpenMetrics."""
    names = {one.check for one in report.findings}
    messages_by_check = Counter(
        {(check, CHECKS[check].severity): 0 for check in _complete_checks(report) if check not in names}
    )
    for one in report.findings:
        messages_by_check[one.check, one.severity] += one.count
    order, until = list(CHECKS), report.complete_until
    messages = {
        f'{{check="{check}",severity="{severity}"}}': number
        for (check, severity), number in sorted(messages_by_check.items(), key=lambda item: order.index(item[0][0]))
    }
    gauges: list[tuple[str, str, dict[str, Any]]] = [
        ("messages", "Messages, IDs or numbers that a check found.", messages),
        ("rows", "Rows of the table.", {"": report.rows}),
        ("rows_without_place", "Rows without a source or a valid offset.", {"": report.unplaced}),
        ("sent_rows", "Messages that were sent.", {"": report.sent}),
        ("complete_until_seconds", "Unix time before which all sent messages have landed.",
         {"": None if until is None else until.timestamp()}),
    ]  # fmt: skip
    lines = []
    for name, help, values in gauges:
        family = f"msgid_audit_{name}"
        unit = [f"# UNIT {family} seconds"] if name.endswith("_seconds") else []
        if None not in values.values():
            lines += [f"# TYPE {family} gauge", *unit, f"# HELP {family} {help}"]
            lines += [f"{family}{labels} {value}" for labels, value in values.items()]
    return "\n".join((*lines, "# EOF", ""))
