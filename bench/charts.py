"""Draw the charts as SVG: bars as text, lines with Matplotlib. They are legible on a phone, in light and dark."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OURS, THEIRS, FLOOR = "#c2410c", "#94a3b8", "#cbd5e1"
WIDTH = 360
"""The width of a chart of bars in pixels, as on a phone."""
_TITLE, _ROW, _BAR, _SCALE = 34, 32, 11, 290
"""The heights of a title, a row and a bar, and the width of the longest bar, in pixels."""
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#1f2937}.title{font-weight:bold;font-size:13px}"
    "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}}"
)
_DARK = (
    "<style>@media(prefers-color-scheme:dark){text{fill:#e5e7eb!important}"
    '[style*="stroke: #000000"]{stroke:#e5e7eb!important}}</style>'
)
"""Matplotlib writes the colour of each part as a style of its own."""


def bars(measured: dict[str, dict[str, float]], path: str) -> None:
    """Draw one panel per section: ns per ID, the fastest on top."""
    panels = {
        f"{title}: ns per ID": sorted(by_name.items(), key=lambda pair: pair[1]) for title, by_name in measured.items()
    }
    _draw(panels, path, ".1f", lambda name: "msgid" in name)


def rates(measured: dict[str, dict[str, float]], path: str) -> None:
    """Draw one panel per section: millions of rows per second, the fastest on top."""
    panels = {
        f"{title}: millions of rows per second": sorted(by_name.items(), key=lambda pair: -pair[1])
        for title, by_name in measured.items()
    }
    _draw(panels, path, ".2f", lambda name: "Python UDF" not in name and name != "uuid()")


def _draw(panels: dict[str, list[tuple[str, float]]], path: str, form: str, is_ours: Callable[[str], bool]) -> None:
    """Draw bars from zero on a linear scale. Each has its label above it, and its value beside it."""
    drawn, y = [], 0
    for title, values in panels.items():
        y += _TITLE
        drawn.append(f'<text class="title" x="0" y="{y - 12}">{escape(title)}</text>')
        most = max(value for _, value in values)
        for name, value in values:
            width = max(1, round(_SCALE * value / most))
            label = escape(name.replace("`", ""))
            drawn.append(
                f'<text x="0" y="{y + 10}">{label}</text>'
                f'<rect x="0" y="{y + 14}" width="{width}" height="{_BAR}" fill="{_colour(name, is_ours)}"/>'
                f'<text x="{width + 5}" y="{y + 24}">{value:{form}}</text>'
            )
            y += _ROW
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">'
        f"<style>{_STYLE}</style>\n" + "\n".join(drawn) + "\n</svg>\n",
        encoding="utf-8",
    )


def _colour(name: str, is_ours: Callable[[str], bool]) -> str:
    return FLOOR if name.startswith("floor") else OURS if is_ours(name) else THEIRS


def _panels(count: int) -> tuple[Any, Any]:
    """Return a figure with panels one below the other."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "msgid", "font.size": 9, "axes.spines.top": False})
    figure, panels = plt.subplots(count, figsize=(4.2, 2.8 * count))
    for panel in panels:
        panel.spines["right"].set_visible(False)
    return figure, panels


def _save(figure: Any, path: str) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, transparent=True)
    file = Path(path)
    file.write_text(file.read_text(encoding="utf-8").replace("<defs>", f"{_DARK}<defs>", 1), encoding="utf-8")


def lines(by_size: dict[str, dict[int, float]], by_threads: dict[int, float], path: str) -> None:
    """Draw ns per ID by the size of a batch, and by the number of threads."""
    figure, (sizes, threads) = _panels(2)
    for form, grown in by_size.items():
        sizes.plot(list(grown), list(grown.values()), marker="o", markersize=3, label=form)
    sizes.set(xscale="log", yscale="log", xlabel="IDs per batch (logarithmic)", ylabel="ns per ID (logarithmic)")
    sizes.legend(frameon=False)
    threads.plot(list(by_threads), list(by_threads.values()), marker="o", markersize=3, color=OURS)
    threads.set(xlabel="threads that make IDs at once", ylabel="ns per ID over all", ylim=(0, None))
    threads.set(xticks=list(by_threads))
    _save(figure, path)


def state_growth(by_size: dict[str, dict[int, float]], by_key: dict[int, float], path: str) -> None:
    """Draw rows per second over the entries in state, and messages per second over the messages per key."""
    figure, (rows, keys) = _panels(2)
    for label, by_rows in by_size.items():
        colour = THEIRS if label.startswith("drop") else OURS
        rows.plot(list(by_rows), list(by_rows.values()), marker="o", markersize=3, color=colour, label=label)
    keys.plot(list(by_key), list(by_key.values()), marker="o", markersize=3, color=OURS)
    rows.set(xlabel="entries in state (logarithmic)", ylabel="rows per second (logarithmic)", yscale="log")
    rows.legend(frameon=False)
    keys.set(xlabel="messages per key (logarithmic)", ylabel="process, messages per second", ylim=(0, None))
    for panel in (rows, keys):
        panel.set(xscale="log")
    _save(figure, path)
