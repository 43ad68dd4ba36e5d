"""The columns of a Delta table, and whether rows may be appended to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as T

from spark_ext._filesystem import filesystem
from spark_ext.tables._delta_log import spark_schema
from spark_ext.tables._table_columns import check_fits, check_names, plain
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from pyspark.sql import DataFrame

WRITE: Final = "msgid_write"
"""Each write has a folder ``msgid_write=UUID`` in the table, so that two writes never touch the same files."""
_PLAIN: Final = (
    T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType, T.BooleanType,
    T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
_NO_PARTITION: Final = (
    T.FloatType, T.DoubleType, T.BinaryType, T.ArrayType, T.MapType, T.StructType,
)  # fmt: skip


def delta_schema(df: DataFrame) -> Schema:
    """Return the schema of a Delta table for a DataFrame's rows; every column may be NULL.

    Raises
    ------
    TableConflict
        if a Delta table lacks such a type, or two names differ only in case.
    """
    from deltalake import Schema

    return Schema.from_json(json.dumps(check_types(df).jsonValue()))


def check_types(df: DataFrame, *others: type[T.DataType]) -> T.StructType:
    """Return the columns that a Delta table has for a DataFrame's rows; ``others`` are more types that it may have.

    Raises
    ------
    TableConflict
        if a Delta table lacks such a type, or two names differ only in case.
    """
    check_names(df.schema)
    for field in df.schema:
        if field.name.lower() == WRITE:
            raise TableConflict(f"cannot write a column named {field.name!r}: the table's folders have that name")

    def checked(type: Any, place: tuple[str, ...]) -> Any:
        if (isinstance(type, T.StringType) and type == T.StringType()) or isinstance(type, (*_PLAIN, *others)):
            return type
        raise TableConflict(
            f"cannot write column {'.'.join(place)!r} to a Delta table: it lacks the type {type.simpleString()}; cast "
            "it, for example to string"
        )

    columns: T.StructType = plain(df.schema, checked)
    return columns


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


def check_new(df: DataFrame, partition_by: tuple[str, ...], path: str, *, is_named: bool = False) -> None:
    """Check the partition columns of a new table, and that its folder does not hold another table.

    Raises
    ------
    TableConflict
        if not.
    """
    import pyarrow.fs as pafs

    check_partitions(df, partition_by, path)
    if is_named:
        return
    files, base = filesystem(path)
    for info in files.get_file_info(pafs.FileSelector(base, allow_not_found=True)):
        if not info.base_name.startswith(("_delta_log", "_temporary", ".", f"{WRITE}=")):
            raise TableConflict(
                f"cannot create a Delta table at {path}: the folder holds {info.base_name}, which is not part of one. "
                "Choose another folder"
            )


def check_layout(df: DataFrame, table: DeltaTable, partition_by: tuple[str, ...], path: str) -> None:
    """Check that a table has the columns of rows, and is partitioned as they are.

    Raises
    ------
    TableConflict
        if a column, its type or the partition columns differ.
    """
    now = tuple(table.metadata().partition_columns)
    if partition_by != now:
        raise TableConflict(f"cannot write to {path}: partition_by must be the table's {now}, got {partition_by}")
    check_fits(df.schema, spark_schema(table), path)


def check_table(df: DataFrame, table: DeltaTable, partition_by: tuple[str, ...], path: str) -> None:
    """Check that rows may be appended to a table unchanged, without Delta's JAR.

    Raises
    ------
    TableConflict
        if the layout differs, or the table has features that only a Delta engine supports.
    """
    check_layout(df, table, partition_by, path)
    held, configuration = spark_schema(table), table.metadata().configuration
    reason = None
    for field in held:
        if not field.nullable:
            reason = f"its column {field.name!r} is NOT NULL"
        elif any(key.startswith("delta.") and not key.startswith("delta.columnMapping.") for key in field.metadata):
            reason = f"its column {field.name!r} is generated or has an invariant"
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        reason = "it has mapped columns"
    if any(name.startswith("delta.constraints.") for name in configuration):
        reason = "it has constraints"
    if reason is not None:
        raise TableConflict(f"cannot write to {path}: {reason}, which needs Delta's JAR and its catalog in the session")
