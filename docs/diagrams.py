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
    """Return an SVG document with a title for screen readers; it is narrow, so a phone shows it in full size."""
    head = '<marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    head += '<path class="head" d="M0 0 8 4 0 8z"/></marker>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style><defs>{head}</defs>{''.join(parts)}</svg>\n"
    )


def box(x: int, y: int, width: int, height: int, *lines: str, kind: str = "box", mono: bool = False) -> str:
    """Return a box with centred lines of text."""
    first = y + height / 2 + 5 - 9 * (len(lines) - 1)
    texts = "".join(
        f'<text class="{"mono small" if mono else "small"}" x="{x + width / 2}" y="{first + 18 * index}" '
        f'text-anchor="middle">{escape(line)}</text>'
        for index, line in enumerate(lines)
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
    parts, x = [], 6
    for name, size, text in (*fields, ("sequence", 4, "00000000")):
        middle = x + 12 * size
        parts += [label(middle, 20, str(size)), box(x, 30, 24 * size, 40, text, mono=True)]
        parts.append(label(middle, 90, name) if size > 1 else label(x, 90, name, "start"))
        x += 24 * size
    return drawing(x + 6, 100, "The 17 bytes of an ID: version, node, pid, seconds, sequence", *parts)


def retry() -> str:
    """Draw a log that is read twice, with position_id and with uuid()."""
    parts = [box(10, 10, 400, 40, "log orders/0 with the offsets 7, 8 and 9")]
    lanes = (
        (10, "position_id", "A7, A8", "A7, A8, A9", "3 rows", "A7, A8, A9", "box"),
        (215, "uuid()", "3f, 9c", "d1, 07, e4", "5 rows", "3f, 9c, d1, 07, e4", "bad"),
    )
    for x, name, before, again, rows, content, kind in lanes:
        middle = x + 97
        parts += [
            arrow(middle, 50, middle, 74),
            box(x, 78, 195, 58, f"task 1 with {name}", f"writes {before}, then fails", kind="bad"),
            arrow(middle, 136, middle, 160),
            box(x, 164, 195, 58, "task 2 reads the log again", f"writes {again}"),
            arrow(middle, 222, middle, 246),
            box(x, 250, 195, 58, f"table by ID: {rows}", content, kind=kind),
        ]
    return drawing(
        420, 318, "A task fails and the log is read again: the same IDs by position_id, others by uuid()", *parts
    )


def states() -> str:
    """Draw the states of a key and a redelivered message."""
    parts = []
    for index, (state, message) in enumerate((("stock 10", ""), ("stock 9", "A"), ("stock 8", "B"), ("stock 7", "C"))):
        y = 10 + 82 * index
        parts.append(box(10, y, 120, 46, f"state {index}", state))
        if message:
            parts += [arrow(70, y - 36, 70, y - 4), label(80, y - 15, f"message {message}", "start")]
    parts += [
        box(200, 82, 210, 66, "message B again:", "handled against state 1,", "same answer, stock 8"),
        arrow(200, 115, 134, 115),
        label(140, 284, "still the newest state", "start"),
    ]
    return drawing(420, 312, "A redelivered message is handled against the state it saw the first time", *parts)


def buckets() -> str:
    """Draw the buckets of the stream state, and the runs of each."""
    parts = [box(110, 10, 200, 46, "micro-batch:", "rows by the hash of their ID")]
    for index in range(3):
        x = 10 + 137 * index
        middle = x + 63
        parts += [arrow(210, 56, middle, 90), box(x, 94, 126, 34, f"bucket {index}")]
        for y, height, text in ((138, 28, "recent entries"), (176, 36, "run"), (222, 58, "older run")):
            parts.append(box(x, y, 126, height, text))
    return drawing(
        420, 290, "New entries are appended; runs of older entries never change, and eight merge into one", *parts
    )


def queue() -> str:
    """Draw a queue, and the table of its messages: one was lost, and one was delivered twice."""
    parts = [label(10, 20, "deliveries of the queue orders/1, by offset", "start")]
    fates = (("699", "new", "box"), ("700", "lost", "bad"), ("701", "new", "box"), ("702", "new", "box"))
    for index, (offset, fate, kind) in enumerate((*fates, ("702", "duplicate", "box"))):
        x = 10 + 81 * index
        parts += [box(x, 30, 76, 32, offset), box(x, 96, 76, 32, fate, kind=kind)]
        if kind == "box":
            parts.append(arrow(x + 38, 62, x + 38, 92))
    parts += [
        label(10, 152, "an audit of the IDs names 700; 702 gets the same answer again", "start"),
        box(10, 166, 400, 32, "010B71EE443E38000005658B00000002BC", mono=True),
        label(10, 220, "the ID of 700 in Python, on Spark and in SQL, in each run", "start"),
    ]
    return drawing(420, 230, "Deliveries of a queue: one message is lost and named, one is a duplicate", *parts)


DIAGRAMS = {"queue.svg": queue, "id.svg": id_bytes, "retry.svg": retry, "states.svg": states, "buckets.svg": buckets}

if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
