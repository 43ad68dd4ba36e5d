"""Marks, which are the state of a reader of segments, their JSON, and the parts that it reads next."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgid._validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

HEAD: Final = 256
"""How many of a segment's first bytes tell it from another of its name."""
ENDING: Final = ".log"
_DIGITS: Final = 20
NOTHING: Final = -1
"""The first of no missing offsets."""
_VERSION: Final = 4
_FORMER: Final = (2, 3)
"""The versions before marks had records, and before they had offsets."""


class Seen(NamedTuple):
    """A segment as a listing shows it."""

    name: str
    """Its path within the followed folder."""
    size: int
    modified: int
    """Milliseconds since 1970."""


class Record(NamedTuple):
    """A record that was read."""

    start: int
    head: str
    """The `fingerprint` of its first bytes."""


class Mark(NamedTuple):
    """How far one segment has been read."""

    position: int
    """Records before this byte have been read."""
    size: int
    """The size when the segment was last looked at."""
    modified: int
    head: str = ""
    """The `fingerprint` of the first bytes; empty as long as nothing was read."""
    generation: int = 0
    """How often the segment was begun anew."""
    records: tuple[Record, ...] = ()
    """Some of the records that were read, in their order; none of a segment that will not grow."""
    next: int | None = None
    """The offset after that of the last record that was read; None if it is not known."""
    missing: int | None = NOTHING
    """The first of the offsets before the segment that are in no segment; None as long as that is not decided."""


Marks = dict[str, Mark]


class Part(NamedTuple):
    """Bytes of a segment that one reader reads: the records that start in them."""

    name: str
    start: int
    stop: int
    first: int = 0
    """Where a record starts, at ``start`` or before it."""
    end: int = 0
    """Where the last record ends at most: the end of what all parts read."""
    head: str = ""
    """The fingerprint that the segment must have; empty for any."""
    lost: bool = False
    """Whether the bytes are known to be gone."""
    offsets: tuple[int, int] | None = None
    """The first and the last of the offsets before the segment that are lost, in place of bytes."""


class Segment(Protocol):
    """An open segment, as `latest` uses it."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def bytes_at(self, position: int, length: int) -> bytes:
        """Return bytes of the segment."""

    def boundary(self, target: int, first: int) -> int:
        """Return the first record's start at a target or after it, or where the last whole record ends.

        Args:
            target: A position in bytes.
            first: Where a record starts, at the target or before it.
        """

    def starts(self, first: int, stop: int) -> list[int]:
        """Return where the last records before a place start, at least one, in their order.

        Args:
            first: Where a record starts, before the place.
            stop: Where a record ends.
        """

    def after(self, start: int, stop: int) -> int | None:
        """Return the offset after that of the record between two places; None if it does not end at the second one."""

    @property
    def is_indexed(self) -> bool:
        """Whether the last records are found without reading those before them."""


def fingerprint(data: bytes) -> str:
    """Return the number and a hash of a segment's first bytes.

    >>> fingerprint(b"first bytes")
    '11-e2bc6c6bd4f7cdca'
    """
    return f"{len(data)}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"


def has_head(head: str, read: Callable[[int, int], bytes], start: int = 0) -> bool:
    """Return whether a segment has the bytes of a fingerprint at a place; every segment has those of an empty one."""
    return not head or fingerprint(read(start, int(head.partition("-")[0]))) == head


def to_json(marks: Mapping[str, Mark]) -> dict[str, Any]:
    """Return marks as a value that JSON can hold.

    >>> to_json({"a/0.log": Mark(9, 10, 1)})
    {'version': 4, 'segments': {'a/0.log': [9, 10, 1, '', 0, (), None, -1]}}
    """
    return {"version": _VERSION, "segments": {name: list(mark) for name, mark in sorted(marks.items())}}


def from_json(held: Mapping[str, Any], inner: Callable[[str], str | None]) -> Marks:
    """Return the marks of a value of `to_json`, or of its form before: a position for each file's whole path.

    Args:
        held: The value.
        inner: Returns a file's path within the followed folder; None for a file elsewhere.

    Raises:
        ValueError: if the value is of a later form, or names files elsewhere.

    >>> from_json({"/logs/a/0.log": 9}, lambda name: name.removeprefix("/logs/"))
    {'a/0.log': Mark(position=9, size=9, modified=0, head='', generation=0, records=(), next=None, missing=-1)}
    """
    version = held.get("version")
    if isinstance(version, int) and isinstance(held.get("segments"), dict):
        if version not in (*_FORMER, _VERSION):
            raise ValueError(
                f"cannot continue from the checkpoint: version of its offset must be {_VERSION}, got {version}"
            )
        return {name: _mark(*mark) for name, mark in held["segments"].items()}
    marks = {}
    for name, position in held.items():
        found = inner(name)
        if found is None or not isinstance(position, int):
            raise ValueError(
                f"cannot continue from the checkpoint: its offset names {quote(name)}, which is not in the path "
                "that is read; use the path of the first run, or a new checkpoint"
            )
        marks[found] = Mark(position, position, 0)
    return marks


def _mark(
    position: int,
    size: int,
    modified: int,
    head: str,
    generation: int,
    records: Iterable[tuple[int, str]] = (),
    next: int | None = None,
    missing: int | None = NOTHING,
) -> Mark:
    known = tuple(Record(*record) for record in records)
    return Mark(position, size, modified, head, generation, known, next, missing)


def folder_of(name: str) -> str:
    """Return the folder of a segment within the followed folder."""
    return name.rpartition("/")[0]


def by_folder(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of segments by their folders, in order."""
    folders: dict[str, list[str]] = {}
    for name in sorted(names):
        folders.setdefault(folder_of(name), []).append(name)
    return folders


def first_offset(name: str) -> int | None:
    """Return the first offset of a segment, which servers write as its file's name in 20 digits; None for another name.

    >>> first_offset("partitions/1/00000000000000000007.log"), first_offset("20240101.log")
    (7, None)
    """
    stem = name.rpartition("/")[2].removesuffix(ENDING)
    return int(stem) if len(stem) == _DIGITS and stem.isascii() and stem.isdigit() else None


def named(folder: str, first: int) -> str:
    """Return the name of the segment of a folder that starts at an offset.

    >>> named("partitions/1", 7)
    'partitions/1/00000000000000000007.log'
    """
    return f"{folder}/{first:0{_DIGITS}d}{ENDING}".removeprefix("/")
