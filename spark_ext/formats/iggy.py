"""Iggy's message formats: encoded messages, poll responses, JSON, and the rows of ``format("iggy")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from pyspark.sql import functions as F

from msgid.errors import InvalidMessage
from msgid.iggy.json_form import partition_and_messages
from msgid.iggy.log import encode
from msgid.iggy.message import UuidOrder, check_order
from msgid.iggy.poll import decode_poll
from msgid.iggy.table import decode_table
from msgid.iggy.wire import AUTO, LAYOUTS, Layout
from msgid.messages import MessageState
from spark_ext.columns.column_types import quoted_name
from spark_ext.columns.id_text import VERSION_1_DIGITS
from spark_ext.columns.identity import uuid_of_digits
from spark_ext.columns.reading import id_from_iggy_id
from spark_ext.columns.udfs import arrow_column, outcomes
from spark_ext.formats._row_columns import opened
from spark_ext.formats.message_formats import EncodedFormat, FormatOption, MessageFormat

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    import pyarrow
    from pyspark.sql import Column, DataFrame

    from spark_ext.formats.message_formats import MessageFiles


def message_type(*, many: bool = False) -> pyarrow.DataType:
    """Return the type of a message, a row of `msgid.iggy.table.schema`, or of an array of them with their partition."""
    import pyarrow

    from msgid.iggy.table import schema

    fields = list(schema())
    if many:
        return pyarrow.list_(pyarrow.struct([*fields, pyarrow.field("partition_id", pyarrow.int64())]))
    return pyarrow.struct(fields)


def decode_each(values: Any, layout: Layout) -> tuple[Any, list[InvalidMessage | None]]:
    """Decode one message per value; return the structs, NULL for malformed values, and the error of each value."""
    import numpy as np
    import pyarrow as pa

    raws: list[bytes | None] = values.to_pylist()
    present = [raw for raw in raws if raw is not None]
    decoded = decode_table(b"".join(present), layout)
    starts = np.cumsum([0, *map(len, present)])
    if decoded.error is None and not decoded.malformed and np.array_equal([*decoded.positions, decoded.length], starts):
        # The usual case: no value is malformed, and all values were decoded at once.
        rows = pa.StructArray.from_arrays(decoded.table.columns, fields=list(decoded.table.schema))
        if len(present) < len(raws):
            numbers = iter(range(len(present)))
            rows = rows.take(pa.array([None if raw is None else next(numbers) for raw in raws], pa.int64()))
        return rows, [None] * len(raws)
    read: list[dict[str, Any] | None] = []
    errors: list[InvalidMessage | None] = []
    for raw in raws:
        row, wrong = (None, None) if raw is None else _one_or_error(raw, layout)
        read.append(row)
        errors.append(wrong)
    layouts = {row["layout"] for row in read if row is not None}
    if layout == AUTO and len(layouts) == 1:
        # A message with a wrong checksum is decoded in the layout of the others, to get an exact reason.
        (known,) = layouts
        for number, raw in enumerate(raws):
            if raw is not None and errors[number] is not None:
                read[number], errors[number] = _one_or_error(raw, known)
    return pa.array(read, message_type()), errors


def _one_or_error(raw: bytes, layout: Layout) -> tuple[dict[str, Any] | None, InvalidMessage | None]:
    try:
        return _one(raw, layout), None
    except InvalidMessage as error:
        return None, error


def _one(raw: bytes, layout: Layout) -> dict[str, Any]:
    rows = _rows(raw, layout)
    if len(rows) != 1:
        raise InvalidMessage(f"must be one message, got {len(rows)}", 0)
    return rows[0]


def _rows(raw: bytes, layout: Layout) -> list[dict[str, Any]]:
    decoded = decode_table(raw, layout)
    if decoded.error is not None:
        raise decoded.error
    if decoded.malformed:
        raise decoded.malformed[0].error
    rows: list[dict[str, Any]] = decoded.table.to_pylist()
    return rows


def of_poll(layout: Layout) -> Callable[[bytes], list[dict[str, Any]]]:
    """Return the function that decodes a poll response to rows."""

    def read(raw: bytes) -> list[dict[str, Any]]:
        response = decode_poll(raw, layout)
        read_as: Any = response.layout
        rows = [] if read_as is None else _rows(raw[response.head :], read_as)
        return [{**row, "partition_id": response.partition} for row in rows]

    return read


def of_json(text: bytes) -> list[dict[str, Any]]:
    """Decode JSON to rows: a message, an array of messages, or a response to a poll with an array ``messages``."""
    rows = []
    partition, messages = partition_and_messages(text)
    for message in messages:
        layout: Any = message.layout
        rows += [{**row, "partition_id": partition} for row in _rows(encode(message, layout), layout)]
    return rows


# --- The message formats ------------------------------------------------------------------------------------------

IGGY_COLUMNS: Final = (
    *("source", "stream", "topic", "partition", "segment", "offset", "state", "timestamp", "id_text", "checksum"),
    *("checksum_ok", "layout", "headers", "payload", "reason", "original"),
)
"""The columns of ``format("iggy")`` that `messages` reads."""
_UNCHANGED: Final = ("segment", "offset", "timestamp", "checksum", "headers", "payload", "layout")
_AVAILABLE, _POISONED = str(MessageState.AVAILABLE), str(MessageState.POISONED)
_OPTIONS: Final = (
    FormatOption("layout", AUTO, "Iggy: the layout.", (AUTO, *LAYOUTS)),
    FormatOption("topic", None, "Iggy: the topic, if the path does not contain it."),
    FormatOption("partition", None, "Iggy: the partition, if the path does not contain it.", type=int),
    FormatOption("version_1", False, "Iggy: the IDs of the messages are version-1 IDs, not UUIDs.", type=bool),
    FormatOption("uuid", "bytes", "Iggy: how producers write a UUID, as bytes or a number.", get_args(UuidOrder)),
)


class _Segments(MessageFormat):
    """The rows of ``format("iggy")``."""

    name = "iggy"
    columns = IGGY_COLUMNS
    time = "timestamp"
    options = _OPTIONS

    def read(self, files: MessageFiles, options: SimpleNamespace) -> DataFrame:
        from spark_ext.formats._iggy_files import segments
        from spark_ext.formats.iggy_source import IggyDataSource

        segments(files.path)  # raises OSError if they are missing
        return files.source(IggyDataSource, layout=options.layout, columns=",".join(IGGY_COLUMNS))

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        present = {column.lower() for column in df.columns}
        missing = [name for name in IGGY_COLUMNS if name not in present]
        if missing:
            raise ValueError(f"a DataFrame must have the columns of format('iggy'), got none of {', '.join(missing)}")
        return df

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        return _table_columns(options)


class _Message(EncodedFormat):
    """One encoded message per value."""

    name = "iggy-message"
    options = (*EncodedFormat.options, *_OPTIONS)

    def opened(self, df: DataFrame, column: str, layout: Layout) -> DataFrame:
        """Return the ``raw`` values, the ``message`` or the ``reason`` of each, and the ``partition``."""
        rows = opened(df, column, _outcome_of_each(column, layout))
        return rows.withColumn("partition", F.lit(None).cast("int"))

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        failed, none = F.col("reason").isNotNull(), F.lit(None)
        number = F.coalesce(F.lit(options.partition), F.when(~failed, F.col("partition"))).cast("string")
        source = F.coalesce(F.concat(F.lit("iggy#"), number), F.lit("iggy"))
        return self.opened(df, options.column or "value", options.layout).select(
            source.alias("source"),
            none.cast("string").alias("stream"),
            none.cast("string").alias("topic"),
            F.when(~failed, F.col("partition")).alias("partition"),
            none.cast("bigint").alias("segment"),
            F.when(failed, F.lit(_POISONED)).otherwise(F.col("message.state")).alias("state"),
            id_from_iggy_id("message.id").alias("id_text"),
            *(f"message.{name}" for name in ("offset", "timestamp", "checksum", "checksum_ok", "layout")),
            *(f"message.{name}" for name in ("headers", "payload")),
            "reason",
            F.when(failed, F.col("raw").cast("binary")).alias("original"),
        )

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        return _table_columns(options)


class _Json(_Message):
    """A message, an array of messages, or a poll response as JSON."""

    name, is_text = "iggy-json", True

    def opened(self, df: DataFrame, column: str, layout: Layout) -> DataFrame:
        return _exploded(df, column, of_json)


class _Poll(_Message):
    """One poll response per value."""

    name = "iggy-poll"

    def opened(self, df: DataFrame, column: str, layout: Layout) -> DataFrame:
        return _exploded(df, column, of_poll(layout))


def _exploded(df: DataFrame, column: str, function: Callable[[Any], Any]) -> DataFrame:
    """Decode values of several messages. A response without messages gives no row, a malformed one gives one."""
    values = F.col(quoted_name(column)).cast("binary")
    rows = opened(df, column, outcomes(function, message_type(many=True), values))
    several = F.when(F.col("reason").isNotNull(), F.array(F.lit(None))).otherwise(F.col("message"))
    exploded = rows.select("raw", "reason", F.explode(several).alias("message"))
    return exploded.withColumn("partition", F.col("message.partition_id").try_cast("int"))


def _outcome_of_each(column: str, layout: Layout) -> Column:
    """Decode one message per row, a batch at once, to a struct of ``value`` and ``reason``."""
    import pyarrow as pa

    type = pa.struct([pa.field("value", message_type()), pa.field("reason", pa.string())])

    def decoded(values: Any) -> Any:
        rows, errors = decode_each(values, layout)
        missing = ["no message" if value is None else None for value in values.to_pylist()]
        reasons = [str(error) if error else none for error, none in zip(errors, missing, strict=True)]
        return pa.StructArray.from_arrays([rows, pa.array(reasons, pa.string())], fields=list(type))

    return arrow_column(decoded, type, quoted_name(column))


def _table_columns(options: SimpleNamespace) -> dict[str, Column]:
    """Return the columns of the message table; a message with a wrong checksum is poisoned."""
    topic = F.coalesce(F.lit(options.topic), F.col("topic"))
    partition = F.coalesce(F.lit(options.partition), F.col("partition"))
    source, checksum = F.col("source"), F.col("checksum").cast("string")
    if options.topic is not None or options.partition is not None:
        stream, number = F.concat("stream", F.lit("/")), F.concat(F.lit("#"), partition.cast("string"))
        parts = (F.lit("iggy:"), F.coalesce(stream, F.lit("")), topic, F.coalesce(number, F.lit("")))
        source = F.coalesce(F.concat(*parts), source)
    of_payload = F.concat(F.lit("checksum must be "), F.crc32("payload").cast("string"), F.lit(", got "), checksum)
    of_message = F.concat(F.lit("checksum "), checksum, F.lit(" does not match the message"))
    words = F.when(F.col("layout").isin("m45", "batch24"), of_payload).otherwise(of_message)
    wrong = F.coalesce(~F.col("checksum_ok"), F.lit(False))
    missing = F.col("offset").isNull() & F.col("reason").isNull()
    # Layouts without states have only messages that can be consumed.
    state = F.coalesce("state", F.lit(_AVAILABLE))
    id = F.col("id_text")
    if check_order(options.uuid, options.version_1) == "number":
        id = uuid_of_digits(F.regexp_replace(id, "-", ""), "number")
    elif options.version_1:
        id = F.concat(F.lit(VERSION_1_DIGITS), F.upper(F.regexp_replace(id, "-", "")))
    return {
        "id": id,
        "source": source,
        "topic": topic,
        "partition": partition,
        "state": F.when(wrong | missing, F.lit(_POISONED)).otherwise(state),
        "reason": F.when(wrong, words).when(missing, F.lit("no message")).otherwise(F.col("reason")),
        "original": F.when(wrong, F.col("payload")).otherwise(F.col("original")),
        **{name: F.col(name) for name in _UNCHANGED},
    }


FORMATS: Final = (_Segments(), _Message(), _Poll(), _Json())
