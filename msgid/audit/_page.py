"""An audit's report as a page of HTML: one file, no network, readable without its script."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from msgid.audit.definitions import FAULTS, TABLE
from msgid.audit.facts import NAMED, Range, plural, ranges, span, unchecked
from msgid.shared.validate import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from msgid.audit.facts import LogRow

_MAX_ROWS: Final = 300
"""Number of rows of a table in the page; the JSON has all that the report lists."""
_MAX_TRACKS: Final = 30
_MAX_MARKS: Final = 200
"""Number of ranges that one track draws, the largest."""
_LONGEST: Final = 1_000
"""Number of characters of the longest line, such as the title, which has the options of a command."""
_NARROWEST: Final = 0.6
"""Width in percent of the narrowest mark, so that a single lost message is visible."""
_HEADING: Final = "Audit of message IDs"
_NUMBER: Final = ' class="number"'
_SIDES: Final = ("sent", TABLE)
"""The scopes of findings about a side of a comparison, or about the table."""
_OF_SENT: Final = (FAULTS["lost"], FAULTS["changed"])
"""The checks of a comparison whose messages are those of the sent side."""
_TABLES: Final = (
    ("differences", "Messages in which the two sides differ, with the ID of the first of each range"),
    ("gaps", "Ranges of missing offsets and sequence numbers, largest first"),
    ("logs", "Logs, those with most faults first"),
    ("generators", "Runs of generators, those with most missing numbers first"),
    ("nodes", "Nodes, those with most generators at the same time first"),
    ("kinds", "Rows by kind and origin of their ID"),
)


@cache
def _asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(report: Any) -> str:
    """Return a `msgid.audit.Report` as one HTML page."""
    return _document(report.title or _HEADING, fragment(report))


def story_page(trace: Any) -> str:
    """Return a `msgid.audit.story.Trace` as one HTML page."""
    verdict = f"Found, with {plural(len(trace.events), 'event')}." if trace.exists else "Not found."
    notes = "".join(f"<li>{_line(note)}</li>" for note in trace.notes)
    inside = "".join([
        f'<h1>Message {_line(trace.id)}</h1><div class="verdict"><p>{verdict}</p></div>',
        "<p><small>All times are in UTC.</small></p>",
        _table("events", "In the order of time; events without a time are last", trace.events,
               ("at", "event", "text", "evidence"), longest=_LONGEST),
        _section("Notes", "unchecked", notes, "ul"),
    ])  # fmt: skip
    return _document(f"Message {trace.id}", _main(inside))


def saved(text: str, path: str | PathLike[str] | None) -> str:
    """Return a page, and write it to a file if a path is given."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def _document(title: str, inside: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{_line(title)}</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f'</head><body class="msgid-audit-page">{inside}<script>{_asset("page.js")}</script></body></html>\n'
    )


def fragment(report: Any) -> str:
    """Return a report as a part of a page, without the script that sorts its tables."""
    verdict = "".join(f"<p>{_line(f'{line[:1].upper()}{line[1:]}')}.</p>" for line in report.conclusion)
    title = f"{_line(report.title)}. " if report.title else ""
    left_out = [*unchecked(report.not_checked, len(report.not_checked)), *report.notes]
    meanings = {finding.check: finding.meaning for finding in report.findings}
    fields = ("check", "severity", "scope", "count", "share", "example")
    caption = "The most severe first, each with its share of its log, generator or table"
    parts = [
        f'<h1>{_HEADING}</h1><div class="verdict">{verdict}</div>',
        f"<p><small>{title}All times are in UTC.</small></p>",
        _section("Not checked", "unchecked", "".join(f"<li>{_line(one)}</li>" for one in left_out), "ul"),
        _table("findings", caption, _findings(report), fields),
        _section("Meaning of the findings", "meanings",
                 "".join(f"<dt>{check}</dt><dd>{_line(text)}</dd>" for check, text in meanings.items()), "dl"),
        _section("Offsets of each log", "timelines", _timelines(report), "div"),
    ]  # fmt: skip
    for name, caption in _TABLES:
        rows = ranges(report.differences) if name == "differences" else getattr(report, name)
        rows = [] if name == "gaps" and report.sent is not None else rows  # they are among the differences
        parts.append(_table(name, caption, rows, rows[0]._fields if rows else ()))
    return _main("".join(parts))


