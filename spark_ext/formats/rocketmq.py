"""RocketMQ rows as the columns of the message table; `msgid.rocketmq.Record` is the same in plain Python."""

from __future__ import annotations

from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from msgid import layout
from msgid.rocketmq import (
    DEAD,
    KEYS,
    NO_FIRST_PLACE,
    NO_LOG,
    OFFSET_ID,
    ORIGIN,
    POP_CHECKPOINT,
    POP_GROUP,
    POP_KIND,
    POP_RETRIES,
    REAL_QUEUE,
    REAL_TOPIC,
    RETRY,
    RETRY_TOPIC,
    UNIQUE_KEY,
)
from spark_ext.columns.building import compiled_apart
from spark_ext.columns.column_types import integer_column, type_of
from spark_ext.columns.identity import header_identity
from spark_ext.columns.json_text import TEXT_MAP, with_object
from spark_ext.columns.making import position_id
from spark_ext.columns.moment_columns import moment_column
from spark_ext.formats._row_columns import (
    bound,
    bytes_column,
    position_of,
    require,
    text_of,
    with_position,
)
from spark_ext.formats.message_formats import ENCODING, MessageFormat

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pyspark.sql import Column, DataFrame

    from msgid.messages import Encoding


_NEEDED = ("topic", "body", "brokerName", "queueId", "queueOffset", "storeTimestamp")
_PROPERTIES, _BROKEN, _LOG, _OWN = "_msgid_properties", "_msgid_broken", "_msgid_log", "_msgid_own"
_READ = "_msgid_read"
"""Columns that `decode` adds. Spark computes a column of a query below once, and an expression at each of its uses."""


class _RocketMQ(MessageFormat):
    name = "rocketmq"
    columns = ("topic", "body", "properties", "brokerName", "queueId", "queueOffset", "storeTimestamp", OFFSET_ID)
    time = "storeTimestamp"
    options = (ENCODING,)

    def audited_rows(self, df: DataFrame) -> DataFrame:
        """Complete rows as `msgid.rocketmq.audited_rows` does."""
        df = _with_properties(df)
        properties = F.col(_PROPERTIES)
        log = log_of(properties, F.col("`topic`"), F.col("`queueId`"))
        id = properties[UNIQUE_KEY]
        if self.time in df.columns:
            id = F.coalesce(
                F.nullif(id, F.lit("")), _rows(df.withColumn("body", F.lit(None).cast("binary")), "utf-8")["id"]
            )
        offset = F.when(log.topic.isNotNull(), F.col("`queueOffset`"))
        df = df.withColumns({"id": id, "topic": log.topic, "queueId": log.queue, "queueOffset": offset})
        return df.drop(_READ, _PROPERTIES, _BROKEN)

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        """Return the rows with the properties as a map, and with the log, each computed once per row."""
        df = _with_properties(super().decode(df, options))
        if not set(_NEEDED) <= set(df.columns):
            return df  # `rows` names the missing column
        queue = integer_column(df, "queueId").try_cast("int")
        log = compiled_apart(F.struct(*log_of(F.col(_PROPERTIES), text_of(df, "topic"), queue)))
        df = df.withColumns({_LOG: log, _OWN: _own_id(F.col(_PROPERTIES))})
        return with_position(df, _source(df, _decoded_log()), "queueOffset", "storeTimestamp", _OWN)

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        require(df, self.name, *_NEEDED)
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
    is_decoded = _LOG in df.columns
    properties, broken = F.col(_PROPERTIES), F.col(_BROKEN)
    log = _decoded_log() if is_decoded else log_of(properties, topic, queue)
    own_text = properties[UNIQUE_KEY]
    own = F.col(_OWN) if is_decoded else _own_id(properties)
    source = _source(df, log)
    fits = offset.between(0, layout.OFFSET_MAX)
    malformed = F.coalesce(
        F.when(topic.isNull() | (topic == ""), F.lit("no topic")),
        F.when(broker.isNull() | (broker == ""), F.lit("no brokerName")),
        F.when(queue.isNull() | (queue < 0), F.lit("no valid queueId")),
        F.when(~F.coalesce(fits, F.lit(False)), F.lit(f"no queueOffset of 0 to {layout.OFFSET_MAX}")),
        F.when(stored.isNull(), F.lit("no valid storeTimestamp")),
        F.when(broken, F.lit("properties: not a JSON object")),
        F.when(body.isNull() & F.col("`body`").isNotNull(), F.lit("body: invalid base64")),
        F.when(log.is_redelivered & own.isNull(), F.concat(F.lit(f"{NO_FIRST_PLACE}, got "), _shown(own_text))),
    )
    unknown = F.coalesce(
        F.when(own.isNull() & own_text.isNotNull(), F.lit(f"property {UNIQUE_KEY} does not hold an ID")),
        F.when(log.topic.isNull() & topic.isNotNull(), F.lit(NO_LOG)),
    )
    good = malformed.isNull()
    position = position_of() if is_decoded else position_id(source, F.when(good, offset), stored)
    extra = F.map_from_arrays(F.array(F.lit(OFFSET_ID)), F.array(text_of(df, OFFSET_ID)))
    others = F.map_filter(F.coalesce(properties, F.create_map().cast(TEXT_MAP)), lambda name, _: name != OFFSET_ID)
    return {
        "id": F.when(good, F.coalesce(own, position)),
        "source": F.coalesce(source, F.lit("rocketmq")),
        "topic": topic,
        "partition": queue,
        "offset": F.when(log.topic.isNotNull(), offset),
        "timestamp": stored,
        "attributes": F.when(text_of(df, OFFSET_ID).isNotNull(), F.map_concat(others, extra)).otherwise(properties),
        "key": properties[KEYS].cast("binary"),
        "payload": body,
        "malformed": malformed,
        "note": unknown,
        "original": F.coalesce(body, text_of(df, "body").cast("binary")),
    }


