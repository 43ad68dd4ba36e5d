"""Checkpoints that this version cannot continue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OldCheckpoint", "check_checkpoint"]

_OF_FIRST_VERSION: Final = {"fingerprint": "deduplicate", "newest": "process"}
"""The state variables of version 0.1, which stored one Spark state per ID or key, and their functions."""
_STATE_NAME: Final = re.compile(r"stateName\W+(\w+)")


class OldCheckpoint(ValueError):
    """A query cannot continue from a checkpoint, because an earlier version wrote its state.

    Examples
    --------
    >>> str(OldCheckpoint("cannot continue `process` from /data/checkpoint"))
    'cannot continue `process` from /data/checkpoint'
    """


def check_checkpoint(spark: SparkSession, checkpoint: str) -> None:
    """Check that this version can continue a query of `deduplicate` or `process` from a checkpoint.

    Without this check, Spark rejects the state of version 0.1 when the query starts, and its error is less clear.

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
        if version 0.1 wrote the state of an operator. Start the query with a new checkpoint.

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
    names = {name for (told,) in operators.distinct().collect() for name in _STATE_NAME.findall(told or "")}
    for name, function in _OF_FIRST_VERSION.items():
        if name in names:
            raise OldCheckpoint(
                f"cannot continue `{function}` from {checkpoint}: version 0.1 wrote its state. "
                "Start with a new checkpoint"
            )
