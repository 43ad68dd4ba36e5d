"""DataFrames that an audit reads several times, and that survive the loss of executors."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from pyspark.sql import functions as F

from spark_ext._private import is_classic, is_lost_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")


def keeping(work: Callable[[Kept], Result]) -> Result:
    """Return what a function returns that keeps DataFrames; it is called again if an executor is lost.

    A local checkpoint is the fastest way to keep rows, but a query ends if it reads one whose executor is lost. Then
    the function begins again, and keeps its rows in a way that survives further losses.
    """
    try:
        with Kept(survives=False) as kept:
            return work(kept)
    except Exception as error:
        if not is_lost_checkpoint(error):
            raise
    with Kept(survives=True) as kept:
        return work(kept)


class Kept(ExitStack):
    """Keeps DataFrames until it is closed.

    A kept DataFrame is computed once, and a later query does not plan it again. If the session has a checkpoint folder,
    the rows are there. Else they are a local checkpoint or, if they must survive the loss of an executor, cached rows.
    Spark computes lost cached rows again.
    """

    def __init__(self, *, survives: bool) -> None:
        super().__init__()
        self._survives = survives

    def keep(self, df: DataFrame) -> DataFrame:
        """Return a DataFrame with the same rows, which is computed at most once if no executor is lost."""
        if _has_checkpoint_folder(df.sparkSession):
            return df.checkpoint()
        if not self._survives:
            return df.localCheckpoint()
        # Spark finds cached rows by the plan. The condition, which Spark folds, makes the plan unique. Without it, an
        # audit of the same folder would read the older rows that a killed client of Spark Connect has left behind.
        kept = df.where(F.lit(uuid4().hex).isNotNull()).persist()
        self.callback(kept.unpersist)
        return kept


def _has_checkpoint_folder(spark: SparkSession) -> bool:
    if is_classic(spark):
        return spark.sparkContext.getCheckpointDir() is not None
    return spark.conf.get("spark.checkpoint.dir", None) is not None
