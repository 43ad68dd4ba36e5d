"""The states of a bucket's keys, in pages of many keys each."""

from __future__ import annotations

import io
import itertools
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spark_ext.streaming._pages import Pages
from spark_ext.streaming._plain import Plain, dump, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spark_ext.streaming._pages import Values

MARK_BYTES: Final = 4


class Entry(NamedTuple):
    """A bucket's record of a message that was handled."""

    id: str
    stored: int
    """The processing time of the micro-batch, milliseconds since 1970."""
    before: bytes | None
    """The state that the message was handled on; None for the first message of a key, and if the outputs are kept."""
    answer: bytes | list[tuple[str, str | None, str]]
    """The fingerprint of the outputs, or the outputs: ID, topic and JSON."""


class KeyState:
    """The newest state of a key, and the entries of its messages: recent ones here, older ones in segments."""

    __slots__ = ("first", "first_stored", "forgotten", "ids", "next", "oldest", "recent", "runs", "state")

    def __init__(
        self,
        state: bytes | None = None,
        ids: bytes = b"",
        recent: bytes = b"",
        oldest: int = 0,
        forgotten: Sequence[tuple[int, int]] = (),
        first: int = 0,
        next: int = 0,
        first_stored: int = 0,
        runs: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        self.state = state
        self.ids = ids
        """The `mark` of the ID of each recent entry."""
        self.recent = recent
        """The recent entries, as `append` writes them."""
        self.oldest = oldest
        """When the first recent entry was stored."""
        self.forgotten = forgotten
        """Of forgotten messages that are in no run: the hash of the ID and when it was stored, oldest first."""
        self.first = first
        """The number of the oldest segment; segments are numbered without gaps."""
        self.next = next
        self.first_stored = first_stored
        """When the last message of the oldest segment was stored."""
        self.runs = runs
        """The sorted runs of hashed IDs: number, size and when the last one was stored; the largest run first."""

    def packed(self) -> tuple[Any, ...]:
        """Return the values from which `KeyState` makes an equal one."""
        packed = (self.state, self.ids, self.recent, self.oldest)
        if not self.next and not self.forgotten and not self.runs:
            return packed
        return (*packed, self.forgotten, self.first, self.next, self.first_stored, self.runs)

    def holds(self, mark: bytes) -> bool:
        """Return whether a recent entry may have an ID with this mark."""
        ids = self.ids
        at = ids.find(mark)
        while at >= 0:
            if at % MARK_BYTES == 0:
                return True
            at = ids.find(mark, at + 1)
        return False

    def append(self, entries: Sequence[Entry], marks: Iterable[bytes]) -> None:
        """Add entries that were stored at the same time to the recent ones; ``marks`` has the `mark` of each."""
        if not self.ids:
            self.oldest = entries[0].stored
        self.ids += b"".join(marks)
        plain: list[Any] = [entries[0].stored]
        for id, _, before, answer in entries:
            plain += (id, before, answer)
        self.recent += dump(plain)

    def entries(self) -> list[Entry]:
        """Return the recent entries, oldest first."""
        found = []
        stream = io.BytesIO(self.recent)
        while stream.tell() < len(self.recent):
            stored, *plain = Plain(stream).load()
            columns = zip(plain[::3], plain[1::3], plain[2::3], strict=True)
            found += [Entry(id, stored, before, answer) for id, before, answer in columns]
        return found

    def replace(self, entries: Sequence[Entry]) -> None:
        """Replace the recent entries."""
        self.ids = self.recent = b""
        self.oldest = 0
        for _, group in itertools.groupby(entries, key=lambda entry: entry.stored):
            at_once = list(group)
            self.append(at_once, [mark(entry.id) for entry in at_once])


def mark(id: str) -> bytes:
    """Return a few bytes that are equal for equal IDs, and rarely for different IDs."""
    return zlib.crc32(id.encode("utf-8", "surrogatepass")).to_bytes(MARK_BYTES, "little")


_Keys = dict[str, "tuple[Any, ...]"]
"""The packed states of keys."""


class KeysCodec:
    """The states of keys as the content of a page."""

    def empty(self) -> _Keys:
        """Return no states."""
        return {}

    def load(self, raw: bytes) -> _Keys:
        """Read what `dump` wrote."""
        keys: _Keys = load(raw)
        return keys

    def dump(self, content: _Keys) -> bytes:
        """Write states as bytes."""
        return dump(content) if content else b""

    def split(self, content: _Keys, parts: int) -> list[tuple[int, _Keys]]:
        """Divide states into parts with about the same number of keys; keys of one place stay together."""
        ordered = sorted((place_of(key), key) for key in content)
        firsts = sorted({ordered[part * len(ordered) // parts][0] for part in range(parts)})
        divided: list[tuple[int, _Keys]] = [(first, {}) for first in firsts]
        part = 0
        for place, key in ordered:
            while part + 1 < len(firsts) and place >= firsts[part + 1]:
                part += 1
            divided[part][1][key] = content[key]
        return divided

    def join(self, first: _Keys, second: _Keys) -> _Keys:
        """Return the states of both."""
        return {**first, **second}


def place_of(key: str) -> int:
    """Return the place of a key in the pages of its bucket."""
    return zlib.crc32(key.encode())


def _size(packed: tuple[Any, ...]) -> int:
    state, _, recent, *_ = packed
    return len(state or b"") + len(recent)


class Bucket:
    """The states of the keys of a bucket, read from pages on demand and written once by `commit`.

    Args:
        values: Where the bucket's state is.
        directory: The directory of its pages; empty for a new bucket.
        now_ms: The time of the micro-batch, milliseconds since 1970.
    """

    def __init__(self, values: Values, directory: bytes, now_ms: int) -> None:
        self._pages = Pages(values, KeysCodec(), directory, now_ms)
        self._page_of: dict[str, int] = {}
        self._now_ms = now_ms
        self.size = 0
        """About the number of bytes of the states that were read or changed since the last `commit`."""
        self.directory: bytes | None = None
        """The new directory; None if it is the old one."""

    def read(self, keys: Iterable[str], most: int) -> Iterable[str]:
        """Read the pages of some keys if they have at most so many bytes; return the keys in the order to take them.

        Larger pages are read one by one, so the keys of a page come one after another.
        """
        page_of = {key: self._pages.page_of(place_of(key)) for key in keys}
        pages = set(page_of.values())
        if self._pages.size_of(pages) > most:
            return sorted(page_of, key=place_of)
        self._page_of = page_of
        self._pages.read(pages)
        return page_of

    def key(self, key: str) -> KeyState:
        """Return the state of a key for reading and changing; `changed` stores it."""
        packed = self._pages.content(self._page(key)).get(key)
        self.size += 0 if packed is None else _size(packed)
        return KeyState() if packed is None else KeyState(*packed)

    def changed(self, key: str, state: KeyState) -> None:
        """Store the state of a key, which `commit` writes."""
        page = self._page(key)
        content = self._pages.content(page)
        content[key] = packed = state.packed()
        self.size += _size(packed)
        self._pages.replace(page, content)

    def sweep(self, every_ms: int) -> list[str]:
        """Return the keys of the pages whose old entries are due to be forgotten, each page once in ``every_ms``."""
        return [key for page in self._pages.due(self._now_ms, every_ms) for key in self._pages.content(page)]

    def commit(self) -> None:
        """Write the changed pages, and drop all."""
        self._page_of = {}
        self.directory = self._pages.commit() or self.directory
        self._pages.release()
        self.size = 0

    def _page(self, key: str) -> int:
        found = self._page_of.get(key)
        return self._pages.page_of(place_of(key)) if found is None else found
