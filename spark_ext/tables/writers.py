"""The writer of a table: the streaming query of a micro-batch, and the name under which its batches are stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.shared.validate import quote
from spark_ext._private import read_by_batch, running_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


class TableConflict(ValueError):
    """The table belongs to another query, another kind of run or another format, or its columns differ.

    Examples
    --------
    >>> import tempfile
    >>> from spark_ext import write_once
    >>> path = tempfile.mkdtemp() + "/table"
    >>> spark.range(3).write.parquet(path)
    >>> try:
    ...     write_once(spark.range(3), 0, path, app_id="hourly")
    ... except TableConflict as error:
    ...     print("cannot write" in str(error))
    True
    """


class Writer(NamedTuple):
    """The name under which batches are stored, and the query with this name.

    Examples
    --------
    >>> Writer("orders", query=None, chosen=True).name
    'orders'
    """

    name: str
    """The name of the writer."""
    query: str | None
    """The ID of the streaming query. None if it is unknown: outside a query, or over Spark Connect."""
    chosen: bool
    """Whether the caller chose the name; otherwise it is the ID of the query."""
    read: str | None = None
    """A digest of what the batch has read, which a replay has too. None if it is unknown, as the query is."""


def writer_of(batch_df: DataFrame, app_id: str | None, batch_id: int) -> Writer:
    """Return the writer of a micro-batch: ``app_id`` if it is passed, otherwise the ID of the streaming query.

    Raises
    ------
    ValueError
        if ``app_id`` cannot name a folder, or if ``app_id`` is missing and the query is unknown.
    """
    query = running_query(batch_df.sparkSession)
    allowed = "app_id must be 1 to 100 letters, digits, '.', '_' or '-'"
    if not isinstance(app_id, (str, type(None))):
        raise TypeError(f"{allowed}, got {quote(app_id)}")
    if app_id is not None and not _NAME.fullmatch(app_id):
        raise ValueError(f"{allowed}, got {quote(app_id)}")
    name = app_id or query
    if name is None:
        raise ValueError(
            "app_id must be given where the streaming query is unknown: outside foreachBatch, in another thread of "
            "it, or over Spark Connect. Choose one name per checkpoint"
        )
    return Writer(name, query, app_id is not None, read_by_batch(batch_df.sparkSession, batch_id))


def check_batch(writer: Writer, target: str, batch_id: int, last: int) -> None:
    """Check the number of a batch. Spark replays no other batch than the last one.

    Raises
    ------
    TableConflict
        if the writer has written a later batch to the table.
    """
    if batch_id < last:
        raise TableConflict(
            f"cannot write batch {batch_id} of {writer.name!r} to {target}: its batch {last} is in the table. The "
            "checkpoint is older than the table: restore the right one, or delete the rows of all later batches. If "
            "another query has this name, choose another app_id"
        )


def check_read(writer: Writer, target: str, batch_id: int, *reads: str | None) -> None:
    """Check that a batch which is in the table has read what this one has read; None and empty text are unknown.

    Raises
    ------
    TableConflict
        if all batches have read something else.
    """
    if writer.read is not None and not {writer.read, "", None} & {*reads}:
        raise TableConflict(
            f"cannot write batch {batch_id} of {writer.name!r} to {target}: the table has a batch of this number that "
            "has read other offsets. The checkpoint is older than the table: restore the right one, or delete the rows "
            "of that batch"
        )


def check_query(writer: Writer, target: str, *queries: str | None) -> None:
    """Check the queries that have written batches under the writer's name; None and empty text are unknown queries.

    Raises
    ------
    TableConflict
        if all of them are other queries than the writer's.
    """
    if writer.query is not None and not {writer.query, "", None} & {*queries}:
        raise TableConflict(
            f"cannot write to {target}: its writer {writer.name!r} is another query than {writer.query}. Restore that "
            "query's checkpoint, or choose another app_id"
        )
