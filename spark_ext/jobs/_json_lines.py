"""Rows of JSON lines: keys are found without regard to case, and no line is lost.

Spark's reader finds lines that are not JSON. This module adds checks, because in its mode PERMISSIVE, Spark 4.3:

- raises an error for all lines if one line has a key twice;
- cannot have columns of a type that is nested several hundred levels deep;
- reads NULL from a key that differs from its column in case only;
- ignores text after the first object of a line;
- rounds a large integer in a column of fractions, and reads `1e400` as infinity.
"""

from __future__ import annotations

import warnings
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_ext._compat import json_schema
from spark_ext._settings import settings
from spark_ext.columns._expressions import CORRUPT, has_more, quoted_name
from spark_ext.jobs._formats import InputWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

_BY_CASE: Final = {"spark.sql.caseSensitive": "true"}
"""Spark finds all spellings of a key."""
_TEXTS: Final = "map<string, string>"
_LINE: Final = "value"
_MARK: Final = "\ufeff"
"""The byte order mark, which Spark's JSON reader skips too."""
_OPTIONS: Final = {"columnNameOfCorruptRecord": CORRUPT}
_DEEPEST: Final = 100
"""Maximum depth of a line's arrays and objects."""
_MANY_OPEN: Final = rf"^[^\[{{]*+(?:[\[{{][^\[{{]*+){{{_DEEPEST + 1}}}"
_LONG: Final = r"(?:^|[:,\[\s])-?[0-9]{16}"
"""A number, outside text, that may be an integer of more digits than a double holds."""
_FAR: Final = r"(?:^|[:,\[\s])-?(?:[0-9]{309}|[0-9.]++[eE][+-]?[0-9]{3})"
"""A number, outside text, that may be out of the range of a double."""
_INTEGERS: Final = r"(?<![0-9.eE+-])-?[0-9]{16,}(?![0-9.eE])"
_NUMBERS: Final = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_EVERY_DIGIT: Final = "decimal(38,0)"
_ROUNDED: Final = "names of rounded columns"


def read_json(
    spark: SparkSession,
    names: str | list[str],
    reader: Any,
    reader_now: Callable[[], Any],
    *,
    schema: StructType | None = None,
    prefer: Sequence[str] = (),
) -> DataFrame:
    """Read JSON files with an object, or an array of objects, per line.

    Spark's JSON reader ignores a key that differs from a column in case only, and text after the first object of a
    line. Here, such keys are one column. A line with two of them, or with more text, is kept in ``_corrupt_record``.

    Args:
        spark: The session.
        names: A file, a folder, or the names of files.
        reader: Reads the rows.
        reader_now: Returns a batch reader of the same files.
        schema: The columns. Default: those of all lines that exist now.
        prefer: Names for columns of several spellings. Default: the spelling in lower case, or the first one.
    """
    if schema is None:
        lines = reader_now().text(names)
        found = _inferred(lines)
        schema = _exact(lines, found, _merged(found, prefer))
    columns = StructType([field for field in schema if field.name != CORRUPT])
    return rows_of_lines(reader.text(names), columns)


def _inferred(lines: DataFrame) -> StructType:
    """Return the columns of all lines; a line that is too deep, or whose object has a key twice, does not count.

    Such a line stops Spark's inference for all lines.
    """
    line = F.ltrim(_LINE, F.lit(_MARK))
    flat = lines.where(~_is_deep(line)).select(line.alias(_LINE))
    keys = F.json_object_keys(_LINE)
    once = F.coalesce(F.size(F.array_distinct(keys)) == F.size(keys), F.lit(True))
    with settings(lines.sparkSession, _BY_CASE):
        schema = json_schema(flat)
        if len(set(schema.names)) < len(schema):
            schema = json_schema(flat.where(once))
    folders = [field for field in lines.schema if field.name != _LINE]
    replaced = {CORRUPT, *(field.name.lower() for field in folders)}
    return StructType([*(field for field in schema if field.name.lower() not in replaced), *folders])


