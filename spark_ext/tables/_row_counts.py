"""Compare the rows that Spark's tasks wrote with the rows in the files that the driver sees.

A task reports success after it wrote to a folder of its own machine that the others do not share. Spark's own commit
does not notice the missing files.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame

THREADS: Final = 8
"""The number of footers that are read at once."""
_ROWS: Final = "rows"


class MissingRows(OSError):
    """The files of a batch do not have the rows that Spark's tasks wrote; the batch is not committed.

    Examples
    --------
    >>> issubclass(MissingRows, OSError)
    True
    """


class CountedRows:
    """Rows that are counted by the tasks that write them.

    Parameters
    ----------
    df : DataFrame
        the rows; not a stream.
    """

    def __init__(self, df: DataFrame) -> None:
        self._observation = Observation()
        self.df = df.observe(self._observation, F.count(F.lit(1)).alias(_ROWS))
        """The rows, which an action counts; only the first one."""

    def check(self, seen: int, files: int, path: str) -> None:
        """Compare the number of written rows with the number of rows in the files that the driver sees.

        Parameters
        ----------
        seen : int
            number of rows in the files.
        files : int
            number of files.
        path : str
            the table, for the error.

        Raises
        ------
        MissingRows
            if they differ.
        """
        written = self._observation.get.get(_ROWS)
        if written in (None, seen):
            return
        raise MissingRows(
            f"cannot write to {path}: the tasks wrote {written:,} rows, and the driver sees {seen:,} rows in {files:,} "
            "files. Another driver of the query may have written the batch, or a worker may not share this folder with "
            "the driver: choose a store that all machines share"
        )


def footer_rows(files: pafs.FileSystem, infos: Iterable[pafs.FileInfo]) -> int:
    """Return the number of rows in Parquet files; the footers are read in parallel."""
    import pyarrow.parquet as pq

    def rows(info: pafs.FileInfo) -> int:
        with files.open_input_file(info.path) as file:
            found: int = pq.ParquetFile(file).metadata.num_rows
            return found

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(rows, infos))
