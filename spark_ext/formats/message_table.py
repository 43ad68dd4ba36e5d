"""`messages`: one table of the messages of any format.

Every input message is a row. A message that is malformed, or fails its checksum or its schema, is ``poisoned``, with
the reason and its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from pyspark.sql import functions as F

from msgid import layout as id_layout
from msgid.iggy._wire import Layout, name_of
from msgid.kafka import CLUSTER, ID_HEADER
from msgid.messages import Encoding, MessageState
from msgid.schemas import Framing, Policy, SchemaSource, checked_policy, frame
from msgid.schemas.framing import checked_framing
from spark_ext.columns._expressions import CORRUPT, digits_to_bigint, misfit_reason, null_text, quoted_name
from spark_ext.columns._moments import with_moment
from spark_ext.columns._udfs import arrow_column, outcomes
from spark_ext.columns.making import position_id
from spark_ext.columns.message_fields import iggy_id_to_id
from spark_ext.formats import danube, iggy
from spark_ext.formats._row_columns import by_name
from spark_ext.formats.message_formats import DANUBE, ENCODED, FormatOptions, format_names, message_format
from spark_ext.formats.schema_check import check_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

COLUMNS: Final = (
    "id",
    "source",
    "topic",
    "partition",
    "segment",
    "offset",
    "state",
    "timestamp",
    "checksum",
    "headers",
    "attributes",
    "schema",
    "key",
    "payload",
    "reason",
    "original",
    "layout",
)
_POISONED: Final = str(MessageState.POISONED)
_EMPTY: Final = {
    "headers": "map<string, struct<kind: string, value: binary>>",
    "attributes": "map<string, string>",
    "schema": "struct<id: bigint, version: bigint>",
    "layout": "string",
}
"""The types of the columns that a format may not have, if the type is not bigint."""
IGGY_COLUMNS: Final = (
    *("source", "stream", "topic", "partition", "segment", "offset", "state", "timestamp", "id_text", "checksum"),
    *("checksum_ok", "layout", "headers", "payload", "reason", "original"),
)
"""The columns of ``format("iggy")`` that `messages` reads."""
_HEADERS: Final = _EMPTY["headers"]
_SCHEMA: Final = _EMPTY["schema"]


def messages(
    df: DataFrame,
    format: str = "iggy",
    *,
    column: str = "value",
    layout: Layout = "auto",
    topic: str | None = None,
    partition: int | None = None,
    logged: bool | None = None,
    registry: SchemaSource | None = None,
    subject: str | None = None,
    policy: Policy = "none",
    framing: Framing = "none",
    cluster: str = CLUSTER,
    id_header: str = ID_HEADER,
    encoding: Encoding = "utf-8",
) -> DataFrame:
    """Return one table of the messages of any format.

    Parameters
    ----------
    df : DataFrame
        batch or stream: of ``format("iggy")``, with a column of encoded messages, or with the columns of Spark's Kafka
        source or of RocketMQ's connector.
    format : str
        ``iggy`` (a DataFrame of that source), ``iggy-message`` (one encoded message per row), ``iggy-poll`` (a poll
        response), ``iggy-json`` (text: a message, an array of messages, or a poll response), ``danube`` (protobuf) or
        ``danube-json``. ``kafka``, ``rocketmq`` and the formats of `register_message_format` have one message per row.
    column : str
        column of encoded messages; not for ``iggy`` and the formats with one message per row.
    layout : str
        layout of Iggy's bytes, one of `msgid.iggy.LAYOUTS`. Default: found by checksum.
    topic : str, optional
        Iggy's topic, which its messages do not contain. Default: the topic in the path of the segment file.
    partition : int, optional
        Iggy's partition. Default: the partition in the path of the segment file, or in the poll response.
    logged : bool, optional
        whether Danube's topics have a log. Without a log all messages have offset 0, and their ``id`` is NULL. Default:
        a producer has a log if one of its offsets is above 0. Required for a stream.
    registry : msgid.schemas.SchemaSource, optional
        source of the messages' schemas; required for a policy other than ``none``.
    subject : str, optional
        subject that the schemas must have. Default: the topic.
    policy : str
        check of schemas: ``none``, ``warn`` (a failure is noted as the reason) or ``enforce`` (it poisons the message).
    framing : str
        ``confluent`` if each payload begins with a zero byte and its schema's ID, which becomes the column ``schema``.
    cluster : str
        Kafka: name of the cluster, which is part of each source name.
    id_header : str
        Kafka: name of the header that may hold a message's own ID or UUID. Without it, the ID is `position_id` of
        source, offset and timestamp. RocketMQ: the ID is the property ``UNIQ_KEY``, or else the `position_id`.
    encoding : str
        Kafka and RocketMQ: how text in a key, value, header or body encodes bytes, ``utf-8`` or ``base64``. Spark
        writes binary columns to JSON as base64. Timestamps in text must have an offset from UTC; integers are
        milliseconds since 1970.

    Returns
    -------
    DataFrame
        ``id`` (canonical text; NULL if the message cannot have an ID), ``source`` (its log), ``topic``,
        ``partition``, ``segment`` (its first offset), ``offset``, ``state``, ``timestamp``, ``checksum``, ``headers``
        (Iggy's and Kafka's), ``attributes`` (Danube's, and RocketMQ's properties), ``schema`` (its ID and version),
        ``key`` (Kafka's key, RocketMQ's ``KEYS``), ``payload`` (NULL for a tombstone), ``reason``, ``original`` (the
        malformed bytes, or the payload that fails its checksum or its schema) and the ``layout`` of Iggy's bytes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from msgid import iggy
    >>> good = iggy.Message.new(b"hello", id=7, offset=3)
    >>> raws = [(iggy.encode(good),), (iggy.encode(replace(good, checksum=1)),), (b"half a mess",)]
    >>> table = messages(spark.createDataFrame(raws, ["value"]), "iggy-message", layout="m45", topic="greetings")
    >>> table.select("topic", "offset", "state", "reason").show(truncate=False)
    +---------+------+---------+----------------------------------------------------------------------+
    |topic    |offset|state    |reason                                                                |
    +---------+------+---------+----------------------------------------------------------------------+
    |greetings|3     |available|NULL                                                                  |
    |greetings|3     |poisoned |checksum must be 907060870, got 1                                     |
    |greetings|NULL  |poisoned |invalid message: half a message of 11 bytes, which needs 45, at byte 0|
    +---------+------+---------+----------------------------------------------------------------------+
    """
    if format not in format_names():
        raise ValueError(f"format must be one of {', '.join(format_names())}, got {format!r}")
    name_of(layout, auto=True)
    checked_framing(framing)
    if checked_policy(policy) != "none" and registry is None:
        raise ValueError(f"policy {policy!r} needs a registry of schemas: pass registry")
    if format in DANUBE and logged is None and df.isStreaming:
        raise ValueError("logged must be True or False for a stream, got None: later offsets are unknown")
    if encoding not in get_args(Encoding):
        raise ValueError(f"encoding must be one of {', '.join(get_args(Encoding))}, got {encoding!r}")
    if format not in ENCODED:
        known = message_format(format)
        df = with_moment(by_name(df, *known.columns), known.time)
        table = _of_rows(df, known.rows(df, FormatOptions(cluster, id_header, encoding)))
    elif format in DANUBE:
        table = _danube_rows(df, format, column, logged)
    else:
        table = _checked_sums(_iggy_rows(df, format, column, layout, topic, partition))
    if framing == "confluent":
        table = table.withColumn("schema", F.coalesce("schema", _framed_schema(F.col("payload"))))
    if registry is not None and policy != "none":
        table = _checked_schemas(table, registry, subject, policy, framing)
    return table.select(*COLUMNS)


def _of_rows(df: DataFrame, columns: dict[str, Column]) -> DataFrame:
    """Return the table of rows with one message each; a malformed row is poisoned, with the reason."""
    malformed, note = columns["malformed"], columns.get("note", null_text())
    original = columns.get("original", columns["payload"])
    if CORRUPT in df.columns:  # the column of lines that Spark's JSON reader cannot read
        malformed = F.coalesce(misfit_reason(df), malformed)
        original = F.coalesce(F.col(CORRUPT).cast("binary"), original)
    wrong = malformed.isNotNull()
    states = F.when(wrong, F.lit(_POISONED)).otherwise(F.lit(str(MessageState.AVAILABLE)))
    given = {
        **columns,
        "id": F.when(~wrong, columns["id"]),
        "state": states,
        "reason": F.when(wrong, F.concat(F.lit("invalid message: "), malformed)).otherwise(note),
        "original": F.when(wrong, original),
    }
    return df.select(*(given.get(name, F.lit(None).cast(_EMPTY.get(name, "bigint"))).alias(name) for name in COLUMNS))


def _iggy_rows(
    df: DataFrame, format: str, column: str, layout: Layout, topic: str | None, partition: int | None
) -> DataFrame:
    """Return Iggy's messages with the columns of the table."""
    none = F.lit(None).cast("string")
    if format == "iggy":
        _check_columns(df)
        rows, stream, its_topic, its_partition = df, F.col("stream"), F.col("topic"), F.col("partition")
        id, source, segment = F.col("id_text"), F.col("source"), F.col("segment")
    else:
        rows = _exploded(df, format, column, layout)
        stream, its_topic, its_partition = none, none, F.col("polled").try_cast("int")
        id, source, segment = iggy_id_to_id("id"), F.lit("iggy"), none.cast("bigint")
    topic_of = F.coalesce(F.lit(topic), its_topic)
    partition_of = F.coalesce(F.lit(partition), its_partition)
    if format != "iggy" or topic is not None or partition is not None:
        named = F.concat(
            F.lit("iggy:"),
            F.coalesce(F.concat(stream, F.lit("/")), F.lit("")),
            topic_of,
            F.coalesce(F.concat(F.lit("#"), partition_of.cast("string")), F.lit("")),
        )
        source = F.coalesce(named, source)
    return rows.select(
        id.alias("id"),
        source.alias("source"),
        topic_of.alias("topic"),
        partition_of.alias("partition"),
        segment.alias("segment"),
        "offset",
        # Layouts without states have only messages that can be consumed.
        F.coalesce("state", F.lit(str(MessageState.AVAILABLE))).alias("state"),
        "timestamp",
        "checksum",
        "checksum_ok",
        "layout",
        "headers",
        F.lit(None).cast("map<string, string>").alias("attributes"),
        F.lit(None).cast(_SCHEMA).alias("schema"),
        F.lit(None).cast("binary").alias("key"),
        "payload",
        "reason",
        "original",
    )


