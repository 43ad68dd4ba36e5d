"""Moments as columns: timestamps, Unix seconds, milliseconds since 1970 and text, as `msgid.shared.moments` reads them.

Nothing here depends on the session's time zone or ANSI mode. Seconds and microseconds are rounded down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NullType, StringType, TimestampNTZType, TimestampType

from msgid.shared.moments import SECONDS_OF_OUR_YEARS, UNIX_SECONDS_MAX, UNIX_SECONDS_MIN, last_moment
from spark_ext._compat import try_cast
from spark_ext.columns.column_types import INTEGER_TYPES, INTEGERS, integer_column, quoted_name, text_column, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

SECONDS: Final = "DECIMAL(38, 18)"
"""The type of Unix seconds with a fraction: exact for each timestamp, and for numbers to 18 decimal places."""
MICROSECONDS: Final = 1_000_000
"""Microseconds of a second."""
_DAY_MICROS: Final = 86_400_000_000
_DAY: Final = r"\A\s*[+-]?\d+(-\d+){0,2}\s*\z"
"""Text that Spark may read as a date, or as a year or a month alone."""
_ISO: Final = r"\A\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d(:?\d\d)?)\z"


def micros_of(at: Column) -> Column:
    """Return a moment as microseconds since 1970, rounded down."""
    return F.coalesce(F.unix_micros(_whole(at)), F.floor(_fraction(at) * F.lit(MICROSECONDS)).cast("bigint"))


def unix_seconds_of(at: Column) -> Column:
    """Return a moment as Unix seconds, rounded down."""
    return F.coalesce(F.unix_seconds(_whole(at)), F.floor(_fraction(at)).cast("bigint"))


def is_within_years(at: Column) -> Column:
    """Return whether a moment is within the years 1 to 9999; NULL or false for others, and NULL for NULL."""
    unix = unix_seconds_of(at)
    return (unix >= UNIX_SECONDS_MIN) & (unix < UNIX_SECONDS_MAX + 1)


_DIGITS_OF_MILLISECONDS: Final = 13
"""The digits of a time from 2001 to 2286 in milliseconds since 1970."""


def raise_outside_years(name: str, at: Column) -> Column:
    """Raise an error for a moment outside the years 1 to 9999, which is usually in milliseconds; NULL for others."""
    shown = shown_moment(at)
    hint = F.when(F.length(shown) == _DIGITS_OF_MILLISECONDS, ": milliseconds?").otherwise("")
    message = F.concat(F.lit(f"{name} must be Unix seconds within the years 1 to 9999, got "), shown, hint)
    return F.when(at.isNotNull() & ~F.coalesce(is_within_years(at), F.lit(False)), F.raise_error(message))


def shown_moment(at: Column) -> Column:
    """Return the text of a moment, for an error."""
    return F.when(F.typeof(at) == "timestamp", unix_seconds_of(at).cast("string")).otherwise(at.cast("string"))


def _whole(at: Column) -> Column:
    """Return a timestamp, or an integer of Unix seconds, as a timestamp; NULL for another type, without an error."""
    return F.when(F.typeof(at).isin("timestamp", *INTEGERS), at).cast("timestamp_ltz")


def _fraction(at: Column) -> Column:
    """Return Unix seconds with a fraction as a decimal number; NULL for another type, for NaN, and far from the years.

    Spark's cast to a timestamp cuts fractions toward zero, so it is not used. Text is between the two casts because
    Spark does not cast a date to a number; the type check refuses it later.
    """
    number = F.when(~F.typeof(at).isin("timestamp", *INTEGERS), try_cast(at.cast("string"), SECONDS))
    return F.when(number.between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX + 1), number)


def moment_column(df: DataFrame, name: str) -> Column:
    """Return a column of times as timestamps, as `msgid.kafka.Record.of` reads them; NULL for anything else.

    Text must have an offset from UTC: without it, the time would depend on the session's time zone. Integers, and
    digits as text, are milliseconds since 1970; NULL for a number that is a time of our years in seconds.
    """
    return _moments(df, name, lambda millis: F.when(~millis.between(*SECONDS_OF_OUR_YEARS), _of_millis(millis)))


def _moments(df: DataFrame, name: str, of_millis: Callable[[Column], Column]) -> Column:
    column, type = _column(name), type_of(df, name)
    if isinstance(type, TimestampType):
        return within_years(column)
    if isinstance(type, INTEGER_TYPES):
        return of_millis(column.cast("bigint"))
    if isinstance(type, StringType):
        return F.coalesce(zoned_moment(text_column(df, name)), of_millis(integer_column(df, name)))
    got = "no column" if type is None else f"{type.simpleString()}: cast it to timestamp"
    raise ValueError(f"{name} must be a column of timestamps with time zone, of integers or of text, got {got}")


def moment_in_utc(value: Column, type: DataType) -> Column:
    """Return values as Spark casts them to timestamps, but times without a time zone in UTC; NULL for other values."""
    if not isinstance(type, StringType | DateType | TimestampNTZType):
        return try_cast(value, "timestamp_ltz")
    text = value.cast("string")
    in_utc = try_cast(F.concat(text, F.lit("Z")), "timestamp_ltz")  # NULL if the text has a zone, or only a date
    day = F.when(text.rlike(_DAY), F.concat(try_cast(text, "date").cast("string"), F.lit(" 00:00:00Z")))
    local = try_cast(text, "timestamp_ltz")
    return F.when(local.isNotNull(), F.coalesce(in_utc, try_cast(day, "timestamp_ltz"), local))


def with_moment(df: DataFrame, name: str) -> DataFrame:
    """Read a column of text as times in a separate step; repeated code would be too large for Spark to compile."""
    return df.withColumn(name, moment_column(df, name)) if isinstance(type_of(df, name), StringType) else df


def zoned_moment(text: Column) -> Column:
    """Return text of ISO 8601 with an offset from UTC as timestamps; NULL for any other text."""
    return within_years(F.when(text.rlike(_ISO), try_cast(text, "timestamp_ltz")))


def within_years(time: Column) -> Column:
    """Return timestamps of the years 1 to 9999; NULL for others, from which `position_id` makes no IDs."""
    return F.when(F.unix_seconds(time).between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), time)


def _of_millis(millis: Column) -> Column:
    fits = millis.between(UNIX_SECONDS_MIN * 1_000, last_moment(1_000))
    return F.when(fits, F.timestamp_millis(millis))


def micros_column(df: DataFrame, name: str | None) -> Column:
    """Return the moments of a column as microseconds since 1970; NULL outside the years 1 to 9999.

    A date or a time without time zone is in UTC.
    """
    if name is None:
        return F.lit(None).cast("bigint")
    value, type = _column(name), type_of(df, name)
    if isinstance(type, NullType):
        return F.lit(None).cast("bigint")
    if isinstance(type, DateType):
        days = F.unix_date(value).cast("bigint")
        return F.when(days.between(UNIX_SECONDS_MIN // 86_400, UNIX_SECONDS_MAX // 86_400), days * _DAY_MICROS)
    if isinstance(type, TimestampNTZType):
        # As text: a cast to a timestamp would move the times that the session's time zone skips in spring.
        return F.unix_micros(within_years(try_cast(F.concat(value.cast("string"), F.lit("+00:00")), "timestamp_ltz")))
    return F.unix_micros(_moments(df, name, _of_millis))


def _column(name: str) -> Column:
    return F.col(quoted_name(name))
