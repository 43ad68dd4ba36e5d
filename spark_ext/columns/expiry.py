"""Expiry as a column; the rule is that of `msgid.retention.is_expired`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from msgid.retention.policy import NEVER, expiry_seconds
from msgid.shared.moments import aware, unix_micros
from msgid.shared.validate import UINT32_MAX
from spark_ext.columns.column_types import MOMENTS, column, of_types
from spark_ext.columns.moment_columns import MICROSECONDS, micros_of, raise_outside_years

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns.column_types import ColumnOrName

_MOMENT: Final = "a timestamp or Unix seconds"
_WRONG: Final = f"expiry must be an integer of 0 to {UINT32_MAX} seconds, got "


def is_expired(
    timestamp: ColumnOrName,
    expiry: ColumnOrName | int | timedelta | None,
    now: ColumnOrName | datetime,
    default: int | timedelta = NEVER,
) -> Column:
    """Return whether messages have expired, as `msgid.retention.is_expired` does.

    Parameters
    ----------
    timestamp : Column or str
        The messages' own timestamps, or Unix seconds. Text, a date or a ``timestamp_ntz`` is refused, because its
        meaning depends on the session's time zone.
    expiry : Column, str, int, datetime.timedelta or None
        Retention period in seconds, or as a timedelta; NULL or None for the default; 0 keeps messages forever. A value
        of a column below 0 or above 4294967295 fails the query.
    now : Column, str or datetime.datetime
        The moment for which the expiry is checked, of the same types; a datetime must be aware.
    default : int or datetime.timedelta
        Retention period in seconds, or as a timedelta; 0 keeps messages forever.

    Returns
    -------
    Column
        Boolean; NULL if the timestamp is NULL. The query fails with the error condition ``USER_RAISED_EXCEPTION`` if
        ``timestamp`` or ``now`` is outside the years 1 to 9999.

    Raises
    ------
    msgid.retention.InvalidPolicy
        If ``expiry`` or ``default`` is a number below 0 or above 4294967295.
    pyspark.errors.AnalysisException
        If ``timestamp`` or ``now`` has another type, before the query runs.

    Examples
    --------
    >>> df = spark.sql("SELECT timestamp_seconds(0) AS sent, timestamp_seconds(10) AS now")
    >>> df.select(is_expired("sent", 10, "now").alias("ten"), is_expired("sent", 11, "now").alias("eleven")).show()
    +----+------+
    | ten|eleven|
    +----+------+
    |true| false|
    +----+------+
    """
    sent, moment = column(timestamp, "timestamp"), F.lit(None) if isinstance(now, datetime) else column(now, "now")
    expired = has_expired(timestamp, expiry, now, default)
    for name, at in (("timestamp", sent), ("now", moment)):
        expired = F.coalesce(raise_outside_years(name, at).cast("boolean"), expired)
    for name, at in (("timestamp", sent), ("now", moment)):
        expired = of_types("is_expired", name, at, _MOMENT, MOMENTS, "boolean")(expired)
    return expired.alias("is_expired")


def has_expired(
    timestamp: ColumnOrName,
    expiry: ColumnOrName | int | timedelta | None,
    now: ColumnOrName | datetime,
    default: int | timedelta,
) -> Column:
    """Return `is_expired` without its checks of moments, for data that must not stop a job.

    A timestamp far in the future has not expired, one far in the past has.
    """
    fallback = F.lit(expiry_seconds("default", default)).cast("bigint")
    if expiry is None:
        seconds = fallback
    elif isinstance(expiry, int | timedelta):
        seconds = F.lit(expiry_seconds("expiry", expiry)).cast("bigint")
    else:
        given = F.coalesce(column(expiry, "expiry").cast("bigint"), fallback)
        wrong = F.concat(F.lit(_WRONG), given.cast("string"))
        seconds = F.when(given.between(0, UINT32_MAX), given).otherwise(F.raise_error(wrong).cast("bigint"))
    sent = column(timestamp, "timestamp")
    present = F.lit(unix_micros(aware("now", now))) if isinstance(now, datetime) else micros_of(column(now, "now"))
    # Subtracted from the present, no expiry overflows. Added to the last timestamp that Spark has, each one does.
    due = micros_of(sent) <= present - seconds * F.lit(MICROSECONDS)
    return F.when(sent.isNotNull(), (seconds != F.lit(NEVER)) & due)
