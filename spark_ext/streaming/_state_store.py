"""Checks of the session for stateful functions: the state store and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def check_state_store(spark: SparkSession) -> None:
    """Raise ValueError with the setting if the session's store is not RocksDB; Spark's own error comes late."""
    if "RocksDB" not in (spark.conf.get(PROVIDER, "") or ""):
        raise ValueError(
            f'this needs the RocksDB state store: spark.conf.set("{PROVIDER}", "{ROCKSDB}"), or '
            f"spark-submit --conf {PROVIDER}={ROCKSDB}"
        )


def micros_of(spark: SparkSession, interval: str) -> int:
    """Return the microseconds of an interval such as ``"1 day"``; a month has 31 days, as in a watermark.

    Raises
    ------
    ValueError
        if the text is not an interval, or a negative one.
    """
    from pyspark.errors import PySparkException

    parts = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    fields = ", ".join(f"CAST(extract({part} FROM i) AS DECIMAL(30, 6))" for part in parts)
    wrong = ValueError(f"`within` must be a positive interval such as '1 day', got {interval!r}")
    try:
        row = spark.sql(f"SELECT {fields} FROM (SELECT CAST(:i AS INTERVAL) AS i)", args={"i": interval}).first()
    except PySparkException:
        raise wrong from None
    if row is None or None in tuple(row):
        raise wrong
    years, months, days, hours, minutes, seconds = row
    whole = (((years * 12 + months) * 31 + days) * 24 + hours) * 3600 + minutes * 60 + seconds
    if whole < 0:
        raise wrong
    return int(whole * 1_000_000)
