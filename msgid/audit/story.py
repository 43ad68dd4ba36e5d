"""The story of one message: the events that its rows and the entries of a store tell. It reads no file."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import danube, kafka, rocketmq
from msgid.ids.checked_bytes import is_uuid, uuid_bytes
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse
from msgid.ids.uuids import uuid_facts
from msgid.shared.handler_message import key_text
from msgid.shared.moments import UNIX_EPOCH
from msgid.shared.validate import quote, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

__all__ = ["Event", "Trace"]

MAIN: Final = "message"
DEAD: Final = "dead letter"
CHILD: Final = "made from it"
CARRIERS: Final = ("headers", "properties", "attributes")
"""The columns that hold values by name. One of the values can be the ID of a message, or its first place."""
_DEAD_KINDS: Final = ("failed", "too late", "changed", "conflict", "not tried", "malformed", "poisoned")
_REASONS: Final = (kafka.DEAD_REASON, danube.DEAD_REASON, "error", "reason", "exception")
_COUNTS: Final = (kafka.DEAD_COUNT, danube.DEAD_COUNT, rocketmq.RECONSUMED, rocketmq.REDELIVERIES)


class Event(NamedTuple):
    """One line of the story of a message."""

    at: datetime | None
    """The time; None if it is not known."""
    kind: str
    """``born``, ``position``, ``landed``, ``again``, ``redelivered``, ``handled``, ``output`` or ``dead letter``."""
    text: str
    evidence: str = ""
    """The file and its row from 0, or the store and its handler."""


class Trace(NamedTuple):
    """The story of a message."""

    id: str
    """The canonical text of the ID, or the position as it was given if no row has it."""
    exists: bool
    """Whether a row or a store has the message."""
    events: list[Event]
    """The events in the order of time. Events without a time are last."""
    notes: list[str]
    """Facts that help if the message is missing, and the parts that were not looked at."""
    unread: tuple[str, ...] = ()
    """The inputs that cannot be read, so the message may be in them; the notes have the reasons."""

    def __str__(self) -> str:
        lines = [f"message {self.id}{'' if self.exists else ': not found'}"]
        for event in self.events:
            at = "-" * 19 if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
            evidence = f"  [{event.evidence}]" if event.evidence else ""
            lines.append(f"{at}  {event.kind:<11}  {event.text}{evidence}")
        return "\n".join(shown(line, 1_000) for line in [*lines, *(f"note: {note}" for note in self.notes)])

    def to_json(self) -> str:
        """Return the story as JSON."""
        events = [{**event._asdict(), "at": event.at and event.at.isoformat()} for event in self.events]
        return json.dumps({**self._asdict(), "events": events}, indent=2)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the story as one self-contained HTML page, and write it to a file if a path is given.

        Args:
            path: The file to write, in UTF-8.
        """
        from msgid.audit._page import saved, story_page

        return saved(story_page(self), path)


class Row(NamedTuple):
    """A row that has to do with the message."""

    role: str
    """``message``, the name of a child, ``dead letter`` or ``made from it``."""
    id: str | None
    log: str | None
    offset: int | None
    at: datetime | None
    content: tuple[Any, ...] | None
    carried: Mapping[str, str]
    """The values of headers, properties and attributes, and columns of text."""
    evidence: str
    columns: tuple[str, ...] = ()


