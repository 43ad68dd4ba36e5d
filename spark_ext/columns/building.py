"""Build text, numbers and structs in forms that Spark computes once, and prunes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_ext.columns.column_types import quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def null_text() -> Column:
    """Return a text that is NULL."""
    return F.lit(None).cast("string")


def digits_to_bigint(digits: Column) -> Column:
    """Read up to 15 hex digits, known to be such, as a bigint."""
    return F.conv(digits, 16, 10).cast("bigint")


def computed_below(value: Column, never: int | str = -1) -> Column:
    """Return the same value, computed once, also where it is used several times below a condition.

    Spark evaluates an expression that repeats below a condition each time. But it evaluates the argument of `nullif`
    in a projection below the query's, and drops that projection where nothing uses the value. ``never`` is a literal
    that the value never equals.

    This holds only where the whole expression is always evaluated. In a branch of a `CASE`, Spark puts the argument
    back into each place that uses it. So write a condition beside the value: `coalesce(value, ...)` always evaluates
    its first argument, and `value | CASE WHEN condition THEN 0 END` is NULL without the condition.
    """
    return F.nullif(value, F.lit(never))


def compiled_apart(value: Column) -> Column:
    """Return the same value, computed in a projection outside of the one method that Spark makes of a whole stage.

    Java does not compile a method of more than 8,000 bytecodes, and runs it several times slower. Spark makes one
    method of all projections in a row. It does not have code for the comparison of `array_sort`, so it runs the
    projection by itself, in methods that are short. A projection in the middle divides the stage in two.
    """
    return F.array_sort(F.array(value), lambda one, other: F.lit(0))[0]


def text_table(entries: Iterable[object], type: str = "string") -> Column:
    """Return an array of constants, written as one literal: Spark parses that much faster than a call of `array`.

    The optimizer folds the array into a constant. No entry may contain a comma.
    """
    texts = F.split(F.lit(",".join(map(str, entries))), ",")
    return texts if type == "string" else texts.cast(f"array<{type}>")


def byte_digits(byte: Column, before: str = "", after: str = "") -> Column:
    """Write an int of 0 to 255 as two hex digits, with other text around them; NULL for anything above."""
    return F.get(text_table(f"{before}{value:02X}{after}" for value in range(256)), byte.cast("int"))


def padded_digits(number: Column, digits: int) -> Column:
    """Write a bigint as ``digits`` hex digits, at most 15. A bit above them is set, so that leading zeros are kept."""
    return cut(F.hex(number.bitwiseOR(1 << 4 * digits)), 2, digits)


def cut(ascii: Column, start: int, digits: int) -> Column:
    """Return a part of an ASCII text, from 1, as binary for `joined`: Spark counts the characters of a text first."""
    return F.substring(ascii.cast("binary"), start, digits)


def joined(*parts: Column) -> Column:
    """Return texts and binaries, one after the other, as a text."""
    return F.concat(*(part.cast("binary") for part in parts)).cast("string")


def fill(template: str, **blanks: Column) -> Column:
    """Fill in a text with ``{blanks}``, as `str.format` does, with columns."""
    parts = re.split(r"\{(\w+)\}", template)
    return F.concat(*(blanks[part] if place % 2 else F.lit(part) for place, part in enumerate(parts) if part))


def struct_if(text: Column, exists: Column, otherwise: Column | None, fields: Mapping[str, Column]) -> Column:
    """Return a struct of ``fields`` where ``exists``, NULL where ``text`` is, and ``otherwise`` elsewhere.

    A CASE around a struct would compute all fields whenever one is asked for. Adding the fields to a struct that may
    be NULL means the same, and the optimizer then drops the fields that the query does not use.
    """
    result = F.when(exists, F.struct(F.lit(True).alias("_")))
    if otherwise is not None:
        result = result.when(text.isNotNull(), otherwise)
    for name, field in fields.items():
        result = result.withField(quoted_name(name), field)  # Spark parses a name, by the rules of the session
    return result.dropFields("_")
