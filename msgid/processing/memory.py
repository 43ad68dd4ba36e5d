"""States in memory, for tests and for states that may be lost with the process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from msgid.processing.store import (
    DEFAULT_REMEMBER,
    Kept,
    Reading,
    assemble,
    check_key,
    check_process,
    hash_of,
    moment,
    pack,
    remembered,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from msgid.processing.store import Append, Version


class _Stored(NamedTuple):
    version: int
    stored_at: int
    at: int | None
    fingerprint: bytes
    before: bytes | None
    outputs: bytes | None


class _Key:
    """The states of one key of one handler."""

    __slots__ = ("entries", "packed", "version")

    def __init__(self) -> None:
        self.version = 0
        self.packed: bytes | None = None
        self.entries: dict[str, _Stored] = {}


class MemoryStore:
    """Stores states in memory, safe for threads; a child process that inherits it cannot use it.

    Args:
        remember: How long the hash of a forgotten message is kept: a timedelta or text such as ``"1 day"``; None keeps
            it forever.

    >>> from msgid.processing import Message, Processor
    >>> store = MemoryStore()
    >>> processor = Processor(store, lambda state, message, context: message.body, print, name="last")
    >>> processor.handle(Message("orders-0-42", "key", "a")).kind, store.history("key")[0].state
    ('new', b'"a"')
    """

    def __init__(self, *, remember: timedelta | str | None = DEFAULT_REMEMBER) -> None:
        self._remember = remembered(remember)
        self._handlers: dict[str, dict[str, _Key]] = {}
        self._forgotten: dict[str, dict[int, int]] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return "MemoryStore()"

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""
        check_process(self, self._process)
        with self._lock:
            return [self._read(handler, key, id) for key, id in wanted]

    def append(self, handler: str, appends: Sequence[Append]) -> list[bool]:
        """Store entries; return for each key whether its version was still the newest."""
        check_process(self, self._process)
        with self._lock:
            return [self._append(handler, append) for append in appends]

    def history(self, key: str, *, handler: str | None = None) -> list[Version]:
        """Return the states of a key at one moment, oldest first, from one handler or from all handlers."""
        check_key(key)
        check_process(self, self._process)
        with self._lock:
            versions = []
            for name in sorted(self._handlers) if handler is None else [handler]:
                held = self._handlers.get(name, {}).get(key)
                if held is None:
                    continue
                entries = [
                    Kept(one.version, id, one.at, one.stored_at, None if one.before is None else unpack(one.before))
                    for id, one in held.entries.items()
                ]
                state = None if held.packed is None else unpack(held.packed)
                versions += assemble(name, held.version, state, entries)
            return versions

    def forget(self, before: int | datetime, *, handler: str | None = None) -> int:
        """Delete the entries that were stored before a time, of one handler or of all; return their number."""
        limit = moment("before", before)
        count = 0
        check_process(self, self._process)
        with self._lock:
            for name in list(self._handlers) if handler is None else [handler]:
                count += self._forget(name, limit)
        return count

    def _read(self, handler: str, key: str, id: str) -> Reading:
        held = self._handlers.get(handler, {}).get(key)
        forgotten = self._forgotten.get(handler)
        late = forgotten.get(hash_of(handler, key, id)) if forgotten else None
        if held is None:
            return Reading(0, None, forgotten=late)
        entry = held.entries.get(id)
        if entry is None:
            return Reading(held.version, None if held.packed is None else unpack(held.packed), forgotten=late)
        before = None if entry.before is None else unpack(entry.before)
        return Reading(held.version, before, entry.version, entry.fingerprint, entry.outputs)

    def _append(self, handler: str, append: Append) -> bool:
        keys = self._handlers.setdefault(handler, {})
        held = keys.get(append.key)
        if held is None:
            held = keys[append.key] = _Key()
        if held.version != append.version or any(entry.id in held.entries for entry in append.entries):
            return False
        for entry in append.entries:
            held.version += 1
            held.entries[entry.id] = _Stored(
                held.version, entry.stored_at, entry.at, entry.fingerprint, held.packed, entry.outputs
            )
            held.packed = pack(entry.state)
        return True

    def _forget(self, handler: str, before: int) -> int:
        oldest = None if self._remember is None else before - self._remember
        forgotten = self._forgotten.setdefault(handler, {})
        count = 0
        for key, held in self._handlers.get(handler, {}).items():
            gone = {id: entry.stored_at for id, entry in held.entries.items() if entry.stored_at < before}
            for id, stored_at in gone.items():
                del held.entries[id]
                forgotten[hash_of(handler, key, id)] = stored_at
            count += len(gone)
        if oldest is not None:
            for hash in [hash for hash, stored_at in forgotten.items() if stored_at < oldest]:
                del forgotten[hash]
        return count
