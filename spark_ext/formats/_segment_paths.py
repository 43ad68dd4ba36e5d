"""Iggy's names in the path of a segment: ``.../streams/1/topics/2/partitions/3/00000000000000000000.log``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_IN_PATH: Final = re.compile(r"streams/([^/]+)/topics/([^/]+)/partitions/([0-9]{1,9})/[^/]*\Z")
_SEGMENT: Final = re.compile(r"(?:\A|/)0*([0-9]{1,18})\.log\Z")


class SegmentNames(NamedTuple):
    """The names in a path; a name is None where the path does not have Iggy's folders."""

    source: str
    """The log: stream, topic and partition, or else the folder of the file."""
    stream: str | None
    topic: str | None
    partition: int | None
    segment: int | None
    """The number that is the file's name: the offset of the first message."""


def segment_names(path: str) -> SegmentNames:
    """Return the names in the path of a segment."""
    found, number = _IN_PATH.search(path), _SEGMENT.search(path)
    segment = int(number[1]) if number else None
    if found is None:
        return SegmentNames(f"iggy:{path.rpartition('/')[0] or path}", None, None, None, segment)
    stream, topic, partition = found.groups()
    return SegmentNames(f"iggy:{stream}/{topic}#{int(partition)}", stream, topic, int(partition), segment)