def _exact(lines: DataFrame, found: StructType, schema: StructType) -> StructType:
    """Return the columns with text in place of fractions, if they also have integers that a double cannot hold.

    Args:
        lines: All lines.
        found: A field for each spelling of a key.
        schema: A column for each key.
    """
    doubles = StructType([field for field in schema if _has_doubles(field.dataType)])
    if not doubles.names:
        return schema
    lower = {name.lower() for name in doubles.names}
    texts = StructType([StructField(name, StringType()) for name in found.names if name.lower() in lower])
    line = F.ltrim(_LINE, F.lit(_MARK))
    # Few lines have such integers in these columns, and the others need not be read as rows.
    is_candidate = F.to_json(F.from_json(line, texts)).rlike(_INTEGERS) | line.rlike(r"^\s*\[")
    rows = _rows(lines.where(line.rlike(_LONG) & is_candidate), doubles)
    rounded = {row.name for row in rows.select(F.explode(_ROUNDED).alias("name")).distinct().collect()}
    return StructType([StructField(field.name, StringType()) if field.name in rounded else field for field in schema])


def _merged(found: StructType, prefer: Sequence[str]) -> StructType:
    """Return one column for each group of names that differ only in case."""
    groups: dict[str, list[StructField]] = {}
    for field in found:
        groups.setdefault(field.name.lower(), []).append(field)
    columns = [_column_of(lower, group, prefer) for lower, group in groups.items()]
    for column, group in zip(columns, groups.values(), strict=True):
        if len(group) > 1:
            spellings = ", ".join(field.name for field in group)
            text = f"the keys {spellings} differ in case only, so they are read as one column, {column.name!r}"
            warnings.warn(text, InputWarning, stacklevel=3)
    return StructType(columns)


def _column_of(lower: str, group: list[StructField], prefer: Sequence[str]) -> StructField:
    spellings = [field.name for field in group]
    name = next((name for name in (*prefer, lower) if name in spellings), spellings[0])
    types = [field.dataType for field in group]
    same = all(type == types[0] for type in types) and not _has_twice(types[0])
    return StructField(name, types[0] if same else StringType())  # the value's JSON as text


def _has_twice(type: DataType) -> bool:
    """Check whether a type has fields whose names differ only in case, which a table cannot store."""
    if isinstance(type, ArrayType):
        return _has_twice(type.elementType)
    if not isinstance(type, StructType):
        return False
    return len({name.lower() for name in type.names}) < len(type) or any(_has_twice(field.dataType) for field in type)


