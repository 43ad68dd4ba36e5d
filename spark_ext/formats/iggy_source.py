"""``spark.read.format("iggy")``: the messages of Iggy's segment files, in batch and as a stream.

The driver lists files, and divides large ones at points that their index names. Bytes that are not messages fail no
job: they are a row with the ``reason`` and, in ``original``, the bytes. Reading goes on at the next record whose
checksum holds.

A stream reads closed segments: those that a later one of their folder follows. Its offset is the number of the last
segment that was read, for each folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from spark_ext._compat import STREAM_SOURCE, needs
from spark_ext.formats._iggy_files import segments
from spark_ext.formats._iggy_reading import COLUMNS, Options, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType


class IggyDataSource(DataSource):
    """Iggy's segment files.

    Each row has the ``file``, the names ``stream``, ``topic``, ``partition`` and ``segment`` in its path, and the
    ``position`` of the message in the file. ``source`` is the name of the log, for `position_id`. ``id_text`` is the ID
    as `msgid.iggy.id_text` writes it.

    Options:

    - ``path``: a file or folder, or a URL of a file system that Arrow knows. Files in a folder are segments if their
      names are 20 digits and ``.log``; so the whole folder of a server can be read.
    - ``layout``: one of `msgid.iggy.LAYOUTS`. Default: found by checksum.
    - ``splitBytes``: the size in bytes from which a segment with an index is read in parts. Default: 128 MB.
    - ``columns``: names of columns, separated by commas. Default: all. Other columns are not sent from the reader to
      Spark, which takes a large part of the time of a query.
    - ``maxFilesPerTrigger``: how many segments a micro-batch of a stream reads. Default: all that are closed.

    A stream reads each closed segment once. A segment is closed if a later one is in its folder, so the last segment of
    each partition is not read.

    Torn bytes are rows with ``state`` ``poisoned``, a ``reason`` and the bytes in ``original``, up to 16 MiB in each.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "iggy"

    def schema(self) -> str:
        """Return the columns, those of the option ``columns`` if it is set."""
        return ", ".join(f"`{name}` {COLUMNS[name]}" for name in Options.of(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return IggyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        needs('a stream of format("iggy")', STREAM_SOURCE)
        from spark_ext.formats._iggy_stream import IggyStreamReader

        return IggyStreamReader(self.options)


class IggyReader(DataSourceReader):
    """Read the present segments."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of all segments."""
        return [part for segment in segments(self.options.path) for part in self.options.parts(segment)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_part(self.options, partition)
