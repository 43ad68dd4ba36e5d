"""Reduce, on one machine: the columns of a table as the roles that the statements know: log, offset, ID and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from msgid import layout
from msgid.audit._sources import keep, read_error
from msgid.audit.definitions import AHEAD_S
from msgid.audit.duck import literal, quoted
from msgid.audit.inputs import LOG, check_joined, check_named_by
from msgid.audit.reduction import FIELDS, Relations
from msgid.ids.carriers import identities, text_in_duck
from msgid.shared.moments import UNIX_SECONDS_MIN, check_unit, last_moment
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgid.audit.duck import Duck
    from msgid.audit.options import Rules
    from msgid.audit.parts import Source
    from msgid.shared.known_tables import Columns

_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
                    "UBIGINT", "UHUGEINT")  # fmt: skip
_FIRST_MICRO, _LAST_MICRO = UNIX_SECONDS_MIN * 1_000_000, last_moment(1_000_000)
_FIRST_MILLI, _LAST_MILLI = UNIX_SECONDS_MIN * 1_000, last_moment(1_000)
_DATE_TIME: Final = r"\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?"
_ZONED: Final = _DATE_TIME + r"(Z|[+-](0\d|1[0-7])(:?[0-5]\d)?|[+-]18(:?00)?)"
_PRINTED: Final = {19: "%Y-%m-%d %H:%M:%S", 23: "%Y-%m-%d %H:%M:%S.%g", 26: "%Y-%m-%d %H:%M:%S.%f"}
"""The most frequent forms of moments as text, by their lengths."""
_PRINTED_ZONED: Final = {20: "%Y-%m-%dT%H:%M:%SZ", 24: "%Y-%m-%dT%H:%M:%S.%gZ", 27: "%Y-%m-%dT%H:%M:%S.%fZ"}
_UTC: Final = "+00:00"
_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NULL: Final = "CAST(NULL AS BIGINT)"


def _odd_identity(value: str) -> str:
    """Return the identity of a value that is no version-1 ID: text of other lengths than those of IDs is its own."""
    return (
        f"CASE WHEN strlen({value}) IN (32, 34, 36, 56, 58) THEN msgid_identity({value}) ELSE nullif({value}, '') END"
    )


WORDS: Final = {
    "node": "CAST(key >> 75 AS BIGINT)",
    "pid": "CAST((key >> 59) & 65535 AS BIGINT)",
    "seconds": f"CAST((key >> 27) & 4294967295 AS BIGINT) + {layout.EPOCH_UNIX}",
    "word": "CAST(key & 134217727 AS BIGINT)",
    "identity": _odd_identity("value"),
}
"""The fields of a key, which are the first 123 bits after the version of an ID, and the identity of a value."""


def kind_of(type: str) -> str:
    """Return the kind of a type of DuckDB: ``text`` for bytes too, one kind for all nested types, or its name.

    >>> kind_of("BLOB"), kind_of("STRUCT(a INTEGER)"), kind_of("TIMESTAMP WITH TIME ZONE")
    ('text', 'nested', 'timestamp with a time zone')
    """
    if type in ("VARCHAR", "BLOB", "UUID") or type.startswith("ENUM("):
        return "text"
    if type in _INTEGERS:
        return "integer"
    if type.endswith("]") or type.startswith(("STRUCT(", "MAP(", "UNION(")):
        return "nested"
    known = {'"NULL"': "null", "TIMESTAMP WITH TIME ZONE": "timestamp with a time zone"}
    return known.get(type, "decimal" if type.startswith("DECIMAL") else re.sub(r"_(S|MS|NS)$", "", type).lower())


class Roles:
    """The rows of a table by their roles, as views of DuckDB.

    Args:
        duck: The connection.
        source: The table.
        columns: Its columns.
        rules: The rules of the audit.

    Raises:
        ValueError: if a column has a type that is not read.
    """

    def __init__(self, duck: Duck, source: Source, columns: Columns, rules: Rules) -> None:
        if any(part.kinds for part in source.parts):  # the values of JSON tell their types
            source = keep(duck, source, columns.names.values())
        source.scan(columns.names.values())  # refuses a column that cannot be read
        self.duck, self.source, self.columns = duck, source, columns
        self._rules, types = rules, source.columns
        self._near = "landed" if columns.landed else "sent"
        if columns.id is not None or "BLOB" in types.values():  # they need NumPy, whose import takes a while
            _add_functions(duck)
        keys = [*columns.source, *([] if columns.incarnation is None else [columns.incarnation])]
        roles = {f"k{index}": _name_part(name, types[name]) for index, name in enumerate(keys)}
        if columns.offset is not None:
            roles["off"] = offset_in_duck(columns.offset, types[columns.offset])
        for role, argument, name in (("sent", "timestamp", columns.timestamp), ("landed", "landed", columns.landed)):
            roles[role] = _NULL if name is None else _micros(argument, name, types[name], rules)
        for role, name in (("id", columns.id), ("parent", columns.parent)):
            if name is not None:
                type = "DOUBLE" if name in source.numbers else types[name]
                roles[role] = text_in_duck(role, name, quoted(name), type)
        self._roles = roles
        self._needed = [name for argument, name in columns.names.items() if not argument.startswith("content")]
        self.base = self._view("base", self._selected(self._needed)) if source.is_cheap else self._kept()
        self._logs = None
        if columns.offset is not None:
            self._logs = _logs(duck, self.base, columns, [types[name] for name in keys])

    def relations(self) -> Relations:
        """Return the relations of the statements."""
        columns, types = self.columns, self.source.columns
        with_content, more = self.base, []
        if columns.content:
            values = ", ".join(_content(self.duck, name, types[name]) for name in columns.content)
            text = self._selected([*self._needed, *columns.content], f"row({values}) AS content")
            with_content, more = self._view("base_contents", text), ["content"]
        placed = contents = ids = id_contents = children = identities = None
        if columns.offset is not None:
            contents = placed = self._view("placed", self._placed(self.base))
            if more:
                contents = self._view("contents", self._placed(with_content, *more))
        if columns.id is not None:
            id_contents = ids = self._view("ids", self._ids(self.base))
            if more:
                id_contents = self._view("id_contents", self._ids(with_content, *more))
        if columns.parent is not None and columns.id is not None:
            fields = ", ".join(f"{WORDS[name]} AS {name}" for name in FIELDS)
            with_parents = self._ids(self.base, identity_of_parent())
            children = self._view(
                "children", f"SELECT key, part, place, {fields}, parent FROM ({with_parents}) WHERE key IS NOT NULL"
            )
            identities = self._view("identities", f"SELECT {_identity('id')} AS identity FROM {self.base}")
        group = "count(DISTINCT content)" if more else "CAST(1 AS BIGINT)"
        return Relations(self.base, placed, contents, ids, id_contents, children, identities, self.names, group, WORDS)

    def names(self, numbers: list[Any]) -> dict[Any, str]:
        """Return the names of some logs."""
        assert self._logs is not None
        asked = ", ".join(map(str, numbers)) or "NULL"
        return dict(self.duck.rows(f"SELECT DISTINCT log, name FROM {self._logs.table} WHERE log IN ({asked})"))

    def name_of(self, log: str) -> str:
        """Return the name of a log in SQL, by its number."""
        assert self._logs is not None
        return f"(SELECT min(name) FROM {self._logs.table} AS names WHERE names.log = {log})"

    def rows_in_logs(self) -> str:
        """Return the rows of the table by their places; ``whole`` has all columns of a row."""
        return self._placed(f"({self._selected(self.source.readable, 'msgid_row AS whole')})", "whole")

    def rows_with_ids(self, *more: str) -> str:
        """Return the rows of the table by their IDs, and further values; ``whole`` has all columns of a row."""
        return self._ids(f"({self._selected(self.source.readable, 'msgid_row AS whole')})", "whole", *more)

    def _kept(self) -> str:
        """Read the columns of a text file once, but the content."""
        try:
            return self.duck.kept("base", self._selected(self._needed))
        except duckdb.Error as error:
            other = self.source.careful(error)
            if other is None:
                raise read_error(self.source, error) from None
            self.source = other
            return self._kept()

    def _view(self, name: str, text: str) -> str:
        name = self.duck.new_name(name)
        self.duck.run(f"CREATE VIEW {name} AS {text}")
        return name

    def _selected(self, columns: Iterable[str], *more: str) -> str:
        values = ", ".join([*(f"{value} AS {role}" for role, value in self._roles.items()), *more])
        return f"SELECT {values} FROM ({self.source.scan([*dict.fromkeys(columns)])}) AS msgid_row"

    def _placed(self, base: str, *more: str) -> str:
        """Return the rows by their places: the log and the offset are both NULL if one of them is."""
        assert self._logs is not None
        has_times_of_ids = self.columns.timestamp is None and self.columns.id is not None
        time = f"CASE WHEN {_is_v1('id')} THEN {_seconds_of('id')} * 1000000 END" if has_times_of_ids else "sent"
        others = "".join(f", {one}" for one in more)
        return (
            f"SELECT CASE WHEN off IS NOT NULL THEN log END AS log, CASE WHEN log IS NOT NULL THEN off END AS off, "
            f"sent, landed, time{others} FROM (SELECT l.log, off, sent, landed, {time} AS time{others} "
            f"FROM {base} AS b {self._logs.join})"
        )

    def _ids(self, base: str, *more: str) -> str:
        """Return the rows by their IDs: key, part and place of version 1, and the text of any other value."""
        others = "".join(f", {one}" for one in more)
        seconds = f"CAST((number >> 32) & 4294967295 AS BIGINT) + {layout.EPOCH_UNIX}"
        is_future = [f"({seconds} - {AHEAD_S}) * 1000000 > landed"] if self.columns.landed else []
        is_future += [] if self._rules.earliest is None else [f"{seconds} < {self._rules.earliest}"]
        future = f"CASE WHEN {' OR '.join(is_future)} THEN 1 ELSE 0 END" if is_future else "0"
        read = f"CASE WHEN {_is_v1('id')} THEN TRY_CAST('0x' || substr(id, 3) AS UHUGEINT) END"
        return (
            f"SELECT number >> 5 AS key, 0 AS part, CAST(number & 31 AS BIGINT) AS place, "
            f"CASE WHEN number IS NULL THEN id END AS value, "
            f"CASE WHEN number IS NULL THEN {_is_uuid('id')} END AS is_uuid, "
            f"{self._near} AS near, {future} AS future{others} "
            f"FROM (SELECT *, {read} AS number FROM {base})"
        )


def _add_functions(duck: Duck) -> None:
    """Make the functions of Python that odd values need functions of SQL."""

    def decoded(values: Any) -> Any:
        import pyarrow as pa

        return pa.array([None if one is None else one.decode("utf-8", "replace") for one in values.to_pylist()])

    if not duck.has_function("msgid_identity"):  # a comparison has two tables
        duck.function("msgid_identity", identities, "VARCHAR", "VARCHAR")
        duck.function("msgid_text", decoded, "BLOB", "VARCHAR")


# --- Logs and offsets ---


def _name_part(name: str, type: str) -> str:
    """Return the value of a column that names the log."""
    check_named_by(name, kind_of(type), type)
    return quoted(name)


class Logs(NamedTuple):
    """The logs of a table, numbered by their names, so that a row has a number in place of a text.

    Attributes:
        table: The relation of the logs: ``log``, ``name`` and the values that name it.
        join: Joins a row, ``b``, with its log, ``l``.
    """

    table: str
    join: str


def _logs(duck: Duck, base: str, columns: Columns, types: list[str]) -> Logs:
    """Return the logs of a table.

    Args:
        duck: The connection.
        base: The rows; ``k0``, ``k1`` and so on are the values that name a log.
        columns: The columns of the table.
        types: The types of these values.

    Raises:
        ValueError: if two logs could have one name.
    """
    keys = [f"k{index}" for index in range(len(types))]
    texts = [_text(key, type) for key, type in zip(keys, types, strict=True)]
    sources, incarnation = texts[: len(columns.source)], texts[len(columns.source) :]
    name = f"{literal(columns.prefix)} || {' || {} || '.format(literal('/')).join(sources) or literal(LOG)}"
    if incarnation:
        name = f"{name} || coalesce('@' || {incarnation[0]}, '')"
    placed = " AND ".join(f"{key} IS NOT NULL" for key in keys[: len(sources)]) or "true"
    named = f"(SELECT DISTINCT {', '.join(keys)} FROM {base} WHERE {placed})" if keys else "(SELECT 1)"
    ranked = f"SELECT dense_rank() OVER (ORDER BY name) AS log, * FROM (SELECT {name} AS name, * FROM {named})"
    logs = duck.kept("logs", ranked)
    if len(sources) > 1:
        slashes = ", ".join(f"bool_or(contains({text}, '/'))" for text in sources)
        check_joined(duck.rows(f"SELECT {slashes} FROM {logs}")[0])
    equal = [
        f"l.{key} {'=' if index < len(sources) else 'IS NOT DISTINCT FROM'} b.{key}" for index, key in enumerate(keys)
    ]
    return Logs(logs, f"LEFT JOIN {logs} AS l ON {' AND '.join(equal) or 'true'}")


def _text(value: str, type: str) -> str:
    """Return a value of a log's name as text."""
    return f"msgid_text({value})" if type == "BLOB" else f"CAST({value} AS VARCHAR)"


