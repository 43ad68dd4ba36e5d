"""An audit's report as a page of HTML: one file, no network, readable without its script."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from msgid.audit.report import lost_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgid.audit.facts import Finding, Gap, LogRow

_MAX_ROWS: Final = 500
"""Number of rows of a table in the page; the JSON has all that the report lists."""

MAX_BARS: Final = 30
MAX_LOGS: Final = 30
MAX_MARKS: Final = 100
"""Number of gaps that one timeline draws; the smallest that touch are drawn as one."""
_LONGEST: Final = 100
_MOST_BYTES: Final = 300
_NARROWEST: Final = 0.4
"""Width in percent of the narrowest gap, so that a single lost message is visible."""
_HEADING: Final = "Audit of message IDs"
_NUMBER: Final = ' class="number"'
_TABLES: Final = (
    ("findings", "All findings", "The most severe first"),
    ("lost", "Lost ranges", "Ranges of offsets that were sent and did not land"),
    ("differences", "Messages", "Other messages in which the two sides differ"),
    ("gaps", "Gaps", "Ranges of missing offsets and sequence numbers, largest first"),
    ("logs", "Logs", "Logs, those with most faults first"),
    ("generators", "Generators", "Runs of generators, those with most missing numbers first"),
    ("nodes", "Nodes", "Nodes, those with most generators at the same time first"),
    ("kinds", "Kinds", "Rows by kind and origin of their ID"),
)


@cache
def _asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(report: Any) -> str:
    """Return a `msgid.audit.Report` as one HTML page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(report.title or _HEADING)}</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f'</head><body class="msgid-audit-page">{fragment(report)}<script>{_asset("page.js")}</script></body></html>\n'
    )


