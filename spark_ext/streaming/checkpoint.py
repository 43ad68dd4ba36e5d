"""Checkpoints that this version cannot continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS: Final = '"runs"'
"""A state variable of `deduplicate` in version 0.2; later versions have pages."""
_PAGES: Final = '"pages"'
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
        known = properties or ""
        if _RUNS in known:
            _refuse("deduplicate", checkpoint, "lists of IDs")
        if _PAGES in known and _TIMERS in known:
            _refuse("process", checkpoint, "timers")


def _refuse(function: str, checkpoint: str, parts: str) -> None:
    raise OldCheckpoint(
        f"cannot continue `{function}` from {checkpoint}: version 0.2 wrote its state, which has {parts}. "
        "Start with a new checkpoint"
    )
