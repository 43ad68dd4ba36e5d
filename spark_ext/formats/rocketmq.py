"""RocketMQ rows as the columns of the message table; `msgid.rocketmq.Record` is the same in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from msgid import layout
from msgid.rocketmq import KEYS, OFFSET_ID, REAL_QUEUE, REAL_TOPIC, RETRY, RETRY_TOPIC, UNIQUE_KEY
from spark_ext.columns._expressions import integer_column, quoted_name, type_of
from spark_ext.columns._json_text import is_one_value
from spark_ext.columns._moments import moment_column
from spark_ext.columns.making import position_id
from spark_ext.formats._row_columns import bound, bytes_column, own_id, require, text_of
from spark_ext.formats.message_formats import ENCODING, MessageFormat

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pyspark.sql import Column, DataFrame

    from msgid.messages import Encoding


_MAP = "map<string, string>"


class _RocketMQ(MessageFormat):
    name = "rocketmq"
    columns = ("topic", "body", "properties", "brokerName", "queueId", "queueOffset", "storeTimestamp", OFFSET_ID)
    time = "storeTimestamp"
    options = (ENCODING,)

    def audited_rows(self, df: DataFrame) -> DataFrame:
        """Complete rows as `msgid.rocketmq.audited_rows` does."""
        properties, _ = _properties(df)
        topic, queue = _log(properties, F.col("`topic`"), F.col("`queueId`"))
        id = properties[UNIQUE_KEY]
        if self.time in df.columns:
            id = F.coalesce(
                F.nullif(id, F.lit("")), _rows(df.withColumn("body", F.lit(None).cast("binary")), "utf-8")["id"]
            )
        return df.withColumns({"id": id, "topic": topic, "queueId": queue})

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        require(df, self.name, "topic", "body", "brokerName", "queueId", "queueOffset", "storeTimestamp")
        return _rows(df, options.encoding)


FORMATS: Final = (_RocketMQ(),)


def _rows(df: DataFrame, encoding: Encoding) -> dict[str, Column]:
    topic, broker = text_of(df, "topic"), text_of(df, "brokerName")
    queue, offset = (
        integer_column(df, "queueId").try_cast("int"),
        integer_column(df, "queueOffset"),
    )
    stored = moment_column(df, "storeTimestamp")
    body = bytes_column(F.col("`body`"), type_of(df, "body"), encoding)
    properties, broken = _properties(df)
    own_text = properties[UNIQUE_KEY]
    own = own_id(own_text.cast("binary"))
    log_topic, log_queue = _log(properties, topic, queue)
    source = F.concat(F.lit("rocketmq:"), broker, F.lit("/"), log_topic, F.lit("/"), log_queue.cast("string"))
    fits = offset.between(0, layout.OFFSET_MAX)
    malformed = F.coalesce(
        F.when(topic.isNull() | (topic == ""), F.lit("no topic")),
        F.when(broker.isNull() | (broker == ""), F.lit("no brokerName")),
        F.when(queue.isNull() | (queue < 0), F.lit("no valid queueId")),
        F.when(~F.coalesce(fits, F.lit(False)), F.lit(f"no queueOffset of 0 to {layout.OFFSET_MAX}")),
        F.when(stored.isNull(), F.lit("no valid storeTimestamp")),
        F.when(broken, F.lit("properties: not a JSON object")),
        F.when(body.isNull() & F.col("`body`").isNotNull(), F.lit("body: invalid base64")),
    )
    unknown = F.when(own.isNull() & own_text.isNotNull(), F.lit(f"property {UNIQUE_KEY} does not hold an ID"))
    good = malformed.isNull()
    extra = F.map_from_arrays(F.array(F.lit(OFFSET_ID)), F.array(text_of(df, OFFSET_ID)))
    held = F.map_filter(F.coalesce(properties, F.create_map().cast(_MAP)), lambda name, _: name != OFFSET_ID)
    return {
        "id": F.when(good, F.coalesce(own, position_id(source, F.when(good, offset), stored))),
        "source": F.coalesce(source, F.lit("rocketmq")),
        "topic": topic,
        "partition": queue,
        "offset": offset,
        "timestamp": stored,
        "attributes": F.when(text_of(df, OFFSET_ID).isNotNull(), F.map_concat(held, extra)).otherwise(properties),
        "key": properties[KEYS].cast("binary"),
        "payload": body,
        "malformed": malformed,
        "note": unknown,
        "original": F.coalesce(body, text_of(df, "body").cast("binary")),
    }


def _log(properties: Column, topic: Column, queue: Column) -> tuple[Column, Column]:
    """Return the topic and queue in which the row's offset counts, as `msgid.rocketmq.log_of` does."""
    retry, number = properties[REAL_TOPIC], properties[REAL_QUEUE]
    is_retry = retry.startswith(RETRY) & properties[RETRY_TOPIC].isNotNull()
    is_known = F.coalesce(is_retry & number.rlike(r"\A[0-9]{1,9}\z"), F.lit(False))
    return F.when(is_known, retry).otherwise(topic), F.when(is_known, number.try_cast("int")).otherwise(queue)


def _properties(df: DataFrame) -> tuple[Column, Column]:
    """Return the properties as a map, and whether their text is not a JSON object."""
    type, column = type_of(df, "properties"), F.col(quoted_name("properties"))
    if type is None:
        return F.lit(None).cast(_MAP), F.lit(False)
    if isinstance(type, MapType):
        return column.cast(_MAP), F.lit(False)
    # from_json gives NULL values for text that is not an object, so the text is checked by itself.
    text = F.when(F.trim(column.cast("string")) != "null", column.cast("string"))

    def last_of_each(entries: Column) -> Column:
        def is_last(entry: Column, place: Column) -> Column:
            later = F.slice(entries, place + 2, F.size(entries))
            return ~F.exists(later, lambda other: other["key"] == entry["key"])

        return F.map_from_entries(F.filter(entries, is_last))

    # Of a repeated name the last value counts, as in Python; a map of Spark must not have a name twice.
    read = F.from_json(text, _MAP, {"allowSingleQuotes": "false"})
    valid = F.json_object_keys(text).isNotNull() & read.isNotNull() & is_one_value(text)
    return bound(F.map_entries(read), last_of_each), text.isNotNull() & ~valid
