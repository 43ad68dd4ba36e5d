"""Convert the rows of a queue's connector or export to columns of the message table, for Kafka and RocketMQ.

Every function takes the type of a column from the DataFrame's schema, because text, bytes, numbers and timestamps need
different expressions. A value that cannot be read becomes NULL here, and a reason in `reasons`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, ShortType, StringType, TimestampType

from msgid import layout
from msgid._validate import UNIX_SECONDS_MAX, UNIX_SECONDS_MIN, last_moment
from spark_ext.columns._expressions import is_id, null_text, quoted_name
from spark_ext.columns._identity import identity, is_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from msgid.messages import Encoding

_MOMENT: Final = r"\A\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)\z"
_DIGITS: Final = r"\A-?\d{1,19}\z"
_INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)


def require(df: DataFrame, format: str, *names: str) -> None:
    """Raise ValueError if a column that the format requires is missing."""
    for name in names:
        if type_of(df, name) is None:
            raise ValueError(f"a DataFrame of format {format!r} must have the column {name!r}, got {df.columns}")


def by_name(df: DataFrame, *names: str) -> DataFrame:
    """Return a DataFrame whose columns have these names if theirs differ only in case, as Spark compares names.

    Raises
    ------
    ValueError
        If several columns have one of the names.
    """
    for name in names:
        found = [column for column in df.columns if column.lower() == name.lower()]
        if len(found) > 1:
            raise ValueError(f"a DataFrame must have the column {name!r} once, got {found}")
        if found and found != [name]:
            df = df.withColumnRenamed(found[0], name)
    return df


def type_of(df: DataFrame, name: str) -> DataType | None:
    """Return the type of a column, or None if the DataFrame does not have it."""
    return next((field.dataType for field in df.schema if field.name == name), None)


def text_of(df: DataFrame, name: str) -> Column:
    """Return a column as text; NULL if the DataFrame does not have it."""
    return null_text() if type_of(df, name) is None else F.col(quoted_name(name)).cast("string")


def integer_column(df: DataFrame, name: str) -> Column:
    """Return a column of integers, or of their digits as text, as bigint; NULL if it holds anything else."""
    column, type = F.col(quoted_name(name)), type_of(df, name)
    if isinstance(type, _INTEGERS):
        return column.cast("bigint")
    if isinstance(type, StringType):
        return F.when(column.rlike(_DIGITS), column.try_cast("bigint"))
    raise ValueError(f"{name} must be a column of integers, got {'no column' if type is None else type.simpleString()}")


def moment_column(df: DataFrame, name: str) -> Column:
    """Return a column of times as timestamps, as `msgid.messages.moment_of` reads them; NULL for anything else.

    Text must have an offset from UTC: without it, the time would depend on the session's time zone. Integers, and
    digits as text, are milliseconds since 1970.
    """
    column, type = F.col(quoted_name(name)), type_of(df, name)
    if isinstance(type, TimestampType):
        return within_years(column)
    if isinstance(type, _INTEGERS):
        return _of_millis(column.cast("bigint"))
    if isinstance(type, StringType):
        return F.coalesce(zoned_moment(column), _of_millis(integer_column(df, name)))
    raise ValueError(
        f"{name} must be a column of timestamps with time zone, of integers or of text, "
        f"got {'no column' if type is None else type.simpleString()}"
    )


def with_moment(df: DataFrame, name: str) -> DataFrame:
    """Read a column of text as times in a separate step; repeated code would be too large for Spark to compile."""
    return df.withColumn(name, moment_column(df, name)) if isinstance(type_of(df, name), StringType) else df


def zoned_moment(text: Column) -> Column:
    """Return text of ISO 8601 with an offset from UTC as timestamps; NULL for any other text."""
    return within_years(F.when(text.rlike(_MOMENT), text.try_cast("timestamp")))


def within_years(time: Column) -> Column:
    """Return timestamps of the years 1 to 9999; NULL for others, from which `position_id` makes no IDs."""
    return F.when(F.unix_seconds(time).between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), time)


def _of_millis(millis: Column) -> Column:
    fits = millis.between(UNIX_SECONDS_MIN * 1_000, last_moment(1_000))
    return F.when(fits, F.timestamp_millis(millis))


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


def own_id(value: Column) -> Column:
    """Return the ID or UUID that bytes hold, as `msgid.ids._bytes.header_identity` does; else NULL."""
    text, digits = value.cast("string"), F.hex(value)
    is_version_1 = (F.octet_length(value) == layout.ID_LENGTH) & digits.startswith(f"{layout.VERSION_1:02X}")
    return F.when(is_version_1, digits).when(is_id(text) | is_uuid(text), identity(text))
