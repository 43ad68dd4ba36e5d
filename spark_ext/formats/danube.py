"""Columns of Danube messages: protobuf to a struct, and the ID of a message's position."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from msgid._moments import last_moment
from msgid._validate import INT64_MAX
from msgid.danube import StreamMessage
from msgid.errors import InvalidMessage
from spark_ext.columns._dialect import F
from spark_ext.columns._expressions import column
from spark_ext.columns._udfs import each
from spark_ext.columns.making import position_id

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column

    from spark_ext.columns._expressions import ColumnOrName

_TIME_MAX: Final = last_moment(1_000)
"""The last millisecond of the year 9999."""


def danube_message(col: ColumnOrName) -> Column:
    """Decode a Danube message from protobuf, as `msgid.danube.StreamMessage.decode` does.

    The function is an Arrow UDF and needs a Python worker. The query fails if a value is malformed, has a number of
    2**63 or more, or has a time after the year 9999. `try_danube_message` returns NULL instead.

    Parameters
    ----------
    col : Column or str
        Binary column with one message per row.

    Returns
    -------
    Column
        A struct of the fields of `msgid.danube.StreamMessage`; NULL for NULL.

    Examples
    --------
    >>> from msgid.danube import MessageID, StreamMessage
    >>> raw = StreamMessage(7, MessageID(9, "/default/events", "", 42), b"hi", 1648047038000, "p1").encode()
    >>> df = spark.createDataFrame([(raw,)], ["raw"])
    >>> df.select(danube_message("raw").msg_id.topic_offset.alias("offset")).show()
    +------+
    |offset|
    +------+
    |    42|
    +------+
    """
    return each(of_protobuf, message_type(), col, "danube_message")


def try_danube_message(col: ColumnOrName) -> Column:
    """Decode a Danube message from protobuf, as `danube_message` does; return NULL for a malformed value.

    Parameters
    ----------
    col : Column or str
        Binary column with one message per row.

    Returns
    -------
    Column
        A struct of the fields of `msgid.danube.StreamMessage`, or NULL.

    Examples
    --------
    >>> df = spark.createDataFrame([(b"no message",)], ["raw"])
    >>> df.select(try_danube_message("raw").isNull().alias("none")).show()
    +----+
    |none|
    +----+
    |true|
    +----+
    """
    return each(of_protobuf, message_type(), col, "try_danube_message", lenient=True)


def danube_id(message: ColumnOrName) -> Column:
    """Return the ID of a Danube message: `position_id` of topic and producer, offset and publishing time.

    The result is that of `msgid.danube.MessageID.position_id`. The function consists of Spark's own functions. Do not
    use it for a topic without a log (`msgid.danube.unlogged`): its messages all have offset 0, so messages of one
    millisecond would have the same ID.

    Parameters
    ----------
    message : Column or str
        Column of structs, as `danube_message` returns them.

    Returns
    -------
    Column
        Text of 34 hex digits; NULL for NULL.

    Examples
    --------
    >>> from msgid.danube import MessageID, StreamMessage
    >>> raw = StreamMessage(7, MessageID(9, "/default/events", "", 42), b"hi", 1648047038000, "p1").encode()
    >>> df = spark.createDataFrame([(raw,)], ["raw"]).select(danube_message("raw").alias("m"))
    >>> df.select(danube_id("m")).show(truncate=False)
    +----------------------------------+
    |danube_id                         |
    +----------------------------------+
    |013B223F1FE58B0000024CCDBE0000002A|
    +----------------------------------+
    """
    held = column(message)
    at = F.timestamp_millis(held.getField("publish_time"))
    return position_id(source_of(held), held.getField("msg_id").getField("topic_offset"), at).alias("danube_id")


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
