"""Names of columns: find the column that a text or a `Column` names, and make unused names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from spark_ext._compat import WHOLE, version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from spark_ext.columns._expressions import ColumnOrName

__all__ = ["free_name", "named_column", "named_columns"]

_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`")
_PLAIN: Final = re.compile(r"[^`.\s]+")


def named_column(df: DataFrame, name: str) -> str | None:
    """Return the column for a text: its exact name, in backticks, or in another case; None if the column is missing."""
    quoted = _QUOTED.fullmatch(name)
    for wanted in (name, quoted[1].replace("``", "`")) if quoted else (name,):
        if wanted in df.columns:
            return wanted
        found = [column for column in df.columns if column.lower() == wanted.lower()]
        if len(found) == 1:
            return found[0]
    return None


def named_columns(df: DataFrame, columns: Iterable[ColumnOrName]) -> set[str]:
    """Return the plain columns among expressions, with any direction or alias.

    A column that is only a part of an expression or a field of a struct is not named by itself.
    """
    names = (column if isinstance(column, str) else _reference(column) for column in columns)
    found = (name and named_column(df, name) for name in names)
    return {name for name in found if name}


def free_name(df: DataFrame, wanted: str) -> str:
    """Return an unused name that is similar to the wanted name; upper and lower case do not matter."""
    taken = {column.lower() for column in df.columns}
    while wanted.lower() in taken:
        wanted += "_"
    return wanted


def _reference(column: Column) -> str | None:
    """Return the text of a reference to a column; None for any other expression."""
    java = getattr(column, "_jc", None)
    if java is not None:
        return _classic_reference(java.node() if version() >= WHOLE else java.expr())
    return _connect_reference(getattr(column, "_expr", None))


def _classic_reference(node: Any) -> str | None:
    kind = node.getClass().getSimpleName()
    if kind in ("SortOrder", "Alias"):
        return _classic_reference(node.child())
    if kind == "UnresolvedAttribute":
        parts = node.nameParts()
        return _as_quoted(parts.head()) if parts.size() == 1 else None
    if kind == "SqlExpression":
        return _identifier(node.expression())
    if kind == "AttributeReference":
        return _as_quoted(node.name())
    if kind == "ExpressionColumnNode":
        return _classic_reference(node.expression())
    return None


def _connect_reference(expression: Any) -> str | None:
    kind = type(expression).__name__
    if kind in ("SortOrder", "ColumnAlias"):
        return _connect_reference(getattr(expression, "_child", None) or getattr(expression, "_parent", None))
    if kind == "ColumnReference":
        return _identifier(expression._unparsed_identifier)
    if kind == "SQLExpression":
        return _identifier(expression._expr)
    return None


def _identifier(text: str) -> str | None:
    """Return a text that is one name, plain or in backticks; None for a path or an expression."""
    text = text.strip()
    return text if _QUOTED.fullmatch(text) or _PLAIN.fullmatch(text) else None


def _as_quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
