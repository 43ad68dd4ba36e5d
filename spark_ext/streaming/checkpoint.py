"""Checkpoints that this version cannot continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from spark_ext._filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLD: Final = ('"runs"', '"pages"')
"""The state variables of earlier versions."""


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
    ValueError
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
    if any(name in (properties or "") for (properties,) in operators.distinct().collect() for name in _OLD):
        raise ValueError(
            f"cannot continue a query from {checkpoint}: an earlier version wrote its state. "
            "Start with a new checkpoint"
        )