def _check_columns(df: DataFrame) -> None:
    """Check that a DataFrame has the columns of ``format("iggy")``."""
    held = {column.lower() for column in df.columns}
    missing = [name for name in IGGY_COLUMNS if name not in held]
    if missing:
        raise ValueError(f"a DataFrame must have the columns of format('iggy'), got none of {', '.join(missing)}")


def _exploded(df: DataFrame, format: str, column: str, layout: Layout) -> DataFrame:
    """Decode a column of Iggy's messages to the rows of ``format("iggy")``; a malformed value is a row too."""
    if format == "iggy-message":
        outcome = _outcome_of_each(column, layout)
        message = F.col("outcome.value")
        rows = df.select(F.col(quoted_name(column)).alias("raw"), outcome.alias("outcome"))
        rows = rows.select("raw", "outcome.reason", message.alias("message"))
        polled = F.lit(None).cast("string")
    else:
        function: Callable[[Any], Any] = iggy.of_json if format == "iggy-json" else iggy.of_poll(layout)
        decoded = outcomes(function, iggy.message_type(many=True), F.col(quoted_name(column)).cast("binary"))
        rows = df.select(F.col(quoted_name(column)).alias("raw"), decoded.alias("outcome"))
        # A valid response without messages gives no row, and a malformed response gives one row.
        several = F.when(F.col("outcome.reason").isNotNull(), F.array(F.lit(None))).otherwise(F.col("outcome.value"))
        rows = rows.select("raw", "outcome.reason", F.explode(several).alias("message"))
        # A response starts with its partition: four bytes in little-endian order.
        digits = F.concat(*(F.hex(F.substring(F.col("raw").cast("binary"), place, 1)) for place in (4, 3, 2, 1)))
        polled = F.conv(digits, 16, 10) if format == "iggy-poll" else F.lit(None).cast("string")
    failed = F.col("reason").isNotNull()
    return rows.select(
        "message.offset",
        F.when(failed, F.lit(_POISONED)).otherwise(F.col("message.state")).alias("state"),
        *(f"message.{name}" for name in ("timestamp", "id", "checksum", "headers", "payload", "checksum_ok", "layout")),
        "reason",
        F.when(failed, F.col("raw").cast("binary")).alias("original"),
        F.when(~failed, polled).alias("polled"),
    )


