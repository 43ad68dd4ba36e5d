"""Convert the rows of a queue's connector or export to columns of the message table, for Kafka and RocketMQ.

Every function takes the type of a column from the DataFrame's schema, because text, bytes, numbers and timestamps need
different expressions. A value that cannot be read becomes NULL here, and a reason in `reasons`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from msgid import layout
from spark_ext.columns.building import null_text
from spark_ext.columns.column_types import integer_column, quoted_name, text_column, type_of
from spark_ext.columns.making import position_id
from spark_ext.columns.moment_columns import moment_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from msgid.messages import Encoding


def require(df: DataFrame, format: str, *names: str) -> None:
    """Raise ValueError if a column that the format requires is missing."""
    for name in names:
        if type_of(df, name) is None:
            own = [column for column in df.columns if not column.startswith("_msgid_")]
            raise ValueError(f"a DataFrame of format {format!r} must have the column {name!r}, got {own}")


def by_name(df: DataFrame, *names: str) -> DataFrame:
    """Return a DataFrame whose columns have these names if theirs differ only in case, as Spark compares names.

    Raises
    ------
    ValueError
        If several columns have one of the names.
    """
    for name in names:
        alike = [column for column in df.columns if column.lower() == name.lower()]
        if len(alike) > 1:
            raise ValueError(f"a DataFrame must have the column {name!r} once, got {alike}")
        if alike and alike != [name]:
            df = df.withColumnRenamed(alike[0], name)
    return df


def opened(df: DataFrame, column: str, outcome: Column) -> DataFrame:
    """Return the ``raw`` values of a column and, of the struct of their outcome, the ``reason`` and the ``message``."""
    rows = df.select(F.col(quoted_name(column)).alias("raw"), outcome.alias("outcome"))
    return rows.select("raw", "outcome.reason", F.col("outcome.value").alias("message"))


def text_of(df: DataFrame, name: str) -> Column:
    """Return a column as text; NULL if the DataFrame does not have it."""
    return null_text() if type_of(df, name) is None else text_column(df, name)


def bytes_column(column: Column, type: DataType | None, encoding: Encoding) -> Column:
    """Return a binary column, or text in an encoding, as bytes; NULL for text that is not valid base64."""
    if type is None:
        return F.lit(None).cast("binary")
    if isinstance(type, BinaryType):
        return column
    if isinstance(type, StringType):
        return column.cast("binary") if encoding == "utf-8" else F.try_to_binary(column, F.lit("base64"))
    raise ValueError(f"a key, value or body must be binary or text, got {type.simpleString()}")


def bound(array: Column, function: Callable[[Column], Column]) -> Column:
    """Apply a function to an array that is computed once; Spark computes an expression again in each lambda."""
    return F.transform(F.array(array), function)[0]


_POSITION: Final = "_msgid_position"


def with_position(df: DataFrame, source: Column, offset: str, time: str, own: str) -> DataFrame:
    """Add the ID of each row's place, for `position_of`; NULL where the place is malformed or ``own`` is not NULL."""
    number = integer_column(df, offset)
    fitting = F.when(number.between(0, layout.OFFSET_MAX), number)
    # The digest of NULL costs nothing. A CASE around the ID would compute its parts again at each use.
    needed = F.when(F.col(own).isNull(), source)
    return with_column_below(df, position_id(needed, fitting, moment_column(df, time)))


def with_column_below(df: DataFrame, id: Column) -> DataFrame:
    """Add the ID of each row's place, for `position_of`."""
    return df.withColumn(_POSITION, id)


def position_of() -> Column:
    """Return the ID of each row's place.

    In a branch of a `CASE`, Spark computes each part of such an ID again at each use. It leaves a column of a query
    below there if the query above uses it twice.
    """
    return F.when(F.col(_POSITION).isNotNull(), F.col(_POSITION))
