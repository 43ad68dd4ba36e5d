"""What stateful functions need of a session: the state store, and no batches for timers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NO_DATA_BATCHES", "PROVIDER", "ROCKSDB", "check_state_store"]

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

NO_DATA_BATCHES: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
"""To be off for a query that ends by itself (``availableNow``) and has timers by the clock: it would wait for them."""


def check_state_store(spark: SparkSession) -> None:
    """Raise ValueError, saying what to set, where the session's store is not RocksDB: Spark's own error comes late."""
    if "RocksDB" not in (spark.conf.get(PROVIDER, "") or ""):
        raise ValueError(f'this needs the RocksDB state store: spark.conf.set("{PROVIDER}", "{ROCKSDB}")')
