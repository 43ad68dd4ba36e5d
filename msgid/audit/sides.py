"""Read: the sides of a comparison. A side is a table, or IDs or positions, as rows with their messages."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid import layout
from msgid.audit._frames import ids_source
from msgid.audit._roles import Logs, Roles, _identity, _is_v1, _seconds_of, kind_of
from msgid.audit._run import audited
from msgid.audit._sources import keep, open_file, open_frame
from msgid.audit.duck import Duck, quoted
from msgid.audit.known_columns import known_columns
from msgid.audit.options import COLUMNS, ColumnNames, columns_in, limits_in, rules_in
from msgid.audit.parts import cast, common_type
from msgid.ids.carriers import UnreadColumn, arrow_of, is_identity_in_duck
from msgid.ids.checked_bytes import is_missing, plain
from msgid.shared.validate import in_range, is_integer, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from msgid.audit.definitions import Format
    from msgid.audit.options import Rules
    from msgid.audit.parts import Source
    from msgid.shared.known_tables import Columns

_LIMITS: Final = ("timezone", "memory", "temp_dir", "progress")
_READING: Final = ("format", "delimiter", "header")
_STEP: Final = 1 << 16
"""The number of listed positions that become rows at one time."""
_NULL: Final = "CAST(NULL AS BIGINT)"


class SideOptions(ColumnNames, total=False):
    """The options of a comparison and of a digest: the columns, and what `AuditOptions` and `audit_file` explain.

    Attributes:
        timezone: Offset from UTC of times as text that do not name theirs.
        memory: Bytes of memory.
        temp_dir: Folder of temporary files.
        format: The format of the files of the table.
        delimiter: The character between two cells of their CSV.
        header: Whether the first line of their CSV names the columns.
    """

    timezone: str | None
    memory: int | str | None
    temp_dir: str | None
    format: Format | None
    delimiter: str | None
    header: bool


class Settings(NamedTuple):
    """The options of a comparison or of a digest.

    Attributes:
        named: The arguments that name columns.
        rules: The rules of times.
        duck: A connection within the limits.
        reading: How the files of the table are read.
    """

    named: dict[str, Any]
    rules: Rules
    duck: Duck
    reading: dict[str, Any]


def settings_in(function: str, options: Mapping[str, Any]) -> Settings:
    """Return the options of a public function.

    Args:
        function: The name of the public function, for the error.
        options: Its keyword arguments.

    Raises:
        TypeError, ValueError: if an argument is not allowed.
    """
    limits = {name: options[name] for name in _LIMITS if name in options}
    reading = {name: options[name] for name in _READING if name in options}
    named = columns_in(function, {name: options[name] for name in options if name not in (*_LIMITS, *_READING)})
    return Settings(named, rules_in(limits), Duck(limits_in(limits)), reading)


class Opened(NamedTuple):
    """A side whose columns are checked, and whose rows are not read yet.

    Attributes:
        source: The table.
        columns: Its columns.
        is_listed: Whether the caller listed IDs or positions. Such positions take the prefix of the other side's logs.
        is_empty: Whether such a list is empty, and fits any other side.
    """

    source: Source
    columns: Columns
    is_listed: bool = False
    is_empty: bool = False


def opened(
    duck: Duck,
    which: str,
    value: Any,
    named: Callable[[Sequence[str]], dict[str, Any]],
    reading: Mapping[str, Any] | None = None,
) -> Opened:
    """Return a side with its columns.

    Args:
        duck: The connection.
        which: The name of the side.
        value: The side, as `compare` takes it.
        named: Returns the arguments that name columns, of the columns of the side.
        reading: How its files are read: arguments of `open_file`.

    Raises:
        FileNotFoundError: if a path does not exist.
        TypeError: if the side is not a path, a table or an iterable of IDs or positions.
        ValueError: if a column is missing.
    """
    source, listed = _source_of(duck, which, value, reading or {})
    names = [*source.columns]
    try:
        arguments = _named_in_list(which, names) if listed is not None else named(names)
        return Opened(*audited(duck, source, arguments), listed is not None, listed == 0)
    except ValueError as error:
        words = with_hint(names, str(error)) if which == "sent" and listed is None else error
        raise ValueError(f"cannot compare {which}: {words}") from None


def _named_in_list(which: str, names: list[str]) -> dict[str, Any]:
    arguments = columns_in(which, {"id": "id" if "id" in names else None})
    if "offset" in names:
        arguments |= {"offset": "offset", "source": "source" if "source" in names else None}
    return arguments


def with_hint(names: Sequence[str], error: str) -> str:
    """Return an error about the columns of sent with the options that name them."""
    argument = next((name for name in COLUMNS if error.startswith(f"`{name}`")), "id")
    name = next((name for name in names if argument in name.lower()), names[0] if names else "order_id")
    in_python = f"sent_columns={{'{argument}': {name!r}}}"
    return f"{error}; name the columns of sent: {in_python}, or --sent-column {argument}={name}"


def check_sent_columns(sent_columns: Mapping[str, Any] | None) -> None:
    """Raise ValueError if an argument that names columns of ``sent`` is unknown."""
    wrong = sorted(set(sent_columns or ()) - set(COLUMNS))
    if wrong:
        raise ValueError(f"sent_columns must name {', '.join(COLUMNS)}, got {quote(wrong[0])}")


def names_in_sent(
    names: Sequence[str], named: Mapping[str, Any], sent_columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments that name columns for the side of ``sent``.

    Args:
        names: The columns of ``sent``.
        named: The arguments for the table.
        sent_columns: The arguments of the caller for ``sent``, or None.
    """
    if sent_columns is None:

        def kept(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value if not value or value in names else None
            return [name for name in value if name in names] or None

        chosen = {argument: kept(value) for argument, value in named.items()}
        known = known_columns(names) if named["offset"] is None else None
        lacks_offset = chosen["offset"] is None and (known is None or known.offset is None)
        source = named["source"]
        if lacks_offset or (source is not None and list(source) != list(kept(source) or ())):
            chosen["source"] = chosen["offset"] = None
        return {**chosen, "id": chosen["id"] or "id"}
    return columns_in("compare", sent_columns)


# --- The kinds of values that are a side ---


def _source_of(duck: Duck, which: str, value: Any, reading: Mapping[str, Any]) -> tuple[Source, int | None]:
    """Return a side as a table, and the number of its IDs or positions if it is a list of them."""
    if isinstance(value, str | os.PathLike) or hasattr(value, "read"):
        return open_file(duck, value, **reading), None
    if isinstance(value, Mapping) or hasattr(value, "columns") or hasattr(value, "schema"):
        return open_frame(duck, value), None
    if isinstance(value, bytes | bytearray | memoryview) or not hasattr(value, "__iter__"):
        raise TypeError(f"{_kinds_of_sides(which)}, got {quote(value)}")
    array = _array_of(value)
    if array is not None:
        return array if isinstance(array, tuple) else _offsets(duck, [array])
    items = iter(value)
    first = list(itertools.islice(items, _STEP))
    if not first:  # of either kind
        import pyarrow as pa

        empty = pa.table({"id": pa.array([], pa.string()), "offset": pa.array([], pa.int64())})
        return open_frame(duck, empty), 0
    whole = itertools.chain(first, items)
    if all(isinstance(item, Mapping) for item in first):
        return open_frame(duck, list(whole)), None
    if all(isinstance(item, os.PathLike) for item in first):
        return open_file(duck, list(whole), **reading), None
    if isinstance(first[0], str) and all(isinstance(item, str) and os.path.isfile(item) for item in first):
        raise TypeError(f"{which} must have IDs, got the names of files: pass pathlib.Path objects for files")
    return _listed(duck, which, whole, value)


def _kinds_of_sides(which: str) -> str:
    return f"{which} must be a path, a table or an iterable of IDs or positions"


def _array_of(value: Any) -> Any:
    """Return a column of integers as an Arrow array; None for any other value."""
    import pyarrow as pa

    if isinstance(value, pa.Array | pa.ChunkedArray):
        array = value
    elif hasattr(value, "dtype") and (hasattr(value, "__array__") or hasattr(value, "to_arrow")):
        if getattr(value, "ndim", 1) > 1 or getattr(value.dtype, "kind", "i") not in "iu":
            return None
        try:
            array = arrow_of(value)
        except UnreadColumn:
            return None
    else:
        return None
    return array if pa.types.is_integer(array.type) else None


def _listed(duck: Duck, which: str, items: Iterable[Any], value: Any) -> tuple[Source, int]:
    """Return an iterable of IDs or positions as a table, and the number of its rows, which is at least 1."""
    items = iter(items)
    first = next(items)
    items = itertools.chain([first], items)
    if _is_offset(first):
        return _offsets(duck, _arrays_of_offsets(which, items))
    if _position(first) is not None:
        return _positions(duck, which, items)
    ids = value if _is_column(value) else [*_checked_ids(which, items)]
    return ids_source(duck, ids), 1


def _is_column(value: Any) -> bool:
    """Return whether a value is an array or a series, and not a container of Python's values."""
    return hasattr(value, "dtype") or hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")


def _mixed(which: str, item: Any, among: str) -> TypeError:
    return TypeError(f"{which} must have IDs alone or positions alone, got {quote(item)} among {among}")


def _checked_ids(which: str, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if _is_offset(item) or _position(item) is not None:
            raise _mixed(which, item, "IDs")
        if not (is_missing(item) or isinstance(plain(item), str | bytes)):
            raise TypeError(f"{_kinds_of_sides(which)}, got an item {quote(item)}")
        yield item


def _is_offset(item: object) -> bool:
    return is_integer(item)


def _position(item: Any) -> tuple[str, int] | None:
    """Return the log and the offset of a position; None for any other value."""
    if all(hasattr(item, name) and not callable(getattr(item, name)) for name in ("topic", "partition", "offset")):
        item = (item.topic, item.partition, item.offset)
    is_pair = isinstance(item, tuple | list) and len(item) > 1 and _is_offset(item[-1])
    return ("/".join(map(str, item[:-1])), int(item[-1])) if is_pair else None


def _offset_array(items: Iterable[Any]) -> Any:
    """Return offsets as an array; one that is out of range is NULL, as Arrow does not hold every integer."""
    import pyarrow as pa

    valid = (int(number) if in_range(number, 0, layout.OFFSET_MAX) else None for number in items)
    return pa.array(valid, pa.int64())


def _arrays_of_offsets(which: str, items: Iterator[Any]) -> Iterator[Any]:
    while step := list(itertools.islice(items, _STEP)):
        for item in step:
            if not _is_offset(item):
                raise _mixed(which, item, "positions")
        yield _offset_array(step)


def _offsets(duck: Duck, arrays: Iterable[Any]) -> tuple[Source, int]:
    import pyarrow as pa

    chunks = [chunk for array in arrays for chunk in getattr(array, "chunks", [array])]
    table = pa.table({"offset": pa.chunked_array(chunks, pa.int64() if not chunks else None)})
    return open_frame(duck, table), table.num_rows


def _positions(duck: Duck, which: str, items: Iterator[Any]) -> tuple[Source, int]:
    import pyarrow as pa

    parts = []
    while step := list(itertools.islice(items, _STEP)):
        pairs = [_position(item) for item in step]
        if None in pairs:
            raise _mixed(which, step[pairs.index(None)], "positions")
        logs, offsets = zip(*(pair for pair in pairs if pair is not None), strict=True)
        parts.append(pa.table({"source": pa.array(logs, pa.string()), "offset": _offset_array(offsets)}))
    table = pa.concat_tables(parts)
    return open_frame(duck, table), table.num_rows


# --- The rows of a side ---


class Side(Roles):
    """The rows of a side by their messages.

    Args:
        duck: The connection.
        side: The side.
        rules: The rules of the options.
        ranges: Ranges of offsets, first and last. Rows outside of them need not be read.
    """

    def __init__(self, duck: Duck, side: Opened, rules: Rules, ranges: Sequence[tuple[int, int]] = ()) -> None:
        source, columns = side.source, side.columns._replace(landed=None, parent=None)
        self._condition = ""
        if ranges and columns.offset is not None and kind_of(source.columns[columns.offset]) == "integer":
            name = quoted(columns.offset)
            self._condition = " OR ".join(f"{name} BETWEEN {first} AND {last}" for first, last in ranges)
        if any(part.kinds for part in source.parts):  # JSON: a list of rows has all columns
            source = keep(duck, source, source.columns)
        super().__init__(duck, source, columns, rules)

    @property
    def logs(self) -> str | None:
        """The relation of the logs, with the ``name`` of each; None without offsets."""
        return None if self._logs is None else self._logs.table

    def number_logs(self, scopes: str) -> None:
        """Replace the numbers of the logs by those of another relation, which has the ``log`` of each ``name``."""
        assert self._logs is not None
        table, join = self._logs
        name = self.duck.kept(
            "logs", f"SELECT s.log, l.* EXCLUDE (log) FROM {table} AS l JOIN {scopes} AS s USING (name)"
        )
        self._logs = Logs(name, join.replace(table, name))

    def messages(self, *, by_position: bool, content: Content | None, is_timed: bool, blocks: str | None = None) -> str:
        """Return the relation of the rows: ``log``, ``off``, ``id``, ``content``, its ``text`` and ``time``.

        Args:
            by_position: Whether the key of a message is its position, or its ID.
            content: The content, or None.
            is_timed: Whether the times are used.
            blocks: The relation of the blocks, ``log`` and ``block``, whose rows are used. Default: all rows.
        """
        rows = f"SELECT *, NULL AS content, NULL AS text, {self._identity()} AS identity FROM {self.base}"
        if content is not None:
            base = self._selected(
                [*self._needed, *self.columns.content], f"{content.value} AS content", f"{content.text} AS text"
            )
            rows = f"SELECT *, {self._identity()} AS identity FROM ({base})"
        if by_position:
            text = self._placed(f"({rows})", "identity", "content", "text")
        else:
            key = "CASE WHEN identity IS NOT NULL THEN 1 END AS log, CAST(NULL AS BIGINT) AS off"
            text = f"SELECT {key}, {self._time()} AS time, identity, content, text FROM ({rows})"
        time = "time" if is_timed else _NULL
        text = f"SELECT log, off, identity AS id, content, text, {time} AS time FROM ({text}) AS r"
        if blocks is not None:
            text += f" WHERE EXISTS (SELECT 1 FROM {blocks} AS b WHERE b.log = r.log AND b.block = r.off // 65536)"
        return self._view("messages", text) if self.source.is_cheap else self.duck.kept("messages", text)

    def hashed(self, contents: Sequence[str]) -> str:
        """Return the query of the rows of a digest: ``log``, ``off``, ``time`` and ``hash``.

        Args:
            contents: The content columns.
        """
        _add_hash(self.duck)
        is_text = [self.source.columns[name] != "BLOB" for name in contents]
        values = [
            quoted(name) if not one else f"CAST({quoted(name)} AS VARCHAR)"
            for name, one in zip(contents, is_text, strict=True)
        ]
        rows = self._selected([*self._needed, *contents], *(f"{value} AS c{n}" for n, value in enumerate(values)))
        texts = [_measured("CAST(off AS VARCHAR)"), *([_measured(self._identity())] if self.columns.id else [])]
        if all(is_text):
            texts += [_measured(f"c{n}") for n in range(len(values))]
            data = f"encode({' || '.join(texts)})"
        else:
            parts = [
                f"encode({_measured(f'c{n}')})" if one else _measured_bytes(f"c{n}") for n, one in enumerate(is_text)
            ]
            data = " || ".join([f"encode({' || '.join(texts)})", *parts])
        return self._placed(f"(SELECT *, msgid_hash({data}) AS hash FROM ({rows}))", "hash")

    def whole_rows(self, *, by_position: bool) -> str:
        """Return the query of the rows with all their columns, ``whole``, by ``log`` and ``off``, or by ``id``."""
        rows = self._selected(self.source.readable, "msgid_row AS whole")
        if by_position:
            return self._placed(f"({rows})", "whole")
        return f"SELECT CASE WHEN id IS NOT NULL THEN 1 END AS log, {self._identity()} AS id, whole FROM ({rows})"

    def _identity(self) -> str:
        """Return the identity of the role ``id``; the text of a UUID of DuckDB is its identity."""
        if self.columns.id is None:
            return "CAST(NULL AS VARCHAR)"
        return "id" if is_identity_in_duck(self.source.columns[self.columns.id]) else _identity("id")

    def _time(self) -> str:
        has_times = self.columns.timestamp is not None
        return "sent" if has_times else f"CASE WHEN {_is_v1('id')} THEN {_seconds_of('id')} * 1000000 END"

    def _selected(self, columns: Iterable[str], *more: str) -> str:
        text = super()._selected(columns, *more)
        return f"{text} WHERE {self._condition}" if self._condition else text


SEED: Final = 42
"""The seed of the hash: that of Spark's ``xxhash64``."""


def _add_hash(duck: Duck) -> None:
    """Make the hash of bytes a function of SQL."""
    from xxhash import xxh64_intdigest

    def hashes(values: Any) -> Any:
        import pyarrow as pa

        return pa.array([xxh64_intdigest(one, SEED) for one in values.to_pylist()], pa.uint64())

    if not duck.has_function("msgid_hash"):
        duck.function("msgid_hash", hashes, "BLOB", "UBIGINT")


def _measured(value: str) -> str:
    """Return the text of a value with the number of its bytes in front; a dash for NULL.

    So a value that moves to another column changes the hash of the row.
    """
    return f"coalesce(CAST(strlen({value}) AS VARCHAR) || ':' || {value}, '-')"


def _measured_bytes(value: str) -> str:
    """Return bytes with their number in front; a dash for NULL."""
    return f"coalesce(encode(CAST(octet_length({value}) AS VARCHAR) || ':') || {value}, encode('-'))"


# --- Contents of two sides ---


class Content(NamedTuple):
    """The content of a row in DuckDB's SQL.

    Attributes:
        value: The expression by which contents are equal.
        text: The text of the values whose hash DuckDB gives to other values too.
    """

    value: str
    text: str


def content_of_sides(duck: Duck, sides: Sequence[Side]) -> list[Content | None]:
    """Return the content of each of two sides, of one type; None if a side lacks it.

    Raises:
        ValueError: if two columns do not have one kind of type.
    """
    names = [side.columns.content for side in sides]
    if not all(names):
        return [None, None]
    columns = [[(name, side.source.columns[name]) for name in side.columns.content] for side in sides]
    check_contents(*([(name, kind_of(type)) for name, type in of_side] for of_side in columns))
    pairs = [_values_of_one_type(duck, *pair) for pair in zip(*columns, strict=True)]
    weak = [
        index
        for index, types in enumerate(zip(*columns, strict=True))
        if any(kind_of(type) == "nested" or type.startswith(_WEAK) for _, type in types)
    ]
    contents: list[Content | None] = []
    for values in zip(*pairs, strict=True):
        texts = ", ".join(f"CAST({values[index]} AS VARCHAR)" for index in weak)
        contents.append(Content(f"row({', '.join(values)})", f"row({texts})" if weak else "NULL"))
    return contents


_WEAK: Final = ("HUGEINT", "UHUGEINT", "DECIMAL", "UUID")
"""Types of 128 bits: DuckDB's hash of several values is the same, such as of 0 and -1. So is that of nested values."""


def check_contents(sent: Sequence[tuple[str, str]], table: Sequence[tuple[str, str]]) -> None:
    """Raise ValueError if the contents of two sides have other kinds of types, so that no two values are equal.

    Args:
        sent: The name of each column and the kind of its type, of DuckDB or of Spark.
        table: The same for the table.
    """
    if len(sent) != len(table):
        names = [[name for name, _ in side] for side in (sent, table)]
        raise ValueError(f"{_MUST} be as many columns, got {names[0]} and {names[1]}")
    for one, other in zip(sent, table, strict=True):
        if one[1] != other[1] and "null" not in (one[1], other[1]):
            raise _other_types(one, other)


_MUST: Final = "cannot compare sent with the table: content must"


def _other_types(one: tuple[str, str], other: tuple[str, str]) -> ValueError:
    """Return the error about two columns, given with their types."""
    second = f"of {other[1]}" if one[0] == other[0] else f"{quote(other[0])} of {other[1]}"
    return ValueError(
        f"{_MUST} have one type on both sides, got {quote(one[0])} of {one[1]} and {second}; cast one of them"
    )


def _values_of_one_type(duck: Duck, one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    """Return the values of two columns, given with their types, so that equal values are equal in DuckDB."""
    types = (one[1], other[1])
    values = (quoted(one[0]), quoted(other[0]))
    kinds = [kind_of(type) for type in types]
    if "null" in kinds:
        typed = next((type for type in types if kind_of(type) != "null"), "INTEGER")
        null = f"CAST(NULL AS {typed})"
        return null if kinds[0] == "null" else values[0], null if kinds[1] == "null" else values[1]
    if kinds[0] == "nested":
        if types[0] == types[1] and "MAP(" not in types[0]:
            return values
        if _without_widths(types[0]) != _without_widths(types[1]):
            raise _other_types(one, other)
        return _encoded(duck, *values, *types)
    if kinds[0] == "text" and types[0] != types[1]:
        if "BLOB" in types:
            texts = [v if t == "BLOB" else f"encode(CAST({v} AS VARCHAR))" for v, t in zip(values, types, strict=True)]
            return texts[0], texts[1]
        return f"CAST({values[0]} AS VARCHAR)", f"CAST({values[1]} AS VARCHAR)"
    common = common_type(types)
    if common is None:
        raise _other_types(one, other)
    return cast(values[0], types[0], common), cast(values[1], types[1], common)


_WIDTHS: Final = {
    r"\bU?(?:TINY|SMALL|BIG|HUGE)INT\b|\bU?INTEGER\b": "INTEGER", r"\bTIMESTAMP_(?:S|MS|NS)\b": "TIMESTAMP",
    r"\bDECIMAL\(\d+,\d+\)": "DECIMAL",
}  # fmt: skip


def _without_widths(type: str) -> str:
    """Return a nested type in which the types of numbers and moments do not have a width."""
    for pattern, name in _WIDTHS.items():
        type = re.sub(pattern, name, type)
    return type


def _encoded(duck: Duck, one: str, other: str, type_of_one: str, type_of_other: str) -> tuple[str, str]:
    """Return the canonical encodings of nested values, in which the order of the entries of a map does not matter."""

    def encoded(values: Any) -> Any:
        import pyarrow as pa

        from msgid.shared.contents import encodings

        return pa.array(encodings(values), pa.binary())

    names = []
    for type in (type_of_one, type_of_other):
        names.append(duck.new_name("msgid_encoded"))
        duck.function(names[-1], encoded, type, "BLOB")
    return f"{names[0]}({one})", f"{names[1]}({other})"
