"""Display an ID for people: the digits, meaning and colour of each field."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout

if TYPE_CHECKING:
    from collections.abc import Iterable

COLOURS: Final = ("bright_black", "cyan", "green", "yellow", "magenta")
"""The colours of the fields from left to right, as names of Rich."""
_HTML_COLOURS: Final = ("#777777", "#00838f", "#2e7d32", "#b26a00", "#a0208c")
_CELL: Final = "text-align:left;padding:0 .6em;font-family:monospace"


class Part(NamedTuple):
    """One displayed piece of an ID: its digits, its name, and its meaning in one or more lines."""

    digits: str
    name: str
    meaning: str


def values(id: Any) -> dict[str, Any]:
    """Return the fields of an ID by name, with values that JSON can represent."""
    fields: dict[str, Any] = {"kind": id.kind, "canonical": id.canonical, "version": id.version}
    names: tuple[str, ...]
    if id.kind == layout.KIND_V1:
        names = ("mac", "pid", "seconds", "sequence", "origin")
        fields["time"] = id.time.isoformat()
        fields["uuid"] = str(id.uuid)
    else:
        names = tuple(_tail(id))
        fields["host"] = str(id.host)
    return fields | {name: getattr(id, name) for name in names}


def _tail(id: Any) -> dict[str, layout.Field]:
    return layout.BROKER_FIELDS if id.kind == layout.KIND_BROKER_OFFSET else layout.CLIENT_FIELDS


def parts(id: Any) -> list[Part]:
    """Return the pieces of an ID of any version, in the order of its digits."""
    if id.kind == layout.KIND_V1:
        meanings = {
            "version": str(id.version),
            "node": f"{id.mac}\n{id.origin}",
            "pid": str(id.pid),
            "seconds": f"{id.seconds}\n{id.time:%Y-%m-%d %H:%M:%SZ}",
            "sequence": str(id.sequence),
        }
        return [
            Part(id.hex[2 * field.start : 2 * field.stop], name, meanings[name])
            for name, field in layout.FIELDS.items()
        ]
    host_digits = len(id.hex) - 2 * layout.TAIL_LENGTH
    drawn = [Part(id.hex[:host_digits], "host", str(id.host))]
    for name, field in _tail(id).items():
        value = getattr(id, name)
        meaning = str(value)
        if name == "elapsed_ms":
            days, rest = divmod(value, 86_400_000)
            hours, rest = divmod(rest, 3_600_000)
            meaning += f"\nday {days + 1} of the month, {hours:02}:{rest // 60_000:02}"
        drawn.append(Part(id.hex[host_digits + 2 * field.start : host_digits + 2 * field.stop], name, meaning))
    return drawn


def draw_html(id: Any) -> str:
    """Return an ID as an HTML table with the digits of each field above its name and meaning.

    >>> import msgid
    >>> "8636" in draw_html(msgid.parse("0156F7E71C361B21BC024CCDBE00000000"))
    True
    """
    drawn = parts(id)
    return _table(
        id.kind,
        [part.digits for part in drawn],
        [["<br>".join(map(escape, (part.name, *part.meaning.split("\n")))) for part in drawn]],
    )


def draw_rows_html(caption: str, ids: Iterable[Any | None]) -> str:
    """Return version-1 IDs as an HTML table: one row per ID and one column per field. None becomes an ellipsis."""
    rows = [["…"] * len(layout.FIELDS) if id is None else [part.digits for part in parts(id)] for id in ids]
    return _table(caption, list(layout.FIELDS), rows)


def _table(caption: str, head: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        pairs = zip(cells, _HTML_COLOURS, strict=False)
        return "".join(f'<{tag} style="{_CELL};color:{colour}">{cell}</{tag}>' for cell, colour in pairs)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{line('th', head)}</tr>{body}</table>"
