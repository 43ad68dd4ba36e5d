"""Trace: the story of one message, from the rows of files and the entries of a store."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import duckdb

from msgid import kafka, layout, rocketmq
from msgid._message import key_text, read_id
from msgid._moments import UNIX_EPOCH, moment_of
from msgid._validate import quote, shown
from msgid.audit._duck import Duck, Limits, literal, quoted
from msgid.audit._inputs import LOG, checked_columns
from msgid.audit._options import columns_in
from msgid.audit._sources import keep, open_file, read_error
from msgid.ids._bytes import identity, identity_bytes, is_uuid
from msgid.ids._carriers import kind_in_duck
from msgid.ids.derived import derive_from_bytes, position_id
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from typing_extensions import Unpack

    from msgid._known_tables import Columns
    from msgid.audit._options import ColumnNames
    from msgid.audit._parts import Source
    from msgid.audit.definitions import Format

OUTPUTS: Final = 8
"""The number of outputs and of new IDs of a handler that are looked for."""
_MEMORY: Final = 256 << 20
_MOST_ROWS: Final = 1_000
"""The most rows of one search that are in a story."""
_POSITION: Final = re.compile(r"(.*[^:/]):([0-9]{1,15})", re.DOTALL)
_CARRIERS: Final = ("headers", "properties", "attributes", rocketmq.OFFSET_ID)
"""The columns that can hold the ID of a message, or the first place of a dead letter, beside other values."""
_FILE: Final = re.compile(r"filename='((?:[^']|'')*)'")
"""The name of the column of a file's name, in the text of a relation of Parquet files."""
_COMPARED: Final = {"text": "VARCHAR", "bytes": "BLOB", "uuid": "UUID"}
"""The type of DuckDB with which a column is compared, by how it holds IDs."""
_SPACES: Final = " \t\r\n"
_DEAD_KINDS: Final = ("failed", "too late", "changed", "conflict", "not tried", "malformed", "poisoned")
_REASONS: Final = (f"{kafka.DEAD}message", "x-failure-reason", "error", "reason", "exception")
_COUNTS: Final = (f"{kafka.DEAD}delivery.count", "x-delivery-attempt", "RECONSUME_TIME")
_FIRST_PLACES: Final = ((f"{kafka.DEAD}topic", f"{kafka.DEAD}partition", f"{kafka.DEAD}offset"),
                        ("x-original-topic", "x-original-topic-offset"))  # fmt: skip
"""The headers and attributes that name the first place of a dead letter, the offset last."""
MAIN: Final = "message"


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
    found: bool
    """Whether a row or a store has the message."""
    events: list[Event]
    """The events in the order of time. Events without a time are last."""
    notes: list[str]
    """Facts that help if the message is missing, and the parts that were not looked at."""

    def __str__(self) -> str:
        lines = [f"message {self.id}{'' if self.found else ': not found'}"]
        for event in self.events:
            at = "-" * 19 if event.at is None else f"{event.at:%Y-%m-%d %H:%M:%S}"
            evidence = f"  [{event.evidence}]" if event.evidence else ""
            lines.append(f"{at}  {event.kind:<11}  {event.text}{evidence}")
        return "\n".join(shown(line, 1_000) for line in [*lines, *(f"note: {note}" for note in self.notes)])

    def to_json(self) -> str:
        """Return the story as JSON."""
        events = [{**event._asdict(), "at": event.at and event.at.isoformat()} for event in self.events]
        return json.dumps({**self._asdict(), "events": events}, indent=2)


class Forms(NamedTuple):
    """The values of DuckDB or Spark that stand for one ID, by the type of the column."""

    texts: list[str]
    blobs: list[bytes]
    uuids: list[UUID]


