"""The contents of a store: states, entries of handled messages, and how long they are kept.

A store keeps the newest state and its version for each (handler, key). For each handled message it keeps an entry: the
version it made, the state before it, and a fingerprint of its outputs. States are bytes here.

**Retention.** A message is a duplicate as long as its entry is stored. `Store.forget` deletes the entries that were
*stored* before a given time, by the clock of the processor that stored them. The timestamp of a message does not
matter: a message dated 1970 or 2099, or a message without a time, does not cause the deletion of other entries.

A deleted entry leaves an 8-byte hash of its handler, key and ID. A message whose hash is kept is too late. Every other
message is new. A call of `Store.forget` also deletes the hashes of the messages that were stored more than ``remember``
(default: 90 days) before its moment::

    forget(before=1 March), with remember = 90 days

    stored from 1 March on                   the entry is kept: a duplicate with the outputs of the first time
    stored from 1 December to 28 February    the hash is kept: too late
    stored before 1 December                 nothing is kept: handled as new

So a message is handled a second time only if it is redelivered more than ``remember`` plus the retention period after
it was stored. The last batch that a writer has stored is kept, too, as long as its outputs may not be published: until
that writer stores another one, or for ``remember`` more. So an outage between both steps loses nothing.

A new message is called too late only if its hash equals a kept one; the probability is 2**-64 for each
kept hash. A hash takes about 30 bytes of a SQLite file, including its index.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgid.shared.moments import micros_in
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Append", "Entry", "Reading", "Version"]

DEFAULT_REMEMBER: Final = timedelta(days=90)
_SMALL: Final = 256
"""The length of a state in bytes up to which compression does not pay."""
_PLAIN, _DEFLATED = b"P", b"W"
_HASH_BYTES: Final = 8
HASH_IN: Final = f"substr({{}}, 2, {_HASH_BYTES})"
"""The hash of a packed state in SQL."""


class Entry(NamedTuple):
    """The result of a handled message, to be stored."""

    id: str
    """The canonical form of the message's ID."""
    state: bytes
    """The state after the message."""
    fingerprint: bytes
    """The fingerprint of the outputs, 16 bytes, and that of the message's body, 8 bytes if JSON can represent it."""
    stored_at: int
    """The time when the handling of its batch began, in microseconds since 1970."""
    at: int | None = None
    """The time of the message, in microseconds since 1970; used only for the history."""
    outputs: bytes | None = None
    """The outputs and the state, if the processor stores them."""


class Reading(NamedTuple):
    """The data of a store for one message and its key."""

    version: int
    """The newest version of the key; 0 for a new key."""
    state: bytes | None
    """The state for the handler: the state before the message if it was handled, else the newest state."""
    handled: int | None = None
    """The version that the message made; None without an entry."""
    fingerprint: bytes | None = None
    """The value of `Entry.fingerprint`, if the message was handled."""
    outputs: bytes | None = None
    """The value of `Entry.outputs`."""
    forgotten: int | None = None
    """The time when the message's entry was stored, if the entry has been deleted; in microseconds since 1970."""


class Append(NamedTuple):
    """New entries of a key after a version."""

    key: str
    version: int
    """The version that was read."""
    before: bytes | None
    """The state of that version."""
    entries: Sequence[Entry]


class Version(NamedTuple):
    """A state in the history of a key."""

    version: int
    """The number of the version, from 1."""
    id: str | None
    """The ID of the message that made the version; None if that message was deleted."""
    at: int | None
    """The time of the message, in microseconds since 1970."""
    state: bytes | None
    """The state; None if it was deleted with the entry of the next version, which did not have to be kept."""
    stored_at: int | None = None
    """The time when the version was stored, in microseconds since 1970; None if the message was deleted."""
    handler: str = ""


