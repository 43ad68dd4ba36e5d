"""JSON text whose values Spark's functions read without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

_MARK: Final = "\ufdd0"
"""The first character of a string that holds a number. Unicode reserves it for use within a program."""
_NUMBER: Final = (
    r'\G((?:[^"\d-]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+)(?<=[:,\[\s])'
    r"(-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+)(?=\s*[,\]}])"
)
"""The text and the strings up to a number, and the number. It is not in the place of a key, which a `:` follows."""
_WHOLE: Final = r"\\\\|\\u[dD][89abAB]\p{XDigit}{2}\\u[dD][c-fC-F]\p{XDigit}{2}"
"""An escaped backslash, or the escapes of a surrogate pair."""


def is_one_value(text: Column) -> Column:
    """Return whether text is one JSON value: Spark's functions do not read the text after it."""
    keys = F.json_object_keys(F.concat(F.lit('{"value":'), text, F.lit(',"end":0}')))
    return F.coalesce(keys == F.array(F.lit("value"), F.lit("end")), F.lit(False))


def is_changed(text: Column) -> Column:
    """Return whether the strings of a JSON text have half of a surrogate pair, or the noncharacter U+FDD0."""
    return F.regexp_replace(text, _WHOLE, "").rlike(rf"(?i)\\u(?:d[89a-f]|fdd0)|{_MARK}")


def marked(text: Column) -> Column:
    """Return a JSON text whose numbers are strings with a mark: Spark reads a number as a double before it is text."""
    return F.regexp_replace(text, _NUMBER, f'$1"{_MARK}$2"')


def unmarked(value: Column) -> Column:
    """Return a value of a marked text as text, with the numbers as they were."""
    return F.regexp_replace(value, f'^{_MARK}|"{_MARK}([^"]*)"', "$1")
