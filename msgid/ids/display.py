"""Display an ID for people: the digits, meaning and colour of each field."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgid import layout

COLOURS: Final = ("bright_black", "cyan", "green", "yellow", "magenta")
"""The colours of the fields from left to right, as names of Click and Rich."""

_MONTH_MS: Final = 31 * 86_400_000


class Part(NamedTuple):
    """One displayed piece of an ID: its digits, its name, and its meaning."""

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
            "node": f"{id.mac}, {id.origin}",
            "pid": str(id.pid),
            "seconds": f"{id.seconds}, {id.time:%Y-%m-%d %H:%M:%SZ}{_of_rust(id)}",
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
            meaning += f", {_of_month(value)}"
        drawn.append(Part(id.hex[host_digits + 2 * field.start : host_digits + 2 * field.stop], name, meaning))
    return drawn


def _of_month(elapsed_ms: int) -> str:
    days, rest = divmod(elapsed_ms, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    return f"day {days + 1} of the month, {hours:02}:{rest // 60_000:02}"


def _of_rust(id: Any) -> str:
    """Return the other reading of a time: RocketMQ's Rust client writes whole seconds of the month in milliseconds."""
    is_month = id.seconds and id.seconds % 1000 == 0 and id.seconds < _MONTH_MS
    return f"; of RocketMQ Rust: {_of_month(id.seconds)}" if is_month and id.origin in ("mac", "random") else ""