def forms_of(id: str, *, is_child: bool = False) -> Forms:
    """Return the stored forms of an `identity`: its spellings, its bytes and its UUIDs; a child has fewer.

    >>> forms_of("orders-0-42")
    Forms(texts=['orders-0-42'], blobs=[b'orders-0-42'], uuids=[])
    >>> forms_of("0156F7E71C361B21BC024CCDBE00000000").uuids
    [UUID('56f7e71c-361b-21bc-024c-cdbe00000000')]
    """
    raw = identity_bytes(id)
    texts, blobs, body = [id], [raw], raw[-layout.BODY_LENGTH :]
    if not is_uuid(id) and raw == id.encode("utf-8", "surrogatepass"):
        blobs = [bytes.fromhex(id[2:])] if re.fullmatch("0x(?:[0-9A-F]{2})+", id) else blobs
        return Forms(texts, blobs, [])
    if is_child:
        return Forms([id, id.lower()], blobs, [UUID(bytes=body)])
    uuids = [UUID(bytes=body)] if len(raw) <= layout.ID_LENGTH else []
    if len(raw) != layout.ID_LENGTH:  # 16 bytes do not tell a UUID, version 0 and version 1 apart
        versions = (layout.VERSION_0, layout.VERSION_1)[: 2 if uuids else 1]
        blobs += [bytes([version]) + raw for version in versions]
    else:
        blobs.append(body)
    digits = [blob.hex().upper() for blob in blobs]
    half = layout.BODY_LENGTH
    texts += [*digits, *(one[:-half] + one[-half:].lower() for one in digits), *(one.lower() for one in digits)]
    texts += [text for uuid in uuids for text in (str(uuid), str(uuid).upper())]
    texts = [*dict.fromkeys(texts)]
    return Forms(texts, [*blobs, *(text.encode() for text in texts)], uuids)


class Wanted:
    """The IDs and the positions of one message, which grow as its rows are read.

    Args:
        given: The ID in any form, or a position such as ``orders/1:700``.

    Raises:
        ValueError: if it is empty.
    """

    def __init__(self, given: Any) -> None:
        self.ids: list[str] = []
        self.places: list[tuple[str, int]] = []
        self.roles: dict[str, str] = {}
        self._texts: dict[str, None] = {}
        self._uuids: list[UUID] = []
        self._blobs: dict[bytes, None] = {}
        self._position = _POSITION.fullmatch(given) if isinstance(given, str) else None
        if self._position is not None and not given.startswith("urn:"):
            self.places.append((self._position[1], int(self._position[2])))
        elif isinstance(given, str) and re.fullmatch("0[xX](?:[0-9a-fA-F]{2})+", given):
            self.add(identity(bytes.fromhex(given[2:])))
        else:
            self.add(identity(given.removeprefix("urn:uuid:").strip("{}") if isinstance(given, str) else given))
        self.name = self.ids[0] if self.ids else given

    def add(self, id: str) -> bool:
        """Add an ID of the message; return whether it is new."""
        if id in self.ids:
            return False
        self.ids.append(id)
        known = read_id(id)
        children = [f"output {number}" for number in range(OUTPUTS)] + [f"new {one + 1}" for one in range(OUTPUTS)]
        named = {MAIN: forms_of(id)}
        for child in children:
            named[child] = forms_of(str(derive_from_bytes(known.raw, child, known.seconds or 0)), is_child=True)
        for name, forms in named.items():
            self._uuids += forms.uuids
            self._blobs.update(dict.fromkeys(forms.blobs))
            self._texts.update(dict.fromkeys(forms.texts))
            texts = [*forms.texts, *(blob.hex() for blob in forms.blobs), *map(str, forms.uuids)]
            self.roles.update((text.upper(), name) for text in texts)
        return True

    def role_of(self, value: Any) -> str | None:
        """Return ``message`` or the name of a child for the value of a column; None for another value."""
        text = value.hex() if isinstance(value, bytes) and not value.isascii() else value
        text = text.decode() if isinstance(text, bytes) else str(text)
        return self.roles.get(text.upper()) or (self.roles.get(value.hex().upper()) if type(value) is bytes else None)

    def values(self, *, children: bool = True) -> dict[str, list[Any]]:
        """Return the stored forms by the type of DuckDB."""
        if not children:
            forms = [forms_of(id) for id in self.ids]
            return {"VARCHAR": [one for form in forms for one in form.texts],
                    "BLOB": [one for form in forms for one in form.blobs],
                    "UUID": [one for form in forms for one in form.uuids]}  # fmt: skip
        return {"VARCHAR": [*self._texts], "BLOB": [*self._blobs], "UUID": self._uuids}

    def by_role(self, type: str) -> dict[str, list[Any]]:
        """Return the stored forms of a type by ``message`` and the names of its children."""
        values: dict[str, list[Any]] = {}
        for value in self.values()[type]:
            values.setdefault(self.role_of(value) or MAIN, []).append(value)
        return values

    def log_bits(self) -> list[str]:
        """Return the first 44 bits of the hash of the log that each ID with a position holds, as hex digits."""
        nodes = [one.mac.replace(":", "") for one in self._parsed() if one.origin == "position"]
        return [node[0] + node[2:] for node in nodes]

    def offsets(self) -> set[int]:
        """Return the offsets of the positions, and of the IDs that hold one."""
        return {offset for _, offset in self.places} | {
            one.pid << 32 | one.sequence for one in self._parsed() if one.origin == "position"
        }

    @property
    def has_position(self) -> bool:
        """Whether an ID of the message holds a position."""
        return any(one.origin == "position" for one in self._parsed())

    def is_at(self, log: str, offset: int) -> bool:
        """Return whether the message is at a position."""
        if any(offset == number and (log == name or log.endswith(f"/{name}")) for name, number in self.places):
            return True
        return any(self.is_of(id, log) and id.pid << 32 | id.sequence == offset for id in self._parsed())

    def is_of(self, id: MessageId, log: str) -> bool:
        """Return whether an ID holds a position of a log."""
        return id.origin == "position" and id.node == position_id(log, 0, 0).node

    def _parsed(self) -> list[MessageId]:
        parsed = []
        for id in self.ids:
            with suppress(ValueError):
                parsed.append(parse(id))
        return [one for one in parsed if isinstance(one, MessageId)]


