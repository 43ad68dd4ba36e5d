"""Times in the columns of files, independent of the session's time zone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from msgid._moments import UNIX_SECONDS_MAX, UNIX_SECONDS_MIN
from spark_ext.columns._moments import within_years, zoned_moment
from spark_ext.jobs._files import column_of
from spark_ext.jobs._formats import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOCAL: Final = r"\A\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?\z"
_OFFSET: Final = re.compile(r"[+-]\d\d:\d\d")


def moment_in(df: DataFrame, name: str, zone: str | None = None) -> Column:
    """Return a column of times as timestamps or Unix seconds; NULL for other text, and outside the years 1 to 9999.

    Numbers, and text of digits, are Unix seconds. Other text is ISO 8601.

    Args:
        df: The rows.
        name: Name of the column.
        zone: Time zone of times without an offset from UTC. Default: such text becomes NULL.

    Raises:
        BadInput: if the zone is unknown, if the column is missing or of another type, or if its type does not have a
            time zone and ``zone`` is missing.
    """
    column, type = column_of(df, name), df.schema[name].dataType
    check_zone(zone)
    if isinstance(type, TimestampType):
        return within_years(column)
    if isinstance(type, NumericType):
        return F.when(column.between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), column)
    if isinstance(type, (TimestampNTZType, DateType)) and zone is not None:
        return _in_zone(column.cast("timestamp_ntz"), zone)
    if not isinstance(type, StringType):
        raise BadInput(
            f"--at must name a column of timestamps with time zone, Unix seconds or text, got {name!r} of type "
            f"{type.simpleString()}; --timezone names the time zone of timestamps without one"
        )
    seconds = column.try_cast("bigint")
    unix = F.when(seconds.between(UNIX_SECONDS_MIN, UNIX_SECONDS_MAX), F.timestamp_seconds(seconds))
    moment = F.coalesce(unix, zoned_moment(column))
    if zone is None:
        return moment
    return F.coalesce(moment, _in_zone(F.when(column.rlike(_LOCAL), column.try_cast("timestamp_ntz")), zone))


def _in_zone(local: Column, zone: str) -> Column:
    utc = F.convert_timezone(F.lit(zone), F.lit("UTC"), local)
    return within_years(F.concat(utc.cast("string"), F.lit("Z")).try_cast("timestamp"))


def check_zone(zone: str | None) -> None:
    """Raise BadInput if a text is not a time zone."""
    if zone is None or _OFFSET.fullmatch(zone):
        return
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        raise BadInput(f"--timezone must be a time zone, such as Europe/Berlin or +02:00, got {zone!r}") from None
