"""An audit's report as a page of HTML: one file, no network, readable without its script."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.audit._charts import bars, moment, rates, shortened, timelines

if TYPE_CHECKING:
    from msgid.audit._lists import Finding
    from msgid.audit.facts import RateFact

_MAX_ROWS: Final = 500
"""Number of rows of a table in the page; the JSON has all that the report lists."""

_STYLE: Final = """
.msgid-audit{--ink:#1c1c1a;--soft:#5c5b57;--paper:#fdfdfc;--line:#dddbd5;--ground:#eeece7;--held:#5b8db8;--gap:#b3261e;
--error:#b3261e;--warning:#9a5b00;--info:#2f6690;--area:#2f6690;color:var(--ink);background:var(--paper);
font:15px/1.45 system-ui,sans-serif;max-width:75rem;margin:0 auto;padding:1rem;box-sizing:border-box}
@media (prefers-color-scheme:dark){.msgid-audit{--ink:#eceae4;--soft:#b3b0a8;--paper:#191918;--line:#3c3b38;
--ground:#2b2a28;--held:#4d7ea8;--gap:#ff8a7a;--error:#ff8a7a;--warning:#f0b35c;--info:#8fc1e8;--area:#8fc1e8}
body.msgid-audit-page{background:#191918}}
body.msgid-audit-page{margin:0}
.msgid-audit h1{font-size:1.5rem;margin:.2rem 0}.msgid-audit h2{font-size:1.15rem;margin:2rem 0 .5rem}
.msgid-audit dl{margin:0}.msgid-audit dt{font-weight:600;margin-top:.5rem}.msgid-audit dd{margin:0}
.msgid-audit ul{list-style:none;margin:0;padding:0}.msgid-audit small{color:var(--soft)}
.msgid-audit svg{display:block}.msgid-audit .name{overflow-wrap:anywhere}
.msgid-audit .bar{display:grid;grid-template-columns:minmax(0,22rem) minmax(3rem,1fr) auto;gap:.2rem .7rem;
align-items:center;margin:.35rem 0}
.msgid-audit .number{font-variant-numeric:tabular-nums;min-width:3rem;text-align:right}
.msgid-audit .log,.msgid-audit .rate{margin:.9rem 0}
.msgid-audit .ends{display:flex;justify-content:space-between;gap:1rem;color:var(--soft);font-size:.8rem;margin:.1rem 0}
.msgid-audit .ends span:last-child{text-align:right}
.msgid-audit .rates{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(20rem,100%),1fr));gap:.5rem 1.5rem}
.msgid-audit b.error{color:var(--error)}.msgid-audit b.warning{color:var(--warning)}
.msgid-audit b.info{color:var(--info)}
.msgid-audit rect.error{fill:var(--error)}.msgid-audit rect.warning{fill:var(--warning)}
.msgid-audit rect.info{fill:var(--info)}.msgid-audit rect.ground{fill:var(--ground)}
.msgid-audit rect.held{fill:var(--held)}.msgid-audit rect.gap{fill:var(--gap);stroke:var(--gap);stroke-width:1}
.msgid-audit .area{fill:var(--area);opacity:.75}
.msgid-audit .base{stroke:var(--soft);vector-effect:non-scaling-stroke}
.msgid-audit .wide{overflow-x:auto}.msgid-audit table{border-collapse:collapse;width:100%;font-size:.87rem}
.msgid-audit caption{text-align:left;color:var(--soft);padding:.2rem 0}
.msgid-audit th,.msgid-audit td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);
vertical-align:top}.msgid-audit td.number{white-space:nowrap}.msgid-audit th.number{text-align:right}
.msgid-audit th button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;cursor:pointer}
.msgid-audit th[aria-sort=ascending] button::after{content:" ▲"}
.msgid-audit th[aria-sort=descending] button::after{content:" ▼"}
.msgid-audit :focus-visible{outline:2px solid var(--info);outline-offset:2px}
@media (max-width:40rem){.msgid-audit table,.msgid-audit caption,.msgid-audit tbody,.msgid-audit tr{display:block}
.msgid-audit thead{display:none}.msgid-audit tr{border-bottom:1px solid var(--line);padding:.3rem 0}
.msgid-audit td,.msgid-audit td.number{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0;
text-align:right;white-space:normal;overflow-wrap:anywhere}.msgid-audit td:empty{display:none}
.msgid-audit td::before{color:var(--soft);white-space:nowrap}
.msgid-audit .bar{grid-template-columns:1fr auto}.msgid-audit .bar .name{grid-column:1/-1}}
"""

_SCRIPT: Final = """
for (const table of document.querySelectorAll(".msgid-audit table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = row => row.cells[place].dataset.value ?? row.cells[place].textContent;
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (numbers ? x - y : x.localeCompare(y)) * (up ? 1 : -1);
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  });
}
"""

_NUMBER: Final = ' class="number"'
_TABLES: Final = (
    ("findings", "All findings", "The most severe first"),
    ("differences", "Messages", "Messages in which the two sides differ"),
    ("gaps", "Gaps", "Ranges of missing offsets and sequence numbers, largest first"),
    ("logs", "Logs", "Logs, those with most faults first"),
    ("generators", "Generators", "Runs of generators, those with most missing numbers first"),
    ("nodes", "Nodes", "Nodes, those with most generators at the same time first"),
    ("kinds", "Kinds", "Rows by kind and origin of their ID"),
    ("not_checked", "Not checked", "Checks that were not made, and the reasons"),
)


class Content(NamedTuple):
    """The content of a page: the summary, up to when the table is complete, the notes, the rates, and the lists."""

    summary: str
    complete: str | None
    notes: list[str]
    rates: list[RateFact]
    lists: dict[str, list[Any]]


def page(content: Content) -> str:
    """Return a report as one HTML page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Audit of message IDs</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f'</head><body class="msgid-audit-page">{fragment(content)}<script>{_SCRIPT}</script></body></html>\n'
    )


def fragment(content: Content) -> str:
    """Return a report as a part of a page, without the script that sorts its tables."""
    lists = content.lists
    charts = [
        _section("Findings", "bars", bars(lists["findings"])),
        _section("Meaning of the findings", "meanings", _meanings(lists["findings"])),
        _section("Offsets of each log, gaps marked", "timelines", timelines(lists["logs"], lists["gaps"])),
        _section("IDs per minute of each generator", "rates", rates(content.rates)),
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in content.notes)
    shown = f"<h2>What the table cannot show</h2><ul>{notes}</ul>" if notes else ""
    tables = "".join(_table(lists, *table) for table in _TABLES)
    complete = f"<p>{content.complete[:1].upper()}{content.complete[1:]}.</p>" if content.complete else ""
    return (
        f'<style>{_STYLE}</style><main class="msgid-audit"><h1>Audit of message IDs</h1><p>{content.summary}</p>'
        f"{complete}<p><small>All times are in UTC.</small></p>{''.join(charts)}{shown}{tables}</main>"
    )


def _section(title: str, name: str, chart: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{chart}</section>' if chart else ""


def _meanings(findings: list[Finding]) -> str:
    """Return the meaning of each check that found something, once."""
    meanings = {finding.check: finding.meaning for finding in findings}
    items = "".join(f"<dt>{check}</dt><dd>{escape(meaning)}</dd>" for check, meaning in meanings.items())
    return f"<dl>{items}</dl>" if items else ""


def _table(lists: dict[str, list[Any]], name: str, title: str, caption: str) -> str:
    rows = lists[name]
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
