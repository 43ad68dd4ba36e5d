"""Offsets that are in no segment: those of segments that a server made and deleted between two looks.

A server names a segment by the offset that comes next. So a new segment whose name is higher than the offset after the
segments before it shows that offsets are missing. A segment is checked once, when the end of those before it is known:
they have been read to their end, or they are gone.

The segments of a folder's first look are not checked. Nor is a folder whose last segment is gone if a new one has a
lower name: its topic was purged, or made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgid.iggy._marks import NOTHING, first_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from msgid.iggy._marks import Mark, Marks


def next_offset(name: str, mark: Mark) -> int | None:
    """Return the offset that comes next in a segment; None if it is not known.

    >>> from msgid.iggy._marks import Mark
    >>> next_offset("00000000000000000007.log", Mark(0, 90, 1)), next_offset("7.log", Mark(60, 90, 1, next=8))
    (7, 8)
    """
    return mark.next if mark.position else first_offset(name)


def _new(found: Mapping[str, Mark], start: Mapping[str, Mark]) -> list[str]:
    """Return the segments that were made since the last look."""
    return [name for name, mark in found.items() if name not in start or mark.generation != start[name].generation]


def is_begun_anew(found: Mapping[str, Mark], start: Mapping[str, Mark]) -> bool:
    """Return whether a folder's segments were all deleted, and others made from a lower name on.

    Args:
        found: The marks of the segments that are there.
        start: The marks of the folder at the last look; none at its first look.
    """
    if not start:
        return False
    last, new = max(start), _new(found, start)
    return (last not in found or last in new) and any(name <= last for name in new)


def to_check(found: Mapping[str, Mark], start: Mapping[str, Mark]) -> Marks:
    """Return the marks of new segments, marked as to be checked; none at the first look.

    Args:
        found: As for `is_begun_anew`.
        start: As for `is_begun_anew`.
    """
    last = max(start, default=None)
    return {name: found[name]._replace(missing=None) for name in _new(found, start) if last is not None and name > last}


def missing_before(
    found: Mapping[str, Mark], start: Mapping[str, Mark], is_ended: Callable[[str], bool]
) -> dict[str, int]:
    """Return the first missing offset before each segment that can be checked now, or `NOTHING`.

    Args:
        found: The marks of the segments of a folder that are there.
        start: The marks of the folder at the last look.
        is_ended: Returns whether a segment that is there has been read, and will not grow.
    """
    names = sorted({**start, **found})
    checked = {}
    for place, name in enumerate(names):
        if name not in found or found[name].missing is not None:
            continue
        expected = _expected(names[:place], found, start, is_ended)
        if expected is not None:
            number = first_offset(name)
            checked[name] = expected if number is not None and expected < number else NOTHING
    return checked


def _expected(
    names: Sequence[str], found: Mapping[str, Mark], start: Mapping[str, Mark], is_ended: Callable[[str], bool]
) -> int | None:
    """Return the offset that comes after those of segments; None if that is not known yet, `NOTHING` if it will not be.

    Offsets of a segment that is gone count as missing if none of its messages was read and the offsets before it were
    not checked.
    """
    lowest = None
    for name in reversed(names):
        is_there = name in found
        if is_there and not is_ended(name):
            return lowest
        mark = found[name] if is_there else start[name]
        following = next_offset(name, mark)
        if is_there or mark.position or mark.missing is not None or following is None:
            lowest = lowest if following is None else following
            break
        lowest = following
    return NOTHING if lowest is None else lowest
