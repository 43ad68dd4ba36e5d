"""Expiry as a column; the rule is that of `msgid.retention.is_expired`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgid._validate import UINT32_MAX, aware, unix_micros
from msgid.retention import MICROSECONDS, NEVER
from msgid.retention.policy import checked_expiry
from spark_ext.columns._dialect import F
from spark_ext.columns._expressions import column

if TYPE_CHECKING:
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName

__all__ = ["is_expired"]

_WRONG: Final = f"expiry must be an integer of 0 to {UINT32_MAX} seconds, got "


def is_expired(
    timestamp: ColumnOrName, expiry: ColumnOrName | int | None, now: ColumnOrName | datetime, default: int = NEVER
) -> Column:
    """Return whether messages have expired, as `msgid.retention.is_expired` does.

    Parameters
    ----------
    timestamp : Column or str
        timestamps: the messages' own.
    expiry : Column, str, int or None
        seconds; NULL or None: the default; 0: never. A column's value below 0 or above 4294967295 fails the query.
    now : Column, str or datetime.datetime
        the moment that is asked about; a datetime is aware.
    default : int
        seconds; 0: never.

    Returns
    -------
    Column
        boolean; NULL where the timestamp is.

    Raises
    ------
    msgid.retention.InvalidPolicy
        if ``expiry`` or ``default`` is a number below 0 or above 4294967295.

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
    fallback = F.lit(checked_expiry("default", default)).cast("bigint")
    if expiry is None:
        seconds = fallback
    elif isinstance(expiry, int):
        seconds = F.lit(checked_expiry("expiry", expiry)).cast("bigint")
    else:
        given = F.coalesce(column(expiry).cast("bigint"), fallback)
        wrong = F.concat(F.lit(_WRONG), given.cast("string"))
        seconds = F.when(given.between(0, UINT32_MAX), given).otherwise(F.raise_error(wrong).cast("bigint"))
    moment = (
        F.timestamp_micros(F.lit(unix_micros(aware("now", now))).cast("bigint"))
        if isinstance(now, datetime)
        else column(now)
    )
    sent = F.unix_micros(column(timestamp))
    due = sent + seconds * F.lit(MICROSECONDS) <= F.unix_micros(moment)
    return F.when(sent.isNotNull(), (seconds != F.lit(NEVER)) & due).alias("is_expired")