def offset_in_duck(name: str, type: str) -> str:
    """Return the offset of a row: whole numbers of 0 to 2**48 - 1, or their digits; NULL for any other value."""
    value, between = quoted(name), f"BETWEEN 0 AND {layout.OFFSET_MAX}"
    if type in _INTEGERS:
        return f"CAST(CASE WHEN {value} {between} THEN {value} END AS BIGINT)"
    if type == "VARCHAR":
        number = f"TRY_CAST({value} AS BIGINT)"
        # Most offsets are the digits that DuckDB prints, which is faster than a regular expression.
        is_number = f"CAST({number} AS VARCHAR) = {value} OR regexp_full_match({value}, '-?[0-9]{{1,19}}')"
        return f"CASE WHEN {number} {between} AND ({is_number}) THEN {number} END"
    if type.startswith("DECIMAL"):
        is_whole = f"{value} = floor({value}) AND {value} {between}"
        return f"CAST(CASE WHEN {is_whole} THEN {value} END AS BIGINT)"
    if type == '"NULL"':
        return _NULL
    hint = "; a column of pandas with a missing value needs the type Int64" if type in ("DOUBLE", "FLOAT") else ""
    raise ValueError(
        f"`offset` must be a column of integers, got {quote(name)} of {type.lower()}: cast it to integers{hint}"
    )


