"""Sinks for ``foreachBatch`` that write each micro-batch exactly once, and a reader for their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgid.shared.validate import INT64_MAX, integer
from spark_ext._arguments import check_dataframe, check_name
from spark_ext._filesystem import resolve
from spark_ext._private import running_plan
from spark_ext.columns.identity import unpadded
from spark_ext.tables.table_formats import DEFAULT, TableName, format_of_table, table_format
from spark_ext.tables.writers import TableConflict, writer_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables.table_formats import TableFormat

_WRITTEN: Final[dict[tuple[str, str, str], tuple[int, str, tuple[object, ...]]]] = {}
"""The number, the writer and the rows of the last batch that a run of a query wrote, per run, format and table."""


def write_once(
    batch_df: DataFrame,
    batch_id: int,
    path: str | None = None,
    *,
    table: str | None = None,
    format: str = "parquet",
    app_id: str | None = None,
    partition_by: tuple[str, ...] = (),
    evolve: bool = False,
    storage_options: dict[str, str] | None = None,
) -> bool:
    """Write a micro-batch to a table exactly once, however often the batch is replayed.

    The ID of the streaming query names the writer, so the batch numbers of two queries are not mixed up. A batch that
    was written before is run again without writing, because Spark commits state only for a batch that runs completely.

    Write a batch to one table in one call. If several calls divide it by the clock, random numbers or another table,
    the replay after a crash divides it in another way, and rows are lost. Unite the rows by ``unionByName`` instead.
    Values of a CHAR(n) column are written without the spaces at their end.

    - ``parquet``: each batch is a folder ``writer=NAME/batch=N``, so the table has these two columns too. The folder
      appears as a whole. A table belongs to one query, or to several writers named by ``app_id``. S3 and other stores
      that do not rename folders are refused: use ``delta`` there.
    - ``delta``: each batch is one commit of a Delta table, which may have any number of writers and readers. Spark
      writes the data files, and the driver commits them with the package `deltalake` (extra ``delta``). If the session
      has Delta's catalog (its JAR), Delta's own writer commits instead. Then the table may have a name, mapped columns,
      constraints, and generated and identity columns. Both ways may write to one table, and each finds the batches of
      the other one.
    - ``iceberg``: each batch is one commit of an Iceberg table in a catalog of the session, with Iceberg's JAR. It is
      given by its name. Compaction, expiry of snapshots and other writers may run at any time.

    Parameters
    ----------
    batch_df : DataFrame
        the batch, as ``foreachBatch`` passes it.
    batch_id : int
        its number, as ``foreachBatch`` passes it: 0 to 2**63 - 1.
    path : str, optional
        the table's folder.
    table : str, optional
        the table's name in the session's catalog, such as ``shop.orders``, instead of its folder. An Iceberg table
        needs it, with the catalog: ``lake.shop.orders``.
    format : str
        ``parquet``, ``delta``, ``iceberg``, or a format that `register_table_format` has made known.
    app_id : str, optional
        name of the writer instead of the query's ID; one name per checkpoint. Required over Spark Connect and outside a
        streaming query, because the query's ID is unknown there. Never change the name under a checkpoint: batches are
        counted by it, so the batch that ran last may be written once more.
    partition_by : tuple of str
        columns by which the rows are partitioned; the same for every batch: text, integers, booleans or dates. A value
        must fit into the name of a folder: on most systems 255 bytes; some characters take three. Empty text,
        ``__HIVE_DEFAULT_PARTITION__``, text with a NUL character, text that is not UTF-8 and dates outside the years 1
        to 9999 end the batch with an error, and no row is written.
    evolve : bool
        whether to add the columns that the table lacks, and to widen its integers and floating-point numbers, if the
        engine can. Default: such rows are refused. Columns that rows lack are NULL. A change stays if the batch fails
        after it.
    storage_options : dict of str to str, optional
        credentials and settings with which `deltalake` reaches the table's store.

    Returns
    -------
    bool
        True if the rows were written; False if an earlier call had written them.

    Raises
    ------
    TableConflict
        if the folder belongs to another query, another kind of run or another format, if the columns do not fit, or if
        a row breaks a constraint of the table. No row of the batch is written then. It is a `ValueError`. Also if a
        run of a query writes a batch to one table twice, with different rows or names. Also if the table has a later
        batch of the writer, or one of this number that has read other offsets: Spark replays its last batch alone, so
        the checkpoint is older than the table.
    MissingRows
        if the driver does not see all rows that the tasks wrote, because a worker does not share the folder. The batch
        is not committed then. It is an `OSError`.
    TypeError, ValueError
        if an argument is invalid.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> write_once(spark.range(3), 0, path, app_id="orders"), write_once(spark.range(3), 0, path, app_id="orders")
    (True, False)
    >>> spark.read.parquet(path).count()
    3

    In a streaming query, its ID is the name of the writer:

    >>> def write(batch_df, batch_id):
    ...     write_once(batch_df, batch_id, "/data/orders", format="delta")
    """
    check_dataframe(batch_df, "batch_df")
    if batch_df.isStreaming:
        raise ValueError("cannot write a stream: call `write_once` in its foreachBatch")
    if not batch_df.columns:
        raise ValueError("batch_df must have columns, got none")
    known = table_format(format)
    target = _target(known, path, table)
    if isinstance(partition_by, str):
        raise TypeError(f"partition_by must be a tuple of columns, got {partition_by!r}")
    for name in partition_by:
        check_name("partition_by", name)
    integer("batch_id", batch_id, 0, INT64_MAX)
    writer = writer_of(batch_df, app_id, batch_id)
    run, plan = running_plan(batch_df)
    # The plan of rows does not tell the names of columns apart.
    key = (run, format, target if isinstance(target, TableName) else resolve(target))
    written = (batch_id, writer.name, (plan, *batch_df.columns))
    last = _WRITTEN.get(key, written)
    if last[0] == batch_id and last != written:
        raise TableConflict(
            f"cannot write batch {batch_id} to {target} twice with different rows or names: a crash between the writes "
            "could lose rows. Unite the rows by unionByName, and write them in one call"
        )
    rows = batch_df.select(*unpadded(batch_df))
    rows = known.evolve(rows, target, storage_options) if evolve else rows
    is_new = known.write_batch(rows, batch_id, target, writer, tuple(partition_by), storage_options)
    if run:
        _WRITTEN[key] = written
    if not is_new:  # run the batch without writing: Spark commits state only for a batch that runs completely
        batch_df.write.format("noop").mode("overwrite").save()
    return is_new


def _target(format: TableFormat, path: str | None, table: str | None) -> str:
    """Return the path of a table, or its name."""
    if (path is None) == (table is None):
        raise ValueError(f"one of `path` and `table` must be given, got path={path!r} and table={table!r}")
    if table is None:
        return str(path)
    if not format.has_names:
        raise ValueError(f"`table` must be None for format={format.name!r}, whose tables have paths, got {table!r}")
    return TableName(table)


def read_table(
    spark: SparkSession,
    path: str | None = None,
    format: str | None = None,
    *,
    table: str | None = None,
    storage_options: dict[str, str] | None = None,
) -> DataFrame:
    """Read a table that `write_once` or a job has written, also a Delta table without Delta's JAR.

    The version of a Delta table is fixed when this function is called. Tables of other Delta writers are read too. A
    table with mapped columns or deletion vectors needs Delta's JAR.

    Parameters
    ----------
    spark : SparkSession
        the session.
    path : str, optional
        the table's folder.
    format : str, optional
        name of the table format. Default: the format whose table the folder is, such as ``delta`` with a Delta log;
        ``parquet`` for other folders. The catalog knows the format of a table with a name.
    table : str, optional
        the table's name in the session's catalog, instead of its folder.
    storage_options : dict of str to str, optional
        credentials and settings with which `deltalake` reaches the table's store.

    Returns
    -------
    DataFrame
        the rows.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> write_once(spark.range(3), 0, path, format="delta", app_id="orders")
    True
    >>> read_table(spark, path).count()
    3
    """
    if table is not None and path is None and format is None:
        return spark.table(table)
    known = table_format(format or (DEFAULT if path is None else format_of_table(path)))
    return known.read(spark, _target(known, path, table), storage_options)