def rows_of_lines(lines: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows of JSON lines.

    Parameters
    ----------
    lines : DataFrame
        The column ``value`` of text, and the columns of partition folders.
    schema : StructType
        The columns. A partition folder replaces its column.

    Returns
    -------
    DataFrame
        The columns, the columns of folders, and ``_corrupt_record``. It holds a line that is not JSON in UTF-8, has
        text after its object, does not fit the columns, does not have any of them, has a key twice, compared without
        regard to case, or has a key of this name. It also holds a line that is nested too deep, or has a
        number that its column cannot hold. A line with an array of objects gives a row for each.
    """
    return _rows(lines, schema).drop(_ROUNDED)


def _rows(lines: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows of JSON lines, with the names of columns whose integers were rounded in ``_ROUNDED``."""
    folders = [name for name in lines.columns if name != _LINE]
    replaced = {name.lower() for name in folders}
    columns = [field for field in schema if field.name.lower() not in replaced]
    places = {field.name.lower(): str(place) for place, field in enumerate(columns)}
    doubles = [place for place, field in enumerate(columns) if _has_doubles(field.dataType)]
    unit, kept = F.col("unit"), F.struct(F.lit(0), *map(quoted_name, folders)).alias("folders")

    line = F.ltrim(_LINE, F.lit(_MARK))
    inside = F.from_json(line, "array<string>")
    is_array = line.rlike(r"^\s*\[") & F.is_valid_utf8(line)
    objects = F.forall(inside, lambda text: F.coalesce(text.startswith("{"), F.lit(False)))
    several = F.when(is_array & objects, inside).otherwise(F.array(line))
    # Each step is a projection of its own. In one projection, Spark would repeat the code for each column.
    df = lines.where(line.rlike(r"\S"))
    df = df.select(F.explode(several).alias("unit"), kept, (_is_deep(line) | _is_far(line)).alias("is_beyond"))
    df = df.select(unit, "folders", "is_beyond", F.json_object_keys(unit).alias("keys"))

    parsed = StructType([*columns, StructField(CORRUPT, StringType())])
    exact = F.array(*(F.lit(field.name) for field in columns)).cast("array<string>")
    known = F.array(*map(F.lit, places)).cast("array<string>")
    is_twice = F.size(F.array_distinct("keys")) < F.size("keys")
    is_refused = F.coalesce(is_twice | F.exists("keys", lambda key: F.lower(key) == CORRUPT), F.lit(False))
    keys = F.filter("keys", lambda key: F.array_contains(known, F.lower(key)))
    respelled = (F.size(keys) == 0) | F.exists(keys, lambda key: ~F.array_contains(exact, key))
    raw = F.from_json(unit, StructType([StructField(columns[place].name, StringType()) for place in doubles]))
    raws = F.when(unit.rlike(_LONG), raw) if doubles else F.lit(None)
    lowered = F.transform(F.map_entries(F.from_json(unit, _TEXTS)), _lowered)
    entries = F.filter(lowered, lambda entry: F.array_contains(known, entry["key"]))
    df = df.select(
        unit,
        "folders",
        F.from_json(unit, parsed, _OPTIONS).alias("one"),
        (is_refused | F.col("is_beyond")).alias("is_refused"),
        F.coalesce(respelled & ~is_refused, F.lit(False)).alias("respelled"),
        F.when(respelled & ~is_refused, entries).alias("entries"),
        raws.alias("raw"),
    )
    once = F.size(F.array_distinct(F.transform("entries", lambda entry: entry["key"]))) == F.size("entries")
    texts = F.when(once & (F.size("entries") > 0), F.map_from_entries("entries"))
    df = df.select(unit, "folders", "one", "is_refused", "respelled", "raw", texts.alias("texts"))

    text = {place: F.try_element_at("texts", F.lit(name)) for name, place in places.items()}
    typed = (_typed(text[place], columns[int(place)].dataType).alias(place) for place in text)
    values = F.struct(F.lit(0), *typed).alias("values")
    df = df.select(unit, "folders", "one", "is_refused", "respelled", "raw", "texts", values)

    unread = (text[place].isNotNull() & F.col("values")[place].isNull() for place in text)
    misfit = reduce(lambda some, other: some | other, unread, F.col("texts").isNull())
    misread = F.col("one").isNull() | F.col("one")[CORRUPT].isNotNull()
    is_whole = F.is_valid_utf8(unit) & ~has_more(unit)
    is_corrupt = F.when(F.col("respelled"), misfit).otherwise(misread) | F.col("is_refused") | ~is_whole
    rows = [
        F.when(F.col("respelled"), F.col("values")[str(place)]).otherwise(F.col("one")[field.name])
        for place, field in enumerate(columns)
    ]
    rounded = (
        F.when(
            _is_rounded(F.coalesce(text[str(place)], F.col("raw")[columns[place].name]), rows[place]),
            columns[place].name,
        )
        for place in doubles
    )
    df = df.select(
        unit,
        *(value.alias(str(place)) for place, value in enumerate(rows)),
        is_corrupt.alias("is_corrupt"),
        F.array_compact(F.array(*rounded).cast("array<string>")).alias("rounded"),
        "folders",
    )
    return df.select(
        *(F.col(str(place)).alias(field.name) for place, field in enumerate(columns)),
        F.when(F.col("is_corrupt") | (F.size("rounded") > 0), unit).alias(CORRUPT),
        *(F.col("folders")[name].alias(name) for name in folders),
        F.col("rounded").alias(_ROUNDED),
    )


def _has_doubles(type: DataType) -> bool:
    if isinstance(type, ArrayType):
        return _has_doubles(type.elementType)
    if isinstance(type, MapType):
        return _has_doubles(type.valueType)
    if isinstance(type, StructType):
        return any(_has_doubles(field.dataType) for field in type)
    return isinstance(type, (DoubleType, FloatType))


def _unquoted(json: Column) -> Column:
    """Return JSON without the content of its strings."""
    return F.regexp_replace(F.regexp_replace(json, r"\\.", ""), '"[^"]*"', '""')


def _is_deep(line: Column) -> Column:
    """Check whether the arrays and objects of a line are nested deeper than `_DEEPEST`."""
    marks = F.split(F.regexp_replace(_unquoted(line), r"[^\[\]{}]", ""), "")

    def step(depths: Column, mark: Column) -> Column:
        depth = depths["now"] + F.when(mark.isin("[", "{"), 1).when(mark.isin("]", "}"), -1).otherwise(0)
        return F.struct(depth.alias("now"), F.greatest(depths["most"], depth).alias("most"))

    depths = F.aggregate(marks, F.struct(F.lit(0).alias("now"), F.lit(0).alias("most")), step)
    return F.when(line.rlike(_MANY_OPEN), depths["most"] > _DEEPEST).otherwise(F.lit(False))


def _is_far(line: Column) -> Column:
    """Check whether a line has a number that a double cannot hold even roughly: it would be infinity or zero."""

    def is_far(number: Column) -> Column:
        value = number.try_cast("double")
        return (F.abs(value) == float("inf")) | ((value == 0) & number.rlike("^[^eE]*[1-9]"))

    numbers = F.regexp_extract_all(_unquoted(line), F.lit(_NUMBERS), F.lit(0))
    return F.when(line.rlike(_FAR), F.exists(numbers, is_far)).otherwise(F.lit(False))


def _is_rounded(text: Column, value: Column) -> Column:
    """Check whether an integer of a JSON value was rounded in the value that was read; NULL without a text."""
    read = F.to_json(F.struct(value.alias("value")))

    def is_rounded(integer: Column) -> Column:
        nearest = integer.try_cast("double").try_cast(_EVERY_DIGIT)
        return ~F.coalesce(integer.try_cast(_EVERY_DIGIT) == nearest, F.lit(False)) & ~read.contains(integer)

    return F.exists(F.regexp_extract_all(_unquoted(text), F.lit(_INTEGERS), F.lit(0)), is_rounded)


def _lowered(entry: Column) -> Column:
    return F.struct(F.lower(entry["key"]).alias("key"), entry["value"].alias("value"))


def _typed(text: Column, type: DataType) -> Column:
    """Return the text of a JSON value as a value of a type; NULL if it does not fit."""
    if isinstance(type, StringType):
        return text
    if isinstance(type, ArrayType) and _is_of_texts(type.elementType):
        assert isinstance(type.elementType, StructType)
        names = type.elementType.names

        def struct(entry: Column) -> Column:
            entries = F.map_entries(entry)
            return F.struct(*(_of_key(entries, name).alias(name) for name in names))

        return F.transform(F.from_json(text, f"array<{_TEXTS}>"), struct)
    if isinstance(type, (ArrayType, MapType, StructType)):
        held = StructType([StructField("held", type), StructField(CORRUPT, StringType())])
        read = F.from_json(F.concat(F.lit('{"held":'), text, F.lit("}")), held, _OPTIONS)
        return F.when(read[CORRUPT].isNull(), read["held"])
    return text.try_cast(type)


def _is_of_texts(type: DataType) -> bool:
    return isinstance(type, StructType) and all(isinstance(field.dataType, StringType) for field in type)


def _of_key(entries: Column, name: str) -> Column:
    """Return the last value of a key in any case; NULL without such a key."""
    found = F.filter(entries, lambda entry: F.lower(entry["key"]) == name.lower())
    return F.try_element_at(found, F.lit(-1))["value"]
