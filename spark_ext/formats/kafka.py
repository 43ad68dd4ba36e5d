"""Kafka rows as the columns of the message table; `msgid.kafka.Record` is the same in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

from msgid import layout
from msgid.kafka import CLUSTER, DEAD, FIRST_PLACE, ID_HEADER, NO_FIRST_ID, NO_ID, UUID_LENGTH, HeaderType
from spark_ext.columns.building import compiled_apart
from spark_ext.columns.column_types import integer_column, quoted_name, type_of
from spark_ext.columns.identity import header_identity, uuid_of_digits
from spark_ext.columns.moment_columns import moment_column
from spark_ext.formats._row_columns import (
    bound,
    bytes_column,
    position_of,
    require,
    text_of,
    with_position,
)
from spark_ext.formats.message_formats import ENCODING, FormatOption, MessageFormat

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pyspark.sql import Column, DataFrame

    from msgid.messages import Encoding


class _Kafka(MessageFormat):
    name = "kafka"
    columns = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
    time = "timestamp"
    pairs = ("headers",)
    options = (
        FormatOption("cluster", CLUSTER, "Kafka: the name of the cluster, part of each ID."),
        FormatOption("id_header", ID_HEADER, "Kafka: the header with a message's own ID.", nullable=True),
        FormatOption(
            "id_header_type", "id", "Kafka: whether 16 bytes in that header are a UUID.", choices=get_args(HeaderType)
        ),
        ENCODING,
    )

    def decode(self, df: DataFrame, options: SimpleNamespace) -> DataFrame:
        """Return the rows with their headers as bytes and with the header of the ID, each computed once per row."""
        df = super().decode(df, options)
        headers, broken = _headers(df, options.encoding)
        df = df.withColumns({_HEADERS: headers, _BROKEN: broken})
        headers = F.col(_HEADERS)
        # No header has the name NULL. A header without a value is empty, and so is not an ID.
        last = F.try_element_at(F.filter(headers, lambda h: h["key"] == F.lit(options.id_header)), F.lit(-1))
        df = df.withColumn(_LAST, last)
        df = df.withColumn(_HEADER, F.when(F.col(_LAST).isNotNull(), F.coalesce(F.col(_LAST)["value"], F.lit(b""))))
        df = df.withColumn(_OWN, _own_id(F.col(_HEADER), options.id_header_type))
        df = df.withColumn(_DEAD, compiled_apart(F.when(F.col(_OWN).isNull(), _no_first_id(headers))))
        if not set(_NEEDED) <= set(df.columns):
            return df  # `rows` names the missing column
        return with_position(df, _source(df, options.cluster), "offset", "timestamp", _OWN)

    def rows(self, df: DataFrame, options: SimpleNamespace) -> dict[str, Column]:
        require(df, self.name, *_NEEDED)
        return _rows(df, options.cluster, options.id_header, options.encoding)


FORMATS: Final = (_Kafka(),)
_NEEDED: Final = ("topic", "partition", "offset", "timestamp", "value")
_HEADERS, _BROKEN, _LAST, _HEADER = "_msgid_headers", "_msgid_broken", "_msgid_last", "_msgid_header"
_OWN, _DEAD = "_msgid_own", "_msgid_dead"
"""Columns that `decode` adds. Spark computes a column of a query below once, and an expression at each of its uses."""
_PAIR: Final = {"key": StringType(), "value": BinaryType()}


def _rows(df: DataFrame, cluster: str, header: str | None, encoding: Encoding) -> dict[str, Column]:
    topic, partition = text_of(df, "topic"), integer_column(df, "partition").try_cast("int")
    offset, time = integer_column(df, "offset"), moment_column(df, "timestamp")
    key_type, value_type = type_of(df, "key"), type_of(df, "value")
    key = bytes_column(F.col("`key`"), key_type, encoding) if key_type else F.lit(None).cast("binary")
    value = bytes_column(F.col("`value`"), value_type, encoding)
    headers, broken, own = F.col(_HEADERS), F.col(_BROKEN), F.col(_OWN)
    source = _source(df, cluster)
    fits = offset.between(0, layout.OFFSET_MAX)
    malformed = F.coalesce(
        F.when(topic.isNull() | (topic == ""), F.lit("no topic")),
        F.when(partition.isNull() | (partition < 0), F.lit("no valid partition")),
        F.when(~F.coalesce(fits, F.lit(False)), F.lit(f"no offset of 0 to {layout.OFFSET_MAX}")),
        F.when(time.isNull(), F.lit("no valid timestamp")),
        F.when(value.isNull() & F.col("`value`").isNotNull(), F.lit("value: invalid base64")),
        F.when(key.isNull() & F.col("`key`").isNotNull(), F.lit("key: invalid base64")) if key_type else F.lit(None),
        F.when(broken, F.lit("headers: invalid base64")),
        F.col(_DEAD),
    )
    unknown = F.when(own.isNull() & F.col(_HEADER).isNotNull(), F.lit(NO_ID.format(header=header)))
    good = malformed.isNull()
    return {
        "id": F.when(good, F.coalesce(own, position_of())),
        "source": F.coalesce(source, F.lit(f"kafka:{cluster}")),
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": time,
        "headers": _as_map(headers),
        "key": key,
        "payload": value,
        "malformed": malformed,
        "note": unknown,
        "original": F.coalesce(value, text_of(df, "value").cast("binary")),
    }


def _own_id(header: Column, header_type: HeaderType) -> Column:
    """Return the ID or UUID that a header holds, as `msgid.kafka.Record.message_id` does; else NULL."""
    own = header_identity(header)
    if header_type == "uuid":
        own = F.when(F.octet_length(header) == UUID_LENGTH, uuid_of_digits(F.hex(header))).otherwise(own)
    return own


def _no_first_id(headers: Column) -> Column:
    """Return why a dead letter is refused, as `msgid.kafka.Record.message_id` does; NULL for any other record."""

    def last(name: str) -> Column:
        named = F.filter(headers, lambda header: header["key"] == F.lit(f"{DEAD}{name}"))
        value = F.try_element_at(named, F.lit(-1))
        return F.when(value.isNull(), F.lit("?")).otherwise(F.coalesce(value["value"].cast("string"), F.lit("")))

    place = F.concat_ws("/", *map(last, FIRST_PLACE))
    words = F.concat(F.lit(f"{NO_FIRST_ID}. Its first place is '"), place, F.lit("'"))
    return F.when(F.exists(headers, lambda header: header["key"].startswith(DEAD)), words)


def _source(df: DataFrame, cluster: str) -> Column:
    partition = integer_column(df, "partition").try_cast("int").cast("string")
    return F.concat(F.lit(f"kafka:{cluster}/"), text_of(df, "topic"), F.lit("/"), partition)


def _headers(df: DataFrame, encoding: Encoding) -> tuple[Column, Column]:
    """Return the headers as an array of structs of ``key`` and ``value`` (binary), and whether a value is malformed."""
    type = type_of(df, "headers")
    column = F.col(quoted_name("headers"))
    if type is None or type.typeName() == "void":
        return F.lit(None).cast("array<struct<key: string, value: binary>>"), F.lit(False)
    element = type.elementType if isinstance(type, ArrayType) else None
    if not isinstance(element, StructType) or not {"key", "value"} <= set(element.names):
        raise ValueError(f"headers must be an array of structs of key and value, got {type.simpleString()}")
    value_type = element["value"].dataType

    if {field.name: field.dataType for field in element} == _PAIR:  # as Spark's Kafka source gives them
        return column, F.lit(False)

    def pair(header: Column) -> Column:
        value = bytes_column(header["value"], value_type, encoding)
        return F.struct(header["key"].cast("string").alias("key"), value.alias("value"))

    headers = F.transform(column, pair)
    count, given = (F.size(F.filter(headers, lambda h: h["value"].isNotNull())) for headers in (headers, column))
    return headers, count < given


def _as_map(headers: Column) -> Column:
    """Return headers as the table's map. A repeated name gets ``#2``, ``#3`` and so on, so that no value is lost.

    If another header has such a name already, each name starts with its place: ``1#``, ``2#`` and so on.
    """

    def numbered(headers: Column) -> Column:
        def name(header: Column, place: Column) -> Column:
            before = F.size(F.filter(F.slice(headers, 1, place), lambda other: other["key"].eqNullSafe(header["key"])))
            own = F.coalesce(header["key"], F.lit(""))
            return F.when(before > 0, F.concat(own, F.lit("#"), (before + 1).cast("string"))).otherwise(own)

        return F.transform(headers, name)

    def unique(names: Column) -> Column:
        placed = F.transform(names, lambda name, place: F.concat((place + 1).cast("string"), F.lit("#"), name))
        return F.when(F.size(F.array_distinct(names)) == F.size(names), names).otherwise(placed)

    values = F.transform(headers, lambda h: F.struct(F.lit("raw").alias("kind"), h["value"].alias("value")))
    names = headers["key"]
    are_plain = F.size(F.array_distinct(F.array_compact(names))) == F.size(names)
    # A lambda is interpreted, so most rows do without: their names are different and not NULL.
    return F.when(are_plain, F.map_from_arrays(names, values)).otherwise(
        F.map_from_arrays(bound(bound(headers, numbered), unique), values)
    )
