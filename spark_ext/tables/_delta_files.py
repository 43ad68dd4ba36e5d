"""The data files of a Delta table that Spark has written: their partitions and statistics, as a Delta log has them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_ext.columns._expressions import quoted_name
from spark_ext.tables._folder_values import NO_VALUE, with_folder_texts
from spark_ext.tables._writers import TableConflict

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from deltalake.transaction import AddAction
    from pyspark.sql import Column, DataFrame

_EPOCH: Final = datetime(1970, 1, 1)
_THREADS: Final = 8
_COLUMNS: Final = 32
"""Number of columns with statistics; other writers of Delta tables use the same number."""
_CHARACTERS: Final = 32
_LAST: Final = "\U0010ffff"


def with_partition_texts(df: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """Replace a timestamp by its microseconds, which do not depend on a time zone, and text as folders keep it."""
    df = with_folder_texts(df, partition_by)
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

    Raises
    ------
    TableConflict
        if a date or time is outside the years 1 to 9999: other readers of the table would fail.

    Examples
    --------
    >>> partition_values(["at=1500000", "k=a%2Fb"], {"at": T.TimestampType(), "k": T.StringType()})
    {'at': '1970-01-01 00:00:01.500000', 'k': 'a/b'}
    """
    values: dict[str, str | None] = {}
    for folder in folders:
        name, _, text = folder.partition("=")
        name, value = unquote(name), None if text == NO_VALUE else unquote(text)
        try:
            if value is not None and isinstance(types[name], T.TimestampType):
                value = (_EPOCH + timedelta(microseconds=int(value))).isoformat(" ", "microseconds")
            elif value is not None and isinstance(types[name], (T.DateType, T.TimestampNTZType)):
                date.fromisoformat(value[:10])
        except (OverflowError, ValueError):
            raise TableConflict(
                f"cannot write the partition {unquote(folder)}: its date or time must be in the years 1 to 9999"
            ) from None
        values[name] = value
    return values


def add_actions(files: pafs.FileSystem, base: str, folder: str, types: dict[str, T.DataType]) -> list[AddAction]:
    """Return one action per data file in a write's folder; the footers are read in parallel.

    Parameters
    ----------
    files : pyarrow.fs.FileSystem
        the file system of the table.
    base : str
        the table's folder.
    folder : str
        the write's folder in it.
    types : dict of str to DataType
        the partition columns.
    """
    import pyarrow.fs as pafs

    found = [
        info
        for info in files.get_file_info(pafs.FileSelector(f"{base}/{folder}", recursive=True, allow_not_found=True))
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet") and info.base_name[0] not in "._"
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        made = list(pool.map(lambda info: _add_action(files, base, info, types), found))
    return [action for action in made if action is not None]


def _add_action(
    files: pafs.FileSystem, base: str, info: pafs.FileInfo, types: dict[str, T.DataType]
) -> AddAction | None:
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction

    with files.open_input_file(info.path) as file:
        footer = pq.ParquetFile(file).metadata
    if footer.num_rows == 0:
        return None
    inner = info.path[len(base.rstrip("/")) + 1 :]
    values = partition_values(inner.split("/")[1:-1], types)
    changed = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    # The path is not encoded here: the package encodes it for the log.
    return AddAction(inner, info.size, values, changed, True, json.dumps(_statistics(footer)))


def _statistics(footer: Any) -> dict[str, Any]:
    """Return the number of rows and, per column, the least and greatest value and the number of NULLs."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for place in range(min(footer.num_columns, _COLUMNS)):
        column = footer.schema.column(place)
        if column.max_repetition_level or column.path != column.name:
            continue
        parts = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if any(part is None or part.null_count is None for part in parts):
            continue
        nulls[column.name] = sum(part.null_count for part in parts)
        valued = [part for part in parts if part.num_values]
        if not valued or not all(part.has_min_max for part in valued):
            continue
        try:
            low, high = min(part.min for part in valued), max(part.max for part in valued)
        except (OverflowError, ValueError):
            continue  # a date or time that Python cannot hold, or text that is not UTF-8
        low, high = _bound(low, last=False), _bound(high, last=True)
        if low is not None and high is not None:
            least[column.name], greatest[column.name] = low, high
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _bound(value: Any, *, last: bool) -> Any:
    """Return a bound as a JSON value, or None. A long text is cut; an upper bound gets a greater last character."""
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        if len(value) <= _CHARACTERS:
            return value
        return None if last and _LAST in value else value[:_CHARACTERS] + (_LAST if last else "")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat("T", "microseconds") + ("Z" if value.tzinfo else "")
    return value.isoformat() if isinstance(value, date) else None
