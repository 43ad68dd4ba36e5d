"""``spark.read.format("iggy")``: the messages of Iggy's segment files, in batch and as a stream, and a writer of them.

The driver lists files and plans parts by their bytes. The task that reads a part finds the first record in it. Bytes
that cannot be decoded fail no job: the remainder of their part is one row with the ``reason`` and, in ``original``, its
bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from msgid.iggy._wire import AUTO, LAYOUTS
from msgid.iggy.following import divided
from spark_ext._compat import STREAM_SOURCE, needs
from spark_ext.formats._iggy_reading import COLUMNS, Options, Piece, read_piece
from spark_ext.formats._iggy_writer import IggyWriter

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
    - ``layout``: one of `msgid.iggy.LAYOUTS`. Default: found by checksum. The writer needs it.
    - ``splitBytes``: the size in bytes from which a task reads a part of a segment. Default: 128 MB.
    - ``columns``: names of columns, separated by commas. Default: all. Other columns are not sent from the reader to
      Spark, which takes a large part of the time of a query.
    - ``maxBytesPerTrigger`` and ``maxFilesPerTrigger``: about how much a micro-batch of a stream reads. A batch reads
      one message at least. Default: all that is there.
    - ``waitSeconds``: how long a query waits for a ``path`` that was there and is away, such as a mount. Default: 60.

    A stream reads each message once. A segment that was deleted, cut off, or begun anew under its name, before it was
    read is one row with ``state`` ``poisoned`` and a ``reason`` that starts with ``lost:`` and has the range of bytes.
    Segments that were made and deleted between two micro-batches are one such row with the range of offsets, on the
    segment after them. Segments that were deleted before the first look at a partition give no row.
    If a server cut more off after a crash than the last messages of a segment, some of those before the cut come twice.

    Broken bytes are rows with ``state`` ``poisoned``, a ``reason`` and the bytes in ``original``, up to 16 MB in each.
    After them, the source reads on at the next record whose checksum holds.
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

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of segment files."""
        options = Options.of(self.options)
        if options.layout == AUTO:
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)} to write files: pass option('layout', ...)")
        return IggyWriter(options.path, options.layout, overwrite)


class IggyReader(DataSourceReader):
    """Read the present segments."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of all segments; their boundaries are found by the tasks that read them."""
        seen = sorted(self.options.folder.seen())
        return [Piece(part) for file in seen for part in divided(file.name, 0, file.size, self.options.split)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_piece(self.options, partition)
