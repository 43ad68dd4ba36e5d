"""The ``.index`` files that servers keep beside a segment.

An index can be wrong: some releases wrote wrong positions, and it can be ahead of its log or behind it. So nothing here
is more than a hint: `msgid.iggy.parts` checks every position in the log.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._validate import quote
from msgid.iggy._wire import facts_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class IndexEntry(NamedTuple):
    """An entry of an index; a field that the release does not write is None."""

    offset: int | None
    """Absolute in ``batch256``, else counted from the segment's first offset; in ``batch24`` of the last message."""
    position: int
    """Where a message or a batch starts; in ``h56-crc``, ``h56-xxh3`` and ``h64`` where a message ends."""
    timestamp: int | None
    """Microseconds since 1970."""


class _Form(NamedTuple):
    packed: struct.Struct
    order: tuple[str, ...]


_OFFSET_POSITION_TIME: Final = _Form(struct.Struct("<IIQ"), ("offset", "position", "timestamp"))
_FORMS: Final[dict[str, list[_Form]]] = {
    "previous": [_Form(struct.Struct("<I"), ("position",))],
    "m45": [_Form(struct.Struct("<I"), ("position",))],
    "batch24": [_OFFSET_POSITION_TIME, _Form(struct.Struct("<II"), ("offset", "position"))],
    "h56-crc": [_OFFSET_POSITION_TIME],
    "h56-xxh3": [_OFFSET_POSITION_TIME],
    "h64": [_OFFSET_POSITION_TIME],
    "batch256": [_Form(struct.Struct("<QQQ"), ("offset", "timestamp", "position"))],
}


def strides_of(layout: str) -> list[int]:
    """Return the sizes that an entry of an index can have, the newer release's first.

    >>> strides_of("batch24")
    [16, 8]
    """
    return [form.packed.size for form in _FORMS[name_of(layout)]]


class Blocks:
    """The bytes of a file; a block is read when it is first needed.

    Args:
        read: Returns the bytes at a position.
        length: The length of the file in bytes.
        block: How many bytes are read at once.

    >>> blocks = Blocks(lambda position, length: b"an index"[position : position + length], 8, block=4)
    >>> len(blocks), blocks[2:6]
    (8, b' ind')
    """

    def __init__(self, read: Callable[[int, int], bytes], length: int, *, block: int = 1 << 14) -> None:
        self._read = read
        self._length = length
        self._block = block
        self._held: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._length)
        first = start // self._block
        return b"".join(self._at(number) for number in range(first, -(-stop // self._block)))[
            start - first * self._block : stop - first * self._block
        ]

    def _at(self, number: int) -> bytes:
        if number not in self._held:
            start = number * self._block
            length = min(self._block, self._length - start)
            # A file that has been cut since is read as zeros, which no log confirms.
            self._held[number] = self._read(start, length).ljust(length, b"\0")
        return self._held[number]


IndexBytes = bytes | memoryview | Blocks
"""The bytes of an index."""


class Index:
    """The bytes of an index; an entry is read when it is asked for.

    Args:
        data: The bytes of an ``.index`` file: bytes, a `mmap.mmap`, or `Blocks` of a file.
        layout: The layout of the segment.
        stride: The size of an entry. Default: that of the newest release with the layout.

    >>> index = Index(bytes.fromhex("000000006700000094000000"), "m45")
    >>> len(index), index[1].position, index.first_from(104)
    (3, 103, 2)
    """

    def __init__(self, data: IndexBytes, layout: str, stride: int | None = None) -> None:
        forms = _FORMS[name_of(layout)]
        found = [form for form in forms if stride is None or form.packed.size == stride]
        if not found:
            raise ValueError(f"stride must be one of {strides_of(layout)}, got {quote(stride)}")
        self._form = found[0]
        self._data = data if isinstance(data, Blocks) else memoryview(data)
        self.ends = facts_of(layout).has_origin and not facts_of(layout).batch
        """Whether positions are the ends of messages."""

    def __len__(self) -> int:
        return len(self._data) // self._form.packed.size

    def __getitem__(self, number: int) -> IndexEntry:
        if not 0 <= number < len(self):
            raise IndexError(number)
        size = self._form.packed.size
        return _entry(self._form, self._form.packed.unpack(self._data[number * size : (number + 1) * size]))

    def columns(self, first: int, last: int) -> Any:
        """Return the entries of a range of numbers as a structured array of NumPy, with the fields that they have."""
        import numpy as np

        types = {"I": "<u4", "Q": "<u8"}
        sizes = self._form.packed.format.removeprefix("<")
        fields = [(name, types[size]) for name, size in zip(self._form.order, sizes, strict=True)]
        size = self._form.packed.size
        return np.frombuffer(self._data[first * size : last * size], np.dtype(fields))

    def first_from(self, position: int) -> int:
        """Return the number of the first entry at a position or after it, if the positions rise."""
        return bisect_left(range(len(self)), position, key=lambda number: self[number].position)


def _entry(form: _Form, values: Sequence[int]) -> IndexEntry:
    held = dict(zip(form.order, values, strict=True))
    return IndexEntry(held.get("offset"), held.get("position", 0), held.get("timestamp"))
