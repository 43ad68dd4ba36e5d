"""Convert columns between Spark and Delta tables, and check whether a batch fits a table."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns._expressions import quoted_name
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from pyspark.sql import Column, DataFrame

WRITE: Final = "msgid_write"
"""Each write has a folder ``msgid_write=UUID`` in the table, so that two writes never touch the same files."""
_PLAIN: Final = (
    T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType,
    T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_NO_PARTITION: Final = (
    T.FloatType, T.DoubleType, T.BinaryType, T.ArrayType, T.MapType, T.StructType,
)  # fmt: skip
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def delta_schema(df: DataFrame) -> Schema:
    """Return the schema of a Delta table for a DataFrame's rows; every column may be NULL.

    Raises
    ------
    TableConflict
        if a Delta table lacks such a type, or two names differ only in case.
    """
    from deltalake import Schema

    seen: dict[str, str] = {}
    for field in df.schema:
        other = seen.setdefault(field.name.lower(), field.name)
        if other is not field.name:
            raise TableConflict(
                f"cannot write the columns {other!r} and {field.name!r}: their names differ in case only"
            )
        if field.name.lower() == WRITE:
            raise TableConflict(f"cannot write a column named {field.name!r}: the table's folders have that name")
    return Schema.from_json(json.dumps(_nullable(df.schema, ()).jsonValue()))


def _nullable(type: Any, place: tuple[str, ...]) -> Any:
    """Return a type whose parts may all be NULL, without metadata."""
    if isinstance(type, T.StructType):
        fields = [T.StructField(field.name, _nullable(field.dataType, (*place, field.name))) for field in type]
        return T.StructType(fields)
    if isinstance(type, T.ArrayType):
        return T.ArrayType(_nullable(type.elementType, (*place, "element")))
    if isinstance(type, T.MapType):
        return T.MapType(_nullable(type.keyType, (*place, "key")), _nullable(type.valueType, (*place, "value")))
    if isinstance(type, (T.CharType, T.VarcharType)):
        return T.StringType()
    if (isinstance(type, T.StringType) and type == T.StringType()) or isinstance(type, _PLAIN):
        return type
    raise TableConflict(
        f"cannot write column {'.'.join(place)!r} to a Delta table: it lacks the type {type.simpleString()}; cast it, "
        "for example to string"
    )


def spark_schema(table: DeltaTable) -> T.StructType:
    """Return the columns of a Delta table as a Spark schema."""
    schema: T.StructType = T.StructType.fromJson(json.loads(table.schema().to_json()))
    return schema


def check_partitions(df: DataFrame, partition_by: tuple[str, ...], path: str) -> None:
    """Check that the partition columns exist, and that their values can be written as text.

    Raises
    ------
    TableConflict
        if not.
    """
    for name in partition_by:
        if name not in df.columns:
            raise TableConflict(f"partition_by must name columns of the rows for {path}, got {name!r}")
        type = df.schema[name].dataType
        # deltalake reads and writes the decimal -0.25 as the text "0.-25".
        if isinstance(type, _NO_PARTITION) or (isinstance(type, T.DecimalType) and type.scale > 0):
            kind = type.simpleString()
            raise TableConflict(f"partition_by must name columns of a plain type, got {name!r} of type {kind}")
    if partition_by and len(partition_by) == len(df.columns):
        raise TableConflict("partition_by must leave at least one column, got all of them")


def check_fits(df: DataFrame, table: DeltaTable, partition_by: tuple[str, ...], path: str) -> None:
    """Check that rows may be appended to a table unchanged.

    Raises
    ------
    TableConflict
        if a column or its type differs, or the table has features that only a Delta engine supports.
    """
    metadata = table.metadata()
    if list(partition_by) != list(metadata.partition_columns):
        now = tuple(metadata.partition_columns)
        raise TableConflict(f"cannot write to {path}: partition_by must be the table's {now}, got {partition_by}")
    held = spark_schema(table)
    ours = {field.name: field.dataType for field in _nullable(df.schema, ())}
    theirs = {field.name: _nullable(field.dataType, (field.name,)) for field in held}
    for name, type in ours.items():
        if name not in theirs:
            raise TableConflict(f"cannot write column {name!r} to {path}: the table has {', '.join(theirs)}")
        if type != theirs[name]:
            raise TableConflict(
                f"cannot write column {name!r} to {path}: it must be {theirs[name].simpleString()}, got "
                f"{type.simpleString()}"
            )
    for name in (field.name for field in held if not field.nullable):
        raise TableConflict(
            f"cannot write to {path}: its column {name!r} is NOT NULL, which only a Delta engine checks"
        )
    mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
    if mapped or any(name.startswith("delta.constraints.") for name in metadata.configuration):
        raise TableConflict(
            f"cannot write to {path}: it has constraints or mapped columns, which a Delta engine handles"
        )
    if any(key.startswith("delta.") for field in held for key in field.metadata):
        raise TableConflict(
            f"cannot write to {path}: it has generated columns or invariants, which a Delta engine handles"
        )


def with_partition_texts(df: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """Replace a partition column of type timestamp by its microseconds, which do not depend on a time zone."""
    for name in partition_by:
        if isinstance(df.schema[name].dataType, T.TimestampType):
            df = df.withColumn(name, F.unix_micros(quoted_name(name)))
    return df


def partition_column(name: str, type: T.DataType) -> Column:
    """Return the values of a partition column, read as text, that `with_partition_texts` has written."""
    text = F.col(quoted_name(name))
    if isinstance(type, T.TimestampType):
        return F.timestamp_micros(text.cast("bigint")).alias(name)
    return text.cast(type).alias(name)


def partition_values(folders: list[str], types: dict[str, T.DataType]) -> dict[str, str | None]:
    """Return the partition values in the names of a file's folders, in the format of a Delta log.

    >>> partition_values(["at=1500000", "k=a%2Fb"], {"at": T.TimestampType(), "k": T.StringType()})
    {'at': '1970-01-01 00:00:01.500000', 'k': 'a/b'}
    """
    values: dict[str, str | None] = {}
    for folder in folders:
        name, _, text = folder.partition("=")
        name, value = unquote(name), None if text == _NULL else unquote(text)
        if value is not None and isinstance(types[name], T.TimestampType):
            value = (_EPOCH + timedelta(microseconds=int(value))).strftime("%Y-%m-%d %H:%M:%S.%f")
        values[name] = value
    return values
