"""Rows of JSON lines whose columns are known: keys are found without regard to case, and no line is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from spark_ext.columns._expressions import CORRUPT, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["rows_of_lines"]

_TEXTS: Final = "map<string, string>"
_LINE: Final = "value"


def rows_of_lines(lines: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows of JSON lines.

    Spark's JSON reader ignores a key in another case. Its value would be lost, and a message without a ``value`` would
    look like a tombstone.

    Parameters
    ----------
    lines : DataFrame
        The column ``value`` of text, and the columns of partition folders.
    schema : StructType
        The columns: text, or arrays of structs of text. A partition folder replaces its column.

    Returns
    -------
    DataFrame
        The columns, the columns of folders, and ``_corrupt_record``. It holds a line that is not JSON, does not fit
        the columns, does not have any of them, or has two keys that differ only in case. A line with an array of
        objects gives a row for each.
    """
    folders = [name for name in lines.columns if name != _LINE]
    parsed = StructType([*schema, StructField(CORRUPT, StringType())])
    line, options = F.col(_LINE), {"columnNameOfCorruptRecord": CORRUPT}
    several = F.from_json(line, ArrayType(schema))
    one = F.from_json(line, parsed, options)
    whole = F.ltrim(line).startswith("[") & several.isNotNull()
    with_none = F.transform(
        several, lambda row: F.struct(*(row[name].alias(name) for name in schema.names), F.lit(None).alias(CORRUPT))
    ).cast(ArrayType(parsed))
    keys = _known(F.json_object_keys(line), schema)
    exact = F.array(*(F.lit(name) for name in schema.names))
    otherwise_spelled = (F.size(keys) == 0) | F.exists(keys, lambda key: ~F.array_contains(exact, key))
    spelled = F.when(otherwise_spelled, _in_any_case(line, schema)).otherwise(one)
    rows = lines.where(F.trim(line) != "").select(
        F.explode(F.when(whole, with_none).otherwise(F.array(spelled))).alias("row"),
        *(F.col(quoted_name(name)) for name in folders),
    )
    held = [F.col(f"row.{name}").alias(name) for name in (*schema.names, CORRUPT) if name not in folders]
    return rows.select(*held, *(F.col(quoted_name(name)) for name in folders))


def _known(keys: Column, schema: StructType) -> Column:
    names = F.array(*(F.lit(name.lower()) for name in schema.names))
    return F.filter(keys, lambda key: F.array_contains(names, F.lower(key)))


def _in_any_case(line: Column, schema: StructType) -> Column:
    texts = F.map_entries(F.from_json(line, _TEXTS))
    known = F.transform(_known(F.json_object_keys(line), schema), F.lower)
    none_or_twice = (F.size(known) == 0) | (F.size(F.array_distinct(known)) < F.size(known))

    def value(name: str) -> Column:
        text = _of_key(texts, name)
        kind = schema[name].dataType
        if not isinstance(kind, ArrayType):
            return text
        assert isinstance(kind.elementType, StructType)
        inner = kind.elementType.names

        def struct(entry: Column) -> Column:
            entries = F.map_entries(entry)
            return F.struct(*(_of_key(entries, field).alias(field) for field in inner))

        return F.transform(F.from_json(text, f"array<{_TEXTS}>"), struct)

    arrays = [name for name in schema.names if isinstance(schema[name].dataType, ArrayType)]
    unread = [_of_key(texts, name).isNotNull() & value(name).isNull() for name in arrays]
    misfit = texts.isNull() | none_or_twice
    for each in unread:
        misfit |= each
    fields = (value(name).alias(name) for name in schema.names)
    return F.struct(*fields, F.when(misfit, line).alias(CORRUPT))


def _of_key(entries: Column, name: str) -> Column:
    """Return the last value of a key in any case; NULL without such a key."""
    found = F.filter(entries, lambda entry: F.lower(entry["key"]) == name.lower())
    return F.try_element_at(found, F.lit(-1))["value"]
