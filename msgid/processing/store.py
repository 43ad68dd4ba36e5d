"""The contents of a store: states, entries of handled messages, and how long they are kept.

A store keeps of each (handler, key) the newest state and its version. Of each handled message it keeps an entry: the
version it made, the state before it, and a fingerprint of its outputs. States are bytes here.

**Retention.** A message is a duplicate as long as its entry is stored. `Store.forget` deletes the entries that were
*stored* before a moment, by the clock of the processor that stored them. The time that a message claims plays no part:
a message dated 1970 or 2099, or one without a time, closes nothing.

A deleted entry leaves an 8-byte hash of its handler, key and ID. A message whose hash is kept is too late. Every other
message is new. A call of `Store.forget` also deletes the hashes of the messages that were stored more than ``remember``
(default: 90 days) before its moment::

    forget(before=1 March), with remember = 90 days

    stored from 1 March on                   the entry is kept: a duplicate, answered as the first time
    stored from 1 December to 28 February    the hash is kept: too late
    stored before 1 December                 nothing is kept: handled as new

So a message is handled a second time only if it is redelivered more than ``remember`` plus the retention period after
it was stored. A message that was never handled is called too late only if its hash equals a kept one: the chance is
2**-64 for each kept hash. A hash takes about 30 bytes of a SQLite file, with its index.
"""

from __future__ import annotations

import hashlib
import zlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgid._validate import aware, integer, quote, unix_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Append", "Entry", "Kept", "Reading", "Store", "Version", "assemble", "hash_of", "moment", "pack", "unpack"]

DEFAULT_REMEMBER: Final = timedelta(days=90)
_INT64: Final = 1 << 63
_WINDOW: Final = 1 << 15
"""How far back deflate looks: the part of a base state that is of use."""
_SMALL: Final = 256
"""The length of a state up to which packing does not pay."""
_PLAIN, _DEFLATED, _DELTA = b"P", b"W", b"D"


class Entry(NamedTuple):
    """What a message made: to be stored."""

    id: str
    """The message's ID in its canonical form."""
    state: bytes
    """The state after the message."""
    fingerprint: bytes
    """Of the outputs: `msgid.processing.context.fingerprint`."""
    stored_at: int
    """The time at which the entry is stored, microseconds since 1970."""
    at: int | None = None
    """The message's own time, microseconds since 1970; for the history alone."""
    outputs: bytes | None = None
    """The outputs and the state, if the processor keeps them."""


class Reading(NamedTuple):
    """The contents of a store for one message and its key."""

    version: int
    """The newest version of the key; 0 for a new key."""
    state: bytes | None
    """The state to run the handler on: the state before the message if it was handled, else the newest state."""
    handled: int | None = None
    """The version that the message made; None without an entry."""
    fingerprint: bytes | None = None
    """Of the outputs of the first time, if the message was handled."""
    outputs: bytes | None = None
    """As stored in `Entry.outputs`."""
    forgotten: int | None = None
    """The time at which the message's entry was stored, if the entry is forgotten; microseconds since 1970."""
    held: Any = None
    """The store needs it back in `Append.held`."""


class Append(NamedTuple):
    """The entries that follow a version of a key."""

    key: str
    version: int
    """The version that was read."""
    before: bytes | None
    """The state of that version."""
    entries: Sequence[Entry]
    held: Any = None
    """`Reading.held` of that version."""


class Version(NamedTuple):
    """A state in the history of a key."""

    version: int
    """From 1."""
    id: str | None
    """The ID of the message that made it; None if that message is forgotten."""
    at: int | None
    """The message's own time, microseconds since 1970."""
    state: bytes | None
    """None if the state is forgotten, which happens only if clocks disagree."""
    stored_at: int | None = None
    """The time at which it was stored, microseconds since 1970; None if the message is forgotten."""
    handler: str = ""


class Store(Protocol):
    """Where the states of keys are kept. Stores on one database are one store: each worker has its own object."""

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""

    def append(self, handler: str, appends: Sequence[Append]) -> list[bool]:
        """Store entries in one transaction; return for each key whether its version was still the newest."""

    def history(self, key: str, *, handler: str | None = None) -> list[Version]:
        """Return a key's states, oldest first: of one handler, or of all of them."""

    def forget(self, before: int | datetime, *, handler: str | None = None) -> int:
        """Delete the entries that were stored before a moment, of one handler or of all; return how many."""


class Kept(NamedTuple):
    """An entry as a history needs it."""

    version: int
    id: str
    at: int | None
    stored_at: int
    before: bytes | None


def assemble(handler: str, newest: int, state: bytes | None, entries: Iterable[Kept]) -> list[Version]:
    """Return the history of a key from its newest state and its entries.

    The state of a version is the newest state, or the state before the next message.

    >>> entries = [Kept(1, "one", 0, 0, None), Kept(2, "two", 0, 0, b"a")]
    >>> [version.state for version in assemble("handler", 2, b"b", entries)]
    [b'a', b'b']
    """
    kept = {entry.version: entry for entry in entries}
    states: dict[int, bytes | None] = {
        entry.version - 1: entry.before for entry in kept.values() if entry.before is not None
    }
    if newest:
        states[newest] = state
    versions = []
    for version in sorted(kept.keys() | states.keys()):
        entry = kept.get(version)
        id, at, stored_at = (None, None, None) if entry is None else (entry.id, entry.at, entry.stored_at)
        versions.append(Version(version, id, at, states.get(version), stored_at, handler))
    return versions


def moment(name: str, value: int | datetime) -> int:
    """Return microseconds since 1970 of a moment that is given so or as an aware datetime."""
    if isinstance(value, datetime):
        return unix_micros(aware(name, value))
    return integer(name, value, -_INT64, _INT64 - 1)


def remembered(remember: timedelta | None) -> int | None:
    """Return how long hashes are kept in microseconds, or None for ever."""
    if remember is None:
        return None
    if not isinstance(remember, timedelta) or remember < timedelta(0):
        raise ValueError(f"remember must be a timedelta of 0 or more, or None, got {quote(remember)}")
    return remember // timedelta(microseconds=1)


def hash_of(handler: str, key: str, id: str) -> int:
    """Return the 8 bytes that stay of a forgotten message, as a signed integer.

    >>> hash_of("a", "b", "c") == hash_of("a", "bc", "")
    False
    """
    content = f"{len(handler)} {len(key)} {handler}{key}{id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


def pack(state: bytes, base: bytes | None = None) -> bytes:
    """Pack a state: by itself, or as the differences to a base state.

    >>> state = bytes(range(256)) * 4
    >>> len(pack(state)) > 10 * len(pack(state + b"!", state))
    True
    """
    if base is not None:
        writer = zlib.compressobj(zdict=base[-_WINDOW:])
        return _DELTA + writer.compress(state) + writer.flush()
    if len(state) <= _SMALL:
        return _PLAIN + state
    return _DEFLATED + zlib.compress(state, 1)


def unpack(packed: bytes, base: bytes | None = None) -> bytes:
    """Return the state that `pack` has packed; ``base`` is needed for differences."""
    kind, content = packed[:1], packed[1:]
    if kind == _PLAIN:
        return content
    if kind == _DEFLATED:
        return zlib.decompress(content)
    if kind != _DELTA or base is None:
        raise ValueError(f"packed must be a packed state, got {quote(packed)}")
    reader = zlib.decompressobj(zdict=base[-_WINDOW:])
    return reader.decompress(content) + reader.flush()