def _outcome_of_each(column: str, layout: Layout) -> Column:
    """Decode one message per row, a batch at once, to a struct of ``value`` and ``reason``."""
    import pyarrow as pa

    type = pa.struct([pa.field("value", iggy.message_type()), pa.field("reason", pa.string())])

    def decoded(values: Any) -> Any:
        rows, errors = iggy.decode_each(values, layout)
        missing = ["no message" if value is None else None for value in values.to_pylist()]
        reasons = [str(error) if error else none for error, none in zip(errors, missing, strict=True)]
        return pa.StructArray.from_arrays([rows, pa.array(reasons, pa.string())], fields=list(type))

    return arrow_column(decoded, type, quoted_name(column))


def _danube_rows(df: DataFrame, format: str, column: str, logged: bool | None) -> DataFrame:
    """Decode Danube's messages to the columns of the table."""
    function: Callable[[Any], Any] = danube.of_json if format == "danube-json" else danube.of_protobuf
    decoded = outcomes(function, danube.message_type(), F.col(quoted_name(column)).cast("binary"))
    rows = df.select(F.col(quoted_name(column)).alias("raw"), decoded.alias("outcome"))
    rows = rows.select("raw", "outcome.reason", F.col("outcome.value").alias("message"))
    offset, failed = F.col("message.msg_id.topic_offset"), F.col("reason").isNotNull()
    if logged is not None:
        has_place = F.lit(logged)
    else:
        rows = _with_reach(rows)
        has_place = F.col("reach") > 0
    fits = offset <= id_layout.OFFSET_MAX
    no_id = (
        F.when(failed, F.col("reason"))
        .when(~has_place, F.lit("no ID: a topic without a log, so all messages have offset 0"))
        .when(~fits, F.concat(F.lit("no ID: offset "), offset.cast("string"), F.lit(" has more than 48 bits")))
    )
    time = F.timestamp_millis("message.publish_time")
    source = danube.source_of(F.col("message"))
    return rows.select(
        F.when(has_place & fits, position_id(source, F.when(has_place & fits, offset), time)).alias("id"),
        F.coalesce(source, F.lit("danube")).alias("source"),
        F.col("message.msg_id.topic_name").alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("segment"),
        offset.alias("offset"),
        F.when(failed, F.lit(_POISONED)).otherwise(F.lit(str(MessageState.AVAILABLE))).alias("state"),
        time.alias("timestamp"),
        F.lit(None).cast("bigint").alias("checksum"),
        F.lit(None).cast(_HEADERS).alias("headers"),
        F.col("message.attributes").alias("attributes"),
        F.when(
            F.col("message.schema_id").isNotNull() | F.col("message.schema_version").isNotNull(),
            F.struct(F.col("message.schema_id").alias("id"), F.col("message.schema_version").alias("version")),
        ).alias("schema"),
        F.lit(None).cast("binary").alias("key"),
        "message.payload",
        no_id.alias("reason"),
        F.when(failed, F.col("raw").cast("binary")).alias("original"),
        F.lit(None).cast("string").alias("layout"),
    )


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


