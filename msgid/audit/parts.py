"""Read: the parts of a table, each with its own columns and types, as one relation of DuckDB."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgid.audit.duck import quoted
from msgid.shared.validate import is_utf8, quote, quote_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_INTEGERS: Final = {
    "TINYINT": (-(1 << 7), (1 << 7) - 1),
    "UTINYINT": (0, (1 << 8) - 1),
    "SMALLINT": (-(1 << 15), (1 << 15) - 1),
    "USMALLINT": (0, (1 << 16) - 1),
    "INTEGER": (-(1 << 31), (1 << 31) - 1),
    "UINTEGER": (0, (1 << 32) - 1),
    "BIGINT": (-(1 << 63), (1 << 63) - 1),
    "UBIGINT": (0, (1 << 64) - 1),
    "HUGEINT": (-(1 << 127), (1 << 127) - 1),
}
"""DuckDB's types of integers, the narrowest first."""
_MOMENTS: Final = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS")
_ZONED_MOMENTS: Final = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_DECIMAL_DIGITS: Final = 38
KIND: Final = "ENUM('NULL', 'VARCHAR', 'BOOLEAN', 'BIGINT', 'UBIGINT', 'DOUBLE', 'ARRAY', 'OBJECT')"
"""The type of the kinds of values of JSON, as DuckDB names them."""
NULL_TYPE: Final = '"NULL"'
"""The name that DuckDB has for the type of a column of NULLs alone."""


class Unreadable(ValueError):
    """A file or a frame that is not a table; the error does not name it yet."""


@dataclass(frozen=True)
class Part:
    """Rows with the same columns, such as those of files with one header.

    Attributes:
        types: The columns and their types of DuckDB, in the order of the table.
        values: The expression of each column, over the columns of ``rows``.
        rows: The text of a table expression, which may end with a condition.
        refused: The columns that cannot be read, each with the reason.
        kinds: The expression of the kind of each value of JSON; empty for other files.
        files: The list of Parquet files; empty for other rows.
        file: The expression of the path of a row's Parquet file.
    """

    types: dict[str, str]
    values: dict[str, str]
    rows: str
    refused: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    files: str = ""
    file: str = ""

    def select(self, names: Sequence[str], types: Mapping[str, str], *, with_kinds: bool = False) -> str:
        """Return the text of a query of some columns, as values of some types; a column that is missing is NULL.

        Args:
            names: The columns.
            types: Their types.
            with_kinds: Whether columns ``kind_0``, ``kind_1`` and so on have the kinds of the values of JSON.
        """
        values = [f"{self.value(name, types[name])} AS {quoted(name)}" for name in names]
        if with_kinds:
            values += [f"CAST({self.kinds.get(name, 'NULL')} AS {KIND}) AS kind_{n}" for n, name in enumerate(names)]
        return f"SELECT {', '.join(values) or 'true AS row'} FROM {self.rows_of(names, with_kinds=with_kinds)}"

    def rows_of(self, names: Sequence[str], *, with_kinds: bool) -> str:
        """Return the text of a table expression over which `values` and `kinds` have the expressions of columns."""
        return self.rows

    def value(self, name: str, wanted: str) -> str:
        """Return the expression of a column as a value of a type; NULL if the part does not have the column."""
        if name in self.types:
            return cast(self.values[name], self.types[name], wanted)
        return "NULL" if wanted == NULL_TYPE else f"CAST(NULL AS {wanted})"


