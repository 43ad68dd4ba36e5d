"""`messages`: one table of the messages of any format.

Every input message is a row. A message that is malformed, or fails its checksum or its schema, is ``poisoned``, with
the reason and its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from msgid.messages import MessageState
from msgid.schemas.validation import Framing, Policy, SchemaSource, checked_framing, checked_policy, frame
from msgid.schemas.validation import check_schema as check
from msgid.shared import known_tables
from spark_ext._arguments import check_dataframe
from spark_ext.columns.building import compiled_apart, digits_to_bigint, null_text
from spark_ext.columns.reasons import CORRUPT, misfit_reason
from spark_ext.columns.udfs import arrow_column
from spark_ext.formats.message_formats import format_options, message_format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from spark_ext.columns.column_types import ColumnOrName

_MALFORMED: Final = "_msgid_malformed"
_POISONED: Final = str(MessageState.POISONED)


def messages(
    df: DataFrame,
    format: str = "iggy",
    *,
    registry: SchemaSource | None = None,
    subject: str | None = None,
    policy: Policy = "none",
    framing: Framing = "none",
    **options: Any,
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
    registry : msgid.schemas.SchemaSource, optional
        source of the messages' schemas; required for a policy other than ``none``.
    subject : str, optional
        subject that the schemas must have. Default: the topic.
    policy : str
        check of schemas: ``none``, ``warn`` (a failure is noted as the reason) or ``enforce`` (it poisons the message).
    framing : str
        ``confluent`` if each payload begins with a zero byte and its schema's ID, which becomes the column ``schema``.
    **options
        the options of the format; those of other formats are ignored:

        - ``column``: column of encoded messages; not for ``iggy`` and the formats with one message per row. Default:
          ``value``.
        - ``layout``: layout of Iggy's bytes, one of `msgid.iggy.LAYOUTS`. Default: found by checksum.
        - ``topic``: Iggy's topic, which its messages do not contain. Default: the topic in the path of the segment
          file.
        - ``partition``: Iggy's partition. Default: the partition in the path of the segment file, or in the poll
          response.
        - ``version_1``: whether the IDs in Iggy's messages are version-1 IDs, whose bytes do not tell it. Default: they
          are UUIDs.
        - ``uuid``: ``number`` if Iggy's producers pass a UUID as a number, as those in Java, Node.js and over HTTP do.
          Default: ``bytes``.
        - ``logged``: whether Danube's topics have a log. Without a log all messages have offset 0, and their ``id`` is
          NULL. Default: a topic has a log if one of its offsets is above 0. Required for a stream.
        - ``cluster``: Kafka: name of the cluster, which is part of each source name. Default: ``kafka``.
        - ``id_header``: Kafka: name of the header that may hold a message's own ID or UUID. Without it, the ID is
          `position_id` of source, offset and timestamp. Default: ``message_id``. None ignores the headers. RocketMQ:
          the ID is the property ``UNIQ_KEY``, or else the `position_id`.
        - ``id_header_type``: Kafka: ``uuid`` if 16 bytes in that header are a UUID. Default: ``id``, they are not read.
        - ``encoding``: Kafka and RocketMQ: how text in a key, value, header or body encodes bytes, ``utf-8`` or
          ``base64``. Default: ``utf-8``. Spark writes binary columns to JSON as base64. Timestamps in text must have an
          offset from UTC; integers and digits are milliseconds since 1970.

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
    >>> good = iggy.Message.new(b"hello", id=7, offset=3, layout="m45")
    >>> raws = [(iggy.encode(good, "m45"),), (iggy.encode(replace(good, checksum=1), "m45"),), (b"half a mess",)]
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
    check_dataframe(df)
    known = message_format(format)
    unknown = next((name for name in options if name not in format_options()), None)
    if unknown is not None:
        raise TypeError(f"messages() got an unexpected keyword argument {unknown!r}")
    chosen = known.chosen(options)
    checked_framing(framing)
    check_policy(policy, registry)
    df = known.decode(df, chosen)
    columns = known.rows(df, chosen)
    if "malformed" in columns:
        # Spark computes a column of a query below once, and an expression at each of its uses.
        df = df.withColumn(_MALFORMED, compiled_apart(columns["malformed"]))
        columns = _judged(df, {**columns, "malformed": F.col(_MALFORMED)})
    types = known_tables.MESSAGES.types
    table = df.select(*(columns.get(name, F.lit(None).cast(type)).alias(name) for name, type in types.items()))
    if framing == "confluent":
        table = table.withColumn("schema", F.coalesce("schema", _framed_schema(F.col("payload"))))
    if registry is not None and policy != "none":
        table = _checked_schemas(table, registry, subject, policy, framing)
    return table.select(*types)


def check_schema(
    payload: ColumnOrName,
    subject: ColumnOrName,
    schema_id: ColumnOrName,
    schema_version: ColumnOrName,
    registry: SchemaSource,
    policy: Policy = "enforce",
    framing: Framing = "none",
) -> Column:
    """Check payloads against the schemas that their messages name, as `msgid.schemas.check_schema` does.

    An Arrow UDF: it needs a Python worker. Each worker gets a copy of the registry as it is at the call.

    Parameters
    ----------
    payload : Column or str
        Binary.
    subject : Column or str
        Text: the subject that the schema must belong to.
    schema_id : Column or str
        Integers; NULL where a message does not name a schema.
    schema_version : Column or str
        Integers; NULL where a message does not name a version.
    registry : msgid.schemas.SchemaSource
        Schemas by ID: a `msgid.schemas.SchemaRegistry`, or the result of `msgid.schemas.from_lookup` or
        `msgid.schemas.from_confluent`.
    policy : str
        ``none``, ``warn`` or ``enforce``.
    framing : str
        ``confluent`` if each payload begins with a zero byte and the schema ID (u32, big-endian). Default: ``none``.

    Returns
    -------
    Column
        A struct of ``verdict`` (``accept``, ``warn`` or ``reject``) and ``reason``; NULL where the payload is NULL.

    Examples
    --------
    >>> from msgid.schemas import SchemaRegistry
    >>> registry = SchemaRegistry()
    >>> schema = registry.register("events", '{"type": "integer"}')
    >>> df = spark.createDataFrame([(b"1", "events", 1, 1), (b"{}", "events", 1, 1)], ["p", "t", "i", "v"])
    >>> df.select(check_schema("p", "t", "i", "v", registry).alias("c")).select("c.*").show(truncate=False)
    +-------+------------------------------------------+
    |verdict|reason                                    |
    +-------+------------------------------------------+
    |accept |NULL                                      |
    |reject |payload b'{}': {} is not of type "integer"|
    +-------+------------------------------------------+
    """
    import pyarrow as pa

    checked_policy(policy)
    checked_framing(framing)
    type = pa.struct([pa.field("verdict", pa.string()), pa.field("reason", pa.string())])

    def judged(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        verdicts = [
            None if held is None else check(held, registry, name, id, version, policy=policy, framing=framing)._asdict()
            for held, name, id, version in rows
        ]
        return pa.array(verdicts, type)

    return arrow_column(judged, type, payload, subject, schema_id, schema_version).alias("check_schema")


def check_policy(policy: Policy, registry: object) -> None:
    """Raise ValueError if a policy is unknown, or if it needs a registry and ``registry`` is None."""
    if checked_policy(policy) != "none" and registry is None:
        raise ValueError(f"policy {policy!r} needs a registry of schemas: pass registry")


def _judged(df: DataFrame, columns: dict[str, Column]) -> dict[str, Column]:
    """Return the columns with the state of each row: a malformed row is poisoned, with the reason and without an ID."""
    malformed, note = columns["malformed"], columns.get("note", null_text())
    original = columns.get("original", columns["payload"])
    if CORRUPT in df.columns:  # the column of lines that Spark's JSON reader cannot read
        malformed = F.coalesce(misfit_reason(df), malformed)
        original = F.coalesce(F.col(CORRUPT).cast("binary"), original)
    wrong = malformed.isNotNull()
    return {
        **columns,
        "id": F.when(~wrong, columns["id"]),
        "state": F.when(wrong, F.lit(_POISONED)).otherwise(F.lit(str(MessageState.AVAILABLE))),
        "reason": F.when(wrong, F.concat(F.lit("invalid message: "), malformed)).otherwise(note),
        "original": F.when(wrong, original),
    }


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