# --- Moments ---


def _micros(argument: str, name: str, type: str, rules: Rules) -> str:
    """Return a moment as microseconds since 1970; NULL if it cannot be read.

    A moment is a timestamp, a date, an integer of milliseconds since 1970 or its digits, or text that names its offset
    from UTC, unless the caller names it. A timestamp without a time zone and a date are in UTC.
    """
    value = quoted(name)
    if type in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"):
        micros = f"epoch_us({value})"
        if type == "TIMESTAMP_NS":
            nanos = f"epoch_ns({value})"
            micros = f"{nanos} // 1000 - CASE WHEN {nanos} % 1000 < 0 THEN 1 ELSE 0 END"
        elif type != "TIMESTAMP" and "ZONE" not in type:  # DuckDB has no microseconds of later years
            micros = f"epoch_us(TRY_CAST({value} AS TIMESTAMP))"
        return _between(micros, _FIRST_MICRO, _LAST_MICRO)
    if type in _INTEGERS:
        return f"CAST({_between(value, _FIRST_MILLI, _LAST_MILLI)} AS BIGINT) * 1000"
    if type == "VARCHAR":
        moment = f"TRY_CAST({value} AS TIMESTAMP)"
        millis = _between(f"TRY_CAST({value} AS BIGINT)", _FIRST_MILLI, _LAST_MILLI)
        micros, zoned = f"epoch_us({moment})", f"epoch_us(TRY_CAST({value} AS TIMESTAMPTZ))"
        cases = [
            (_is_printed(value, moment, _PRINTED_ZONED), micros),
            (f"regexp_full_match({value}, {literal(_ZONED)})", zoned),
        ]
        if rules.timezone is not None:
            zoned = f"epoch_us(TRY_CAST({value} || {literal(rules.timezone)} AS TIMESTAMPTZ))"
            cases.insert(0, (f"regexp_full_match({value}, {literal(_DATE_TIME)})", zoned))
            if rules.timezone == _UTC:
                cases.insert(0, (_is_printed(value, moment, _PRINTED), micros))
        texts = [f"WHEN {condition} THEN {_between(read, _FIRST_MICRO, _LAST_MICRO)}" for condition, read in cases]
        texts.append(f"WHEN regexp_full_match({value}, '-?[0-9]{{1,19}}') THEN {millis} * 1000")
        return f"CASE {' '.join(texts)} END"
    if type == '"NULL"':
        return _NULL
    raise ValueError(
        f"`{argument}` must be a column of timestamps, of integers or of text, got {quote(name)} of {type.lower()}: "
        "cast it to a timestamp"
    )


