"""Danube's message formats: protobuf and JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from msgid import layout
from msgid._moments import last_moment
from msgid._validate import INT64_MAX
from msgid.danube import StreamMessage
from msgid.errors import InvalidMessage
from msgid.messages import MessageState
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._udfs import outcomes
from spark_ext.columns.making import position_id
from spark_ext.formats._row_columns import opened
from spark_ext.formats.message_formats import EncodedFormat, FormatOption

if TYPE_CHECKING:
    from types import SimpleNamespace

    import pyarrow
    from pyspark.sql import Column, DataFrame


_TIME_MAX: Final = last_moment(1_000)
"""The last millisecond of the year 9999."""


def source_of(message: Column) -> Column:
    """Return the name of a message's log, as `msgid.danube.MessageID.source` does."""
    place = message.getField("msg_id")
    producer = place.getField("producer_id").cast("string")
    return F.concat(F.lit("danube:"), place.getField("topic_name"), F.lit("#"), producer)


def message_type() -> pyarrow.DataType:
    """Return the type of a message: a struct of the fields of `msgid.danube.StreamMessage`."""
    import pyarrow as pa

    place = {"producer_id": pa.int64(), "topic_name": pa.string(), "broker_addr": pa.string()}
    fields = {
        "request_id": pa.int64(),
        "msg_id": pa.struct({**place, "topic_offset": pa.int64()}),
        "payload": pa.binary(),
        "publish_time": pa.int64(),
        "producer_name": pa.string(),
        "subscription_name": pa.string(),
        "attributes": pa.map_(pa.string(), pa.string()),
        "schema_id": pa.int64(),
        "schema_version": pa.int64(),
        "routing_key": pa.string(),
    }
    return pa.struct(fields)


def of_protobuf(raw: bytes) -> dict[str, Any]:
    """Decode protobuf to a row; a value that does not fit a bigint or a timestamp raises InvalidMessage too."""
    return _row(StreamMessage.decode(raw))


def of_json(text: bytes) -> dict[str, Any]:
    """Decode JSON to a row; errors are those of `of_protobuf`."""
    return _row(StreamMessage.from_json(text))


def _row(message: StreamMessage) -> dict[str, Any]:
    row = {field.name: getattr(message, field.name) for field in fields(message)}
    row |= {"msg_id": message.msg_id._asdict(), "attributes": list(message.attributes.items())}
    for name, value in (*row.items(), *message.msg_id._asdict().items()):
        most = _TIME_MAX if name == "publish_time" else INT64_MAX
        if isinstance(value, int) and value > most:
            raise InvalidMessage(f"{name} must be at most {most}, got {value}")
    return row


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
        if options.logged is not None:
            return rows.withColumn("logged", F.lit(options.logged))
        return _with_reach(rows).withColumn("logged", F.col("reach") > 0)

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        message, logged, failed = F.col("message"), F.col("logged"), F.col("reason").isNotNull()
        offset, time = F.col("message.msg_id.topic_offset"), F.timestamp_millis("message.publish_time")
        fits = offset <= layout.OFFSET_MAX
        source = source_of(message)
        no_id = (
            F.when(failed, F.col("reason"))
            .when(~logged, F.lit("no ID: a topic without a log, so all messages have offset 0"))
            .when(~fits, F.concat(F.lit("no ID: offset "), offset.cast("string"), F.lit(" has more than 48 bits")))
        )
        schema = F.struct(F.col("message.schema_id").alias("id"), F.col("message.schema_version").alias("version"))
        return {
            "id": F.when(logged & fits, position_id(source, F.when(logged & fits, offset), time)),
            "source": F.coalesce(source, F.lit("danube")),
            "topic": F.col("message.msg_id.topic_name"),
            "offset": offset,
            "state": F.when(failed, F.lit(str(MessageState.POISONED))).otherwise(F.lit(str(MessageState.AVAILABLE))),
            "timestamp": time,
            "attributes": F.col("message.attributes"),
            "schema": F.when(schema["id"].isNotNull() | schema["version"].isNotNull(), schema),
            "payload": F.col("message.payload"),
            "reason": no_id,
            "original": F.when(failed, F.col("raw").cast("binary")),
        }


def _with_reach(rows: DataFrame) -> DataFrame:
    """Add the last offset of each message's topic and producer.

    A join and not a window, so that the messages of one producer stay in several tasks.
    """
    topic, producer = F.col("message.msg_id.topic_name"), F.col("message.msg_id.producer_id")
    totals = (
        rows.where(topic.isNotNull())
        .groupBy(topic.alias("its_topic"), producer.alias("its_producer"))
        .agg(F.max("message.msg_id.topic_offset").alias("reach"))
    )
    same = (topic == F.col("its_topic")) & (producer == F.col("its_producer"))
    return rows.join(F.broadcast(totals), same, "left").drop("its_topic", "its_producer")


FORMATS: Final = (_Danube("danube"), _Danube("danube-json", is_text=True))
