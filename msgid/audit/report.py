"""The report of an audit, and how it is made from the facts of a table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit._report_text import in_short, laid_out, lost_in_short, metrics
from msgid.audit.definitions import CHECKS, SEVERITIES, TABLE, check_names
from msgid.audit.facts import LISTS, Counted, part_of, plural, unchecked
from msgid.audit.findings import (
    APART,
    CUT_LISTS,
    GAPS,
    VALUES,
    WRONG_COLUMN,
    checks_left_out,
    complete_checks,
    findings_of,
    in_order,
    notes_of,
    skipped_checks,
)
from msgid.audit.options import Rules
from msgid.shared.validate import INT64_MAX, integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from msgid.audit.definitions import Severity
    from msgid.audit.facts import Difference, Facts, Finding, Gap, GeneratorRow, KindRow, LogRow, NodeRow, NotChecked
    from msgid.audit.findings import Unread

_EDGES: Final = "losses before the first row of a log and after its last"
_SENT: Final = "sent"
"""The scope of a finding about the sent side of a comparison."""
_NO_TABLE: Final = "the report does not have its table, such as one of digests or of another process"


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
        return f"{plural(len(failed), 'finding')} of severity {which}: {', '.join(map(in_short, by_check.values()))}"

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
        wrong = dict.fromkeys(f"{f.check}: {f.meaning}" for f in self.findings if f.meaning in (WRONG_COLUMN, APART))
        return "\n".join((*self.verdict, *wrong, *laid_out(self.findings)))

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
        return [self.summary, *lost_in_short(self), *complete]

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
        asides = [f", {n:,} without {VALUES[name]}" for name, n in lacking.items() if n]
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
        if check in complete_checks(self.not_checked, of_two_sides=self.sent is not None) or any(
            one.check == check for one in self.findings
        ):
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
        return metrics(self)

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
    skipped = skipped_checks(rules)
    facts = facts._replace(
        counts=[one for one in facts.counts if one.check not in skipped],
        gaps=[gap for gap in facts.gaps if GAPS[gap.kind] not in skipped],
        lengths={**facts.lengths, **({"gaps": 0} if set(GAPS.values()) <= set(skipped) else {})},
    )
    not_checked, unread = checks_left_out(facts, rules)
    same = {name: getattr(facts, name) for name in (*CUT_LISTS, "kinds", "rows", "unplaced", "untimed", "unlanded")}
    return Report(
        findings=findings_of(facts, rules),
        notes=notes_of(facts),
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
    counts = [Counted("uncompared_messages", side, rows, text=f"without {VALUES[column]}") for side, rows in sides]
    report.findings = in_order([*report.findings, *findings_of(part_of(counts))])


def _plain(row: Any) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row._asdict().items()}
