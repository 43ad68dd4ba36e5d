"""Sinks for ``foreachBatch`` that a replayed micro-batch does not double."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_ext.storage import filesystem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["write_once"]


def write_once(
    batch_df: DataFrame, batch_id: int, path: str, *, app_id: str | None = None, partition_by: tuple[str, ...] = ()
) -> bool:
    """Write a micro-batch to Parquet once, however often it is replayed.

    Each batch is a folder, ``batch=N``. One that was written whole is left as it is; one cut short is replaced.

    Parameters
    ----------
    batch_df : DataFrame
        the batch, as ``foreachBatch`` gives it.
    batch_id : int
        its number, as ``foreachBatch`` gives it.
    path : str
        the table's folder.
    app_id : str, optional
        names the checkpoint that counts the batches: its folders are in ``app=NAME``. Needed where several queries
        write to one table, or a checkpoint starts anew.
    partition_by : tuple of str
        columns that the batch's folder is partitioned by.

    Returns
    -------
    bool
        whether it was written; False: it was there.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> write_once(spark.range(3), 0, path), write_once(spark.range(3), 0, path)
    (True, False)
    >>> spark.read.parquet(path).count()
    3
    """
    import pyarrow.fs as pafs

    outer = path if app_id is None else f"{path}/app={app_id}"
    folder = f"{outer}/batch={batch_id}"
    files, inner = filesystem(folder)
    if files.get_file_info(f"{inner}/_SUCCESS").type == pafs.FileType.File:
        # It is run again, for its states alone: they are not stored of a batch that is not run to its end.
        batch_df.write.format("noop").mode("overwrite").save()
        return False
    writer: Any = batch_df.write.mode("overwrite")
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    # Spark leaves the file _SUCCESS when all else is there, unless it is told not to.
    writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "true").parquet(folder)
    return True
