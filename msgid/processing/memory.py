"""States in memory, for tests and for states that may be lost with the process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from msgid.processing.store import (
    DEFAULT_REMEMBER,
    Kept,
    Reading,
    assemble,
    check_key,
    check_process,
    hash_of,
    pack,
    remembered,
    unpack,
)
from msgid.shared.moments import moment

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


_Entries = dict[str | None, _Stored]
"""The entries of one key of one handler by ID. Under None is the newest version, with the state for the next message.

So an append is one call that changes one dictionary: an exception of a signal handler comes before it or after it.
"""
_NEW: Final = _Stored(0, 0, None, b"", None, None)
"""The newest version of a new key."""


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
        self._handlers: dict[str, dict[str, _Entries]] = {}
        self._forgotten: dict[str, dict[int, int]] = {}
        self._unpublished: dict[str, dict[int, int]] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return "MemoryStore()"

    def read(self, handler: str, wanted: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read the entry and the state for each (key, ID)."""
        check_process(self, self._process)
        with self._lock:
            return [self._read(handler, key, id) for key, id in wanted]

    def append(self, handler: str, appends: Sequence[Append], writer: int | None = None) -> list[bool]:
        """Store entries; return for each key whether its version was still the newest."""
        check_process(self, self._process)
        with self._lock:
            if writer is not None:
                self._unpublished.setdefault(handler, {})[writer] = appends[0].entries[0].stored_at
            return [self._append(handler, append) for append in appends]

    def history(self, key: str, *, handler: str | None = None) -> list[Version]:
        """Return the states of a key at one moment, oldest first, from one handler or from all handlers."""
        check_key(key)
        check_process(self, self._process)
        with self._lock:
            versions = []
            for name in sorted(self._handlers) if handler is None else [handler]:
                entries = self._handlers.get(name, {}).get(key, {})
                if entries:
                    kept = [
                        Kept(entry.version, id, entry.at, entry.stored_at, unpack(entry.before))
                        for id, entry in entries.items()
                        if id is not None
                    ]
                    versions += assemble(name, entries[None].version, unpack(entries[None].before), kept)
            return versions

    def forget(self, before: int | datetime, *, handler: str | None = None, keys: bool = False) -> int:
        """Delete the entries that were stored before a time, of one handler or of all; return their number."""
        limit = moment("before", before)
        check_process(self, self._process)
        with self._lock:
            return sum(self._forget(name, limit, keys) for name in self._handlers if handler in (None, name))

    def forget_key(self, key: str, *, handler: str | None = None) -> int:
        """Delete the state and the entries of a key, of one handler or of all; return the number of entries."""
        check_key(key)
        check_process(self, self._process)
        with self._lock:
            handlers = [keys for name, keys in self._handlers.items() if handler in (None, name)]
            return sum(len(keys.pop(key, {None: _NEW})) - 1 for keys in handlers)

    def _read(self, handler: str, key: str, id: str) -> Reading:
        entries = self._handlers.get(handler, {}).get(key, {})
        newest = entries.get(None, _NEW)
        entry = entries.get(id)
        if entry is None:
            forgotten = self._forgotten.get(handler)
            late = forgotten.get(hash_of(handler, key, id)) if forgotten else None
            return Reading(newest.version, unpack(newest.before), forgotten=late)
        return Reading(newest.version, unpack(entry.before), entry.version, entry.fingerprint, entry.outputs)

    def _append(self, handler: str, append: Append) -> bool:
        keys = self._handlers.setdefault(handler, {})
        newest = keys.get(append.key, {}).get(None, _NEW)
        if (newest.version, unpack(newest.before)) != (append.version, append.before):
            return False
        added: _Entries = {}
        version, before = newest.version, newest.before
        for entry in append.entries:
            version += 1
            added[entry.id] = _Stored(version, entry.stored_at, entry.at, entry.fingerprint, before, entry.outputs)
            before = pack(entry.state)
        added[None] = _Stored(version, 0, None, b"", before, None)
        keys.setdefault(append.key, added).update(added)
        return True

    def _forget(self, handler: str, before: int, keys: bool) -> int:
        forgotten, unpublished = self._forgotten.setdefault(handler, {}), self._unpublished.setdefault(handler, {})
        handled, kept, count = self._handlers[handler], set(unpublished.values()), 0
        for key, entries in list(handled.items()):
            for id, entry in list(entries.items()):
                if id is not None and entry.stored_at < before and entry.stored_at not in kept:
                    forgotten[hash_of(handler, key, id)] = entry.stored_at
                    del entries[id]
                    count += 1
                    if keys and len(entries) == 1:
                        del handled[key]
        if self._remember is not None:
            for times in (forgotten, unpublished):
                for one in [one for one, stored_at in times.items() if stored_at < before - self._remember]:
                    del times[one]
        return count
