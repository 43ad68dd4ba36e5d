"""Draw the diagrams of the design page as SVG files that follow light and dark.

python docs/diagrams.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent / "pages" / "images"
STYLE = """
text{font:14px system-ui,sans-serif;fill:#1f2933}
.small{font-size:12px}.mono{font-family:ui-monospace,monospace}
.box{fill:#e6f4f1;stroke:#0f766e;stroke-width:1.5}
.bad{fill:#fde8e8;stroke:#b91c1c;stroke-width:1.5}
.line{stroke:#52606d;stroke-width:1.5;fill:none}.head{fill:#52606d}
@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.box{fill:#134e4a;stroke:#5eead4}.bad{fill:#7f1d1d;stroke:#fca5a5}
.line{stroke:#cbd2d9}.head{fill:#cbd2d9}}
"""


def drawing(width: int, height: int, title: str, *parts: str) -> str:
    """Return an SVG document with a title for screen readers."""
    head = '<marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    head += '<path class="head" d="M0 0 8 4 0 8z"/></marker>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style><defs>{head}</defs>{''.join(parts)}</svg>\n"
    )


def box(x: int, y: int, width: int, height: int, *lines: str, kind: str = "box", mono: bool = False) -> str:
    """Return a box with centred lines of text."""
    first = y + height / 2 + 5 - 9 * (len(lines) - 1)
    texts = "".join(
        f'<text class="{"mono small" if mono else "small"}" x="{x + width / 2}" y="{first + 18 * place}" '
        f'text-anchor="middle">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>{texts}'


def label(x: int, y: int, text: str, anchor: str = "middle") -> str:
    """Return a line of text."""
    return f'<text class="small" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    """Return an arrow."""
    return f'<path class="line" d="M{x1} {y1} {x2} {y2}" marker-end="url(#a)"/>'


def id_bytes() -> str:
    """Draw the fields of an ID in proportion to their bytes."""
    fields = (("version", 1, "01"), ("node", 6, "56F7E71C361B"), ("pid", 2, "21BC"), ("seconds", 4, "024CCDBE"))
    parts, x = [], 20
    for name, size, text in (*fields, ("sequence", 4, "00000000")):
        parts += [box(x, 40, 36 * size, 44, text, mono=True), label(x + 18 * size, 106, name if size > 1 else "v")]
        parts.append(label(x + 18 * size, 30, f"{size} B"))
        x += 36 * size
    return drawing(x + 20, 120, "The 17 bytes of an ID: version, node, pid, seconds, sequence", *parts)


def retry() -> str:
    """Draw a log that is read twice, with position_id and with uuid()."""
    parts = [box(20, 70, 120, 80, "log orders/0", "offsets 7, 8, 9")]
    for y, name, again, kind in ((20, "position_id", "same IDs", "box"), (130, "uuid()", "other IDs", "bad")):
        parts += [
            box(210, y, 150, 70, f"task 1: {name}", "fails after 8", kind="bad"),
            box(420, y, 150, 70, f"task 2: {name}", "reads 7, 8, 9"),
            box(630, y, 150, 70, again, "5 rows" if kind == "bad" else "3 rows by ID", kind=kind),
            arrow(140, 110, 206, y + 35),
            arrow(360, y + 35, 416, y + 35),
            arrow(570, y + 35, 626, y + 35),
        ]
    return drawing(800, 220, "A log is read, the task fails, and the log is read again", *parts)


def states() -> str:
    """Draw the states of a key and a redelivered message."""
    parts = []
    for place, (state, message) in enumerate((("stock 10", ""), ("stock 9", "A"), ("stock 8", "B"), ("stock 7", "C"))):
        x = 20 + 190 * place
        parts.append(box(x, 30, 110, 50, f"state {place}", state))
        if message:
            parts += [arrow(x - 80, 55, x - 4, 55), label(x - 42, 46, f"message {message}")]
    parts += [
        box(210, 140, 300, 56, "B is redelivered: handled against state 1,", "answers stock 8; state 3 stays"),
        arrow(265, 140, 265, 86),
    ]
    return drawing(720, 210, "A redelivered message is handled against the state it saw the first time", *parts)


def buckets() -> str:
    """Draw the buckets and runs of the stream state."""
    parts = [box(20, 80, 150, 70, "micro-batch", "rows by hash of ID")]
    for place in range(3):
        y = 20 + 75 * place
        parts += [arrow(170, 115, 246, y + 25), box(250, y, 90, 50, f"bucket {place}")]
        for run, width in enumerate((150, 90, 50)):
            parts.append(box(360 + (0, 160, 260)[run], y + 8, width, 34, ("old run", "run", "new")[run]))
    return drawing(700, 240, "Each bucket holds sorted runs of hashes; a micro-batch appends one run", *parts)


DIAGRAMS = {"id.svg": id_bytes, "retry.svg": retry, "states.svg": states, "buckets.svg": buckets}

if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
