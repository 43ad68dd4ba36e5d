"""Column functions for Danube's messages: decode protobuf to a struct, and make position IDs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from msgid._validate import INT64_MAX, last_moment
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

__all__ = ["danube_id", "danube_message", "try_danube_message"]

_TIME_MAX: Final = last_moment(1_000)
"""The last millisecond of the year 9999."""


def danube_message(col: ColumnOrName) -> Column:
    """Decode Danube's messages from protobuf, as `msgid.danube.StreamMessage.decode` does.

    An Arrow UDF: it needs a Python worker.

    Parameters
    ----------
    col : Column or str
        binary.

    Returns
    -------
    Column
        a struct of the fields of `msgid.danube.StreamMessage`; NULL for NULL. Malformed bytes fail the query, and so do
        a number of 2**63 or more and a time after the year 9999, which a column cannot hold. `try_danube_message`
        returns NULL for them.

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
    """Decode Danube's messages, as `danube_message` does; return NULL for malformed bytes.

    Parameters
    ----------
    col : Column or str
        binary.

    Returns
    -------
    Column
        a struct, or NULL.

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
    """Return the IDs of Danube's messages: `position_id` of topic and producer, offset and publish time.

    The IDs equal those of `msgid.danube.MessageID.position_id`. The function needs no Python worker. Do not use it for
    topics without a log (`msgid.danube.unlogged`): all messages have offset 0, so those of one millisecond would get
    the same ID.

    Parameters
    ----------
    message : Column or str
        structs that `danube_message` returns.

    Returns
    -------
    Column
        text of 34 hex digits; NULL for NULL.

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
    """Return the Arrow type of a message: a struct of the fields of `msgid.danube.StreamMessage`."""
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
    """Decode protobuf to a row; raise InvalidMessage also for values that a bigint or a timestamp cannot hold."""
    return _row(StreamMessage.decode(raw))


def of_json(text: bytes) -> dict[str, Any]:
    """Decode JSON to a row; raise InvalidMessage as `of_protobuf` does."""
    return _row(StreamMessage.from_json(text))


def _row(message: StreamMessage) -> dict[str, Any]:
    row = {field.name: getattr(message, field.name) for field in fields(message)}
    row |= {"msg_id": message.msg_id._asdict(), "attributes": list(message.attributes.items())}
    for name, value in (*row.items(), *message.msg_id._asdict().items()):
        most = _TIME_MAX if name == "publish_time" else INT64_MAX
        if isinstance(value, int) and value > most:
            raise InvalidMessage(f"{name} must be at most {most}, got {value}")
    return row
