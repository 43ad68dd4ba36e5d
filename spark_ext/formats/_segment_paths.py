"""Iggy's names in the path of a segment: ``.../streams/1/topics/2/partitions/3/00000000000000000000.log``.

Each row of a table has the path. Functions of Spark that cut text at a byte take a tenth of the time of a regular
expression over the whole path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["SegmentPath", "segment_path"]

_ENDING: Final = ".log"
_SEGMENT_MAX: Final = 10**18
_NUMBER: Final = r"\A\d{1,9}\z"


class SegmentPath(NamedTuple):
    """The names in a path; a column is NULL where the path does not have Iggy's folders."""

    stream: Column
    topic: Column
    partition: Column
    """int."""
    folder: Column
    """The folder that the segment is in."""
    segment: Column
    """bigint: the number that is the file's name."""


def segment_path(file: Column) -> SegmentPath:
    """Return the names in a column of paths."""

    def from_end(count: int) -> Column:
        return F.substring_index(F.substring_index(file, "/", -count), "/", 1)

    name, number = F.substring_index(file, "/", -1), from_end(2)
    is_iggy = (
        from_end(7).endswith("streams")
        & (from_end(5) == "topics")
        & (from_end(3) == "partitions")
        & (F.length(from_end(6)) > 0)
        & (F.length(from_end(4)) > 0)
        & number.rlike(_NUMBER)
    )
    stem = F.when(name.endswith(_ENDING), F.substring(name, F.lit(1), F.length(name) - len(_ENDING)))
    segment = F.when(stem.rlike(r"\A\d+\z"), stem.try_cast("bigint"))
    folder = F.substring(file, F.lit(1), F.length(file) - F.length(name) - 1)
    return SegmentPath(
        F.when(is_iggy, from_end(6)),
        F.when(is_iggy, from_end(4)),
        F.when(is_iggy, number.cast("int")),
        F.when(name == file, file).otherwise(folder),
        F.when(segment < _SEGMENT_MAX, segment),
    )
