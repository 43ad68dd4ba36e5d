"""Messages that come twice: every row is told ``new``, ``duplicate`` or ``conflict``; none is dropped in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from spark_ext.expressions import column, hex_text, quoted_name
from spark_ext.state import check_state_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_ext.expressions import ColumnOrName

__all__ = ["CONFLICT", "DUPLICATE", "NEW", "deduplicate", "rows_too_late"]

NEW: Final = "new"
DUPLICATE: Final = "duplicate"
"""The same id and the same content as a row before it."""
CONFLICT: Final = "conflict"
"""The same id as a row before it, and another content."""
_FINGERPRINT: Final = "__fingerprint"
_ID: Final = "__id"
_AT: Final = "__at_ms"
_WITHIN: Final = "__within_ms"


def deduplicate(
    df: DataFrame,
    id: str = "id",
    fingerprint: ColumnOrName | None = None,
    *,
    order_by: Sequence[ColumnOrName] = (),
    timestamp: str | None = None,
    within: str | None = None,
    name: str = "delivery",
) -> DataFrame:
    """Tell of every row whether its id has come before, with the same content or another.

    Parameters
    ----------
    df : DataFrame
        batch or stream.
    id : str
        the column of ids; a row without one is ``new``.
    fingerprint : Column or str, optional
        what the content is told by. Default: a 64-bit hash of all other columns but ``timestamp`` and those of
        ``order_by``.
    order_by : sequence of Column or str
        a batch: which row of an id is the first. Default: by the fingerprint.
    timestamp : str, optional
        a stream: the column of the rows' own times. A row without one has the watermark's.
    within : str, optional
        a stream: how late a row may be, such as ``"1 day"``. Rows of one id whose times are at most so far apart are
        told; then the id is forgotten. A row that is later than that is left out by Spark, and counted:
        `rows_too_late`.
    name : str
        of the new column.

    Returns
    -------
    DataFrame
        the rows with the column ``name``: ``new`` for one row of each id, ``duplicate`` or ``conflict`` for the others.

    Raises
    ------
    ValueError
        a stream without ``timestamp`` and ``within``, or on another state store than RocksDB; a name that is taken.

    Examples
    --------
    >>> df = spark.createDataFrame([("a", 1), ("a", 1), ("a", 2), ("b", 1)], ["id", "amount"])
    >>> deduplicate(df, order_by=["amount"]).where("delivery = 'new'").sort("id").show()
    +---+------+--------+
    | id|amount|delivery|
    +---+------+--------+
    |  a|     1|     new|
    |  b|     1|     new|
    +---+------+--------+
    """
    if name in df.columns:
        raise ValueError(f"there is a column {name!r} already: name another")
    content = _fingerprint(df, id, order_by, timestamp) if fingerprint is None else column(fingerprint)
    if df.isStreaming:
        return _stream(df, id, content, timestamp, within, name)
    return _batch(df, id, content, order_by, name)


def rows_too_late(query: StreamingQuery) -> int:
    """Say how many rows of a stream came too late to be told, in the progress that Spark remembers.

    Parameters
    ----------
    query : StreamingQuery
        that reads what `deduplicate` gave.

    Returns
    -------
    int
        how many were left out.

    Examples
    --------
    >>> df = spark.readStream.format("rate").load()
    >>> query = df.writeStream.format("noop").trigger(availableNow=True).start()
    >>> query.awaitTermination(60), rows_too_late(query)
    (True, 0)
    """
    return sum(
        int(operator["numRowsDroppedByWatermark"])
        for progress in query.recentProgress
        for operator in progress["stateOperators"]
    )


def _fingerprint(df: DataFrame, id: str, order_by: Sequence[ColumnOrName], timestamp: str | None) -> Column:
    """Hash all other columns; those that are maps by their entries, whose order does not matter."""
    left_out = {id, timestamp, *(name for name in order_by if isinstance(name, str))}
    columns = []
    for field in df.schema:
        if field.name not in left_out:
            held = F.col(quoted_name(field.name))
            is_map = field.dataType.typeName() == "map"
            columns.append(F.array_sort(F.map_entries(held)) if is_map else held)
    return F.xxhash64(*columns) if columns else F.lit(0).cast("bigint")


def _batch(df: DataFrame, id: str, content: Column, order_by: Sequence[ColumnOrName], name: str) -> DataFrame:
    from pyspark.sql import Window

    key, held = F.col(quoted_name(id)), F.col(_FINGERPRINT)
    # Rows without an id go their own ways, not all to one task.
    window = Window.partitionBy(key, F.when(key.isNull(), held)).orderBy(*(order_by or (held,)))
    marked = df.withColumn(_FINGERPRINT, content)
    marked = marked.withColumns({_ID: F.row_number().over(window), _AT: F.first(held).over(window)})
    told = (
        F.when(key.isNull() | (F.col(_ID) == 1), F.lit(NEW))
        .when(held.eqNullSafe(F.col(_AT)), F.lit(DUPLICATE))
        .otherwise(F.lit(CONFLICT))
    )
    return marked.withColumn(name, told).drop(_FINGERPRINT, _ID, _AT)


def _stream(df: DataFrame, id: str, content: Column, timestamp: str | None, within: str | None, name: str) -> DataFrame:
    from pyspark.sql.types import StringType, StructType

    if timestamp is None or within is None:
        raise ValueError("a stream needs a timestamp, and within which time a duplicate may come")
    check_state_store(df.sparkSession)
    key, at = hex_text(quoted_name(id)), F.col(quoted_name(timestamp)).cast("timestamp")
    marked = df.withWatermark(timestamp, within).withColumns(
        {
            _FINGERPRINT: content.cast("string"),
            # Rows without an id are keys of their own, by their content.
            _ID: F.coalesce(F.concat(F.lit("+"), key), F.concat(F.lit("-"), content.cast("string")), F.lit("-")),
            _AT: F.unix_millis(at),
            _WITHIN: F.unix_millis(F.timestamp_seconds(F.lit(0)) + F.lit(within).cast("interval")),
        }
    )
    output = StructType([*df.schema.fields]).add(name, StringType())
    return marked.groupBy(_ID).transformWithState(_Seen(df.columns, name), output, "append", "EventTime")


class _Seen(StatefulProcessor):
    """Remembers the content of each id until its time has passed."""

    def __init__(self, columns: list[str], name: str) -> None:
        self._columns = columns
        self._name = name

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._seen = handle.getValueState("fingerprint", "fingerprint string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        from pyspark.sql import Row

        without_id = key[0].startswith("-")
        watermark = timerValues.getCurrentWatermarkInMs()
        first = self._seen.get()[0] if not without_id and self._seen.exists() else None
        for row in sorted(rows, key=lambda row: (row[_AT] or 0, row[_FINGERPRINT] or "")):
            content = row[_FINGERPRINT] or ""
            if without_id:
                told = NEW
            elif first is None:
                told, first = NEW, content
                self._seen.update((first,))
                at = watermark if row[_AT] is None else row[_AT]
                self._handle.registerTimer(at + row[_WITHIN])
            else:
                told = DUPLICATE if content == first else CONFLICT
            yield Row(**{column: row[column] for column in self._columns}, **{self._name: told})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self._seen.clear()
        return iter(())

    def close(self) -> None:
        pass
