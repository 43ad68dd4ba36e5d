"""The columns of a table, and whether the rows of a micro-batch fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    from collections.abc import Callable


def plain(type: Any, leaf: Callable[[Any, tuple[str, ...]], Any] | None = None, place: tuple[str, ...] = ()) -> Any:
    """Return a type without metadata, whose parts may all be NULL.

    ``leaf`` returns the type for each part that is not nested; it gets the part's type and its place.
    """
    if isinstance(type, T.StructType):
        return T.StructType([T.StructField(f.name, plain(f.dataType, leaf, (*place, f.name))) for f in type])
    if isinstance(type, T.ArrayType):
        return T.ArrayType(plain(type.elementType, leaf, (*place, "element")))
    if isinstance(type, T.MapType):
        return T.MapType(plain(type.keyType, leaf, (*place, "key")), plain(type.valueType, leaf, (*place, "value")))
    if isinstance(type, (T.CharType, T.VarcharType)):
        return T.StringType()
    return type if leaf is None else leaf(type, place)


def check_names(type: Any, place: tuple[str, ...] = ()) -> None:
    """Check the names of columns and of the fields of each struct; Spark's default settings ignore their case.

    Raises
    ------
    TableConflict
        if two names are equal or differ in case only.
    """
    if isinstance(type, T.ArrayType):
        check_names(type.elementType, (*place, "element"))
    if isinstance(type, T.MapType):
        check_names(type.keyType, (*place, "key"))
        check_names(type.valueType, (*place, "value"))
    seen: dict[str, str] = {}
    for field in type if isinstance(type, T.StructType) else ():
        name = ".".join((*place, field.name))
        other = seen.setdefault(field.name.lower(), name)
        if other is not name:
            raise TableConflict(f"cannot write the columns {other!r} and {name!r}: their names differ in case only")
        check_names(field.dataType, (*place, field.name))


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
            raise TableConflict(f"cannot write column {name!r} to {path}: the table has {', '.join(types)}")
        if type != types[name]:
            raise TableConflict(
                f"cannot write column {name!r} to {path}: it must be {types[name].simpleString()}, got "
                f"{type.simpleString()}"
            )
