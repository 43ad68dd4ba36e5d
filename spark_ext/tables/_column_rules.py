"""The columns of a batch: whether a table, and the names of its folders, can hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns.column_types import quoted_name
from spark_ext.tables.writers import TableConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

EXACT: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # milliseconds are cut, and INT96 lacks statistics
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # only Spark knows the calendar of the other files
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""Settings under which the values in Parquet files are those of the rows, for readers other than Spark too."""
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of Spark's folder for NULL."""
_WIDTHS: Final = (
    (T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType()),
    (T.FloatType(), T.DoubleType()),
)
"""Types in the order in which a column may widen."""


def plain(type: Any, leaf: Callable[[Any, tuple[str, ...]], Any] | None = None, path: tuple[str, ...] = ()) -> Any:
    """Return a type without metadata, whose parts may all be NULL.

    ``leaf`` returns the type for each part that is not nested; it gets the part's type and its path.
    """
    if isinstance(type, T.StructType):
        return T.StructType([T.StructField(f.name, plain(f.dataType, leaf, (*path, f.name))) for f in type])
    if isinstance(type, T.ArrayType):
        return T.ArrayType(plain(type.elementType, leaf, (*path, "element")))
    if isinstance(type, T.MapType):
        return T.MapType(plain(type.keyType, leaf, (*path, "key")), plain(type.valueType, leaf, (*path, "value")))
    if isinstance(type, (T.CharType, T.VarcharType)):
        return T.StringType()
    return type if leaf is None else leaf(type, path)


def united(*tables: T.StructType) -> T.StructType:
    """Return the columns of tables, each name once, with the widest type.

    Integers and floating-point numbers widen. Of other types the first one counts, and `check_fits` refuses other rows.

    Examples
    --------
    >>> one, other = T.StructType().add("a", T.IntegerType()), T.StructType().add("a", T.LongType()).add("b", "string")
    >>> united(one, other).simpleString()
    'struct<a:bigint,b:string>'
    """
    types: dict[str, Any] = {}
    for field in (field for table in tables for field in table):
        pair = [types.setdefault(field.name, field.dataType), field.dataType]
        for order in _WIDTHS:
            if all(type in order for type in pair):
                types[field.name] = max(pair, key=order.index)
    return T.StructType([T.StructField(name, type) for name, type in types.items()])


def evolved(columns: T.StructType, rows: T.StructType) -> T.StructType:
    """Return the columns of a table with those of rows, each with the widest type.

    Raises
    ------
    TableConflict
        as `check_columns` does.
    """
    wanted = united(columns, plain(rows))
    check_columns(wanted)
    return wanted


def widened(df: DataFrame, table: T.StructType) -> DataFrame:
    """Return rows with the wider types of a table."""
    wanted = united(df.schema, table)
    cells = {f.name: F.col(quoted_name(f.name)).cast(wanted[f.name].dataType) for f in df.schema if f != wanted[f.name]}
    return df.withColumns({name: cell for name, cell in cells.items() if name in table.names})


def check_columns(type: Any, path: tuple[str, ...] = ()) -> None:
    """Check the columns of rows, and the fields of each struct.

    Raises
    ------
    TableConflict
        if two names are equal or differ in case only, which Spark's default settings ignore, or if a type is void: no
        later batch would fit.
    """
    if isinstance(type, T.NullType):
        raise TableConflict(f"cannot write column {'.'.join(path)!r}: its type is void; cast it, for example to string")
    if isinstance(type, T.ArrayType):
        check_columns(type.elementType, (*path, "element"))
    if isinstance(type, T.MapType):
        check_columns(type.keyType, (*path, "key"))
        check_columns(type.valueType, (*path, "value"))
    seen: dict[str, str] = {}
    for field in type if isinstance(type, T.StructType) else ():
        name = ".".join((*path, field.name))
        other = seen.setdefault(field.name.lower(), name)
        if other is not name:
            raise TableConflict(f"cannot write the columns {other!r} and {name!r}: Spark compares names without case")
        check_columns(field.dataType, (*path, field.name))


def lacks_type(path: tuple[str, ...], table: str, type: Any) -> TableConflict:
    """Return the error of a column whose type a kind of table lacks."""
    return TableConflict(
        f"cannot write column {'.'.join(path)!r} to {table}: it lacks the type {type.simpleString()}; cast it, for "
        "example to string"
    )


def check_fits(rows: T.StructType, table: T.StructType, path: str) -> None:
    """Check that a table has the columns of rows, with their types. Rows may lack columns; readers get NULL there.

    Raises
    ------
    TableConflict
        if the table lacks a column, or has it with another type.
    """
    types = {field.name: plain(field.dataType) for field in table}
    for name, type in ((field.name, plain(field.dataType)) for field in rows):
        if name not in types:
            raise TableConflict(
                f"cannot write column {name!r} to {path}: the table has {', '.join(types)}; evolve=True adds it"
            )
        if type != types[name]:
            raise TableConflict(
                f"cannot write column {name!r} to {path}: it must be {types[name].simpleString()}, got "
                f"{type.simpleString()}; cast it"
            )


def check_partitions(df: DataFrame, partition_by: tuple[str, ...]) -> None:
    """Check that the values of partition columns can be the names of folders.

    Raises
    ------
    TableConflict
        if not.
    """
    for name in partition_by:
        if name not in df.columns:
            raise TableConflict(f"partition_by must name columns of the rows, got {name!r}; they have {df.columns}")
        type = plain(df.schema[name].dataType)
        # Spark writes folders of text with a collation, and cannot read them.
        is_folder = isinstance(type, (T.IntegralType, T.BooleanType, T.DateType)) or type.simpleString() == "string"
        if not is_folder or name.startswith("."):
            raise TableConflict(
                "partition_by must name columns of text, integers, booleans or dates, without a dot at the start of "
                f"their names, got {name!r} of {type.simpleString()}; cast it to string, or rename it"
            )


def checked_partitions(df: DataFrame, partition_by: Iterable[str]) -> DataFrame:
    """Return rows whose write fails for a value that the name of a folder loses.

    Spark names the folders of NULL, of empty text and of `NO_VALUE` alike, replaces bytes that are not UTF-8, and
    cannot create a folder with a NUL character. Other readers know only the years 1 to 9999.
    """
    columns = {}
    for name in partition_by:
        value, type = F.col(quoted_name(name)), plain(df.schema[name].dataType)
        if isinstance(type, T.StringType):
            value = value.cast("string")
            is_lost = (F.octet_length(value) == 0) | (value == NO_VALUE) | value.contains("\0")
            is_lost |= ~F.is_valid_utf8(value)
        elif isinstance(type, T.DateType):
            is_lost = ~F.year(value).between(1, 9999)
        else:
            continue
        message = (
            f"cannot write a partition of {name!r}: it must be text in UTF-8 that is neither empty nor {NO_VALUE}, "
            "or a date of the years 1 to 9999"
        )
        columns[name] = F.when(is_lost, F.raise_error(F.lit(message)).cast(type)).otherwise(value)
    return df.withColumns(columns) if columns else df
