"""The data files of a write to a Delta table, with the statistics in their footers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from spark_ext.tables._delta_schema import partition_values

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from deltalake.transaction import AddAction
    from pyspark.sql.types import DataType

_THREADS: Final = 8
_COLUMNS: Final = 32
"""Number of columns with statistics; other writers of Delta tables use the same number."""
_CHARACTERS: Final = 32
_LAST: Final = "\U0010ffff"


def add_actions(files: pafs.FileSystem, base: str, folder: str, types: dict[str, DataType]) -> list[AddAction]:
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


def _add_action(files: pafs.FileSystem, base: str, info: pafs.FileInfo, types: dict[str, DataType]) -> AddAction | None:
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
        except UnicodeDecodeError:
            continue
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
        utc = value.astimezone(timezone.utc) if value.tzinfo else value
        return utc.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if value.tzinfo else "")
    return value.isoformat() if isinstance(value, date) else None
