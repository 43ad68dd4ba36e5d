"""JSON text whose values Spark's functions read without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TEXT_MAP: Final = "map<string, string>"
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
    whole, end = _enclosed(text)
    read = F.map_entries(F.from_json(whole, TEXT_MAP, {"allowNonNumericNumbers": "false"}))
    parts = F.transform(read, lambda one: F.when(one["key"] == "value", one["key"]).otherwise(one["value"]))
    return F.coalesce(parts == F.array(F.lit("value"), F.concat(F.lit('{"":"'), end, F.lit('"}'))), F.lit(False))


def with_object(df: DataFrame, name: str, text: Column) -> DataFrame:
    """Add the names and values of a text that is one JSON object, as a map in which a name may occur twice.

    The map is NULL for any other text. A value that is not a string is its JSON text.
    """
    whole, end = _enclosed(text)
    strict = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
    # Spark computes a column of a query below once, and an expression at each of its uses.
    df = df.withColumn(name, F.from_json(whole, f"map<string, {TEXT_MAP}>", strict))
    read = F.map_values(name)
    is_one = (F.map_keys(name) == F.array(F.lit("value"), F.lit("end"))) & (read[1][""] == end)
    return df.withColumn(name, F.when(is_one, read[0]))


def _enclosed(text: Column) -> tuple[Column, Column]:
    """Return a JSON object of a text and an end, which is another object with one value, and this value.

    Spark reads an object to its end. The value is the hash of the text, so that the text cannot end the object.
    """
    end = F.xxhash64(text).cast("string")
    return F.concat(F.lit('{"value":'), text, F.lit(',"end":{"":"'), end, F.lit('"}}')), end


def is_changed(text: Column) -> Column:
    """Return whether the strings of a JSON text have half of a surrogate pair, or the noncharacter U+FDD0."""
    return F.regexp_replace(text, _WHOLE, "").rlike(rf"(?i)\\u(?:d[89a-f]|fdd0)|{_MARK}")


def marked(text: Column) -> Column:
    """Return a JSON text whose numbers are strings with a mark: Spark reads a number as a double before it is text."""
    return F.regexp_replace(text, _NUMBER, f'$1"{_MARK}$2"')


def unmarked(value: Column) -> Column:
    """Return a value of a marked text as text, with the numbers as they were."""
    return F.regexp_replace(value, f'^{_MARK}|"{_MARK}([^"]*)"', "$1")
