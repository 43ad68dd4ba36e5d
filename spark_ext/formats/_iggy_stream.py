"""The stream reader of ``format("iggy")``: each closed segment once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from spark_ext.formats._iggy_files import closed_segments
from spark_ext.formats._iggy_reading import Options, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spark_ext.formats._iggy_files import Segment


class IggyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read closed segments. The offset of the query is the number of the last segment that was read, by folder."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)
        self.bound: set[str] | None = None

    def initialOffset(self) -> dict[str, int]:
        """Return the offset of a reader that has read nothing."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options ask for."""
        return ReadAllAvailable() if self.options.max_files is None else ReadMaxFiles(self.options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the present closed segments."""
        self.bound = {segment.path for segment in closed_segments(self.options.path, {})}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the last segment of each folder that the next batch reads; each folder has its turn."""
        turns: dict[str, int] = {}
        new: list[tuple[int, Segment]] = []
        for segment in closed_segments(self.options.path, start):
            if segment.first > start.get(segment.folder, -1) and (self.bound is None or segment.path in self.bound):
                turns[segment.folder] = turns.get(segment.folder, 0) + 1
                new.append((turns[segment.folder], segment))
        most = None if isinstance(limit, ReadAllAvailable) else self.options.max_files
        return start | {segment.folder: segment.first for _, segment in sorted(new)[:most]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the parts of the segments between two offsets."""
        return [
            part
            for segment in closed_segments(self.options.path, {})
            if start.get(segment.folder, -1) < segment.first <= end.get(segment.folder, -1)
            for part in self.options.parts(segment)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_part(self.options, partition)
