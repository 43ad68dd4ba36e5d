"""The text of SQL in place of columns: what the functions of ``spark_ext.columns`` need to write themselves as SQL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


class Functions:
    """Takes the place of ``pyspark.sql.functions``."""

    def __getattr__(self, name: str) -> Any:
        return text_function(name)


def text_function(name: str) -> Callable[..., SqlText]:
    """Return the function that writes a call of PySpark's function as SQL; raise AttributeError for an unknown name.

    >>> print(text_function("upper")(SqlText("id")))
    upper(id)
    """
    if name in _TEXT_OF:
        return _TEXT_OF[name]
    if name in _SAME_IN_SQL:
        return partial(call, name)
    raise AttributeError(f"cannot write F.{name} in SQL: it is not in the list of functions in {__name__}")


class SqlText:
    """The text of an SQL expression, with the methods of a `Column` that the functions here use.

    >>> F = Functions()
    >>> print(F.when(F.length(SqlText("id")) == 34, F.upper(SqlText("id"))).otherwise(F.lit("none")))
    (CASE WHEN (length(id) = 34) THEN upper(id) ELSE 'none' END)
    """

    def __init__(self, text: str, cases: tuple[str, ...] = ()) -> None:
        self._text = text
        self._cases = cases

    def __str__(self) -> str:
        return f"(CASE {' '.join(self._cases)} END)" if self._cases else self._text

    def __bool__(self) -> NoReturn:
        raise ValueError("cannot use SQL text as a bool: write '&' for 'and', '|' for 'or', '~' for 'not'")

    def when(self, condition: SqlText, value: object) -> SqlText:
        return SqlText("", (*self._cases, f"WHEN {condition} THEN {literal(value)}"))

    def otherwise(self, value: object) -> SqlText:
        return SqlText(f"(CASE {' '.join(self._cases)} ELSE {literal(value)} END)")

    def _infix(self, operator: str, other: object) -> SqlText:
        return SqlText(f"({self} {operator} {literal(other)})")

    def __eq__(self, other: object) -> SqlText:  # type: ignore[override]
        return self._infix("=", other)

    def __ne__(self, other: object) -> SqlText:  # type: ignore[override]
        return self._infix("<>", other)

    def __ge__(self, other: object) -> SqlText:
        return self._infix(">=", other)

    def __gt__(self, other: object) -> SqlText:
        return self._infix(">", other)

    def __le__(self, other: object) -> SqlText:
        return self._infix("<=", other)

    def __lt__(self, other: object) -> SqlText:
        return self._infix("<", other)

    def __and__(self, other: object) -> SqlText:
        return self._infix("AND", other)

    def __or__(self, other: object) -> SqlText:
        return self._infix("OR", other)

    def __add__(self, other: object) -> SqlText:
        return self._infix("+", other)

    def __sub__(self, other: object) -> SqlText:
        return self._infix("-", other)

    def __mul__(self, other: object) -> SqlText:
        return self._infix("*", other)

    def __truediv__(self, other: object) -> SqlText:
        return self._infix("/", other)

    def __invert__(self) -> SqlText:
        return SqlText(f"(NOT {self})")

    __hash__ = None  # type: ignore[assignment]

    def bitwiseAND(self, other: object) -> SqlText:
        return self._infix("&", other)

    def bitwiseOR(self, other: object) -> SqlText:
        return self._infix("|", other)

    def bitwiseXOR(self, other: object) -> SqlText:
        return self._infix("^", other)

    def between(self, low: object, high: object) -> SqlText:
        return SqlText(f"({self} BETWEEN {literal(low)} AND {literal(high)})")

    def isin(self, *values: object) -> SqlText:
        return SqlText(f"({self} IN ({', '.join(map(literal, values))}))")

    def isNull(self) -> SqlText:
        return SqlText(f"({self} IS NULL)")

    def isNotNull(self) -> SqlText:
        return SqlText(f"({self} IS NOT NULL)")

    def startswith(self, other: object) -> SqlText:
        return call("startswith", self, other)

    def getField(self, name: str) -> SqlText:
        return SqlText(f"{self}.{name}")

    def cast(self, type: str) -> SqlText:
        return SqlText(f"CAST({self} AS {type})")

    def try_cast(self, type: str) -> SqlText:
        return SqlText(f"TRY_CAST({self} AS {type})")

    def alias(self, name: str) -> SqlText:
        """Return the text unchanged, because the caller of an SQL function names its result."""
        return self


def literal(value: object) -> str:
    """Write a Python value, or a text that is SQL already, as SQL."""
    if isinstance(value, SqlText):
        return str(value)
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value}L" if abs(value) >= 1 << 31 else str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    raise TypeError(f"no SQL for {value!r}")


def call(name: str, *arguments: object) -> SqlText:
    """Write the call of a function. Text that is not `SqlText` is a value, as in PySpark."""
    return SqlText(f"{name}({', '.join(map(literal, arguments))})")


_SAME_IN_SQL: Final = frozenset(
    {
        "add_months",
        "coalesce",
        "concat",
        "concat_ws",
        "conv",
        "crc32",
        "date_from_unix_date",
        "floor",
        "from_utc_timestamp",
        "get",
        "greatest",
        "hex",
        "left",
        "length",
        "lower",
        "monotonically_increasing_id",
        "named_struct",
        "octet_length",
        "pmod",
        "raise_error",
        "regexp_like",
        "regexp_replace",
        "replace",
        "right",
        "nullif",
        "sha2",
        "shiftleft",
        "shiftright",
        "split",
        "spark_partition_id",
        "substring",
        "timestamp_micros",
        "to_utc_timestamp",
        "timestamp_seconds",
        "trunc",
        "unhex",
        "unix_date",
        "unix_micros",
        "upper",
    }
)
"""The functions that SQL has by PySpark's name and with its order of arguments."""
_TEXT_OF: Final[dict[str, Callable[..., SqlText]]] = {
    "lit": lambda value: SqlText(literal(value)),
    "expr": SqlText,
    "call_function": call,
    "when": lambda condition, value: SqlText("").when(condition, value),
}
