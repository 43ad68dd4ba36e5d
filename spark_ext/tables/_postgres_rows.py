"""Rows as PostgreSQL stores them: the types of columns, one spelling of a key, and which values it cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._identity import identity
from spark_ext.columns._moments import is_within_years

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REASON: Final = "msgid_reason"
"""The column with the reason why a row cannot be stored."""
_TYPES: Final[tuple[tuple[Any, str], ...]] = (
    (T.StringType, "text"),
    (T.LongType, "bigint"),
    (T.IntegerType, "integer"),
    (T.ShortType, "smallint"),
    (T.ByteType, "smallint"),
    (T.BooleanType, "boolean"),
    (T.DoubleType, "double precision"),
    (T.FloatType, "real"),
    (T.BinaryType, "bytea"),
    (T.DateType, "date"),
    (T.TimestampType, "timestamp with time zone"),
    (T.TimestampNTZType, "timestamp without time zone"),
    ((T.ArrayType, T.MapType, T.StructType), "jsonb"),
)
_NUL: Final = "\0"
_AS_JSON: Final = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own format has milliseconds in the session's time zone."""
_NUL_IN_JSON: Final = r"(?<!\\)(?:\\\\)*\\u0000"


def column_types(schema: T.StructType) -> dict[str, str]:
    """Return the PostgreSQL type of each column.

    Raises
    ------
    ValueError
        if PostgreSQL lacks a type, or a column has the name of the added one.

    Examples
    --------
    >>> column_types(T.StructType.fromDDL("id string, amount decimal(10, 2), tags array<string>"))
    {'id': 'text', 'amount': 'numeric(10,2)', 'tags': 'jsonb'}
    """
    types: dict[str, str] = {}
    for field in schema:
        if field.name == REASON:
            raise ValueError(f"the rows must not have a column {REASON!r}: rename it")
        if isinstance(field.dataType, T.DecimalType):
            types[field.name] = f"numeric({field.dataType.precision},{field.dataType.scale})"
            continue
        found = [name for kinds, name in _TYPES if isinstance(field.dataType, kinds)]
        if not found:
            raise ValueError(
                f"cannot store column {field.name!r} in PostgreSQL: it lacks the type "
                f"{field.dataType.simpleString()}; cast it, for example to string"
            )
        types[field.name] = found[0]
    return types


def with_canonical_key(df: DataFrame, key: str) -> DataFrame:
    """Return the rows with the key in its canonical form if it is text or binary: one spelling per ID."""
    column, type = F.col(quoted_name(key)), df.schema[key].dataType
    if isinstance(type, T.StringType):
        return df.withColumn(key, F.coalesce(identity(column), column.cast("string")))
    if isinstance(type, T.BinaryType):
        text = identity(column)  # the hex digits of an ID, or 0x and the hex digits of other bytes
        return df.withColumn(key, F.when(text.startswith("0x"), column).otherwise(F.coalesce(F.unhex(text), column)))
    return df


def prepared(df: DataFrame, key: str) -> DataFrame:
    """Return the rows with nested values as JSON, and a last column with the reason why a row cannot be stored.

    The reason is NULL for other rows. For a row that cannot be stored, all values are NULL, and the last column has the
    reason and, on the next line, the row as JSON. The columns are named by their positions, because `mapInArrow` does
    not accept a name with a dot.
    """
    columns: list[Column] = []
    problems: list[Column] = [F.when(F.col(quoted_name(key)).isNull(), F.lit(f"the key {key!r} is NULL"))]
    for field in df.schema:
        column = F.col(quoted_name(field.name))
        if isinstance(field.dataType, (T.ArrayType, T.MapType, T.StructType)):
            problems.append(_when(field.name, _has_broken_text(column, field.dataType), "is not UTF-8"))
            column = F.to_json(_with_text_keys(column, field.dataType), _AS_JSON)
            problems.append(_when(field.name, column.rlike(_NUL_IN_JSON), "has a NUL character"))
        elif isinstance(field.dataType, T.StringType):
            problems.append(_when(field.name, F.contains(column, F.lit(_NUL)), "has a NUL character"))
            problems.append(_when(field.name, _has_broken_text(column, field.dataType), "is not UTF-8"))
        elif isinstance(field.dataType, (T.DateType, T.TimestampType, T.TimestampNTZType)):
            # The year of a timestamp is that of UTC, and not that of the session's time zone.
            in_utc = isinstance(field.dataType, T.TimestampType)
            outside = ~(is_within_years(column) if in_utc else F.year(column).between(1, 9999))
            problems.append(_when(field.name, outside, "is outside the years 1 to 9999"))
            column = F.unix_micros(column) if in_utc else column
        columns.append(column)
    whole = F.to_json(F.struct(*(_printable(field) for field in df.schema)), _AS_JSON)
    marked = df.withColumn(REASON, F.coalesce(*problems))
    bad = F.col(REASON).isNotNull()
    # The text of such a row is in the reason, because no other column can hold text for every type.
    reason = F.when(bad, F.concat(F.col(REASON), F.lit("\n"), whole)).alias(REASON)
    values = [F.when(~bad, column).alias(f"c{place}") for place, column in enumerate(columns)]
    return marked.select(*values, reason)


def _when(name: str, condition: Column, says: str) -> Column:
    return F.when(condition, F.lit(f"column {name!r} {says}"))


def _printable(field: T.StructField) -> Column:
    column = F.col(quoted_name(field.name))
    if isinstance(field.dataType, T.StringType):
        column = F.make_valid_utf8(column)
    else:
        column = _with_text_keys(column, field.dataType)
    return column.alias(field.name)


def _has_broken_text(value: Column, type: T.DataType) -> Column:
    """Return whether text in a value is not UTF-8; false or NULL for other values."""
    if isinstance(type, T.StringType):
        return ~F.is_valid_utf8(value)
    if isinstance(type, T.ArrayType):
        return F.exists(value, lambda item: _has_broken_text(item, type.elementType))
    if isinstance(type, T.MapType):
        keys = _has_broken_text(F.map_keys(value), T.ArrayType(type.keyType))
        return keys | _has_broken_text(F.map_values(value), T.ArrayType(type.valueType))
    broken = F.lit(False)
    for field in type if isinstance(type, T.StructType) else ():
        broken = broken | _has_broken_text(value.getField(field.name), field.dataType)
    return broken


def _with_text_keys(value: Column, type: T.DataType) -> Column:
    """Return a value whose maps have keys that JSON can show; Spark shows bytes by their address in memory."""
    if isinstance(type, T.ArrayType):
        return F.transform(value, lambda item: _with_text_keys(item, type.elementType))
    if isinstance(type, T.MapType):
        value = F.transform_values(value, lambda _, item: _with_text_keys(item, type.valueType))
        if isinstance(type.keyType, T.BinaryType):
            return F.transform_keys(value, lambda key, _: F.base64(key))
        if isinstance(type.keyType, (T.ArrayType, T.StructType)):
            return F.transform_keys(value, lambda key, _: F.to_json(_with_text_keys(key, type.keyType), _AS_JSON))
    if isinstance(type, T.StructType) and len(type):
        fields = [_with_text_keys(value.getField(f.name), f.dataType).alias(f.name) for f in type]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value
