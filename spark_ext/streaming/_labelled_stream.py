"""The plan of `deduplicate` for a stream, and its stateful processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from spark_ext._private import without_event_time
from spark_ext.streaming._fingerprint import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame


def labelled_stream(
    df: DataFrame,
    key: Column,
    content: Column,
    timestamp: str,
    within_micros: int,
    within: str,
    buckets: int,
    name: str,
) -> DataFrame:
    """Return a stream with the column ``name``, in which rows that come too late are ``late``.

    The columns travel under numbers, so that no name of theirs matters.
    """
    from spark_ext.streaming._buckets import bucket_keys
    from spark_ext.streaming._packing import KEY, LABELLED, PACKED, pack, unpack

    fields = df.schema.fields
    places = [f"c{place}" for place in range(len(fields))]
    has_id = F.when(key.isNull(), F.lit(b"\0")).otherwise(F.lit(b"\1"))
    marked = df.withWatermark(timestamp, within)
    # A row without an ID belongs to any bucket: that of its content.
    whole = marked.select("*", F.concat(F.coalesce(hash_of(key), content), content, has_id))
    carried = [_carried(field.dataType) for field in fields]
    numbered = whole.toDF(*places, KEY).select(
        *(_cast(F.col(place), field.dataType, to) for place, field, to in zip(places, fields, carried, strict=True)),
        KEY,
    )
    packed = numbered.mapInArrow(pack(bucket_keys(buckets), places[df.columns.index(timestamp)]), PACKED)
    labelled = packed.groupBy("bucket").transformWithStateInPandas(
        _Seen(within_micros, buckets), LABELLED, "append", "EventTime"
    )
    schema = StructType(
        [StructField(place, to, field.nullable) for place, field, to in zip(places, fields, carried, strict=True)]
    )
    rows = labelled.mapInArrow(unpack, schema.add("label", StringType(), False))
    restored = (
        _restored(_cast(F.col(place), to, field.dataType), field)
        for place, field, to in zip(places, fields, carried, strict=True)
    )
    return rows.select(*restored, F.col("label").alias(name))


def _carried(type: DataType) -> DataType:
    """Return the type as which values travel: PySpark cannot pass some intervals through Arrow, so they become text."""
    if isinstance(type, YearMonthIntervalType | CalendarIntervalType):
        return StringType()
    if isinstance(type, ArrayType):
        return ArrayType(_carried(type.elementType), type.containsNull)
    if isinstance(type, MapType):
        return MapType(_carried(type.keyType), _carried(type.valueType), type.valueContainsNull)
    if isinstance(type, StructType):
        fields = (StructField(field.name, _carried(field.dataType), field.nullable, field.metadata) for field in type)
        return StructType(list(fields))
    return type


def _cast(column: Column, held: DataType, wanted: DataType) -> Column:
    return column if held == wanted else column.cast(_nullable(wanted))


def _nullable(type: DataType) -> DataType:
    """Return a type whose nested values may be NULL: Spark casts text to no other type of interval."""
    if isinstance(type, ArrayType):
        return ArrayType(_nullable(type.elementType), True)
    if isinstance(type, MapType):
        return MapType(_nullable(type.keyType), _nullable(type.valueType), True)
    if isinstance(type, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType), True) for field in type])
    return type


def _restored(column: Column, field: StructField) -> Column:
    """Return a column under the name of a field, with its metadata except Spark's mark of the event time."""
    metadata = without_event_time(field)
    return column.alias(field.name, metadata=metadata) if metadata else column.alias(field.name)


class _Seen(StatefulProcessor):
    """Labels the rows of a bucket and remembers their IDs."""

    def __init__(self, within: int, buckets: int) -> None:
        self._within = within
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._runs = handle.getListState("runs", "run binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        import numpy as np
        import pandas as pd

        from spark_ext.streaming._packing import CHECK_BUCKET, NO_TIME, read_heads
        from spark_ext.streaming._seen import NO_WATERMARK, Run, compacted, label_rows, needs_merge

        if key[0] == CHECK_BUCKET:
            for _ in rows:
                pass
            self._check()
            return
        messages = pd.concat(list(rows), ignore_index=True)
        batch, counts = read_heads(messages["head"].tolist())
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        watermark = watermark_ms * 1000 if watermark_ms > 0 else NO_WATERMARK
        newest = max(timerValues.getCurrentProcessingTimeInMs(), watermark_ms) * 1000
        newest = max(newest, watermark + self._within)
        time = np.where(batch.time == NO_TIME, newest, batch.time)
        runs = [Run.from_bytes(row[0]) for row in self._runs.get()]
        labels, run = label_rows(batch._replace(time=time), runs, watermark, self._within)
        if len(run):
            runs.append(run)
            if needs_merge(runs):
                whole = compacted(runs, watermark)
                self._runs.put([(bytes(whole),)])
            else:
                self._runs.appendValue((bytes(run),))
        ends = np.cumsum(counts)
        told = [labels[end - count : end].tobytes() for end, count in zip(ends, counts, strict=True)]
        yield pd.DataFrame({"labels": told, "rows": messages["rows"]})

    def _check(self) -> None:
        """Refuse a checkpoint of another format or of another number of buckets."""
        from spark_ext.streaming._seen import FORMAT, OTHER_FORMAT

        held = [bytes(row[0]) for row in self._runs.get()]
        written = b"%sbuckets=%d" % (FORMAT, self._buckets)
        if not held:
            self._runs.put([(written,)])
        elif not held[0].startswith(FORMAT):
            raise ValueError(OTHER_FORMAT)
        elif held[0] != written:
            was = held[0].rpartition(b"=")[2].decode()
            raise ValueError(
                f"`buckets` must be {was}, the number in the checkpoint of the query, got {self._buckets}; "
                "another number needs a new checkpoint"
            )

    def close(self) -> None:
        pass
