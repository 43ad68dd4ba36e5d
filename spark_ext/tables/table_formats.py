"""Table formats: what `write_once`, `read_table` and the jobs need of a table, and the known formats.

No other module of the package asks for the name of a format: differences between formats are members of `TableFormat`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from spark_ext import _filesystem
from spark_ext._registry import Registry

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.tables.writers import Writer


class TableName(str):
    """The name of a table in the session's catalog; a format that ``has_names`` gets it in place of a path.

    Examples
    --------
    >>> TableName("shop.orders") == "shop.orders"
    True
    """

    __slots__ = ()


class TableFormat(ABC):
    """A format of tables. A subclass is one file; `register_table_format` makes it known.

    Examples
    --------
    >>> table_format("parquet").name
    'parquet'
    """

    name: str
    """The name, as in ``write_once(format=...)`` and ``--table-format``."""
    has_log: bool = True
    """Whether a log lists the files of a table.

    Such a table is recognized by `is_table`, and jobs read it as a whole. Without a log, any folder can be a table.
    """

    has_names: bool = False
    """Whether a table can have a name in the session's catalog: ``write_once(table=...)`` passes a `TableName`."""

    @staticmethod
    def filesystem(path: str) -> tuple[pafs.FileSystem, str]:
        """Return Arrow's file system of a path or URL that Spark accepts, and the path in it.

        Raises
        ------
        ValueError
            if the scheme of the URL is not supported.
        """
        return _filesystem.filesystem(path)

    def is_table(self, path: str) -> bool:
        """Return whether a folder is a table of this format, which other formats must not write to.

        A format with a log must have this method.
        """
        return False

    @abstractmethod
    def write_batch(
        self,
        df: DataFrame,
        batch_id: int,
        path: str,
        writer: Writer,
        partition_by: tuple[str, ...],
        storage_options: dict[str, str] | None,
    ) -> bool:
        """Write a micro-batch exactly once; return False if it was written before.

        ``writer.name`` is the name under which batches are stored; ``writer.query`` is the ID of the query, or None.
        ``writer.read`` is a digest of what the batch has read, or None. Store it with the batch, and refuse a batch of
        the same number with another digest: its checkpoint is older than the table.
        """

    def evolve(self, df: DataFrame, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        """Add the columns of rows that a table lacks, and widen its types; return the rows with the table's types.

        `write_once` calls it with ``evolve=True``, before `write_batch`. The table may be missing.
        """
        raise ValueError(f"evolve must be False for format={self.name!r}, whose tables keep their columns")

    @abstractmethod
    def read(self, spark: SparkSession, path: str, storage_options: dict[str, str] | None) -> DataFrame:
        """Return the rows of a table."""

    @abstractmethod
    def write_rows(self, df: DataFrame, path: str, mode: str, partition_by: tuple[str, ...]) -> None:
        """Write the rows of a batch run; ``mode`` is ``error`` or ``overwrite``."""


DEFAULT: Final = "parquet"
"""The name of the format of a folder that is not a table of another format."""
_FORMATS: Final = Registry(
    TableFormat,  # type: ignore[type-abstract]
    "table format",
    {name: f"spark_ext.tables.{name}" for name in (DEFAULT, "delta", "iceberg")},
)


def register_table_format(format: TableFormat) -> None:
    """Make a table format known to `write_once`, `read_table` and the jobs of this process.

    Parameters
    ----------
    format : TableFormat
        the format. It replaces a format of the same name.

    Returns
    -------
    None
        the format is known in this process.

    Raises
    ------
    TypeError
        if the argument is not a `TableFormat`.
    ValueError
        if its ``name`` is missing.

    Examples
    --------
    >>> register_table_format(table_format("parquet"))
    """
    _FORMATS.register(format)


def table_format_names() -> tuple[str, ...]:
    """Return the names of all table formats, Parquet first."""
    return _FORMATS.names


def table_format(name: str) -> TableFormat:
    """Return the table format of a name.

    Raises
    ------
    ValueError
        if the name is unknown.
    """
    return _FORMATS[name]


def format_of_table(path: str) -> str:
    """Return the name of the format whose table a folder is, or the default."""
    return next((name for name in table_format_names() if table_format(name).is_table(path)), DEFAULT)
