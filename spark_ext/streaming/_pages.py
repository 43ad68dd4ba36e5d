"""The state of a bucket in pages, so that a micro-batch reads and writes only the pages that its entries touch.

Each entry has a place, a number of 64 bits: the hash of a key, or the time in an ID followed by a hash of the ID. A
page holds the entries of a range of places. A page that grows is split, and a page that shrinks joins its neighbor.
The directory of a bucket has `DIRECTORY_BYTES` for each page, and is read and written as a whole.

Entries expire without timers. Each micro-batch sweeps the pages that it reads, and some other pages in turn.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

PAGE_BYTES: Final = 32 << 10
"""A page is split into pages of this size if it is larger than twice this size."""
_SMALL: Final = 4
"""A page smaller than this part of `PAGE_BYTES` joins its neighbor."""
_ALL_AT_ONCE: Final = 4
"""All pages are read at once if at least one of this number is needed, because each single read is a round trip."""
_PAGE: Final = np.dtype([("first", "<u8"), ("number", "<u4"), ("bytes", "<u4"), ("swept", "<i8")])
DIRECTORY_BYTES: Final = _PAGE.itemsize

Content = TypeVar("Content")


class Values(Protocol):
    """Binary values by name and number, such as Spark's map state; the pages have the empty name."""

    def get(self, name: str, number: int) -> bytes | None:
        """Return a value, or None if it is missing."""

    def put(self, name: str, number: int, value: bytes) -> None:
        """Write a value."""

    def remove(self, name: str, number: int) -> None:
        """Delete a value."""

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """Yield all pages."""


class Codec(Protocol[Content]):
    """How the content of a page is stored and divided."""

    def empty(self) -> Content:
        """Return the content of a page without entries."""

    def load(self, raw: bytes) -> Content:
        """Read what `dump` wrote."""

    def dump(self, content: Content) -> bytes:
        """Write the content of a page; the empty value if it does not have entries."""

    def split(self, content: Content, parts: int) -> list[tuple[int, Content]]:
        """Divide a content into at most so many parts of ascending places, each with its first place."""

    def join(self, first: Content, second: Content) -> Content:
        """Join the contents of two neighboring pages."""