@dataclass(frozen=True)
class Source:
    """A table that DuckDB reads.

    Attributes:
        name: The name in errors, such as the path.
        columns: The columns and their types of DuckDB, in the order of the table. A column that cannot be read has the
            name of its own type.
        relation: The text of a table expression with all columns that can be read.
        is_cheap: Whether another scan costs little, because the rows are stored by column.
        parts: The parts whose rows follow one another.
        refused: The columns that cannot be read, each with the reason.
        explained: Returns the reason of an error of DuckDB, or None if it is not known.
        careful: Returns the same source, read in a way that takes longer but reads rows that the first way refuses.
        numbers: The columns of text with values that are numbers in the file, which a type of DuckDB would round.
    """

    name: str
    columns: dict[str, str]
    relation: str
    is_cheap: bool
    parts: tuple[Part, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    explained: Callable[[Exception], str | None] = lambda error: None
    careful: Callable[[Exception], Source | None] = lambda error: None
    numbers: frozenset[str] = frozenset()

    @property
    def readable(self) -> list[str]:
        """The columns that can be read in one scan: without those that are refused, and repeated ones."""
        return _readable(self.columns, self.refused)

    def scan(self, columns: Iterable[str]) -> str:
        """Return the text of a SELECT that reads some columns, and checks each row of a text file whole.

        Raises:
            ValueError: if the table does not have a column, or a column cannot be read.
        """
        names = list(dict.fromkeys(columns))
        for name in names:
            reason = self.refused.get(name)
            if name not in self.columns:
                reason = f"it does not have a column {quote(name)}"
            if reason is not None:
                raise ValueError(f"cannot read {quote_path(self.name)}: {reason}")
        twice = same_without_case(names)
        if twice is not None:
            first, other = map(quote, twice)
            raise ValueError(
                f"cannot read {quote_path(self.name)}: the columns {first} and {other} differ in case only"
            )
        return _selected(self.parts, names, self.columns)


def source_of(
    name: str,
    parts: Sequence[Part],
    *,
    is_cheap: bool,
    lacking: Sequence[Part] = (),
    lacking_is_null: bool = False,
    explained: Callable[[Exception], str | None] = lambda error: None,
    careful: Callable[[Exception], Source | None] = lambda error: None,
) -> Source:
    """Return the source whose rows are those of some parts.

    Args:
        name: The name in errors.
        parts: The parts, which must have the same columns. A column that a part lacks is refused if it is read.
        is_cheap: Whether another scan costs little.
        lacking: Further parts; a column that they lack is NULL there.
        lacking_is_null: Whether a column that any part lacks is NULL there.
        explained: Returns the reason of an error of DuckDB.
        careful: Returns the same source, read in another way.
    """
    if lacking_is_null:
        parts, lacking = (), [*parts, *lacking]
    everywhere = [*parts, *lacking]
    columns: dict[str, str] = {}
    refused: dict[str, str] = {}
    for column in dict.fromkeys(name for part in everywhere for name in part.types):
        types = dict.fromkeys(part.types[column] for part in everywhere if column in part.types)
        joined = common_type(types)
        columns[column] = joined or " or ".join(types)
        reasons = [part.refused[column] for part in everywhere if column in part.refused]
        if reasons:
            refused[column] = reasons[0]
        elif len({column in part.types for part in parts}) > 1:
            refused[column] = _other_columns(parts)
        elif joined is None:
            first, other = list(types)[:2]
            shown = f"the column {quote(column)} is of {plain_type(first)} in one file"
            refused[column] = f"{shown} and of {plain_type(other)} in another: cast one of them"
        elif not column or "\0" in column or not is_utf8(column):
            refused[column] = f"a column is named {quote(column)}: rename it"
    relation = f"({_selected(everywhere, _readable(columns, refused), columns)})"
    return Source(name, columns, relation, is_cheap, tuple(everywhere), refused, explained, careful)


def _readable(columns: Iterable[str], refused: Mapping[str, str]) -> list[str]:
    names: dict[str, str] = {}
    for column in columns:
        if column not in refused:
            names.setdefault(column.lower(), column)
    return list(names.values())


def _other_columns(parts: Sequence[Part]) -> str:
    first = sorted(parts[0].types)
    other = next(names for part in parts if (names := sorted(part.types)) != first)
    return f"its files must have the same columns, got {first} and {other}"


def _selected(parts: Sequence[Part], names: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the text of a query of some columns of all parts."""
    return " UNION ALL ".join(part.select(names, types) for part in parts)


def same_without_case(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ in case only, which are one name for DuckDB; None without such names.

    >>> same_without_case(["id", "n", "ID"])
    ('id', 'ID')
    """
    first: dict[str, str] = {}
    return next(
        ((one, name) for name in names if (one := first.setdefault(name.lower(), name)) != name),
        None,
    )


def plain_type(type: str) -> str:
    """Return the name of a type for an error: that of DuckDB, in words that users of other tools know."""
    names = {"VARCHAR": "text", "BLOB": "bytes", NULL_TYPE: "NULL"}
    return names.get(type, type)


def common_type(types: Iterable[str]) -> str | None:
    """Return the type that has all values of some types exactly; None without one. The order does not matter.

    >>> common_type(["TINYINT", "BIGINT"]), common_type(["UBIGINT", "TINYINT"]), common_type(["BIGINT", "VARCHAR"])
    ('BIGINT', 'HUGEINT', None)
    >>> common_type(["BLOB", "UUID"]), common_type(["VARCHAR", "UUID"]), common_type(["VARCHAR", "BLOB"])
    ('UUID', 'VARCHAR', None)
    """
    several = set(types)
    if len(several) > 1:
        several.discard(NULL_TYPE)
    if len(several) == 1:
        return next(iter(several))
    if several <= set(_INTEGERS):
        least = min(_INTEGERS[one][0] for one in several)
        greatest = max(_INTEGERS[one][1] for one in several)
        return next((name for name, (low, high) in _INTEGERS.items() if low <= least and high >= greatest), None)
    if "UUID" in several and several <= {"UUID", "BLOB", "VARCHAR"}:
        return "VARCHAR" if "VARCHAR" in several else "UUID"
    for ordered in (("FLOAT", "DOUBLE"), _MOMENTS, _ZONED_MOMENTS):
        if several <= set(ordered):
            return max(several, key=ordered.index)
    decimals = [_DECIMAL.fullmatch(one) for one in several]
    if all(decimals):
        sizes = [(int(one[1]), int(one[2])) for one in decimals if one is not None]
        scale = max(after for _, after in sizes)
        digits = max(all_digits - after for all_digits, after in sizes) + scale
        return f"DECIMAL({digits},{scale})" if digits <= _DECIMAL_DIGITS else None
    return None


def cast(value: str, type: str, wanted: str) -> str:
    """Return the expression of a value of one type as another of its `common_type`."""
    if type == wanted:
        return value
    if type == "BLOB":  # of a UUID
        value = f"CAST(hex({value}) AS UUID)"
    return f"CAST({value} AS {wanted})"


def plain_error(error: Exception) -> str:
    """Return the first words of an error of DuckDB as one line, without its advice and its name of the error."""
    first = str(error).strip().partition("\n\n")[0].partition("\nPossible")[0]
    line = " ".join(re.sub(r"^[A-Z][\w ]* Error: ", "", first).split())
    return quote(line)[1:-1] if not line.isprintable() else line[:300]
