"""Divide a large segment at records that the ``.index`` file beside it names.

An index can be wrong, ahead of its log or behind it. So each position is checked in the log: a record starts there
whose checksum holds. A position that fails is not a point of division.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgid.iggy.records.decoding import NAMES, later_codes
from msgid.iggy.records.searching import LONGEST, Detection, Probe, detect, probe
from msgid.iggy.wire import AUTO, LAYOUTS, Layout, name_of
from msgid.shared.validate import in_range

if TYPE_CHECKING:
    from collections.abc import Callable

_Checked = TypeVar("_Checked", Detection, Probe)
_HEAD: Final = 1 << 12
"""How many bytes are read first to check a record."""


class _Form(NamedTuple):
    """The entries of an index."""

    stride: int
    at: int
    """Where the position is in an entry."""
    width: int


_FORMS: Final[dict[str, tuple[_Form, ...]]] = {
    "m45": (_Form(4, 0, 4),),
    "batch24": (_Form(16, 4, 4), _Form(8, 4, 4)),
    "h56-crc": (_Form(16, 4, 4),),
    "h56-xxh3": (_Form(16, 4, 4),),
    "h64": (_Form(16, 4, 4),),
    "batch256": (_Form(24, 16, 8),),
}
"""The forms of an index by the layout of its log; positions are starts of records, or the ends of those before."""


class Point(NamedTuple):
    """Where a segment can be divided."""

    position: int
    layout: Layout
    """The layout of the record; ``auto`` for the first record if its layout is not known."""


def split_points(
    read: Callable[[int, int], bytes],
    size: int,
    read_index: Callable[[int, int], bytes],
    index_size: int,
    parts: int,
    *,
    layout: Layout = "auto",
    first_offset: int = 0,
) -> list[Point]:
    """Return the start of the log, and at most ``parts - 1`` points that divide its messages about evenly.

    Args:
        read: Returns the bytes of the log at a position; fewer only at its end.
        size: The size of the log in bytes.
        read_index: Returns the bytes of the index at a position.
        index_size: The size of the index in bytes.
        parts: The number of parts.
        layout: The layout of the log. Default: detected by the first record, and later layouts of an upgraded server.
        first_offset: The number in the file's name.

    >>> from msgid.iggy import Message, encode_log
    >>> log = encode_log([Message.new(b"a" * 100, id=n, offset=n) for n in range(10)], "h64")
    >>> index = b"".join(bytes(4) + (164 * n).to_bytes(4, "little") + bytes(8) for n in range(1, 11))
    >>> bytes_at = [lambda position, length, data=data: data[position : position + length] for data in (log, index)]
    >>> split_points(bytes_at[0], len(log), bytes_at[1], len(index), 3)
    [Point(position=0, layout='auto'), Point(position=656, layout='h64'), Point(position=1148, layout='h64')]
    """
    first: Layout = name_of(layout, auto=True)  # type: ignore[assignment]
    detected = _first_layout(read, size, first_offset) if first == AUTO else first
    best = [Point(0, first)]
    for form in _FORMS.get(detected or "", ()):
        codes = later_codes(LAYOUTS[detected or ""].code, upgrade=first == AUTO)
        entries, points = index_size // form.stride, [Point(0, first)]
        for number in sorted({entries * part // parts for part in range(1, parts)}):
            position = int.from_bytes(read_index(number * form.stride + form.at, form.width), "little")
            if in_range(position, points[-1].position + 1, size - 1):
                names = [NAMES[code] for code in codes if _starts(read, position, size, code, first_offset)]
                points += [Point(position, name) for name in names[:1]]  # type: ignore[arg-type]
        best = max(best, points, key=len)
    return best


def _first_layout(read: Callable[[int, int], bytes], size: int, first_offset: int) -> str | None:
    return _checked(read, 0, size, lambda data: detect(data, known=size, first_offset=first_offset)).layout


def _starts(read: Callable[[int, int], bytes], position: int, size: int, code: int, first_offset: int) -> bool:
    """Return whether a record of a layout starts at a position, with a correct checksum."""
    facts, known = LAYOUTS[NAMES[code]], size - position
    return _checked(read, position, size, lambda data: probe(data, facts, known, first_offset, LONGEST)).reason is None


def _checked(
    read: Callable[[int, int], bytes], position: int, size: int, check: Callable[[bytes], _Checked]
) -> _Checked:
    """Return the result of a check of the bytes at a position, with as many bytes as it needs."""
    wanted = _HEAD
    while True:
        data = read(position, min(wanted, size - position))
        result = check(data)
        if result.needed <= len(data) or len(data) < min(wanted, size - position):
            return result
        wanted = result.needed