def _checked_sums(table: DataFrame) -> DataFrame:
    """Poison messages with a wrong checksum."""
    actual = F.crc32("payload")
    held = F.col("checksum").cast("string")
    of_payload = F.concat(F.lit("checksum must be "), actual.cast("string"), F.lit(", got "), held)
    of_message = F.concat(F.lit("checksum "), held, F.lit(" does not match the message"))
    words = F.when(F.col("layout").isin("m45", "batch24"), of_payload).otherwise(of_message)
    return _poison(table, ~F.col("checksum_ok"), words)


def _framed_schema(payload: Column) -> Column:
    """Return the schema that Confluent's framing names; NULL for a payload that is not framed."""
    is_framed = (F.octet_length(payload) >= len(frame(0, b""))) & (F.substring(payload, 1, 1) == F.unhex(F.lit("00")))
    id = digits_to_bigint(F.hex(F.substring(payload, 2, 4)))
    return F.when(is_framed, F.struct(id.alias("id"), F.lit(None).cast("bigint").alias("version")))


def _checked_schemas(
    table: DataFrame, registry: SchemaSource, subject: str | None, policy: Policy, framing: Framing
) -> DataFrame:
    """Check the payloads of decoded messages against their schemas."""
    named = F.col("topic") if subject is None else F.lit(subject)
    id, version = F.col("schema.id"), F.col("schema.version")
    judged = table.withColumn("judged", check_schema("payload", named, id, version, registry, policy, framing))
    healthy = F.col("state") != _POISONED
    warned = healthy & (F.col("judged.verdict") == "warn")
    words = F.concat_ws("; ", F.concat(F.lit("schema: "), F.col("judged.reason")), F.col("reason"))
    judged = judged.withColumn("reason", F.when(warned, words).otherwise(F.col("reason")))
    return _poison(judged, healthy & (F.col("judged.verdict") == "reject"), words)


def _poison(table: DataFrame, where: Column, words: Column) -> DataFrame:
    return table.withColumns(
        {
            "state": F.when(where, F.lit(_POISONED)).otherwise(F.col("state")),
            "reason": F.when(where, words).otherwise(F.col("reason")),
            "original": F.when(where, F.col("payload")).otherwise(F.col("original")),
        }
    )
