"""What a store keeps of a key: a stream of versions, each with the id of the message that made it.

States are bytes here. A state may be kept as what differs from the one before it, with a whole one every so often.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NOTHING_FORGOTTEN", "Entry", "Reading", "Row", "Store", "Version", "find", "keep", "pack", "unpack"]

NOTHING_FORGOTTEN: Final = -(1 << 63)
"""The moment before which messages are forgotten, where none is: before all there can be."""
_WINDOW: Final = 1 << 15
"""How far back deflate looks: so much of the state before is of use."""
_WHOLE, _DELTA = b"W", b"D"


class Entry(NamedTuple):
    """What a message made: to be stored."""

    id: str
    at: int
    """The message's own time, microseconds since 1970."""
    state: bytes


class Version(NamedTuple):
    """A state in the history of a key."""

    version: int
    """From 1."""
    id: str | None
    """Of the message that made it; None where that is forgotten, and the state is there for the next one alone."""
    at: int
    state: bytes


class Reading(NamedTuple):
    """What a store says of a key and a message."""

    version: int
    """The newest; 0: there is none."""
    handled: int | None
    """The version that the message made; None: it has not been handled, or that is forgotten."""
    state: bytes | None
    """To handle the message on: the one before what it made, or the newest; None: there is none."""
    forgotten_before: int
    """Of messages older than this nothing may be known any more, microseconds since 1970."""


class Store(Protocol):
    """Where the states of keys are kept. Stores of one place are one store: workers may each have their own."""

    def read(self, key: str, id: str) -> Reading:
        """Read what there is for a message, all at one moment."""

    def append(self, key: str, version: int, entry: Entry) -> bool:
        """Store what a message made of a version, if that still is the newest; say whether it was."""

    def history(self, key: str) -> list[Version]:
        """Give a key's states, oldest first."""

    def forget(self, before: int) -> int:
        """Remove what messages older than a moment made, but for the newest state; give how many versions."""


class Row(NamedTuple):
    """A version as stores keep it."""

    version: int
    id: str | None
    at: int
    packed: bytes


def find(rows: Sequence[Row], id: str, forgotten_before: int) -> Reading:
    """Say what a key's rows, oldest first, say of a message."""
    newest = rows[-1].version if rows else 0
    handled = next((row.version for row in rows if row.id == id), None)
    wanted = newest if handled is None else handled - 1
    state = unpack(rows, wanted) if wanted else None
    return Reading(newest, handled, state, forgotten_before)


def keep(rows: Sequence[Row], before: int) -> list[Row]:
    """Give the rows that stay when messages older than a moment are forgotten.

    The oldest that stays is whole, as nothing is left that it could differ from; it has no id where its own message is
    forgotten, and is there as the state before the next.
    """
    first = next((place for place, row in enumerate(rows) if row.at >= before), len(rows))
    if first == 0:
        return list(rows)
    base = rows[first - 1]
    return [base._replace(id=None, packed=_WHOLE + zlib.compress(unpack(rows, base.version))), *rows[first:]]


def pack(state: bytes, previous: bytes | None = None) -> bytes:
    """Pack a state: whole, or as what differs from the one before it.

    >>> state = bytes(range(256)) * 4
    >>> len(pack(state)) > 10 * len(pack(state + b"!", state))
    True
    """
    if previous is None:
        return _WHOLE + zlib.compress(state)
    # The state before as the dictionary: what is still the same is written as a reference to it.
    writer = zlib.compressobj(zdict=previous[-_WINDOW:])
    return _DELTA + writer.compress(state) + writer.flush()


def unpack(rows: Sequence[Row], version: int) -> bytes:
    """Give the state of a version: the whole one before it, and all that differs since."""
    place = next(place for place, row in enumerate(rows) if row.version == version)
    start = place
    while rows[start].packed[:1] == _DELTA:
        start -= 1
    state = zlib.decompress(rows[start].packed[1:])
    for row in rows[start + 1 : place + 1]:
        reader = zlib.decompressobj(zdict=state[-_WINDOW:])
        state = reader.decompress(row.packed[1:]) + reader.flush()
    return state
