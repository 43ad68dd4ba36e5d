"""Columns of arguments: their names and types, checked before a query runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, ShortType, StringType

from msgid.shared.validate import quote
from spark_ext._compat import try_cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

ColumnOrName = Column | str
_VALUE = re.compile(
    r"[^`]*://[^`]*|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Za-z_/]+"
)
"""Text that is a value and not the name of a column, except in backquotes: the name of a log, or of a time zone."""

_CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata of a field of CHAR or VARCHAR, which is text in a DataFrame."""
INTEGERS = ("tinyint", "smallint", "int", "bigint")
"""The integer types, as `typeof` names them."""
INTEGER_TYPES = (ByteType, ShortType, IntegerType, LongType)
_INTEGER_DIGITS = r"\A-?\d{1,19}\z"
MOMENTS = ("timestamp", "float", "double", "decimal", *INTEGERS)
"""The types of a moment that does not depend on the session's time zone."""


def has_slash(df: DataFrame, names: Sequence[str]) -> list[bool | None]:
    """Return whether columns of text have values with a '/'; a query answers if there are several such columns."""
    cells = [F.col(quoted_name(name)) for name in names if isinstance(type_of(df, name), StringType | BinaryType)]
    rows = df.select(*(F.max(cell.cast("string").contains("/")) for cell in cells)).collect() if cells[1:] else ((),)
    return [*rows[0]]


def column(col: ColumnOrName, argument: str = "a column") -> Column:
    """Return the column itself, or the column of that name; any other value raises an error with the argument.

    Spark would report the name of a log or of a time zone as a missing column, above kilobytes of its plan.
    """
    if isinstance(col, str):
        if _VALUE.fullmatch(col):
            raise ValueError(
                f"{argument} must be a Column or the name of a column, got {quote(col)}: pass lit() of a value"
            )
        return F.col(col)
    if not hasattr(col, "cast"):
        raise TypeError(f"{argument} must be a Column or the name of a column, got {quote(col)}: pass lit() of a value")
    return col


def quoted_name(name: str) -> str:
    """Quote a column's name, because Spark reads a dot as a field of a struct."""
    return "`" + name.replace("`", "``") + "`"


def of_types(
    function: str, argument: str, col: Column, allowed: str, types: Sequence[str], returns: str = "string"
) -> Callable[[Column], Column]:
    """Return a function that adds a type check to a column: a wrong type is an error before the query runs.

    The field name of `date_part` is evaluated when Spark resolves the query, and Spark quotes an unknown one in its
    error. The optimizer removes the branch.

    Parameters
    ----------
    function, argument : str
        The names that the error shows.
    col : Column
        The column whose type is checked.
    allowed : str
        The types for the error, in words.
    types : sequence of str
        The allowed types, as `typeof` names them, without parameters.
    returns : str
        Type of the column to which the check is added. Without ANSI mode, Spark does not convert text to it.
    """
    type = F.typeof(col)
    # The type's name without its parameters: decimal(20,0), varchar(10), string collate UTF8_LCASE.
    fits = F.substring_index(F.substring_index(type, "(", 1), " ", 1).isin("void", *types)
    message = F.concat(F.lit(f"{function}: {argument} must be {allowed}, got "), type)
    # Not from the column itself: Spark would first refuse the cast of a type such as binary, with its whole plan.
    check = F.date_part(F.when(fits, F.lit("SECOND")).otherwise(message), F.lit(None).cast("timestamp_ltz"))
    return lambda result: F.coalesce(result, F.when(F.lit(False), check.cast(returns)))


def text_column(df: DataFrame, name: str) -> Column:
    """Return a column as text of Spark's default collation, without spaces at its end if the type ignores them.

    Functions such as `rlike` refuse text of other collations.
    """
    field = df.schema[name]
    text = F.col(quoted_name(name)).cast("string")
    return F.rtrim(text) if is_char(field) or "RTRIM" in field.dataType.simpleString().upper() else text


def is_char(field: StructField) -> bool:
    """Return whether a column is of CHAR, so that Spark has padded its values with spaces."""
    return str(field.metadata.get(_CHAR, field.dataType.simpleString())).startswith("char")


def type_of(df: DataFrame, name: str) -> DataType | None:
    """Return the type of a column, or None if the DataFrame does not have it."""
    return next((field.dataType for field in df.schema if field.name == name), None)


def integer_column(df: DataFrame, name: str) -> Column:
    """Return a column of integers, or of their digits as text, as bigint; NULL if it holds anything else."""
    type = type_of(df, name)
    if isinstance(type, INTEGER_TYPES):
        return F.col(quoted_name(name)).cast("bigint")
    if isinstance(type, StringType):
        text = text_column(df, name)
        return F.when(text.rlike(_INTEGER_DIGITS), try_cast(text, "bigint"))
    got = "no column" if type is None else f"{type.simpleString()}: cast it to bigint"
    raise ValueError(f"{name} must be a column of integers, got {got}")
