"""The stream reader of ``format("iggy")``; `msgid.iggy.following` has its rules."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from msgid.iggy._gaps import reach
from msgid.iggy._marks import from_json, to_json
from msgid.iggy.following import latest, parts
from spark_ext.formats._iggy_reading import Options, Piece, read_piece

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from spark_ext.formats._iggy_files import OpenSegment


class IggyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read the present segments, and later ones, as they grow; `msgid.iggy.following` has the rules."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = Options.of(options)
        self.bound: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset of a reader that has read nothing."""
        return to_json({})

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options ask for."""
        if self.options.max_bytes is not None:
            return ReadMaxBytes(self.options.max_bytes)
        return ReadAllAvailable() if self.options.max_files is None else ReadMaxFiles(self.options.max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the present segments."""
        self.bound = {seen.name: seen.size for seen in self.options.folder.seen()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return how far each segment is read by the next batch."""
        folder = self.options.folder
        if from_json(start, folder.inner):  # else a wrong path is an error at once
            folder.wait(self.options.wait)
        seen = folder.seen()
        if self.bound is not None:
            seen = [one._replace(size=min(one.size, self.bound[one.name])) for one in seen if one.name in self.bound]
        with ExitStack() as stack:

            def opened(name: str) -> OpenSegment | None:
                stack.close()  # one segment is open at any time
                try:
                    return stack.enter_context(folder.open(name))
                except FileNotFoundError:
                    return None

            free = isinstance(limit, ReadAllAvailable)
            max_bytes = None if free else self.options.max_bytes
            max_files = None if free else self.options.max_files
            end = latest(
                from_json(start, folder.inner),
                seen,
                opened,
                max_bytes=max_bytes,
                max_files=max_files,
            )
        return start if end is None else to_json(end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the parts between two offsets, and the lost parts."""
        folder = self.options.folder

        def resumed(name: str, place: int) -> int:
            with folder.open(name) as segment:
                return reach(segment.until(place), place, 0, waits=True)[0]

        states = from_json(start, folder.inner), from_json(end, folder.inner)
        return [Piece(part) for part in parts(*states, self.options.split, resumed)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the messages of a part as Arrow batches."""
        return read_piece(self.options, partition)
