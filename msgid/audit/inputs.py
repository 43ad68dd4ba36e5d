"""Read: the columns of a table that an audit uses, by the caller's names and by those of known tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgid.audit.known_columns import chosen_columns
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgid.shared.known_tables import Columns

LOG: Final = "log"
"""The name of the one log of a table without a source column."""


def checked_columns(names: Sequence[str], named: Mapping[str, Any]) -> Columns:
    """Return the columns that a caller names, and the known ones that the caller does not name.

    Args:
        names: The columns of the table.
        named: The arguments that name columns, as `msgid.audit.options.columns_in` returns them.

    Raises:
        ValueError: if the table does not have a column, or has nothing to audit.
    """
    if list(names) == ["value"] and named["id"] in (None, "id"):  # the lines of a text
        named = {**named, "id": "value"}
    columns = chosen_columns(names, {**named, **{one: _several(named[one]) for one in ("source", "content")}})
    for argument, name in columns.names.items():
        if name not in names:
            present = list(names)
            if argument == name == "id":  # the default too
                # One name may be the whole header, by another separator.
                is_one = len(present) == 1 and re.search(r"[;|\t]", present[0])
                cure = "pass `delimiter`" if is_one else "pass `id`, or `offset` and `source`"
                raise ValueError(f"a column named id is missing from {present}: {cure}")
            raise ValueError(
                f"`{argument.split()[0]}` must be a column of the table, got {quote(name)}; it has {present}"
            )
        if list(names).count(name) > 1:
            raise ValueError(
                f"`{argument.split()[0]}` must be one column of the table, got {quote(name)} several times"
            )
    if columns.id is None and columns.offset is None:
        raise ValueError("cannot audit the table: it must have IDs, or offsets, got neither")
    if columns.source and columns.offset is None:
        raise ValueError("`offset` must be a column of the table if `source` is given, got None")
    if columns.incarnation is not None and columns.offset is None:
        raise ValueError("`offset` must be a column of the table if `incarnation` is given, got None")
    return columns


def _several(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return tuple(name for name in ([names] if isinstance(names, str) else names) if name != "")


def check_joined(has_slash: Sequence[bool | None]) -> None:
    """Check that the names of logs, which are the values of columns joined by a '/', differ.

    Args:
        has_slash: Whether each column of the source has a value with a '/'.

    Raises:
        ValueError: if several columns have such values.
    """
    if sum(map(bool, has_slash)) > 1:
        raise ValueError("at most one column of the source may have a '/' in its values: two logs could have one name")


def check_named_by(name: str, kind: str, type: object) -> None:
    """Raise ValueError if values of a type do not name a log or an incarnation: their text depends on the engine.

    Args:
        name: The column.
        kind: The kind of its type, of DuckDB or of Spark.
        type: The type, for the error.
    """
    if kind not in ("text", "integer", "null", "date32", "date", "bool", "boolean"):
        words = f"got {quote(name)} of {type}: cast it to text"
        raise ValueError(f"`source` and `incarnation` must be columns of text, integers or dates, {words}")
