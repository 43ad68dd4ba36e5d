"""The text of a report: its lines for a terminal, and its metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgid.audit.definitions import CHECKS, TABLE
from msgid.audit.facts import NAMED, Gap, plural, ranges, span
from msgid.audit.findings import complete_checks
from msgid.shared.validate import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgid.audit.facts import Finding


def in_short(findings: Sequence[Finding]) -> str:
    """Return the findings of one check as a part of a line: their total, and the largest of them."""
    largest, total = findings[0], sum(one.count for one in findings)
    why = f" ({largest.example})" if largest.check == "uncompared_messages" else ""
    where = f"in {shown(largest.scope)}{why}"
    return f"{total:,} {largest.check} {where if len(findings) == 1 else f'({largest.count:,} of them {where})'}"


def _lost_ranges(report: Any) -> list[Gap]:
    """Return the ranges of lost offsets: the gaps of a table, or the neighboring lost messages of a comparison."""
    if report.sent is None:
        is_lost = any(one.check == "missing_offsets" and one.severity == "error" for one in report.findings)
        return [gap for gap in report.gaps if gap.kind == "offset"] if is_lost else []
    return [
        Gap("offset", one.scope, one.first, one.last, one.count)
        for one in ranges(report.differences)
        if one.fault == "lost" and one.first is not None and one.last is not None
    ]


def lost_in_short(report: Any) -> list[str]:
    """Return the ranges of lost offsets, or the lost IDs of a comparison by IDs, as at most one line."""
    largest = sorted(_lost_ranges(report), key=lambda gap: -gap.count)
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


def laid_out(findings: list[Finding]) -> list[str]:
    """Return the findings as lines of a table; none without findings."""
    if not findings:
        return []
    head = ("severity", "check", "scope", "count", "example")
    rows = [head, *((f.severity, f.check, shown(f.scope), f"{f.count:,}", shown(f.example or "")) for f in findings)]
    a, b, c, d, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [f"{row[0]:{a}}  {row[1]:{b}}  {row[2]:{c}}  {row[3]:>{d}}  {row[4]}".rstrip() for row in rows]


def metrics(report: Any) -> str:
    """Return the metrics of a report, with the end mark of OpenMetrics."""
    names = {one.check for one in report.findings}
    messages_by_check = Counter(
        {
            (check, CHECKS[check].severity): 0
            for check in complete_checks(report.not_checked, of_two_sides=report.sent is not None)
            if check not in names
        }
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