def carried_by(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of headers, properties and attributes by name, and the columns of text.

    >>> carried_by({"headers": [{"key": "a", "value": b"1"}], "properties": '{"b": "2"}', "topic": "t", "value": b"v"})
    {'a': '1', 'b': '2', 'topic': 't'}
    """
    carried: dict[str, str] = {}
    for name, value in values.items():
        if name in CARRIERS:
            carried |= {one: text_of(cell) for one, cell in values_in(value).items()}
        elif name == "key" and isinstance(value, bytes):
            carried[name] = key_text(value)
        elif isinstance(value, str) or (name == rocketmq.REDELIVERIES and value is not None):
            carried[name] = str(value)
    return carried


def values_in(cell: Any) -> dict[str, Any]:
    """Return the values by name of a mapping, of pairs, of structs, or of their JSON."""
    if isinstance(cell, str):
        with suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    if isinstance(cell, dict):
        cell = [*cell.items()]
    values: dict[str, Any] = {}
    for one in cell if isinstance(cell, list) else ():
        pair = [*one.values()] if isinstance(one, dict) else one
        if isinstance(pair, list | tuple) and len(pair) > 1 and pair[1] is not None:
            is_struct = isinstance(pair[1], dict) and "value" in pair[1]  # of kind and value, in the table of messages
            values[str(pair[0])] = pair[1]["value"] if is_struct else pair[1]
    return values


def text_of(value: Any) -> str:
    """Return a value as text, bytes as UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def first_position(carried: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the log and the offset of the first place of a dead letter; None for any other row."""
    return kafka.first_position(carried) or danube.first_position(carried)


def _death(row: Row) -> str | None:
    """Return why a row is a dead letter; None for any other row."""
    topic = row.carried.get("topic", "")
    kind = next((row.carried[name] for name in ("kind", "state") if row.carried.get(name) in _DEAD_KINDS), None)
    reason = next((row.carried[name] for name in _REASONS if row.carried.get(name)), None)
    if reason is None and kind is None and not topic.startswith(rocketmq.DEAD) and row.role != DEAD:
        return None
    count = _count(row)
    words = [word for word in (kind, reason or f"in {topic}" if topic or reason else None) if word]
    return ": ".join(map(str, words)) + (f" (deliveries: {count})" if count else "")


def _count(row: Row) -> str | None:
    """Return the number of deliveries, or of redeliveries, as the broker counts them."""
    return next((row.carried[name] for name in _COUNTS if row.carried.get(name, "0") != "0"), None)


def story(rows: Sequence[Row], handled: Sequence[Any], ids: Sequence[str]) -> list[Event]:
    """Return the events of a message in the order of time. It reads no file.

    Args:
        rows: The rows that have to do with the message.
        handled: The entries of a store, each with handler, key, version, at, stored_at and outputs.
        ids: The IDs of the message.
    """
    events = [_born(id) for id in ids]
    ordered = sorted(rows, key=lambda row: (row.at is None, row.at or UNIX_EPOCH))
    places: set[tuple[str | None, int | None]] = set()
    contents: dict[tuple[str, ...], tuple[Any, ...]] = {}
    was_dead = False
    for row in ordered:
        where = f"in {row.log} at offset {row.offset}" if row.log is not None and row.offset is not None else ""
        if row.role not in (MAIN, DEAD, CHILD):
            events.append(
                Event(row.at, "output", " ".join(filter(None, (f"{row.role}, {row.id}, landed", where))), row.evidence)
            )
            continue
        if row.role == CHILD:
            events.append(Event(row.at, "output", f"{row.id or 'a row'} is made from it", row.evidence))
            continue
        death = _death(row)
        if death is not None:
            first = first_position(row.carried)
            first_text = f"; first place {first[0]} offset {first[1]}" if first else ""
            events.append(
                Event(row.at, "dead letter", f"{death}{first_text}{f'; {where}' if where else ''}", row.evidence)
            )
            was_dead = True
            continue
        changed = ""
        if row.content is not None:
            first_content = contents.setdefault(row.columns, row.content)
            changed = "; CONTENTS DIFFER from its first row" if first_content != row.content else ""
        retry = str(row.log or "").partition(rocketmq.RETRY)[1]
        place = (row.log, row.offset)
        if where and (retry or (places and place not in places)):
            count = _count(row)
            why = "after the dead letter, " if was_dead else ""
            origin = row.carried.get(rocketmq.ORIGIN)
            more = (f", delivery {count}" if count else "") + (f", first place {origin}" if origin else "")
            kind, text = "redelivered", f"{why}{where}{more}"
        elif where and places:
            kind, text = "again", f"landed again {where}"
        elif where:
            kind, text = "position", where
        else:
            kind, text = ("again", "landed again") if any(e.kind == "landed" for e in events) else ("landed", "landed")
        if where:
            places.add(place)
        events.append(Event(row.at, kind, f"{text}{changed}", row.evidence))
    for one in handled:
        at = UNIX_EPOCH + timedelta(microseconds=one.stored_at)
        text = f"by {one.handler}, key {quote(one.key)}, made version {one.version} of its state"
        if one.version is None:
            text = f"by {one.handler}, key {quote(one.key)}; its entry was deleted since: a redelivery is too late"
        events.append(Event(at, "handled", text, f"store, handler {one.handler}"))
    born = [event for event in events if event.kind == "born"]
    others = [event for event in events if event.kind != "born"]
    others.sort(key=lambda event: (event.at is None, event.at or UNIX_EPOCH))
    return born + others


def _born(id: str) -> Event:
    """Return the facts that an ID holds."""
    try:
        known = parse(id)
    except ValueError:
        if not is_uuid(id):
            return Event(None, "born", f"{id}: text of another kind", "the ID")
        facts = uuid_facts(uuid_bytes(id))
        return Event(facts.time, "born", f"{id}: a {facts}", "the ID")
    if not isinstance(known, MessageId):
        return Event(None, "born", f"{id}: {known.kind}, {known.host}", "the ID")
    text = {"position": f"at offset {known.pid << 32 | known.sequence} of a log", "derived": "derived from another ID"}
    process = f"node {known.mac} ({known.origin}), pid {known.pid}, sequence {known.sequence}"
    return Event(known.time, "born", f"{id}: {text.get(known.origin, process)}", "the ID")