class Row(NamedTuple):
    """A row that has to do with the message."""

    role: str
    """``message``, the name of a child, ``dead letter`` or ``made from it``."""
    id: str | None
    log: str | None
    offset: int | None
    at: datetime | None
    content: tuple[Any, ...] | None
    carried: Mapping[str, Any]
    """The values of headers, properties and attributes, and columns of text."""
    evidence: str
    columns: tuple[str, ...] = ()


class Input:
    """One input, whose rows are searched.

    Args:
        duck: The connection.
        path: The input.
        named: The arguments that name columns.
        format: The format of the files.
    """

    def __init__(self, duck: Duck, path: Any, named: Mapping[str, Any], format: Format | None) -> None:
        self._duck, self.name = duck, str(path)
        self._read: dict[tuple[str, int], dict[str, Any]] = {}
        self._done: set[str] = set()
        self.is_cut = False
        source = open_file(duck, path, format=format)
        if any(part.kinds for part in source.parts):
            source = keep(duck, source, source.readable)
        self._source: Source = source
        self.columns: Columns = checked_columns([*source.columns], named)
        for name in filter(None, (self.columns.id, self.columns.offset)):
            source.scan([name])  # refuses a column that cannot be read
        self.unsearched = [name for name in self._keys() if self._compared(name) is None]

    def _keys(self) -> list[str]:
        parent = self.columns.parent or ("input_id" if "input_id" in self._source.columns else None)
        return [name for name in (self.columns.id, parent) if name is not None]

    def _compared(self, name: str) -> tuple[str, str] | None:
        """Return how a column of IDs is compared: its expression and the type of the values."""
        type, value = self._source.columns[name], quoted(name)
        compared = _COMPARED.get(kind_in_duck(type) or "")
        return None if compared is None else (value if type == compared else f"CAST({value} AS {compared})", compared)

    def rows(self, wanted: Wanted) -> list[Row]:
        """Return the rows of a message, of its children and of its dead letters."""
        tests = []
        forms, main = wanted.values(), wanted.values(children=False)
        for name in self._keys():
            compared = self._compared(name)
            of = forms if name == self.columns.id else main
            if compared is not None and (values := of[compared[1]]):
                tests.append(f"{compared[0]} IN ({', '.join(map(_literal, values))})")
        offset = self.columns.offset
        has_ids = self.columns.id is not None and wanted.ids and not wanted.has_position
        if offset is not None and not has_ids and (offsets := wanted.offsets()):
            tests.append(f"{quoted(offset)} IN ({', '.join(map(str, sorted(offsets)))})")
        for name in _CARRIERS:
            if name in self._source.readable:
                tests += self._mentions(name, main, with_places=bool(wanted.places))
        rows = [self._row(wanted, *one) for one in self._selected(tests)] if tests else []
        found = [row for row in rows if row is not None]
        return found or self._other_spelling(wanted, main["VARCHAR"])

    def _mentions(self, name: str, forms: Mapping[str, list[Any]], *, with_places: bool) -> list[str]:
        """Return the tests of a column that can hold an ID, or the first place of a dead letter, among other values."""
        value, type = quoted(name), self._source.columns[name]
        text = f"CAST({value} AS VARCHAR)"
        places = [f"contains({text}, {literal(last)})" for *_, last in _FIRST_PLACES] if with_places else []
        if type.endswith(" BLOB)[]") or (type.startswith("MAP(") and type.endswith(" BLOB)")):
            held = f"map_values({value})" if type.startswith("MAP(") else f"list_transform({value}, lambda h: h.value)"
            blobs = ", ".join(map(_literal, forms["BLOB"]))
            return [f"list_has_any({held}, [{blobs}])", *places] if blobs else places
        spelled = dict.fromkeys(one.upper() for one in forms["VARCHAR"])
        return [*(f"contains(upper({text}), {literal(one)})" for one in spelled), *places]

    def _other_spelling(self, wanted: Wanted, texts: list[str]) -> list[Row]:
        """Return the rows whose text is the ID in other letters, or with white space around it."""
        name = self.columns.id
        if name is None or not texts or self._source.columns[name] != "VARCHAR":
            return []
        several = ", ".join(literal(one) for one in dict.fromkeys(one.upper() for one in texts))
        rows = []
        for values, path, number in self._selected([f"upper(trim({quoted(name)}, {literal(_SPACES)})) IN ({several})"]):
            row = self._row(wanted, {**values, name: (values[name] or "").strip()}, path, number)
            if row is not None:
                rows.append(row._replace(evidence=f"{row.evidence}, spelled {quote(values[name])}"))
        return rows

    def _selected(self, tests: Sequence[str]) -> list[tuple[dict[str, Any], str, int]]:
        """Return the rows that pass any test, each with its file and its number."""
        names, types = self._source.readable, self._source.columns
        if self._source.parts[0].rows.startswith("read_parquet("):
            found = self._read  # by their files and numbers; rows of other formats lack numbers, and are read again
        else:
            found = {}
        for part in self._source.parts:
            file = _FILE.search(part.rows) if part.rows.startswith("read_parquet(") else None
            place = f"{file[1]} AS msgid_file, file_row_number AS msgid_row" if file else "NULL, NULL"
            values = ", ".join(f"{part.value(one, types[one])} AS {quoted(one)}" for one in names)
            inner = f"SELECT {values}, {place} FROM {part.rows_of(names, with_kinds=False)}"
            # One query for each test lets DuckDB skip row groups of Parquet by their statistics.
            for test in [one for one in tests if one not in self._done] if file else [" OR ".join(tests)]:
                try:
                    read = self._duck.rows(f"SELECT * FROM ({inner}) WHERE {test} LIMIT {_MOST_ROWS + 1}")
                except duckdb.Error as error:
                    raise read_error(self._source, error) from None
                self.is_cut = self.is_cut or len(read) > _MOST_ROWS
                for *cells, path, number in read[:_MOST_ROWS]:
                    key = (self.name, len(found)) if path is None else (path, number)
                    found[key] = dict(zip(names, cells, strict=True))
        self._done.update(tests)
        return [(values, *key) for key, values in sorted(found.items(), key=lambda one: one[0])]

    def _row(self, wanted: Wanted, values: dict[str, Any], path: str, number: int) -> Row | None:
        columns = self.columns
        carried = _carried(values)
        log = offset = None
        if columns.offset is not None and values[columns.offset] is not None:
            offset = int(values[columns.offset])
            log = _log(columns, values)
        at = None
        for name in filter(None, (columns.timestamp, columns.landed)):
            with suppress(ValueError, TypeError):
                at = at or moment_of(name, values[name])
        id, source = _own_id(columns, values, carried, log, offset)
        log = source or log
        place = path if path == self.name and not path.endswith(".parquet") else f"{path} row {number}"
        row = Row(MAIN, id, log, offset, at, _content(columns, values), carried, place, tuple(values))
        role = None if id is None else wanted.role_of(values[columns.id] if columns.id else id)
        if log is not None and offset is not None and role is None and wanted.is_at(log, offset):
            role = MAIN
        if role is None and carried.get(rocketmq.OFFSET_ID) and wanted.role_of(carried[rocketmq.OFFSET_ID]):
            role = MAIN
        if role is None and carried.get(rocketmq.ORIGIN) and wanted.role_of(carried[rocketmq.ORIGIN]):
            role = MAIN
        first = _first_place(carried)
        if role is None and first is not None and wanted.is_at(*first):
            role = "dead letter"
        if role is None and values.get(columns.parent or "input_id") is not None:
            role = "made from it" if wanted.role_of(values[columns.parent or "input_id"]) == MAIN else None
        return None if role is None else row._replace(role=role)

    def help(self, wanted: Wanted) -> list[str]:
        """Return what the input has beside a message that it does not have: the neighbours in its log or process."""
        columns, lines = self.columns, []
        if columns.offset is not None and wanted.offsets():
            number = f"TRY_CAST({quoted(columns.offset)} AS BIGINT)"
            keys = [quoted(name) for name in columns.source]
            text = self._source.scan([*columns.source, columns.offset])
            grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
            for offset in sorted(wanted.offsets()):
                ends = (
                    f"max({number}) FILTER ({number} < {offset}), min({number}) FILTER ({number} > {offset}), "
                    f"count(*) FILTER ({number} = {offset})"
                )
                for *parts, before, after, same in self._duck.rows(
                    f"SELECT {', '.join([*keys, ends])} FROM ({text}){grouped}"
                ):
                    log = _log(columns, dict(zip(columns.source, parts, strict=True)))
                    if log is None or same or not wanted.is_at(log, offset):
                        continue
                    sides = [f"{before} landed before it" if before is not None else "nothing landed before it",
                             f"{after} after it" if after is not None else "nothing after it"]  # fmt: skip
                    low, high = 0 if before is None else before + 1, offset if after is None else after - 1
                    missing = f"it is missing, with offsets {low} to {high}" if high > low else "it is missing"
                    tail = " (it may not be read yet)" if after is None else ""
                    lines.append(f"{self.name}: offset {offset} of {log}: {missing}; {', '.join(sides)}{tail}")
        id = columns.id
        if id is not None and self._source.columns[id] == "VARCHAR":
            for one in wanted._parsed():
                if one.origin in ("position", "derived"):
                    continue
                prefix, text = str(one)[: 2 * layout.PREFIX_LENGTH], str(one)
                name, scan = f"upper({quoted(id)})", self._source.scan([id])
                query = (
                    f"SELECT max({name}) FILTER ({name} < '{text}'), min({name}) FILTER ({name} > '{text}') "
                    f"FROM ({scan}) WHERE {name} >= '{prefix}' AND {name} < '{prefix}G'"
                )
                ((low, high),) = self._duck.rows(query)
                near = [f"{quote(value)} {side} it" for value, side in ((low, "before"), (high, "after")) if value]
                if near:
                    lines.append(f"{self.name}: of the same process, it has {' and '.join(near)}")
        return lines


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    return f"CAST('{value}' AS UUID)" if isinstance(value, UUID) else literal(value)


