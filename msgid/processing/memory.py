"""States in memory: for tests, and for what may be lost with the process."""

from __future__ import annotations

import threading

from msgid.processing.store import NOTHING_FORGOTTEN, Entry, Reading, Row, Version, find, keep, pack, unpack

__all__ = ["MemoryStore"]


class MemoryStore:
    """States in memory, safe for threads.

    >>> store = MemoryStore()
    >>> store.append("key", 0, Entry("id", 0, b"state")), store.append("key", 0, Entry("other", 0, b"state"))
    (True, False)
    >>> store.read("key", "id").handled
    1
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._forgotten_before = NOTHING_FORGOTTEN
        self._lock = threading.Lock()

    def read(self, key: str, id: str) -> Reading:
        """Read what there is for a message."""
        with self._lock:
            return find(self._rows.get(key, []), id, self._forgotten_before)

    def append(self, key: str, version: int, entry: Entry) -> bool:
        """Store what a message made of a version, if that still is the newest."""
        with self._lock:
            rows = self._rows.setdefault(key, [])
            if (rows[-1].version if rows else 0) != version:
                return False
            rows.append(Row(version + 1, entry.id, entry.at, pack(entry.state)))
            return True

    def history(self, key: str) -> list[Version]:
        """Give a key's states, oldest first."""
        with self._lock:
            rows = self._rows.get(key, [])
            return [Version(row.version, row.id, row.at, unpack(rows, row.version)) for row in rows]

    def forget(self, before: int) -> int:
        """Remove what messages older than a moment made, but for the newest state."""
        with self._lock:
            self._forgotten_before = max(self._forgotten_before, before)
            count = 0
            for key, rows in self._rows.items():
                kept = keep(rows, before)
                count += len(rows) - len(kept)
                self._rows[key] = kept
            return count
