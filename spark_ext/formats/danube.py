"""Danube's message formats: protobuf and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from msgid import layout
from msgid.danube import StreamMessage
from msgid.errors import InvalidMessage
from msgid.messages import MessageState
from msgid.shared.moments import last_moment
from msgid.shared.validate import INT64_MAX, UINT64_MAX
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.making import position_id
from spark_ext.columns.udfs import outcomes
from spark_ext.formats._row_columns import opened, position_of, with_column_below
from spark_ext.formats.message_formats import EncodedFormat, FormatOption

if TYPE_CHECKING:
    from types import SimpleNamespace

    import pyarrow
    from pyspark.sql import Column, DataFrame


_PREFIX: Final = "invalid message: "
_TIME_MAX: Final = last_moment(1_000)
"""The last millisecond of the year 9999."""


def message_type() -> pyarrow.DataType:
    """Return the type of a message: what the message table needs of a `msgid.danube.StreamMessage`.

    A number that may have 64 bits is NULL, or its bits in a bigint: the schema's ID.
    """
    import pyarrow as pa

    fields = {
        "topic": pa.string(),
        "offset": pa.int64(),
        "is_logged": pa.bool_(),
        "is_dead": pa.bool_(),
        "id_source": pa.string(),
        "id_offset": pa.int64(),
        "no_id": pa.string(),
        "refused": pa.string(),
        "payload": pa.binary(),
        "publish_time": pa.int64(),
        "attributes": pa.map_(pa.string(), pa.string()),
        "schema_id": pa.int64(),
        "schema_version": pa.int64(),
    }
    return pa.struct(fields)


def of_protobuf(raw: bytes) -> dict[str, Any]:
    """Decode protobuf to a row; a time that does not fit a timestamp raises InvalidMessage too."""
    return _row(StreamMessage.decode(raw))


def of_json(text: bytes) -> dict[str, Any]:
    """Decode JSON to a row; errors are those of `of_protobuf`."""
    return _row(StreamMessage.from_json(text))


def _row(message: StreamMessage) -> dict[str, Any]:
    if message.publish_time > _TIME_MAX:
        raise InvalidMessage(f"publish_time must be at most {_TIME_MAX}, got {message.publish_time}")
    own, first, no_id, refused = message.msg_id, None, None, None
    try:
        first = message.first_place
        if first.topic_offset > layout.OFFSET_MAX:
            no_id = f"no ID: offset {first.topic_offset} has more than 48 bits"
    except InvalidMessage as error:
        refused = error.reason
    return {
        "topic": own.topic_name,
        "offset": own.topic_offset if own.topic_offset <= INT64_MAX else None,
        "is_logged": own.topic_offset > 0,
        "is_dead": first != own,
        "id_source": first.source if first is not None and no_id is None else None,
        "id_offset": first.topic_offset if first is not None and no_id is None else None,
        "no_id": no_id,
        "refused": refused,
        "payload": message.payload,
        "publish_time": message.publish_time,
        "attributes": list(message.attributes.items()),
        "schema_id": _bits(message.schema_id),
        "schema_version": message.schema_version,
    }


def _bits(number: int | None) -> int | None:
    """Return the bits of an unsigned integer of 64 bits as a signed one."""
    return number if number is None or number <= INT64_MAX else number - (UINT64_MAX + 1)


class _Danube(EncodedFormat):
    options = (
        *EncodedFormat.options,
        FormatOption(
            "logged",
            None,
            "Danube: whether topics have a log.  [default: found by the offsets]",
            type=bool,
            flags=("--logged/--unlogged",),
        ),
    )

    def __init__(self, name: str, *, is_text: bool = False) -> None:
        self.name, self.is_text = name, is_text

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        if options.logged is None and df.isStreaming:
            raise ValueError("logged must be True or False for a stream, got None: later offsets are unknown")
        name = options.column or "value"
        values = F.col(quoted_name(name)).cast("binary")
        rows = opened(df, name, outcomes(of_json if self.is_text else of_protobuf, message_type(), values))
        time = F.timestamp_millis("message.publish_time")
        rows = with_column_below(rows, position_id(F.col("message.id_source"), F.col("message.id_offset"), time))
        if options.logged is not None:
            return rows.withColumn("logged", F.lit(options.logged))
        return _with_logged(rows)

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        refused = F.concat(F.lit(_PREFIX), F.col("message.refused"))
        failed = F.col("reason").isNotNull() | refused.isNotNull()
        no_id = (
            F.when(failed, F.coalesce(F.col("reason"), refused))
            .when(~F.col("logged"), F.lit("no ID: a topic without a log, so all messages have offset 0"))
            .otherwise(F.col("message.no_id"))
        )
        time, source = F.timestamp_millis("message.publish_time"), F.concat(F.lit("danube:"), F.col("message.topic"))
        schema = F.struct(F.col("message.schema_id").alias("id"), F.col("message.schema_version").alias("version"))
        return {
            "id": F.when(no_id.isNull(), position_of()),
            "source": F.coalesce(source, F.lit("danube")),
            "topic": F.col("message.topic"),
            "offset": F.col("message.offset"),
            "state": F.when(failed, F.lit(str(MessageState.POISONED))).otherwise(F.lit(str(MessageState.AVAILABLE))),
            "timestamp": time,
            "attributes": F.col("message.attributes"),
            "schema": F.when(schema["id"].isNotNull() | schema["version"].isNotNull(), schema),
            "payload": F.col("message.payload"),
            "reason": no_id,
            "original": F.when(failed, F.col("raw").cast("binary")),
        }


def _with_logged(rows: DataFrame) -> DataFrame:
    """Add whether the topic of each message has a log: one of its offsets is above 0, whoever sent the message.

    A dead letter has its ID by another topic. A join and not a window, so that the messages of one topic stay in
    several tasks.
    """
    topics = (
        rows.where(F.col("message.topic").isNotNull())
        .groupBy(F.col("message.topic").alias("its_topic"))
        .agg(F.bool_or("message.is_logged").alias("its_log"))
    )
    joined = rows.join(F.broadcast(topics), F.col("message.topic") == F.col("its_topic"), "left")
    return joined.withColumn("logged", F.col("its_log") | F.col("message.is_dead")).drop("its_topic", "its_log")


FORMATS: Final = (_Danube("danube"), _Danube("danube-json", is_text=True))