def _is_printed(value: str, moment: str, forms: Mapping[int, str]) -> str:
    """Return whether a text is what DuckDB prints for its moment, which is faster than a regular expression."""
    printed = " ".join(f"WHEN {length} THEN strftime({moment}, {literal(form)})" for length, form in forms.items())
    return f"{value} = CASE strlen({value}) {printed} END"


def _between(value: str, low: int, high: int) -> str:
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} END"


def check_moments(duck: Duck, source: Source, argument: str, name: str, last: int | None, unread: bool) -> None:
    """Raise ValueError if numbers are of another unit, or if no time of a column is read though there are some.

    Args:
        duck: The connection.
        source: The table.
        argument: The argument that names the column.
        name: The column.
        last: The last moment of the column in microseconds since 1970, or None.
        unread: Whether no row has a moment.
    """
    type, value = source.columns[name], quoted(name)
    is_number = "true" if type in _INTEGERS else f"regexp_full_match({value}, '-?[0-9]{{1,19}}')"
    if type not in (*_INTEGERS, "VARCHAR"):
        return
    are_seconds = last is not None and 10**9 <= last // 1_000 < 3 * 10**9
    if not (unread or are_seconds):
        return
    asked = f"SELECT max(CAST({value} AS HUGEINT)) FROM ({source.scan([name])}) WHERE {is_number}"
    ((number,),) = duck.rows(asked.replace("CAST(", "TRY_CAST("))
    if number is not None:
        check_unit(f"`{argument}`", int(number), 1_000)
    if unread and type == "VARCHAR":
        ((text,),) = duck.rows(f"SELECT min({value}) FROM ({source.scan([name])})")
        if text is not None and re.fullmatch(_DATE_TIME, text):
            raise ValueError(
                f"`{argument}` must have times that name their offset from UTC, got {quote(text)}: pass timezone='UTC' "
                f"if the times are in UTC, or another offset; or `{argument}`='' to leave them out"
            )


