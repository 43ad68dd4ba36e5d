"""DataFrames that an audit reads several times, and that survive the loss of executors."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F

from spark_ext._private import is_classic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Kept(ExitStack):
    """Keeps DataFrames until it is closed.

    A kept DataFrame is computed once, and a later query does not plan it again. Spark computes the part again that was
    on a lost executor. If the session has a checkpoint folder, the rows are there instead, and nothing is computed
    again. A local checkpoint is not used: a query ends if it reads one whose executor is lost.
    """

    def keep(self, df: DataFrame) -> DataFrame:
        """Return a DataFrame with the same rows, which is computed at most once if no executor is lost."""
        if _has_checkpoint_folder(df.sparkSession):
            return df.checkpoint()
        # Spark finds cached rows by the plan. The condition, which Spark folds, makes the plan unique. Without it, an
        # audit of the same folder would read the older rows that a killed client of Spark Connect has left behind.
        kept = df.where(F.lit(uuid4().hex).isNotNull()).persist()
        self.callback(kept.unpersist)
        return kept


def _has_checkpoint_folder(spark: SparkSession) -> bool:
    if is_classic(spark):
        return spark.sparkContext.getCheckpointDir() is not None
    return spark.conf.get("spark.checkpoint.dir", None) is not None