class Pages(Generic[Content]):
    """The pages of a bucket during one micro-batch; `commit` writes those that changed.

    Args:
        values: Where the pages are stored.
        codec: How they are stored.
        directory: The value that `commit` returned for the micro-batch before; empty for a new bucket.
        now: The time of the micro-batch, in the unit of `due`.
    """

    def __init__(self, values: Values, codec: Codec[Content], directory: bytes, now: int) -> None:
        self._values = values
        self._codec = codec
        pages = np.frombuffer(directory, _PAGE) if directory else np.array([(0, 0, 0, now)], _PAGE)
        self._first: list[int] = pages["first"].tolist()
        self._number: list[int] = pages["number"].tolist()
        self._bytes: list[int] = pages["bytes"].tolist()
        self._swept: list[int] = pages["swept"].tolist()
        self._contents: dict[int, Content] = {}
        self._changed: set[int] = set()
        self._is_swept = False

    def __len__(self) -> int:
        return len(self._first)

    def page_of(self, place: int) -> int:
        """Return the page of a place, counted from 0 in the order of the places."""
        return bisect.bisect_right(self._first, place) - 1

    def pages_of(self, places: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the page of each place."""
        return np.searchsorted(np.array(self._first, np.uint64), places, "right") - 1

    def size_of(self, pages: Iterable[int]) -> int:
        """Return the number of bytes of some pages, as they are stored."""
        return sum(self._bytes[page] for page in pages)

    def read(self, pages: Iterable[int]) -> None:
        """Read some pages: one by one, or all at once if they are a large part of all pages."""
        wanted = [page for page in pages if page not in self._contents]
        if 1 < len(self) <= _ALL_AT_ONCE * len(wanted):
            self._read_all()
        for page in wanted:
            if page not in self._contents:
                self._keep(page, self._values.get("", self._number[page]) if self._bytes[page] else None)

    def content(self, page: int) -> Content:
        """Return the content of a page; `replace` marks it for writing."""
        if page not in self._contents:
            self.read([page])
        return self._contents[page]

    def replace(self, page: int, content: Content) -> None:
        """Set the content of a page, which `commit` writes."""
        self._contents[page] = content
        self._changed.add(page)

    def due(self, now: int, every: int) -> list[int]:
        """Return the pages whose old entries must go now, and note that they were swept.

        A page is due ``every`` units of time after its last sweep. Pages that were read already cost little, so all of
        them are swept. As many other pages as changed, and at least one, are swept in turn.
        """
        due = [page for page in range(len(self)) if now - self._swept[page] >= every]
        at_hand = [page for page in due if page in self._contents]
        others = sorted((page for page in due if page not in self._contents), key=self._swept.__getitem__)
        swept = [*at_hand, *others[: max(1, len(self._changed))]]
        for page in swept:
            self._swept[page] = now
        self._is_swept = self._is_swept or bool(swept)
        return swept

    def commit(self) -> bytes | None:
        """Write the pages that changed; return the new directory, or None if it is the old one."""
        if not self._changed and not self._is_swept:
            return None
        self._is_swept = False
        while self._changed:
            page = max(self._changed)  # from the last to the first: a page that is split moves only those behind it
            self._changed.remove(page)
            self._write(page)
        columns = (self._first, self._number, self._bytes, self._swept)
        return np.array(list(zip(*columns, strict=True)), _PAGE).tobytes()

    def release(self) -> None:
        """Drop the contents, after `commit`: they are read again if they are needed."""
        self._contents.clear()

    def _write(self, page: int) -> None:
        content = self._contents[page]
        raw = self._codec.dump(content)
        is_small = len(raw) * _SMALL < PAGE_BYTES and self._bytes[page - 1] + len(raw) <= PAGE_BYTES
        if page and (is_small or not raw):
            self._join_left(page, content if raw else None)
            return
        if len(raw) <= 2 * PAGE_BYTES:
            self._put(page, raw)
            return
        (_, kept), *others = self._codec.split(content, len(raw) // PAGE_BYTES)
        self._contents[page] = kept
        self._put(page, self._codec.dump(kept))
        self._insert(page + 1, others)

    def _put(self, page: int, raw: bytes) -> None:
        if raw:
            self._values.put("", self._number[page], raw)
        elif self._bytes[page]:
            self._values.remove("", self._number[page])
        self._bytes[page] = len(raw)

    def _insert(self, page: int, others: list[tuple[int, Content]]) -> None:
        """Add pages before a page; the page before them was swept when they were."""
        swept = self._swept[page - 1]
        number = max(self._number) + 1
        self._shift(page, len(others))
        for place, (first, content) in enumerate(others):
            raw = self._codec.dump(content)
            self._first.insert(page + place, first)
            self._number.insert(page + place, number + place)
            self._bytes.insert(page + place, len(raw))
            self._swept.insert(page + place, swept)
            self._contents[page + place] = content
            self._values.put("", number + place, raw)

    def _join_left(self, page: int, content: Content | None) -> None:
        """Move the entries of a page to the page before it, which takes over its places."""
        if content is not None:
            self.replace(page - 1, self._codec.join(self.content(page - 1), content))
        if self._bytes[page]:
            self._values.remove("", self._number[page])
        for column in (self._first, self._number, self._bytes, self._swept):
            del column[page]
        del self._contents[page]
        self._shift(page + 1, -1)

    def _shift(self, page: int, by: int) -> None:
        """Renumber the contents from a page on."""
        self._contents = {known + by if known >= page else known: one for known, one in self._contents.items()}

    def _read_all(self) -> None:
        stored = dict(self._values.pages())
        for page, number in enumerate(self._number):
            if page not in self._contents:
                self._keep(page, stored.get(number))

    def _keep(self, page: int, raw: bytes | None) -> None:
        self._contents[page] = self._codec.load(raw) if raw else self._codec.empty()