# --- IDs ---


def _is_v1(id: str) -> str:
    return f"strlen({id}) = 34 AND starts_with({id}, '01') AND NOT contains({id}, '_')"


def _is_uuid(id: str) -> str:
    """Return whether a text is the canonical text of a UUID."""
    return f"regexp_full_match({id}, '{_UUID}')"


def _seconds_of(id: str) -> str:
    return f"(TRY_CAST('0x' || substr({id}, 19, 8) AS BIGINT) + {layout.EPOCH_UNIX})"


def _identity(id: str) -> str:
    """Return the identity of the text of an ID."""
    number = f"TRY_CAST('0x' || substr({id}, 3) AS UHUGEINT)"
    return (
        f"CASE WHEN {_is_v1(id)} AND {number} IS NOT NULL THEN upper({id}) "
        f"WHEN {_is_uuid(id)} THEN {id} ELSE {_odd_identity(id)} END"
    )


def identity_of_parent() -> str:
    """Return the column of the identities of parents."""
    return f"{_identity('parent')} AS parent"


def _content(duck: Duck, name: str, type: str) -> str:
    """Return the value by which contents are equal. DuckDB compares maps by the order of their entries; we do not."""
    value = quoted(name)
    if "MAP(" not in type:
        return value
    function = duck.new_name("msgid_content")

    def encoded(values: Any) -> Any:
        import pyarrow as pa

        from msgid.shared.contents import encodings

        return pa.array(encodings(values), pa.binary())

    duck.function(function, encoded, type, "BLOB")
    return f"{function}({value})"
