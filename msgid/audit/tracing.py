"""Trace: search files and a store for one message. `msgid.audit.story` tells its story."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import duckdb

from msgid import danube, kafka, layout, rocketmq
from msgid.audit._roles import kind_of, offset_in_duck
from msgid.audit._sources import keep, open_file, read_error
from msgid.audit.duck import Duck, Limits, literal, quoted
from msgid.audit.inputs import LOG, check_named_by, checked_columns
from msgid.audit.known_columns import known_table
from msgid.audit.options import columns_in
from msgid.audit.story import (
    CARRIERS,
    CHILD,
    DEAD,
    MAIN,
    Row,
    Trace,
    carried_by,
    first_position,
    story,
    text_of,
    values_in,
)
from msgid.ids.carriers import kind_in_duck
from msgid.ids.checked_bytes import identity, identity_bytes, is_uuid
from msgid.ids.derived import derive_from_bytes, position_id
from msgid.ids.message_id import MessageId
from msgid.ids.parsing import parse
from msgid.shared.handler_message import read_id
from msgid.shared.moments import check_unit, moment_of
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from typing_extensions import Unpack

    from msgid.audit.definitions import Format
    from msgid.audit.options import ColumnNames
    from msgid.audit.parts import Source
    from msgid.shared.known_tables import Columns

OUTPUTS: Final = 8
"""The number of outputs and of new IDs of a handler that are looked for."""
_MEMORY: Final = 256 << 20
_MOST_ROWS: Final = 1_000
"""The most rows of one search that are in a story."""
_POSITION: Final = re.compile(r"(.*[^:/]):([0-9]{1,15})", re.DOTALL)
_DEAD_OFFSETS: Final = (kafka.DEAD_OFFSET, danube.ORIGINAL_OFFSET)
"""The headers and attributes that name the offset of the first place of a dead letter."""
_COMPARED: Final = {"text": "VARCHAR", "bytes": "BLOB", "uuid": "UUID"}
"""The type of DuckDB with which a column is compared, by how it holds IDs."""
_SPACES: Final = " \t\r\n"


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

    def by_role(self) -> dict[str, dict[str, list[Any]]]:
        """Return the stored forms by ``message`` and the names of its children, and then by the type of DuckDB."""
        by_role: dict[str, dict[str, list[Any]]] = {}
        for type, forms in self.values().items():
            for form in forms:
                of_role = by_role.setdefault(self.role_of(form) or MAIN, {name: [] for name in self.values()})
                of_role[type].append(form)
        return by_role

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
        self.untimed: str | None = None
        """Why a time is not in the story."""
        source = open_file(duck, path, format=format)
        if any(part.kinds for part in source.parts):
            source = keep(duck, source, source.readable)
        self._source: Source = source
        self.columns: Columns = checked_columns([*source.columns], named)
        known = known_table(source.readable)
        self._named = None if known is None or known.columns.source != self.columns.source else known.named
        """How the rows of a known table name their messages; None for other tables."""
        source.scan(self.columns.names.values())  # refuses a column that cannot be read
        if self.columns.offset is not None:
            offset_in_duck(self.columns.offset, source.columns[self.columns.offset])  # refuses another type
            for name in filter(None, (*self.columns.source, self.columns.incarnation)):
                check_named_by(name, kind_of(source.columns[name]), source.columns[name])
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
                tests += self._compares(name, *compared, values)
        offset = self.columns.offset
        has_ids = self.columns.id is not None and wanted.ids and not wanted.has_position
        if offset is not None and not has_ids and (offsets := wanted.offsets()):
            tests.append(f"{self._number(offset)} IN ({', '.join(map(str, sorted(offsets)))})")
        for name in (*CARRIERS, rocketmq.OFFSET_ID):
            if name in self._source.readable:
                tests += self._mentions(name, main, with_places=bool(wanted.places))
        rows = [self._row(wanted, *one) for one in self._selected(tests)] if tests else []
        readable = [row for row in rows if row is not None]
        return readable or self._other_spelling(wanted, main["VARCHAR"])

    def _number(self, name: str) -> str:
        """Return a column of offsets as integers; NULL for a value that is not one.

        Statistics of files skip by a comparison with the column itself.
        """
        type = self._source.columns[name]
        return quoted(name) if kind_of(type) == "integer" else offset_in_duck(name, type)

    def _compares(self, name: str, value: str, type: str, forms: Sequence[Any]) -> list[str]:
        """Return the test that a column has one of several forms of an ID, if the statistics of the files allow it.

        DuckDB skips the row groups of Parquet by a comparison with one value, but not by one with many values.
        """
        files = [part.files for part in self._source.parts]
        literals = dict.fromkeys(map(_literal, forms))
        if all(files) and type != "UUID" and type == self._source.columns[name]:
            ends = " AND ".join(f"coalesce(form {than} TRY_CAST({end} AS {type}), true)"
                                for than, end in ((">=", "stats_min_value"), ("<=", "stats_max_value")))  # fmt: skip
            groups = " UNION ALL ".join(f"SELECT * FROM parquet_metadata({one})" for one in files)
            spellings = self._rows_of(
                f"SELECT DISTINCT form FROM ({groups}), (SELECT unnest([{', '.join(literals)}]) AS form) "
                f"WHERE path_in_schema = {literal(name)} AND {ends}"
            )
            literals = dict.fromkeys(_literal(form) for form in sorted(form for (form,) in spellings))
            if literals:  # the two ends, too, are compared before the other columns are decoded
                ends = f"{value} BETWEEN {next(iter(literals))} AND {next(reversed(literals))}"
                return [f"{ends} AND {value} IN ({', '.join(literals)})" if len(literals) > 1 else ends]
        return [f"{value} IN ({', '.join(literals)})"] if literals else []

    def _mentions(self, name: str, forms: Mapping[str, list[Any]], *, with_places: bool) -> list[str]:
        """Return the tests of a column that can hold an ID, or the first place of a dead letter, among other values."""
        value, type = quoted(name), self._source.columns[name]
        text = f"CAST({value} AS VARCHAR)"
        places = [f"contains({text}, {literal(last)})" for last in _DEAD_OFFSETS] if with_places else []
        if type.endswith(" BLOB)[]") or (type.startswith("MAP(") and type.endswith(" BLOB)")):
            values = (
                f"map_values({value})" if type.startswith("MAP(") else f"list_transform({value}, lambda h: h.value)"
            )
            blobs = ", ".join(map(_literal, forms["BLOB"]))
            return [f"list_has_any({values}, [{blobs}])", *places] if blobs else places
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
        # Rows are known by their files and numbers; rows of other formats lack numbers, and are read again.
        rows = self._read if self._source.parts[0].files else {}
        for part in self._source.parts:
            row_names = f"{part.file} AS msgid_file, file_row_number AS msgid_row" if part.files else "NULL, NULL"
            values = ", ".join(f"{part.value(one, types[one])} AS {quoted(one)}" for one in names)
            inner = f"SELECT {values}, {row_names} FROM {part.rows_of(names, with_kinds=False)}"
            # One query for each test lets DuckDB skip row groups of Parquet by their statistics.
            for test in [one for one in tests if one not in self._done] if part.files else [" OR ".join(tests)]:
                read = self._rows_of(f"SELECT * FROM ({inner}) WHERE {test} LIMIT {_MOST_ROWS + 1}")
                self.is_cut = self.is_cut or len(read) > _MOST_ROWS
                for *cells, path, number in read[:_MOST_ROWS]:
                    key = (self.name, len(rows)) if path is None else (path, number)
                    rows[key] = dict(zip(names, cells, strict=True))
        self._done.update(tests)
        return [(values, *key) for key, values in sorted(rows.items(), key=lambda one: one[0])]

    def _rows_of(self, text: str) -> list[tuple[Any, ...]]:
        try:
            return self._duck.rows(text)
        except duckdb.Error as error:
            raise read_error(self._source, error) from None

    def _row(self, wanted: Wanted, values: dict[str, Any], path: str, number: int) -> Row | None:
        columns = self.columns
        carried = carried_by(values)
        log = offset = id = None
        if columns.offset is not None and values[columns.offset] is not None:
            with suppress(ValueError, TypeError, OverflowError):
                offset = int(values[columns.offset])
            log = _log(columns, values)
        if columns.id is not None:
            with suppress(ValueError):
                id = None if values[columns.id] is None else identity(values[columns.id])
        elif self._named is not None:
            parsed: dict[str, Any] = {name: values_in(values[name]) for name in CARRIERS if name in values}
            id, log = self._named({**values, **parsed})
        at = None
        for name in filter(None, (columns.timestamp, columns.landed)):
            try:
                check_unit(name, values[name], 1_000)
                at = at or (None if values[name] is None else moment_of(name, values[name]))
            except (ValueError, TypeError) as error:
                self.untimed = str(error)
        evidence = path if path == self.name and not path.endswith(".parquet") else f"{path} row {number}"
        row = Row(MAIN, id, log, offset, at, _content(columns, values), carried, evidence, tuple(values))
        role = None if id is None else wanted.role_of(values[columns.id] if columns.id else id)
        if log is not None and offset is not None and role is None and wanted.is_at(log, offset):
            role = MAIN
        for name in (rocketmq.OFFSET_ID, rocketmq.ORIGIN):
            role = role or (wanted.role_of(carried[name]) if carried.get(name) else None)
        first, parent = first_position(carried), values.get(columns.parent or "input_id")
        if role is None and first is not None and wanted.is_at(*first):
            role = DEAD
        if role is None and parent is not None:
            role = CHILD if wanted.role_of(parent) == MAIN else None
        return None if role is None else row._replace(role=role)

    def help(self, wanted: Wanted) -> list[str]:
        """Return what the input has beside a message that it does not have: the neighbours in its log or process."""
        columns = self.columns
        lines: list[str] = []
        names_ids = self._named is not None and any(name in CARRIERS for name in self._source.readable)
        if columns.id is None and not names_ids:
            lines.append(f"{self.name}: its IDs were not looked at, because no column is named id or chosen as the ID")
        logs: list[str] = []
        known: list[str] = []
        if columns.offset is not None and wanted.offsets():
            number = self._number(columns.offset)
            keys = [quoted(name) for name in columns.source]
            text = self._source.scan([*columns.source, columns.offset])
            grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
            for offset in sorted(wanted.offsets()):
                ends = (
                    f"max({number}) FILTER ({number} < {offset}), min({number}) FILTER ({number} > {offset}), "
                    f"count(*) FILTER ({number} = {offset})"
                )
                for *parts, before, after, same in self._rows_of(
                    f"SELECT {', '.join([*keys, ends])} FROM ({text}){grouped}"
                ):
                    log = _log(columns, dict(zip(columns.source, parts, strict=True)))
                    if log is not None:
                        logs.append(log)
                    if log is None or not wanted.is_at(log, offset):
                        continue
                    known.append(log)
                    if same:
                        continue
                    sides = [f"{before} landed before it" if before is not None else "nothing landed before it",
                             f"{after} after it" if after is not None else "nothing after it"]  # fmt: skip
                    low, high = 0 if before is None else before + 1, offset if after is None else after - 1
                    missing = f"it is missing, with offsets {low} to {high}" if high > low else "it is missing"
                    tail = " (it may not be read yet)" if after is None else ""
                    lines.append(f"{self.name}: offset {offset} of {log}: {missing}; {', '.join(sides)}{tail}")
        for name, _ in wanted.places if logs and not known else ():
            shown, more = sorted(set(logs))[:3], len(set(logs)) - 3
            others = f" and {more:,} others" if more > 0 else ""
            lines.append(f"{self.name}: log {name} is missing; it has {', '.join(shown)}{others}")
        id = columns.id
        if id is not None and self._source.columns[id] == "VARCHAR":
            lines += self._around(id, wanted)
            for one in wanted._parsed():
                if one.origin in ("position", "derived"):
                    continue
                prefix, text = str(one)[: 2 * layout.PREFIX_LENGTH], str(one)
                name, scan = f"upper({quoted(id)})", self._source.scan([id])
                query = (
                    f"SELECT max({name}) FILTER ({name} < '{text}'), min({name}) FILTER ({name} > '{text}') "
                    f"FROM ({scan}) WHERE {name} >= '{prefix}' AND {name} < '{prefix}G'"
                )
                ((low, high),) = self._rows_of(query)
                near = [f"{quote(value)} {side} it" for value, side in ((low, "before"), (high, "after")) if value]
                if near:
                    lines.append(f"{self.name}: of the same process, it has {' and '.join(near)}")
        return lines

    def _around(self, name: str, wanted: Wanted) -> list[str]:
        """Return a line that names a text of a column of IDs that has the ID inside, such as a line of a log."""
        texts = dict.fromkeys(text.upper() for text in wanted.values(children=False)["VARCHAR"])
        tests = " OR ".join(f"contains(upper({quoted(name)}), {literal(text)})" for text in texts)
        if not tests:
            return []
        ((around,),) = self._rows_of(f"SELECT min({quoted(name)}) FROM ({self._source.scan([name])}) WHERE {tests}")
        inside = f"{self.name}: {quote(around)} contains it: an ID inside other text must be cut out first"
        return [] if around is None else [inside]


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    return f"CAST('{value}' AS UUID)" if isinstance(value, UUID) else literal(value)


def _log(columns: Columns, values: Mapping[str, Any]) -> str | None:
    parts = [values[name] for name in columns.source]
    if any(part is None for part in parts):
        return None
    return columns.prefix + ("/".join(map(text_of, parts)) if parts else LOG)


def _content(columns: Columns, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
    return tuple(repr(values[name]) for name in columns.content) if columns.content else None


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
    >>> story_of_id = trace("0156F7E71C361B21BC024CCDBE00000007", path)
    >>> story_of_id.exists, [event.kind for event in story_of_id.events]
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
) -> tuple[list[Input], list[str], list[str]]:
    """Return the inputs that can be searched, notes of the others, and their names."""
    searched: list[Input] = []
    notes: list[str] = []
    unread: list[str] = []
    for path in paths:
        try:
            searched.append(Input(duck, path, named, format))
        except FileNotFoundError:
            raise
        except ValueError as error:
            if len(paths) == 1 and not has_store:
                raise
            unread.append(str(path))
            notes.append(f"not looked at: {path}: {error}")
    for one in searched:
        notes += [f"not looked at: {one.name}: column {quote(name)} cannot be searched for an ID: cast it to text"
                  for name in one.unsearched]  # fmt: skip
    return searched, notes, unread


def _traced(
    duck: Duck, wanted: Wanted, paths: Sequence[Any], store: Any, named: Mapping[str, Any], format: Format | None
) -> Trace:
    searched, notes, unread = _opened(duck, paths, named, format, has_store=store is not None)
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
    # A store has a message under the form of the ID in which it came: a UUID can be written without its dashes.
    names = dict.fromkeys([*wanted.ids, *(str(one) for id in wanted.ids for one in forms_of(id).uuids)])
    handled = [] if store is None else [entry for id in names for entry in store.handled(id, keys)]
    exists = bool(handled) or any(row.role != CHILD for row in rows)
    has_row = any(row.role in (MAIN, DEAD) for row in rows)
    has_message = bool(handled) or has_row
    if not has_row:
        notes += [line for one in searched for line in one.help(wanted)]
        if handled:
            notes.append("no input has a row of the message, but it was handled")
    if has_message and not any(row.role.startswith(("output ", "new ", "made")) for row in rows):
        notes.append(f"outputs: none of output 0 to {OUTPUTS - 1} and new 1 to {OUTPUTS} was found in the inputs")
    if store is not None and not handled:
        notes.append("no handler of the store has handled it")
    notes += [f"{one.name}: the story lacks times: {one.untimed}" for one in searched if one.untimed]
    cut = f"a search found more than {_MOST_ROWS:,} rows, and the story has the first of them"
    notes += [f"{one.name}: {cut}" for one in searched if one.is_cut]
    if store is None:
        notes.append("not looked at: the stores of processors (pass `store`)")
    return Trace(
        wanted.ids[0] if wanted.ids else wanted.name, exists, story(rows, handled, wanted.ids), notes, tuple(unread)
    )