def fragment(report: Any) -> str:
    """Return a report as a part of a page, without the script that sorts its tables."""
    charts = [
        _section("Findings", "bars", bars(report.findings)),
        _section("Meaning of the findings", "meanings", _meanings(report.findings)),
        _section("Offsets of each log, gaps marked", "timelines", timelines(report.logs, report.gaps)),
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    shown = f"<h2>What the table cannot show</h2><ul>{notes}</ul>" if notes else ""
    lists = {**vars(report), **_messages(report)}
    tables = "".join(_table(lists[name], name, *texts) for name, *texts in _TABLES)
    verdict = "".join(f"<p>{escape(f'{line[:1].upper()}{line[1:]}')}.</p>" for line in report.verdict)
    title = f"<p><small>{escape(report.title)}</small></p>" if report.title else ""
    return (
        f'<style>{_asset("page.css")}</style><main class="msgid-audit"><h1>{_HEADING}</h1>{title}'
        f"{verdict}<p><small>All times are in UTC.</small></p>{''.join(charts)}{shown}{tables}</main>"
    )


def _messages(report: Any) -> dict[str, list[Any]]:
    """Return the lost ranges of a comparison, and its other messages."""
    lost = [] if report.sent is None else lost_ranges(report)
    others = [one for one in report.differences if not lost or one.fault != "lost" or one.offset is None]
    return {"lost": lost, "differences": others}


def _section(title: str, name: str, chart: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{chart}</section>' if chart else ""


def _meanings(findings: list[Finding]) -> str:
    """Return the meaning of each check that found something, once."""
    meanings = {finding.check: finding.meaning for finding in findings}
    items = "".join(f"<dt>{check}</dt><dd>{escape(meaning)}</dd>" for check, meaning in meanings.items())
    return f"<dl>{items}</dl>" if items else ""


def _table(rows: list[Any], name: str, title: str, caption: str) -> str:
    if not rows:
        return ""
    fields = [field for field in rows[0]._fields if field != "meaning"]
    numbers = {field for field in fields if any(isinstance(getattr(row, field), int) for row in rows[:_MAX_ROWS])}
    heads = "".join(f'<th scope="col"{_NUMBER if field in numbers else ""}>{field}</th>' for field in fields)
    labels = "".join(
        f'#{name} td:nth-child({place})::before{{content:"{field}"}}' for place, field in enumerate(fields, 1)
    )
    body = "".join(
        f"<tr>{''.join(_cell(field, getattr(row, field)) for field in fields)}</tr>" for row in rows[:_MAX_ROWS]
    )
    more = f": {_MAX_ROWS:,} of {len(rows):,}" if len(rows) > _MAX_ROWS else ""
    return (
        f"<h2>{title}</h2><style>@media (max-width:40rem){{{labels}}}</style>"
        f'<div class="wide" role="region" aria-label="{title}" tabindex="0"><table id="{name}">'
        f"<caption>{caption}{more}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(field: str, value: Any) -> str:
    if field == "reason":  # a sentence
        return f"<td>{escape(value)}</td>"
    if isinstance(value, int):
        return f'<td class="number" data-value="{value}">{value:,}</td>'
    if isinstance(value, datetime):
        return f"<td>{moment(value)}</td>"
    return f"<td>{shortened(value)}</td>"


# --- Charts: inline SVG that scales with the page, with a text for each mark ---


def shortened(text: object) -> str:
    """Return a text for a page, escaped: at most 100 characters and 300 bytes, so that the page stays small."""
    whole = "" if text is None else str(text)
    length = _LONGEST
    while True:
        shown = escape(whole if len(whole) <= length else f"{whole[: length - 1]}…")
        if len(shown.encode()) <= _MOST_BYTES:
            return shown
        length -= 1


def moment(at: datetime | None) -> str:
    """Return a moment in UTC to the second; an empty text for None."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def bars(findings: list[Finding]) -> str:
    """Return one bar per finding, whose length grows with the logarithm of its count: 3 is seen beside 75,777."""
    shown = findings[:MAX_BARS]
    if not shown:
        return "<p>The audit found nothing.</p>"
    largest = math.log1p(max(finding.count for finding in shown))
    items = []
    for finding in shown:
        width = max(100 * math.log1p(finding.count) / largest, _NARROWEST)
        label = f"{finding.severity}: {finding.check} of {finding.scope}, {finding.count:,}"
        items.append(
            f'<li class="bar"><span class="name"><b class="{finding.severity}">{finding.severity}</b> '
            f"{finding.check} <small>{shortened(finding.scope)}</small></span>"
            f'<svg role="img" aria-label="{shortened(label)}" width="100%" height="16">'
            f'<rect class="ground" width="100%" height="16" rx="3"/>'
            f'<rect class="{finding.severity}" width="{width:.1f}%" height="16" rx="3"/></svg>'
            f'<span class="number">{finding.count:,}</span></li>'
        )
    more = len(findings) - len(shown)
    tail = f"<p>{more:,} more findings are in the table.</p>" if more else ""
    note = "<p><small>The most severe first. Bars grow with the logarithm of the counts.</small></p>"
    return f'{note}<ul class="bars">{"".join(items)}</ul>{tail}'


def timelines(logs: list[LogRow], gaps: Iterable[Gap]) -> str:
    """Return one timeline per log, from its first offset to its last, with the gaps marked."""
    shown = logs[:MAX_LOGS]
    if not shown:
        return ""
    names = {log.source for log in shown}
    by_log: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        if gap.kind == "offset" and gap.scope in names:
            by_log[gap.scope].append(gap)
    items = [_timeline(log, by_log[log.source]) for log in shown]
    more = len(logs) - len(shown)
    tail = f"<p>{more:,} more logs are in the table.</p>" if more else ""
    note = "<p><small>Those with most faults first, each from its first offset to its last.</small></p>"
    return f'{note}<ul class="logs">{"".join(items)}</ul>{tail}'


def _timeline(log: LogRow, gaps: list[Gap]) -> str:
    span = log.last_offset - log.first_offset + 1
    marks: list[list[float]] = []
    for gap in sorted(gaps, key=lambda gap: gap.first):
        start = 100 * (gap.first - log.first_offset) / span
        end = start + max(100 * gap.count / span, _NARROWEST)
        if marks and start <= marks[-1][1]:
            marks[-1][1] = max(end, marks[-1][1])
        else:
            marks.append([start, end])
    marks = sorted(marks, key=lambda mark: mark[0] - mark[1])[:MAX_MARKS]
    drawn = "".join(
        f'<rect class="gap" x="{min(start, 100 - _NARROWEST):.2f}%" width="{end - start:.2f}%" height="20"/>'
        for start, end in sorted(marks)
    )
    lost = f"{log.missing:,} missing" if log.missing else "nothing missing"
    label = f"{log.source}: offsets {log.first_offset} to {log.last_offset}, {lost}"
    faults = [f"{n:,} {name}" for name, n in (("duplicates", log.duplicates), ("conflicts", log.conflicts)) if n]
    faults += [f"{log.late:,} late"] if log.late else []
    return (
        f'<li class="log"><span class="name">{shortened(log.source)} <small>{"; ".join([lost, *faults])}</small></span>'
        f'<svg role="img" aria-label="{shortened(label)}" width="100%" height="20">'
        f'<rect class="held" width="100%" height="20" rx="3"/>{drawn}</svg>'
        f'<span class="ends"><span>{log.first_offset:,}<br>{moment(log.first_time)}</span>'
        f"<span>{log.last_offset:,}<br>{moment(log.last_time)}</span></span></li>"
    )
