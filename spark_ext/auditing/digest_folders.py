"""Folders of digests on Spark: `update_digests` makes the digest of each day or other part of a table once."""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.sql import functions as F

from msgid._validate import check_installed
from msgid.audit._block_sums import COLUMNS, digest_of_table, table_of
from msgid.audit._digest_folders import file_of
from msgid.audit._sides import ARGUMENTS
from spark_ext._arguments import check_dataframe
from spark_ext._filesystem import filesystem
from spark_ext.auditing.digests import sums_of
from spark_ext.columns._expressions import quoted_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame

    from msgid.audit._block_sums import By

_PART: Final = "_msgid_part"
_MOST_PARTS: Final = 1_000
"""The most parts whose names are a condition of one query."""


def update_digests(
    df: DataFrame,
    path: str,
    part: str,
    id: str | None = "id",
    source: str | Sequence[str] | None = None,
    offset: str | None = None,
    timestamp: str | None = None,
    content: str | Sequence[str] | None = None,
    *,
    life: str | datetime | Sequence[datetime] | None = None,
    by: By | None = None,
    again: Iterable[str] = (),
) -> list[str]:
    """Make the digests of the parts of a table that a folder does not have yet, such as those of new days.

    The digest of a part is made once: its file in the folder, which has the name of the part, is not made again. Pass
    the name in ``again`` if rows of the part have changed. Only the rows of parts without a digest are read, once for
    1,000 parts. The folder
    is the same as that of `msgid.audit.update_digests`: ``spark.read.parquet(path)`` is the digest of the whole table.

    Parameters
    ----------
    df : DataFrame
        Table, one row per message; no stream.
    path : str
        Folder of the digests, which is created. The driver writes it, 64 bytes per block.
    part : str
        Column of the parts, such as the day by which the table is partitioned. A part is named ``day=2026-11-24``.
    id, source, offset, timestamp, content, life, by : optional
        As for `digest`.
    again : sequence of str
        Names of parts that are made in any case.

    Returns
    -------
    list of str
        The names of the parts whose digests were made, sorted.

    Raises
    ------
    ValueError
        If a column is missing or has the wrong type, a row does not have a part, or ``df`` is a stream.

    Examples
    --------
    >>> import tempfile
    >>> df = spark.createDataFrame([("2026-11-23", 0), ("2026-11-24", 1)], ["day", "offset"])
    >>> path = tempfile.mkdtemp()
    >>> update_digests(df, path, "day", offset="offset")
    ['day=2026-11-23', 'day=2026-11-24']
    >>> update_digests(df, path, "day", offset="offset")
    []
    """
    from pyarrow.fs import FileType

    check_installed("a digest on Spark", "spark", "numpy", "pyarrow")
    check_dataframe(df)
    if df.isStreaming:
        raise ValueError("cannot make digests of a stream: call `update_digests` in its foreachBatch")
    if part not in df.columns:
        raise ValueError(f"`part` must be a column of the table, got {part!r}; it has {df.columns}")
    column = F.col(quoted_name(part)).cast("string")
    values = [row[0] for row in df.select(column).distinct().collect()]
    if None in values:
        raise ValueError(f"`part` must not be NULL: rows of the column {part!r} are in no part")
    files, folder = filesystem(path)
    files.create_dir(folder, recursive=True)
    forced = frozenset(again)
    paths = {value: f"{folder}/{file_of(f'{part}={value}')}" for value in sorted(values)}
    missing = [
        value
        for value, file in paths.items()
        if f"{part}={value}" in forced or files.get_file_info(file).type == FileType.NotFound
    ]
    named = dict(zip(ARGUMENTS, (id, source, offset, timestamp, content, life), strict=True))
    marked = df.withColumn(_PART, column)
    for start in range(0, len(missing), _MOST_PARTS):
        rows = marked.where(column.isin(missing[start : start + _MOST_PARTS]))
        for value, made in _by_part(sums_of(rows, named, by, _PART)):
            _store(made, files, paths[value])
    return [f"{part}={value}" for value in missing]


def _by_part(sums: DataFrame) -> Iterator[tuple[str, pa.Table]]:
    """Yield the digest of each part; the driver holds those of one partition."""
    import pyarrow as pa

    ordered = sums.repartition(_PART).sortWithinPartitions(_PART)
    for value, rows in itertools.groupby(ordered.toLocalIterator(), key=itemgetter(0)):
        columns = zip(*(row[1:] for row in rows), strict=True)
        kinds = [pa.string() if name in ("source", "form") else pa.int64() for name in COLUMNS]
        yield value, pa.table(list(map(pa.array, columns, kinds)), names=list(COLUMNS))


def _store(made: pa.Table, files: pafs.FileSystem, path: str) -> None:
    """Write a digest, whole or not at all."""
    import pyarrow.parquet as pq

    folder, _, name = path.rpartition("/")
    hidden = f"{folder}/.{uuid4().hex}.{name}"
    pq.write_table(table_of(digest_of_table(made)), hidden, filesystem=files)
    files.move(hidden, path)
