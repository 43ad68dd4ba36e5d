"""Checkpoints that this version cannot continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROCESS: Final = "pages"
"""A state variable of `process` alone."""
_TIMERS: Final = "ProcessingTime"
"""The time mode of `process` in version 0.2; later versions set no timers."""


class OldCheckpoint(ValueError):
    """A query cannot continue from a checkpoint, because an earlier version wrote its state.

    Examples
    --------
    >>> str(OldCheckpoint("cannot continue `process` from /data/checkpoint"))
    'cannot continue `process` from /data/checkpoint'
    """


def check_checkpoint(spark: SparkSession, checkpoint: str) -> None:
    """Check that this version can continue a query of `deduplicate` or `process` from a checkpoint.

    Without this check, Spark rejects the state of an earlier version when the query starts, with an unclear error.

    Parameters
    ----------
    spark : SparkSession
        The session of the query.
    checkpoint : str
        The checkpoint folder. A missing folder, or a folder without state, is valid.

    Returns
    -------
    None
        if this version can continue the query.

    Raises
    ------
    OldCheckpoint
        if an earlier version wrote the state of an operator. Start the query with a new checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> check_checkpoint(spark, tempfile.mkdtemp())
    """
    from pyarrow.fs import FileType

    files, folder = filesystem(checkpoint)
    if files.get_file_info(f"{folder}/state").type != FileType.Directory:
        return
    operators = spark.read.format("state-metadata").load(checkpoint).select(F.col("operatorProperties").cast("string"))
    for (properties,) in operators.distinct().collect():
        if _PROCESS in (properties or "") and _TIMERS in properties:
            raise OldCheckpoint(
                f"cannot continue `process` from {checkpoint}: version 0.2 wrote its state, which has timers. "
                "Start with a new checkpoint"
            )