def _own_id(properties: Column) -> Column:
    return header_identity(properties[UNIQUE_KEY].cast("binary"))


def _decoded_log() -> RowLog:
    """Return the log that `decode` has computed."""
    return RowLog(*(F.col(f"{_LOG}.{name}") for name in RowLog._fields))


def _source(df: DataFrame, log: RowLog) -> Column:
    broker = text_of(df, "brokerName")
    return F.concat(F.lit("rocketmq:"), broker, F.lit("/"), log.topic, F.lit("/"), log.queue.cast("string"))


class RowLog(NamedTuple):
    """The columns of `msgid.rocketmq.RowLog`."""

    topic: Column
    queue: Column
    is_redelivered: Column


def log_of(properties: Column, topic: Column, queue: Column) -> RowLog:
    """Return where the offset of a row counts, and whether it is redelivered, as `msgid.rocketmq.log_of` does."""
    retry, number, group = properties[REAL_TOPIC], properties[REAL_QUEUE], properties[POP_GROUP]
    kind = F.try_element_at(F.split(properties[POP_CHECKPOINT], " "), F.lit(POP_KIND + 1))
    is_popped = properties[POP_CHECKPOINT].isNotNull() & ~kind.eqNullSafe(F.lit("0"))
    mark = F.when(group != "", F.try_element_at(F.create_map(*map(F.lit, chain(*POP_RETRIES.items()))), kind))
    is_named = retry.startswith(RETRY) & number.rlike(r"\A[0-9]{1,9}\z")

    def first_that_holds(of_name: Column, of_pull: Column, of_pop: Column, of_origin: Column, else_: Column) -> Column:
        return (
            F.when(topic.startswith(RETRY) | topic.startswith(DEAD), of_name)
            .when(properties[RETRY_TOPIC].isNotNull(), of_pull)
            .when(is_popped, of_pop)
            .when(properties[ORIGIN].isNotNull(), of_origin)
            .otherwise(else_)
        )

    no, yes = F.lit(None), F.lit(True)
    log = first_that_holds(topic, F.when(is_named, retry), F.concat(F.lit(RETRY), group, mark, topic), no, topic)
    number_of = F.when(is_named, number.try_cast("int"))
    return RowLog(
        log.alias("topic"),
        first_that_holds(queue, number_of, F.when(mark.isNotNull(), queue), no, queue).alias("queue"),
        first_that_holds(yes, yes, yes, yes, F.lit(False)).alias("is_redelivered"),
    )


def _shown(text: Column) -> Column:
    return F.when(text.isNull(), F.lit("none")).otherwise(F.concat(F.lit("'"), text, F.lit("'")))


def _with_properties(df: DataFrame) -> DataFrame:
    """Return the rows with the properties as a map, and with whether their text is not a JSON object."""
    type = type_of(df, "properties")
    if isinstance(type, MapType | NoneType):
        given = F.lit(None) if type is None else F.col("properties")
        return df.withColumns({_PROPERTIES: given.cast(TEXT_MAP), _BROKEN: F.lit(False)})
    text = F.col("properties").cast("string")
    text = F.when(F.trim(text) != "null", text)
    df, read = with_object(df, _READ, text), F.col(_READ)

    def last_of_each(entries: Column) -> Column:
        def is_last(entry: Column, index: Column) -> Column:
            later = F.slice(entries, index + 2, F.size(entries))
            return ~F.exists(later, lambda other: other["key"] == entry["key"])

        return F.map_from_entries(F.filter(entries, is_last))

    # Of a repeated name the last value counts, as in Python; a map of Spark must not have a name twice.
    names = F.map_keys(read)
    has_each_once = F.size(F.array_distinct(names)) == F.size(names)
    properties = F.when(has_each_once, read).otherwise(bound(F.map_entries(read), last_of_each))
    return df.withColumns({_PROPERTIES: properties, _BROKEN: text.isNotNull() & read.isNull()})
