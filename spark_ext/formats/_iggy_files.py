"""Iggy's segment files on any file system: their names, their bytes, and which are closed."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.iggy.index import Point, split_points
from spark_ext._filesystem import filesystem, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgid.iggy.wire import Layout

ENDING: Final = ".log"
_IN_PATH: Final = re.compile(r"streams/([^/]+)/topics/([^/]+)/partitions/([0-9]{1,9})/[^/]*\Z")
_SEGMENT: Final = re.compile(r"(?:\A|/)0*([0-9]{1,18})\.log\Z")
_MARKED_BYTES: Final = 256
"""The longest head of a record and its first message: less than this holds a time or a checksum in each layout."""
_MARK_DIGITS: Final = 16
_SERVER_NAME: Final = re.compile(r"(?:\A|/)([0-9]{20})\.log\Z")


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
    """Return the names in the path ``.../streams/1/topics/2/partitions/3/00000000000000000000.log``."""
    match, number = _IN_PATH.search(path), _SEGMENT.search(path)
    segment = int(number[1]) if number else None
    if match is None:
        return SegmentNames(f"iggy:{path.rpartition('/')[0] or path}", None, None, None, segment)
    stream, topic, partition = match.groups()
    return SegmentNames(f"iggy:{stream}/{topic}#{int(partition)}", stream, topic, int(partition), segment)


def first_offset(path: str) -> int | None:
    """Return the first offset of a segment, which servers write as its file's name in 20 digits; None for another name.

    >>> first_offset("partitions/1/00000000000000000007.log"), first_offset("20240101.log")
    (7, None)
    """
    match = _SERVER_NAME.search(path)
    return None if match is None else int(match[1])


class Segment(NamedTuple):
    """A segment file."""

    folder: str
    """Its folder within the path that is read."""
    first: int
    """Its first offset, or 0 if its name is not a number."""
    path: str
    """Its whole path or URL."""
    size: int
    """In bytes."""


def segments(path: str) -> list[Segment]:
    """Return the segments in a path or URL: one file, or a folder with all folders in it.

    A server keeps other files in a folder, too. Links to folders are not followed.

    Raises:
        FileNotFoundError: if nothing is at the path.
    """
    import pyarrow.fs as pafs

    files, inner = filesystem(path)
    root = resolve(path).rstrip("/")
    root = os.path.abspath(root) if os.path.isabs(root) else root  # one name, however the path is spelled
    info = files.get_file_info(inner)
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(f"no file or folder {path}")
    if info.type == pafs.FileType.File:
        return [Segment("", first_offset(root) or 0, root, info.size)]
    if isinstance(files, pafs.LocalFileSystem):
        every = [f"{folder}/{name}" for folder, _, names in os.walk(inner) for name in names]
        infos = files.get_file_info(list(filter(_SERVER_NAME.search, every)))
    else:
        infos = files.get_file_info(pafs.FileSelector(inner, recursive=True))
    return sorted(
        _segment(root, info.path.removeprefix(inner.rstrip("/")), info.size)
        for info in infos
        if info.type == pafs.FileType.File and first_offset(info.path) is not None
    )


def _segment(root: str, inside: str, size: int) -> Segment:
    return Segment(inside.rpartition("/")[0].lstrip("/"), first_offset(inside) or 0, root + inside, size)


class LastRead(NamedTuple):
    """The last segment of a folder that a stream has read."""

    first: int
    """Its first offset."""
    mark: str
    """A hash of its first bytes, which hold the time or the checksum of a message: a topic made anew has others."""


def mark_of(segment: Segment) -> str:
    """Return the hash of the first bytes of a closed segment.

    Raises:
        FileNotFoundError: if it was deleted.
    """
    with _opened(segment.path) as file:
        return hashlib.sha256(bytes(file.read_at(_MARKED_BYTES, 0))).hexdigest()[:_MARK_DIGITS]


def closed_segments(path: str, read: Mapping[str, LastRead]) -> list[Segment]:
    """Return the segments that a later one of their folder follows: a server writes to the last one alone.

    Args:
        path: The path or URL of a folder.
        read: The last closed segment that was read, by folder.

    Raises:
        FileNotFoundError: if nothing is at the path.
        ValueError: if a file is at the path, or the segments of a folder begin anew.
    """
    listed = segments(path)
    if [(segment.folder, segment.path) for segment in listed] == [("", resolve(path))]:
        raise ValueError(f"path of a stream must be a folder, got {path}")
    by_folder: dict[str, list[Segment]] = {}
    for segment in listed:
        by_folder.setdefault(segment.folder, []).append(segment)
    for folder, last in read.items():
        if folder in by_folder and not _goes_on(by_folder[folder], last):
            raise ValueError(
                f"the segments of {path}/{folder} begin anew at {by_folder[folder][0].first}, and those up to "
                f"{last.first} have been read: the topic was purged or made anew; use a new checkpoint"
            )
    return [segment for segment in listed if segment.first < by_folder[segment.folder][-1].first]


def _goes_on(present: list[Segment], last: LastRead) -> bool:
    """Return whether the segments of a folder, in their order, go on where a stream has read the last one."""
    if present[-1].first <= last.first:
        return False  # a later one was there
    same = next((segment for segment in present if segment.first == last.first), None)
    if same is None:
        return present[0].first > last.first  # retention deletes the earliest segments first
    try:
        return mark_of(same) == last.mark
    except FileNotFoundError:  # retention has deleted it since it was listed
        return True


def points_of(segment: Segment, layout: Layout, part_bytes: int) -> list[Point]:
    """Return where a segment is divided into parts of about so many bytes; without an index it is one part."""
    whole, parts = [Point(0, layout)], -(-segment.size // part_bytes)
    if parts <= 1:
        return whole
    try:
        with _opened(segment.path) as file, _opened(f"{segment.path.removesuffix(ENDING)}.index") as index:
            return split_points(
                lambda position, length: bytes(file.read_at(length, position)),
                segment.size,
                lambda position, length: bytes(index.read_at(length, position)),
                int(index.size()),
                parts,
                layout=layout,
                first_offset=segment.first,
            )
    except FileNotFoundError:
        return whole


def _opened(path: str) -> Any:
    files, inner = filesystem(path)
    return files.open_input_file(inner)


def open_part(path: str, start: int, stop: int) -> Any:
    """Return an open segment at the start of a part.

    Raises:
        FileNotFoundError: if it was deleted.
        OSError: if it is shorter than it was.
    """
    file = _opened(path)
    size = file.size()
    if size < stop:
        file.close()
        raise OSError(f"{path} has {size} bytes, and had {stop} when the query was planned")
    file.seek(start)
    return file
