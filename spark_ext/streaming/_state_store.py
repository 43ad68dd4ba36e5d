"""Check of the session for stateful functions: the state store."""

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