class Store(Protocol):
    """A store of states. Stores of one database share their content; each worker has its own object."""

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""

    def append(self, handler: str, appends: Sequence[Append], writer: int | None = None) -> list[bool]:
        """Store entries in one transaction; return for each key whether its version was still the newest.

        Args:
            handler: Name of the handler.
            appends: Entries that were stored at one time.
            writer: Number of the writer, for entries with outputs. `forget` keeps the entries of that time until the
                writer appends again, which means that the outputs are published, or until ``remember`` has passed.
        """

    def history(self, key: str, *, handler: str | None = None) -> list[Version]:
        """Return the states of a key at one moment, oldest first, from one handler or from all handlers."""

    def forget(self, before: int, *, handler: str | None = None, keys: bool = False) -> int:
        """Delete the entries that were stored before a time, of one handler or of all; return their number.

        The time is in microseconds since 1970. With ``keys``, also delete the state of each key that loses its last
        entry.
        """

    def forget_key(self, key: str, *, handler: str | None = None) -> int:
        """Delete the state and the entries of a key, of one handler or of all; return the number of entries.

        The marks of forgotten messages stay.
        """


class Kept(NamedTuple):
    """The part of an entry that a history needs."""

    version: int
    id: str
    at: int | None
    stored_at: int
    before: bytes | None


def check_key(key: object) -> None:
    """Raise TypeError if a business key is not text.

    >>> check_key("customer 7")
    """
    if not isinstance(key, str):
        raise TypeError(f"key must be text, got {quote(key)}")


def assemble(handler: str, newest: int, state: bytes | None, entries: Iterable[Kept]) -> list[Version]:
    """Return the history of a key from its newest state and its entries.

    The state of a version is the newest state, or the state before the next message.

    >>> entries = [Kept(1, "one", 0, 0, None), Kept(2, "two", 0, 0, b"a")]
    >>> [version.state for version in assemble("handler", 2, b"b", entries)]
    [b'a', b'b']
    """
    kept = {entry.version: entry for entry in entries}
    states: dict[int, bytes | None] = {one.version - 1: one.before for one in kept.values() if one.before is not None}
    if newest:
        states[newest] = state
    versions = []
    for version in sorted(kept.keys() | states.keys()):
        entry = kept.get(version)
        id, at, stored_at = (None, None, None) if entry is None else (entry.id, entry.at, entry.stored_at)
        versions.append(Version(version, id, at, states.get(version), stored_at, handler))
    return versions


def check_process(store: object, process: int) -> None:
    """Raise RuntimeError if another process has opened the store, which a fork has copied to this one."""
    if os.getpid() != process:
        raise RuntimeError(
            f"cannot use a {type(store).__name__} after a fork: process {process} has opened it, and this is process"
            f" {os.getpid()}; open a store in each process"
        )


def remembered(remember: timedelta | str | None) -> int | None:
    """Return how long hashes are kept, in microseconds; None keeps them forever."""
    return None if remember is None else micros_in("remember", remember)


def hash_of(handler: str, key: str, id: str) -> int:
    """Return the 8-byte hash of a forgotten message, as a signed integer.

    >>> hash_of("a", "b", "c") == hash_of("a", "bc", "")
    False
    """
    content = f"{len(handler)} {len(key)} {handler}{key}{id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)


def pack(state: bytes | None) -> bytes | None:
    """Compress a state, behind its hash; None, the state before the first message, stays None.

    The hash tells states apart in the database: another version of zlib compresses one to other bytes.

    >>> unpack(pack(b"small")), len(pack(b"x" * 10_000)) < 100
    (b'small', True)
    """
    if state is None:
        return None
    hashed = hashlib.blake2b(state, digest_size=_HASH_BYTES).digest()
    if len(state) <= _SMALL:
        return _PLAIN + hashed + state
    return _DEFLATED + hashed + zlib.compress(state, 1)


def unpack(packed: bytes | None) -> bytes | None:
    """Return the state that `pack` compressed."""
    if packed is None:
        return None
    kind, content = bytes(packed[:1]), bytes(packed[1 + _HASH_BYTES :])
    if kind not in (_PLAIN, _DEFLATED):
        raise ValueError(f"packed must be a packed state, got {quote(packed)}")
    return content if kind == _PLAIN else zlib.decompress(content)
