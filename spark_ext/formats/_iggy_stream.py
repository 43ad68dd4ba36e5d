"""The stream reader of ``format("iggy")``: each closed segment once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from spark_ext.formats._iggy_files import LastRead, closed_segments, mark_of
from spark_ext.formats._iggy_reading import Options, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spark_ext.formats._iggy_files import Segment


_VERSION: Final = 6
"""The version of an offset; those of earlier versions did not tell a topic that was made anew."""


def _offset(last: Mapping[str, LastRead]) -> dict[str, Any]:
    """Return the offset of a query: the first offset and the mark of the last segment that was read, by folder."""
    return {"version": _VERSION, "segments": {folder: list(one) for folder, one in last.items()}}


def _last_read(offset: Mapping[str, Any]) -> dict[str, LastRead]:
    """Return the last segments of an offset; ValueError if another version wrote it."""
    if offset.get("version") != _VERSION:
        raise ValueError(
            'cannot continue a stream of format("iggy"): another version wrote its checkpoint. '
            "Start with a new checkpoint"
        )
    return {folder: LastRead(*one) for folder, one in offset["segments"].items()}


class IggyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read closed segments, each once."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)
        self.bound: set[str] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset of a reader that has read nothing."""
        return _offset({})

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options ask for."""
        return ReadAllAvailable() if self.options.max_files is None else ReadMaxFiles(self.options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the present closed segments."""
        self.bound = {segment.path for segment in closed_segments(self.options.path, {})}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the last segment of each folder that the next batch reads; each folder has its turn."""
        last, turns = _last_read(start), Counter[str]()
        new: list[tuple[int, Segment]] = []
        for segment in closed_segments(self.options.path, last):
            is_new = segment.folder not in last or segment.first > last[segment.folder].first
            if is_new and (self.bound is None or segment.path in self.bound):
                turns[segment.folder] += 1
                new.append((turns[segment.folder], segment))
        most = None if isinstance(limit, ReadAllAvailable) else self.options.max_files
        chosen = {segment.folder: segment for _, segment in sorted(new)[:most]}
        return _offset(last | {folder: LastRead(one.first, mark_of(one)) for folder, one in chosen.items()})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the parts of the segments between two offsets."""
        before, last = _last_read(start), _last_read(end)
        none = LastRead(-1, "")
        return [
            part
            for segment in closed_segments(self.options.path, last)
            if before.get(segment.folder, none).first < segment.first <= last.get(segment.folder, none).first
            for part in self.options.parts(segment)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_part(self.options, partition)
