"""The plan of `deduplicate` for a stream, and its stateful processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StringType, StructField, StructType

from msgid import layout
from spark_ext._private import use_own_python
from spark_ext._shipping import check_workers, shipped, shipped_processor
from spark_ext.columns.fingerprint import sha_digits
from spark_ext.streaming._labelling import CONTENT_LENGTH, KEY, LABELLED, label_bucket, labelled, preparer, unpack
from spark_ext.streaming._state.bucket_log import BEFORE_ALL, BucketLog
from spark_ext.streaming._state.bucket_state import CHECK_BUCKET, BucketState, states
from spark_ext.streaming._state.buckets import bucket_keys
from spark_ext.streaming._state.packed_rows import PACKED, packer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame


IDS: Final = "ids"
"""The name of the log."""


def labelled_stream(
    df: DataFrame, key: Column, content: Column, timestamp: str, within: int, buckets: int, name: str
) -> DataFrame:
    """Return a stream, which has a watermark, with the column ``name``, in which rows that come too late are ``late``.

    ``within`` is in microseconds.

    The columns travel under numbers, so that no name of theirs matters.
    """
    use_own_python(df.sparkSession)
    check_workers(df.sparkSession, stateful=True)
    names = [f"c{index}" for index in range(len(df.columns))]
    # The identity and the fingerprint are columns of their own first: their expressions are long, and used repeatedly.
    hashed = df.select("*", key, content).toDF(*names, "id", "content")
    numbered = hashed.select(*names, _row_key(F.col("id"), F.col("content")).alias(KEY))
    prepare = preparer(buckets, names[df.columns.index(timestamp)])
    packed = numbered.mapInArrow(shipped(packer(prepare, bucket_keys(buckets))), PACKED)
    rows = packed.groupBy("bucket").transformWithStateInPandas(
        shipped_processor(Seen(within, buckets), states(IDS)), LABELLED, "append", "EventTime"
    )
    schema = StructType([*df.toDF(*names).schema, StructField("label", StringType(), False)])
    return rows.mapInArrow(shipped(unpack), schema).toDF(*df.columns, name)


def _row_key(id: Column, content: Column) -> Column:
    """Return the `KEY` of a row; a row without an ID belongs to any bucket: that of its content."""
    compared = F.substring(content, 1, CONTENT_LENGTH)
    with_id = F.concat(id_hash(id), compared, F.lit(b"\1"))
    return F.coalesce(with_id, F.concat(content, compared, F.lit(b"\0")))


def id_hash(key: Column) -> Column:
    """Return 16 bytes that tell identities apart, and that begin with the time in the ID if it has one.

    IDs of one time get neighboring places in the state, so new IDs touch only its newest pages. Version 1 needs no
    hash: its 16 bytes after the version, seconds and sequence number first. Other identities are hashed. The hash of a
    UUID begins with its first 4 bytes (version 7: the time in units of 65 s), that of text of 26 bytes with 5 of its
    characters (ULID: the time in units of 33 s). Those parts are equal for equal IDs, so the rest of the hash must tell
    IDs of one time apart: 88 bits or more.
    """
    hashed = sha_digits(key)
    length = F.octet_length(key)
    time = F.when(length == _UUID_LENGTH, F.left(key, F.lit(8))).when(
        length == _ULID_LENGTH, F.hex(F.substring(key.cast("binary"), 3, 5))
    )
    # Text that only looks like an ID has other characters in place of digits: `unhex` returns NULL.
    v1 = F.unhex(F.when((length == layout.ID_DIGITS) & key.startswith("01"), key))
    v1_hash = F.concat(F.substring(v1, *_V1_TIME_AND_SEQUENCE), F.substring(v1, *_V1_NODE))
    return F.coalesce(v1_hash, F.unhex(F.overlay(hashed, time, 1)), F.unhex(hashed))


_V1_TIME_AND_SEQUENCE: Final = (10, 8)
"""The first byte, counted from 1, and the number of bytes."""
_V1_NODE: Final = (2, 8)
_UUID_LENGTH: Final = 36
_ULID_LENGTH: Final = 26


class Seen(StatefulProcessor):
    """Labels the rows of a bucket and remembers their IDs."""

    def __init__(self, within: int, buckets: int) -> None:
        self._within = within
        self._buckets = buckets

    def init(self, handle: Any) -> None:
        self._state = BucketState(handle, IDS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        if key[0] == CHECK_BUCKET:
            self._state.check(self._buckets)
            return
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        watermark = watermark_ms * 1000 if watermark_ms > 0 else BEFORE_ALL // 1000 * 1000
        newest = max(timerValues.getCurrentProcessingTimeInMs(), watermark_ms) * 1000
        newest = max(newest, watermark + self._within)
        log = BucketLog(self._state.logs[0], watermark // 1000)
        yield from labelled(rows, newest, lambda batch: label_bucket(batch, log, watermark, self._within))
        log.commit()