def _log(columns: Columns, values: Mapping[str, Any]) -> str | None:
    parts = [values[name] for name in columns.source]
    if any(part is None for part in parts):
        return None
    return columns.prefix + ("/".join(map(_shown, parts)) if parts else LOG)


def _shown(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _content(columns: Columns, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    return tuple(repr(values[name]) for name in columns.content) if columns.content else None


def _carried(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return headers, properties and attributes by name, and the columns of text."""
    carried: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, str)}
    if isinstance(values.get("key"), bytes):
        carried["key"] = key_text(values["key"])
    for name in _CARRIERS[:3]:
        held = values.get(name)
        if isinstance(held, str):
            with suppress(ValueError):
                held = json.loads(held)
        if isinstance(held, list):
            pairs = [(*one.values(),) if isinstance(one, dict) else one for one in held]
            held = {pair[0]: pair[1] for pair in pairs if isinstance(pair, tuple | list) and len(pair) > 1}
        if isinstance(held, dict):
            if [*held] == ["key", "value"] and isinstance(held["key"], list):  # DuckDB's former form of a map
                held = dict(zip(held["key"], held["value"], strict=False))
            carried |= {str(key): _shown(value) for key, value in held.items() if value is not None}
    return carried


def _own_id(
    columns: Columns, values: Mapping[str, Any], carried: Mapping[str, Any], log: str | None, offset: int | None
) -> tuple[str | None, str | None]:
    """Return the identity of a row, and the name of its log if properties change it."""
    if columns.id is not None and values[columns.id] is not None:
        with suppress(ValueError):
            return identity(values[columns.id]), None
        return None, None
    names = set(values)
    if names.issuperset(rocketmq.ROWS.needs):
        properties = {name: value for name, value in carried.items() if name not in values}
        place = rocketmq.place_of(values["topic"], values["queueId"], properties)
        source = f"rocketmq:{values['brokerName']}/{place.topic}/{place.queue}" if place.topic else None
        with suppress(ValueError):
            return rocketmq.Record.of({**values, "properties": properties, "bornTimestamp": None}).message_id(), source
        return None, source
    if names.issuperset(kafka.ROWS.needs):
        headers = {name: value for name, value in carried.items() if name not in values}
        with suppress(ValueError):
            return kafka.Record.of({**values, "headers": headers, "key": None, "value": None}).message_id(), None
    return None, None


def _first_place(carried: Mapping[str, Any]) -> tuple[str, int] | None:
    for *names, last in _FIRST_PLACES:
        if str(carried.get(last, "")).isdecimal():
            log = "/".join(str(carried.get(name, "?")) for name in names)
            return (f"kafka:{kafka.CLUSTER}/{log}" if last.startswith(kafka.DEAD) else log), int(carried[last])
    return None


def _death(row: Row) -> str | None:
    """Return why a row is a dead letter; None for any other row."""
    topic = str(row.carried.get("topic", ""))
    kind = next((row.carried[name] for name in ("kind", "state") if row.carried.get(name) in _DEAD_KINDS), None)
    reason = next((row.carried[name] for name in _REASONS if row.carried.get(name)), None)
    if reason is None and kind is None and not topic.startswith(rocketmq.DEAD) and row.role != "dead letter":
        return None
    count = next((row.carried[name] for name in _COUNTS if row.carried.get(name)), None)
    words = [word for word in (kind, reason or f"in {topic}" if topic or reason else None) if word]
    return ": ".join(map(str, words)) + (f" (deliveries: {count})" if count else "")


def story(rows: Sequence[Row], handled: Sequence[Any], wanted: Wanted) -> list[Event]:
    """Return the events of a message in the order of time. It reads no file.

    Args:
        rows: The rows that have to do with the message.
        handled: The entries of a store, each with handler, key, version, at, stored_at and outputs.
        wanted: The message.
    """
    events = [_born(id) for id in wanted.ids]
    ordered = sorted(rows, key=lambda row: (row.at is None, row.at or UNIX_EPOCH))
    places: set[tuple[str | None, int | None]] = set()
    contents: dict[tuple[str, ...], tuple[Any, ...]] = {}
    was_dead = False
    for row in ordered:
        where = f"in {row.log} at offset {row.offset}" if row.log is not None and row.offset is not None else ""
        if row.role not in (MAIN, "dead letter", "made from it"):
            events.append(
                Event(row.at, "output", " ".join(filter(None, (f"{row.role}, {row.id}, landed", where))), row.evidence)
            )
            continue
        if row.role == "made from it":
            events.append(Event(row.at, "output", f"{row.id or 'a row'} is made from it", row.evidence))
            continue
        death = _death(row)
        if death is not None:
            first = _first_place(row.carried)
            told = f"; first place {first[0]} offset {first[1]}" if first else ""
            events.append(Event(row.at, "dead letter", f"{death}{told}{f'; {where}' if where else ''}", row.evidence))
            was_dead = True
            continue
        changed = ""
        if row.content is not None:
            first_content = contents.setdefault(row.columns, row.content)
            changed = "; CONTENTS DIFFER from its first row" if first_content != row.content else ""
        retry = str(row.log or "").partition(rocketmq.RETRY)[1]
        place = (row.log, row.offset)
        if where and (retry or (places and place not in places)):
            count = next((row.carried[name] for name in _COUNTS if row.carried.get(name)), None)
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
        return Event(
            None,
            "born",
            f"{id}: a {'UUID' if is_uuid(id) else 'text'}, which holds neither time nor process",
            "the ID",
        )
    if not isinstance(known, MessageId):
        return Event(None, "born", f"{id}: {known.kind}, {known.host}", "the ID")
    text = {"position": f"at offset {known.pid << 32 | known.sequence} of a log", "derived": "derived from another ID"}
    process = f"node {known.mac} ({known.origin}), pid {known.pid}, sequence {known.sequence}"
    return Event(known.time, "born", f"{id}: {text.get(known.origin, process)}", "the ID")


def trace(
    id: Any,
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    /,
    *,
    store: Any = None,
    format: Format | None = None,
    **columns: Unpack[ColumnNames],
) -> Trace:
    r"""Return the story of one message: where it landed, its handlers, and its outputs.

    Text is found in upper case, in lower case, as given, and with its last 16 digits in lower case. An input without it
    is read again for any other spelling.

    Args:
        id: The ID: its text in any spelling, a UUID, bytes or their hex digits after ``0x``, RocketMQ's offset ID; or a
            position, such as ``"orders/1:700"``.
        inputs: The files, folders or patterns, each as for `audit_file`. Each input is a table of its own.
        store: The `msgid.processing.SqliteStore` or `PostgresStore` of the processors. Default: none is looked at.
        format: The format of the files. Default: by their endings.
        **columns: The columns, as `ColumnNames` explains. Known columns need no argument.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the ID is empty, or no input can be searched.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/ids.txt"
    >>> with open(path, "w") as file:
    ...     _ = file.write("0156f7e71c361b21bc024ccdbe00000007\n")
    >>> found = trace("0156F7E71C361B21BC024CCDBE00000007", path)
    >>> found.found, [event.kind for event in found.events]
    (True, ['born', 'landed'])
    """
    wanted, named = Wanted(id), columns_in("trace", columns)
    duck = Duck(Limits(memory=_MEMORY))
    try:
        return _traced(duck, wanted, inputs if isinstance(inputs, list | tuple) else [inputs], store, named, format)
    finally:
        duck.close()


def _opened(
    duck: Duck, paths: Sequence[Any], named: Mapping[str, Any], format: Format | None, *, has_store: bool
) -> tuple[list[Input], list[str]]:
    """Return the inputs that can be searched, and notes of the others."""
    searched: list[Input] = []
    notes: list[str] = []
    for path in paths:
        try:
            searched.append(Input(duck, path, named, format))
        except FileNotFoundError:
            raise
        except ValueError as error:
            if len(paths) == 1 and not has_store:
                raise
            notes.append(f"not looked at: {path}: {error}")
    for one in searched:
        notes += [f"not looked at: {one.name}: column {quote(name)} cannot be searched for an ID: cast it to text"
                  for name in one.unsearched]  # fmt: skip
    return searched, notes


def _traced(
    duck: Duck, wanted: Wanted, paths: Sequence[Any], store: Any, named: Mapping[str, Any], format: Format | None
) -> Trace:
    searched, notes = _opened(duck, paths, named, format, has_store=store is not None)
    rows = [row for one in searched for row in one.rows(wanted)]
    for _ in range(3):  # a row can tell another ID or position of the message
        known = len(wanted.ids), len(wanted.places)
        for row in (row for row in rows if row.role == MAIN):
            if row.id is not None and not (is_uuid(row.id) and wanted.role_of(row.id) == MAIN):
                wanted.add(row.id)  # a UUID can be the form of an ID that is known
            if row.log is not None and row.offset is not None and (row.log, row.offset) not in wanted.places:
                wanted.places.append((row.log, row.offset))
        if known == (len(wanted.ids), len(wanted.places)):
            break
        rows = [row for one in searched for row in one.rows(wanted)]
    keys = {str(row.carried["key"]) for row in rows if row.carried.get("key")}
    handled = [] if store is None else [entry for id in wanted.ids for entry in store.handled(id, keys)]
    found = bool(handled) or any(row.role != "made from it" for row in rows)
    has_message = bool(handled) or any(row.role in (MAIN, "dead letter") for row in rows)
    if not any(row.role in (MAIN, "dead letter") for row in rows):
        notes += [line for one in searched for line in one.help(wanted)]
        if handled:
            notes.append("no input has a row of the message, but it was handled")
    if has_message and not any(row.role.startswith(("output ", "new ", "made")) for row in rows):
        notes.append(f"outputs: none of output 0 to {OUTPUTS - 1} and new 1 to {OUTPUTS} was found in the inputs")
    if store is not None and not handled:
        notes.append("no handler of the store has handled it")
    cut = f"a search found more than {_MOST_ROWS:,} rows, and the story has the first of them"
    notes += [f"{one.name}: {cut}" for one in searched if one.is_cut]
    if store is None:
        notes.append("not looked at: the stores of processors (pass `store`)")
    return Trace(wanted.ids[0] if wanted.ids else wanted.name, found, story(rows, handled, wanted), notes)
