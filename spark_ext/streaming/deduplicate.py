"""Duplicate messages: label every row ``new``, ``duplicate``, ``conflict`` or ``no id``."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from msgid.shared.moments import micros_in
from msgid.shared.validate import integer, quote
from spark_ext._arguments import check_dataframe, free_name, named_column, required_column
from spark_ext._compat import WHOLE, needs
from spark_ext._private import watermark_of
from spark_ext.columns.column_types import column, quoted_name
from spark_ext.columns.fingerprint import fingerprint_of
from spark_ext.columns.identity import id_column, identity
from spark_ext.streaming._state.buckets import DEFAULT_BUCKETS, MAX_BUCKETS
from spark_ext.streaming._state_store import check_state_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_ext.columns.column_types import ColumnOrName

LATE_METRIC: Final = "rows too late for deduplicate"
"""Start of the name of the observed metric that counts rows; the rest is random, so that a query may have several."""
LATE: Final = "late"


def deduplicate(
    df: DataFrame,
    id: str = "id",
    *,
    content: Sequence[str] | None = None,
    order_by: ColumnOrName | Sequence[ColumnOrName] = (),
    timestamp: str | None = None,
    within: timedelta | str | None = None,
    name: str = "delivery",
    buckets: int = DEFAULT_BUCKETS,
) -> DataFrame:
    """Label every row: ``new`` (the first with its ID), ``duplicate``, ``conflict`` (other content) or ``no id``.

    IDs are compared by value: neither the case of the digits nor the version byte of a version-0 ID matters. The
    content is compared by value too: NULL differs from an empty value, the order of a map's entries does not matter,
    NaN equals NaN, and -0.0 equals 0.0. Text is compared byte by byte.

    Parameters
    ----------
    df : DataFrame
        Batch or stream.
    id : str
        Column of the IDs, as text or binary. A row whose ID is NULL or empty is labelled ``no id``.
    content : sequence of str, optional
        Columns that are compared, without ``id``; an empty list compares the IDs alone, so no row is a ``conflict``.
        Default: all columns except ``id``, ``timestamp`` and the columns that ``order_by`` names as text. Required if
        ``order_by`` has a Column or names a field of a struct. A stream whose columns may change should name them here.
        To compare an expression, add it as a column.
    order_by : Column or str, or a sequence of them
        Order of the rows of an ID in a batch; the first one is ``new``. Rows that are equal in ``order_by`` are ordered
        by their fingerprints, so every run gives the same labels. A stream orders the rows of a micro-batch by
        ``timestamp``. A column that ``order_by`` names as text is not compared by default.
    timestamp : str, optional
        Column of the event time; required for a stream. A row without a time gets the start of its micro-batch or the
        latest time that Spark has seen before, whichever is later. Such a row is never too late.
    within : datetime.timedelta or str, optional
        Time for which a stream remembers an ID, such as ``"1 day"``; also the maximum delay of a row. A stream
        remembers an ID until the watermark passes the time of the ID's last row plus ``within``. With ``within="10
        seconds"`` and three equal rows of one ID at 0, 8 and 16 seconds, the second and the third are duplicates. Rows
        before the watermark are left out and counted, see `rows_too_late`. A batch compares all its rows.
    name : str
        Name of the new column.
    buckets : int
        Number of parts of a stream's state, 1 to 65,536. At most this number of tasks work at once. It cannot change
        for a checkpoint.

    Returns
    -------
    DataFrame
        The rows with the text column ``name``: ``new`` for one row of each ID, ``duplicate`` for rows with the ID and
        the content of that row, ``conflict`` for rows with its ID and another content, and ``no id`` for rows whose ID
        is NULL or empty: nothing tells whether such a row is a duplicate.

    Raises
    ------
    ValueError
        if a column is missing or ``name`` is taken; if ``id`` is neither text nor binary; if a stream lacks
        ``timestamp`` or a valid ``within``, or has another state store than RocksDB; if ``order_by`` has a
        Column, and ``content`` is missing.
    TypeError
        if ``df`` is not a DataFrame of Spark or a name is not text; if a compared column has a type whose values cannot
        be compared.

    Notes
    -----
    A stream runs in Python workers and needs the RocksDB state store. The state of a bucket is a log: a new ID is
    appended, and written again once for each level of the log, of eight times as many IDs. IDs that carry their time
    (version 1, UUIDv7, ULID) are written twice. A Python worker has the rows of a bucket in a micro-batch in memory.

    The stream has ``timestamp`` and ``within`` as its watermark. So windows, joins and another `deduplicate` with the
    same ``timestamp`` and ``within`` can follow. Do not call `withWatermark`.

    Another number of buckets cannot read a checkpoint, nor can another version; both end the query with an error.

    Real-time mode lacks this operator, so a query with ``trigger(realTime=...)`` ends with an error of Spark. It blames
    the checkpoint (``STDS_FAILED_TO_READ_OPERATOR_METADATA``), whose files are intact: take another trigger.

    Examples
    --------
    >>> rows = [("a", 1, 100), ("a", 2, 100), ("a", 3, 999), ("b", 4, 100)]
    >>> df = spark.createDataFrame(rows, ["id", "offset", "amount"])
    >>> deduplicate(df, order_by="offset").sort("offset").show()
    +---+------+------+---------+
    | id|offset|amount| delivery|
    +---+------+------+---------+
    |  a|     1|   100|      new|
    |  a|     2|   100|duplicate|
    |  a|     3|   999| conflict|
    |  b|     4|   100|      new|
    +---+------+------+---------+
    """
    check_dataframe(df)
    if name.lower() in {taken.lower() for taken in df.columns}:
        raise ValueError(f"`name` must be a name that no column has, got {name!r}")
    order = [order_by] if isinstance(order_by, str | Column) else list(order_by)
    sorted_by = [named_column(df, item) if isinstance(item, str) else None for item in order]
    id = required_column(df, "`id`", id)
    key = identity(id_column(df, "id", id))
    timestamp = timestamp if timestamp is None else required_column(df, "`timestamp`", timestamp)
    bound = None if within is None else micros_in("within", within)
    integer("buckets", buckets, 1, MAX_BUCKETS)
    if content is None:
        if None in sorted_by:
            other = quote(order[sorted_by.index(None)])
            raise ValueError(
                f"`content` must name the compared columns if `order_by` does not name a column, got {other}"
            )
        names = set(df.columns) - {id, timestamp, *sorted_by}
    else:
        names = {
            required_column(df, "`content`", name) for name in ([content] if isinstance(content, str) else content)
        }
        if id in names:
            raise ValueError(f"`content` must not have the column of IDs, which are compared by value, got {id!r}")
    fingerprint = fingerprint_of(
        [(F.col(quoted_name(field.name)), field) for field in df.schema if field.name in names]
    )
    if not df.isStreaming:
        pairs = zip(order, sorted_by, strict=True)
        ordered = [column(item if exact is None else quoted_name(exact)) for item, exact in pairs]
        return _labelled_batch(df, key, fingerprint, ordered, name)

    needs("deduplicate of a stream", WHOLE)
    from spark_ext.streaming._labelled_stream import labelled_stream

    if timestamp is None or bound is None:
        raise ValueError("a stream needs `timestamp` and `within`")
    watermark = watermark_of(df)
    if watermark not in (None, {timestamp: bound // 1000}):
        raise ValueError(
            f"the watermark of `df` must be that of `timestamp` and `within`, got {watermark} in milliseconds; "
            "do not call withWatermark before deduplicate"
        )
    if watermark is None:
        df = df.withWatermark(quoted_name(timestamp), f"{bound} microseconds")
    check_state_store(df.sparkSession)
    stream = labelled_stream(df, key, fingerprint, timestamp, bound, buckets, name)
    late = F.count(F.when(F.col(quoted_name(name)) == LATE, True))
    # The metric's name is random, so that one query may have several of them.
    counted = stream.observe(f"{LATE_METRIC} {uuid.uuid4().hex}", late.alias("rows"))
    return counted.where(F.col(quoted_name(name)) != LATE)


def rows_too_late(query: StreamingQuery | StreamingQueryProgress) -> int:
    """Return the number of rows of a stream that were too late to be labelled, in the progress that Spark keeps.

    Parameters
    ----------
    query : StreamingQuery or StreamingQueryProgress
        Query that reads what `deduplicate` returned, or the progress that a `StreamingQueryListener` gets of one
        micro-batch.

    Returns
    -------
    int
        Number of rows that were left out, of a query in its last ``spark.sql.streaming.numRecentProgressUpdates``
        micro-batches, by default 100. A listener counts all.

    Examples
    --------
    >>> df = spark.readStream.format("rate").load()
    >>> query = df.writeStream.format("noop").trigger(availableNow=True).start()
    >>> query.awaitTermination(60), rows_too_late(query)
    (True, 0)
    """
    reports = getattr(query, "recentProgress", [query])
    if not all(hasattr(progress, "observedMetrics") for progress in reports):
        raise TypeError(f"query must be a StreamingQuery, which `start` returns, got {quote(query)}")
    metrics = [
        metric
        for progress in reports
        for metric_name, metric in (progress.observedMetrics or {}).items()
        if metric_name.startswith(LATE_METRIC)
    ]
    # Through Spark Connect, the values of a metric are in a list beside their schema.
    return sum(int(metric["values"][0] if "values" in metric else metric["rows"]) for metric in metrics)


def _labelled_batch(df: DataFrame, key: Column, fingerprint: Column, order: Sequence[Column], name: str) -> DataFrame:
    from pyspark.sql import Window

    key_name, spread_name, rows_name, content_name, number_name, first_name = (
        free_name(df, f"__msgid_{part}") for part in ("key", "spread", "rows", "content", "place", "first")
    )
    key_column, content = F.col(key_name), F.col(content_name)
    # Rows without an ID are distributed by their content, so that they do not all go to one task.
    marked = df.withColumn(key_name, key)
    marked = marked.withColumn(spread_name, F.when(key_column.isNull(), fingerprint))
    same_id = Window.partitionBy(key_name, spread_name)
    # The content of an ID with one row is not compared, and hashing it costs more than counting the rows.
    marked = marked.withColumn(rows_name, F.count(F.lit(1)).over(same_id))
    marked = marked.withColumn(content_name, F.when(F.col(rows_name) > 1, fingerprint))
    ordered = same_id.orderBy(*order, content)
    marked = marked.withColumns({number_name: F.row_number().over(ordered), first_name: F.first(content).over(ordered)})
    label = (
        F.when(key_column.isNull(), F.lit("no id"))
        .when(F.col(number_name) == 1, F.lit("new"))
        .when(content == F.col(first_name), F.lit("duplicate"))
        .otherwise(F.lit("conflict"))
    )
    marked = marked.withColumn(name, label)
    return marked.drop(key_name, spread_name, rows_name, content_name, number_name, first_name)
