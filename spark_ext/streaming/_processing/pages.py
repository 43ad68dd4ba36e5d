"""The states of a bucket's keys, in pages of many keys each, so that a micro-batch reads and writes few values."""

from __future__ import annotations

import io
import itertools
import pickle
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FORMAT: Final = 4
"""The version of the stored format. Version 3 had timers."""
OTHER_FORMAT: Final = "cannot read the checkpoint: its state has format "
"""The start of the error about another format."""
MARK_BYTES: Final = 4
PAGE_BYTES: Final = 32 << 10
"""A bucket gets more pages if they are larger than twice this size on average."""


_ALL_AT_ONCE: Final = 4
"""All pages are read at once if at least one of this number is needed, because each single read is a round trip."""


class Entry(NamedTuple):
    """A bucket's record of a message that was handled."""

    id: str
    stored: int
    """The processing time of the micro-batch, milliseconds since 1970."""
    before: bytes | None
    """The state that the message was handled on; None for the first message of a key, and if the outputs are kept."""
    answer: bytes | list[tuple[str, str | None, str]]
    """The fingerprint of the outputs, or the outputs: ID, topic and JSON."""


class Values(Protocol):
    """Binary values by name and number, such as Spark's map state."""

    def get(self, name: str, number: int) -> bytes | None:
        """Return a value, or None if it is missing."""

    def put(self, name: str, number: int, value: bytes) -> None:
        """Write a value."""

    def remove(self, name: str, number: int) -> None:
        """Delete a value."""

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Yield all pages."""


class Meta(NamedTuple):
    """The sizes of a bucket, and which page is swept next."""

    buckets: int
    """The number of buckets of the query."""
    pages: int = 1
    """The number of pages of the bucket; a power of two."""
    bytes: int = 0
    """The size of all pages."""
    sweep: int = 0
    """The number of the next page that is swept for old entries. A round ends with the last page."""
    round_ms: int = 0
    """When the current round of sweeps began, milliseconds since 1970."""


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
            stored, *plain = _Plain(stream).load()
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


class _Plain(pickle.Unpickler):
    """Reads only numbers, text, bytes, lists, tuples and dicts, so that stored data cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the state has a {module}.{name}, which this library does not write")


def dump(value: Any) -> bytes:
    """Write plain Python values as bytes."""
    return pickle.dumps(value, 5)


def load(raw: bytes) -> Any:
    """Read what `dump` wrote."""
    return _Plain(io.BytesIO(raw)).load()


class Bucket:
    """The states of the keys of a bucket, read from pages on demand and written once by `commit`."""

    def __init__(self, values: Values, meta: Meta) -> None:
        self._values = values
        self.meta = meta
        self._pages: dict[int, dict[str, tuple[Any, ...]]] = {}
        self._sizes: dict[int, int] = {}
        self._changed: dict[str, KeyState] = {}
        self._hashes: dict[str, int] = {}

    def read(self, keys: Iterable[str]) -> None:
        """Read the pages of some keys: one by one, or all at once if they are a large part of all pages."""
        wanted = {self._page_of(key) for key in keys} - self._pages.keys()
        if 1 < self.meta.pages <= _ALL_AT_ONCE * len(wanted):
            self._read_all()
            return
        for page in wanted:
            self._keep(page, self._values.get("", page))

    def key(self, key: str) -> KeyState:
        """Return the state of a key for reading and changing; `changed` marks it for writing."""
        changed = self._changed.get(key)
        if changed is not None:
            return changed
        page = self._page_of(key)
        if page not in self._pages:
            self._keep(page, self._values.get("", page))
        packed = self._pages[page].get(key)
        return KeyState() if packed is None else KeyState(*packed)

    def changed(self, key: str, state: KeyState) -> None:
        """Mark the state of a key for writing by `commit`."""
        self._changed[key] = state

    def sweep(self, now_ms: int, every_ms: int) -> list[str]:
        """Return the keys of the page that is due to be swept; none between two rounds.

        A round of sweeps reads one page for each call, and begins ``every_ms`` after the round before it.
        """
        meta = self.meta
        if meta.sweep == 0:
            if now_ms - meta.round_ms < every_ms:
                return []
            meta = meta._replace(round_ms=now_ms)
        page = meta.sweep % meta.pages
        self.meta = meta._replace(sweep=(page + 1) % meta.pages)
        if page not in self._pages:
            self._keep(page, self._values.get("", page))
        return list(self._pages[page])

    def commit(self) -> None:
        """Write the changed pages; use more pages if they have become too large."""
        dirty = set()
        for key, state in self._changed.items():
            page = self._page_of(key)
            self._pages[page][key] = state.packed()
            dirty.add(page)
        self._changed = {}
        written = {page: dump(self._pages[page]) for page in dirty}
        size = self.meta.bytes + sum(len(raw) - self._sizes[page] for page, raw in written.items())
        pages = self.meta.pages
        if size > 2 * PAGE_BYTES * pages:
            self._read_all()
            while size > PAGE_BYTES * pages:
                pages *= 2
            written = self._spread(pages)
            size = sum(map(len, written.values()))
        for page, raw in written.items():
            self._values.put("", page, raw)
        self.meta = self.meta._replace(pages=pages, bytes=size)

    def _spread(self, pages: int) -> dict[int, bytes]:
        """Spread the keys over a larger number of pages."""
        self.meta = self.meta._replace(pages=pages)
        old, self._pages = self._pages, {page: {} for page in range(pages)}
        for page in old.values():
            for key, packed in page.items():
                self._pages[self._page_of(key)][key] = packed
        written = {page: dump(keys) for page, keys in self._pages.items()}
        self._sizes = {page: len(raw) for page, raw in written.items()}
        return written

    def _read_all(self) -> None:
        if len(self._pages) < self.meta.pages:
            for page, raw in self._values.pages():
                if page not in self._pages:
                    self._keep(page, raw)
            for page in range(self.meta.pages):
                if page not in self._pages:
                    self._keep(page, None)

    def _keep(self, page: int, raw: bytes | None) -> None:
        self._pages[page] = {} if raw is None else load(raw)
        self._sizes[page] = 0 if raw is None else len(raw)

    def _page_of(self, key: str) -> int:
        found = self._hashes.get(key)
        if found is None:
            found = self._hashes[key] = zlib.crc32(key.encode())
        return found & (self.meta.pages - 1)
