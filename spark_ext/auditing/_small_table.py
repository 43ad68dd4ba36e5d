"""Tables that fit on the driver: one action collects their rows, and the audit of Python does the rest."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from msgid._known_tables import Columns
from msgid.audit._tables import facts_of_rows, rows_of
from spark_ext.auditing._values import content_columns, placed_columns
from spark_ext.columns._expressions import quoted_name
from spark_ext.columns._moments import micros_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from msgid.audit._options import Rules
    from msgid.audit.facts import Facts

SMALL_ROWS = 50_000
"""Number of rows up to which a table is audited on the driver."""
_LONGEST: Final = 256
"""Bytes of the longest ID or log name that is collected. A table with a longer one is audited on Spark alone."""
_TEXTS: Final = ("id", "parent", "source")
_LONG: Final = "is_long"


def small_facts(df: DataFrame, columns: Columns, rules: Rules) -> Facts | None:
    """Return the facts of a table of few rows; None if the table is larger."""
    table = collected(df, columns)
    if table is None:
        return None
    return facts_of_rows(rows_of(table, roles_of(table, columns)), columns, rules)


def roles_of(table: pa.Table, columns: Columns) -> Columns:
    """Return the columns of a table that `collected` returned; ``columns`` are those of its rows."""
    given = columns.given
    own = {name: name if given[name] else None for name in ("id", "offset", "timestamp", "landed", "parent")}
    several = {name: (name,) if name in table.column_names else () for name in ("source", "content")}
    return Columns(**own, **several)  # type: ignore[arg-type]


def collected(df: DataFrame, columns: Columns) -> pa.Table | None:
    """Return the rows with one column per role, or None if they are too many or too long."""
    values = _values(df, columns)
    texts = [F.col(name) for name in values if name in _TEXTS]
    is_long = reduce(or_, (F.coalesce(F.octet_length(text) > _LONGEST, F.lit(False)) for text in texts), F.lit(False))
    rows = df.select(*(value.alias(name) for name, value in values.items()))
    # take() reads as few partitions as it needs; a result as Arrow would need all.
    rows = rows.select(*(F.when(~is_long, F.col(name)).alias(name) for name in values), is_long.alias(_LONG))
    held = rows.take(SMALL_ROWS + 1)
    if len(held) > SMALL_ROWS or any(row[_LONG] for row in held):
        return None
    types = {"offset": pa.int64(), "timestamp": pa.timestamp("us"), "landed": pa.timestamp("us")}
    binary = {field.name for field in rows.schema if isinstance(field.dataType, BinaryType)}
    columns_of = list(zip(*held, strict=True)) if held else [()] * len(values)
    arrays = {}
    for name, column in zip(values, columns_of, strict=False):
        if name in binary:
            arrays[name] = pa.array([None if value is None else bytes(value) for value in column], pa.binary())
        else:
            arrays[name] = pa.array(column, types.get(name, pa.string()))
    return pa.table(arrays)


def _values(df: DataFrame, columns: Columns) -> dict[str, Column]:
    """Return the values that are compared, by their role."""
    held = (("id", columns.id), ("parent", columns.parent))
    values = {name: F.col(quoted_name(column)) for name, column in held if column}
    if columns.offset is not None:
        values["source"], values["offset"] = placed_columns(df, columns)
    for role, name in (("timestamp", columns.timestamp), ("landed", columns.landed)):
        if name is not None:
            values[role] = micros_column(df, name)
    content = content_columns(df, columns)
    return values | ({"content": content[0]} if content else {})