def _main(inside: str) -> str:
    return f'<style>{_asset("page.css")}</style><main class="msgid-audit">{inside}</main>'


def _section(title: str, name: str, inside: str, element: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2><{element}>{inside}</{element}></section>' if inside else ""


def _findings(report: Any) -> list[tuple[Any, ...]]:
    """Return the findings as rows, each with its share of its log, generator or table as a fraction."""
    whole: dict[str, int] = defaultdict(int, {log.source: log.rows + log.missing for log in report.logs})
    whole.update((name, log.rows) for name, log in report.sent_logs.items())
    for run in report.generators:
        whole[f"{run.node}/{run.pid}"] += run.ids + run.missing
    rows = []
    for one in report.findings:
        of = whole[one.scope]
        if one.scope in _SIDES:
            is_of_sent = report.sent is not None and (one.check in _OF_SENT or one.scope != TABLE)
            of = (report.sent or 0) if is_of_sent else report.rows
        rows.append((*one[:4], min(one.count / of, 1.0) if of else None, one.example))
    return rows


def _table(name: str, caption: str, rows: Sequence[Any], fields: Sequence[str], longest: int | None = None) -> str:
    if not rows:
        return ""
    shown = rows[:_MAX_ROWS]
    numbers = [any(isinstance(row[index], int) for row in shown) for index in range(len(fields))]
    heads = "".join(
        f'<th scope="col"{is_number * _NUMBER}>{field}</th>' for field, is_number in zip(fields, numbers, strict=True)
    )
    labels = "".join(
        f'#{name} td:nth-child({index})::before{{content:"{field}"}}' for index, field in enumerate(fields, 1)
    )
    severity = '<tr class="{1}">' if name == "findings" else "<tr>"
    body = "".join(
        f"{severity.format(*row[:2])}{''.join(_cell(value, longest) for value in row)}</tr>" for row in shown
    )
    more = f": the first {_MAX_ROWS:,}" if len(rows) > _MAX_ROWS else ""
    title = name.capitalize()
    return (
        f"<h2>{title}</h2><style>@media (max-width:40rem){{{labels}}}</style>"
        f'<div class="wide" role="region" aria-label="{title}" tabindex="0"><table id="{name}">'
        f"<caption>{caption}{more}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any, longest: int | None = None) -> str:
    if isinstance(value, int):
        return f'<td class="number" data-value="{value}">{value:,}</td>'
    if isinstance(value, float):
        percent = 100 * value
        bar = f'<svg aria-hidden="true" width="100%" height="12">{_mark("bar", 0, percent, 12)}</svg>'
        return f'<td class="share" data-value="{value}">{bar}<span>{percent:.3g} %</span></td>'
    if isinstance(value, datetime):
        return f"<td>{moment(value)}</td>"
    return f"<td>{_text(value) if longest is None else _line(value or '')}</td>"


def _text(text: object) -> str:
    """Return a text of others for a page, as in a printed report, and escaped; an empty text for None."""
    return "" if text is None else escape(shown(str(text)))


def _line(text: str) -> str:
    """Return a line of the report for a page: it may be longer than a name."""
    return escape(shown(text, _LONGEST))


def moment(at: datetime | None) -> str:
    """Return a moment in UTC to the second; an empty text for None."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


# --- Charts: inline SVG that scales with the page ---


def _mark(name: str, start: float, width: float, height: int) -> str:
    start = min(start, 100 - _NARROWEST)
    return f'<rect class="{name}" x="{start:.2f}%" width="{max(width, _NARROWEST):.2f}%" height="{height}"/>'


def _timelines(report: Any) -> str:
    """Return one track per log, with its missing or different offsets marked."""
    marks: dict[str, list[Range]] = defaultdict(list)
    for one in sorted(_marked(report), key=lambda one: -one.count):
        marks[one.scope].append(one)
    if report.logs:
        tracks = [_track_of_log(log, marks[log.source]) for log in report.logs[:_MAX_TRACKS]]
    else:
        tracks = [
            _track_of_differences(scope, ranges_of_log, report.sent_logs.get(scope))
            for scope, ranges_of_log in list(marks.items())[:_MAX_TRACKS]
        ]
    more = max(len(report.logs), len(marks)) - _MAX_TRACKS
    tail = f"<p>{plural(more, 'more log')} {'is' if more == 1 else 'are'} in the tables.</p>" if more > 0 else ""
    is_whole = report.logs or report.sent_logs
    note = "Each from its first offset to its last." if is_whole else "The part of each log in which the sides differ."
    return f'<p><small>{note}</small></p><ul class="logs">{"".join(tracks)}</ul>{tail}' if tracks else ""


def _marked(report: Any) -> list[Range]:
    """Return the ranges to mark: the offsets in which two sides differ, or the missing ones of a table."""
    if report.sent is not None:
        return [one for one in ranges(report.differences) if one.first is not None]
    offsets = (gap for gap in report.gaps if gap.kind == "offset")
    return [Range("missing", gap.scope, gap.first, gap.last, gap.count, None) for gap in offsets]


def _track_of_log(log: LogRow, marks: list[Range]) -> str:
    missing = f"{log.missing:,} missing{_spans(marks)}" if log.missing else "nothing missing"
    faults = ((log.duplicates, "duplicated"), (log.conflicts, "in conflict"), (log.late, "late"))
    asides = [missing, *(f"{number:,} {word}" for number, word in faults if number)]
    return _track(log.source, (log.first_offset, log.first_time), (log.last_offset, log.last_time), marks, asides)


def _track_of_differences(scope: str, marks: list[Any], log: Any) -> str:
    """Return the track of a log of a comparison.

    It ends at the last offset of both sides that is known. So a loss at the end of the log is marked there.
    """
    first, last = min(one.first for one in marks), max(one.last for one in marks)
    if log is not None:
        first, last = min(first, log.first_offset), max(last, log.last_offset)
    by_fault = groupby(sorted(marks, key=lambda one: one.fault), key=lambda one: one.fault)
    asides = [
        f"{sum(one.count for one in alike):,} {fault}{_spans(alike)}" for fault, of in by_fault for alike in [[*of]]
    ]
    return _track(scope, (first, None), (last, None), marks, asides)


def _spans(marks: list[Any]) -> str:
    """Return the largest ranges as text."""
    more = [plural(len(marks) - NAMED, "more range")] if len(marks) > NAMED else []
    named = [span(one.first, one.last) for one in marks[:NAMED]]
    return f": {', '.join((*named, *more))}" if marks else ""


def _track(name: str, start: tuple[int, Any], end: tuple[int, Any], marks: list[Any], asides: list[str]) -> str:
    """Return a line from one offset to another, with ranges marked."""
    percent = 100 / (end[0] - start[0] + 1)
    drawn = [_mark(one.fault, (one.first - start[0]) * percent, one.count * percent, 20) for one in marks[:_MAX_MARKS]]
    text = "; ".join(asides)
    label = f"{_text(name)}: offsets {start[0]} to {end[0]}; {text}"
    sides = "".join(f"<span>{offset:,}<br>{moment(at)}</span>" for offset, at in (start, end))
    return (
        f'<li class="log"><span class="name"><bdi>{_text(name)}</bdi> <small>{text}</small></span>'
        f'<svg role="img" aria-label="{label}" width="100%" height="20">'
        f'<rect class="held" width="100%" height="20" rx="3"/>{"".join(drawn)}</svg>'
        f'<span class="ends">{sides}</span></li>'
    )
