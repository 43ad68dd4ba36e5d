"""The state of a bucket as a log: new entries are appended, and sorted runs of older entries never change.

An entry has a hash of 128 bits, a time and a payload of any length. The newest entry of a hash counts.

- Recent entries are a list of values, one per micro-batch, that is read as a whole.
- If the list is long, its entries become a run: sorted pages with their ranges, times and a Bloom filter. Eight runs of
  a level merge into one of the next. A merge keeps a page whose range no other page touches, without reading it, so
  hashes that begin with a time are not written again. Pages and runs whose time has passed are deleted unread.
- A look-up asks the recent entries and then the runs from new to old: the range, the filter, and only then a page.

The head lists the runs and their pages, and changes only if a run does. All values that a micro-batch writes are lost
together if it fails.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


class Values(Protocol):
    """The stored values of a log: numbered ones, and the list of recent ones."""

    def get(self, number: int) -> bytes | None:
        """Return a numbered value, or None if it is missing."""

    def put(self, number: int, value: bytes | None) -> None:
        """Write a numbered value; None deletes it."""

    def recent(self) -> Sequence[bytes]:
        """Return the list of recent values, oldest first."""

    def append(self, value: bytes | None) -> None:
        """Append a recent value; None deletes the list."""


class Sizes(NamedTuple):
    """The thresholds of a log."""

    page: int = 64 << 10
    """The bytes of a page, and the most bytes of recent entries: a longer list becomes a run."""
    recent: int = 64
    """The most recent values, because each of them takes time to read."""
    runs: int = 8
    """The number of runs of a level that merge."""


USUAL: Final = Sizes()
BEFORE_ALL: Final = np.iinfo(np.int64).min
"""Earlier than every time: nothing expires."""


@dataclass(frozen=True)
class Entries:
    """Entries as columns."""

    high: NDArray[np.uint64]
    """The first half of each hash."""
    low: NDArray[np.uint64]
    time: NDArray[np.int64]
    data: pa.LargeBinaryArray
    """The payloads."""

    def __len__(self) -> int:
        return len(self.high)

    def take(self, indexes: NDArray[Any]) -> Entries:
        """Return the entries at some indexes."""
        return Entries(self.high[indexes], self.low[indexes], self.time[indexes], self.data.take(pa.array(indexes)))

    def part(self, start: int, end: int) -> Entries:
        """Return the entries of a range, without a copy."""
        return Entries(self.high[start:end], self.low[start:end], self.time[start:end], self.data[start:end])

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The place of each payload in the bytes of all payloads, and the end of the last one."""
        if not len(self):
            return np.zeros(1, np.int64)
        offsets = np.frombuffer(self.data.buffers()[1], np.int64)
        return offsets[self.data.offset : self.data.offset + len(self) + 1]

    @property
    def bytes(self) -> int:
        """About the number of bytes of the entries as they are stored."""
        return _ENTRY_BYTES * len(self) + int(self.offsets[-1] - self.offsets[0])

    def payloads(self) -> NDArray[np.uint8]:
        """Return the bytes of all payloads."""
        ends = self.offsets
        return np.frombuffer(self.data.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]

    def find(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the index of each hash in sorted entries, -1 for a missing one."""
        last = len(self) - 1
        candidates = np.searchsorted(self.high, high)
        # Entries with the same first half of the hash are neighbors: compare each of them.
        index = np.full(len(high), -1)
        asked = np.flatnonzero(candidates <= last)
        while len(asked):
            at = candidates[asked]
            asked, at = (part[self.high[at] == high[asked]] for part in (asked, at))
            hit = self.low[at] == low[asked]
            index[asked[hit]] = at[hit]
            asked = asked[~hit]
            candidates[asked] += 1
            asked = asked[candidates[asked] <= last]
        return index


_ENTRY_BYTES: Final = 20
"""The bytes of an entry besides its payload, if the times of a page are near each other."""


def fixed(matrix: NDArray[np.uint8]) -> pa.LargeBinaryArray:
    """Return the rows of a matrix as payloads, without a copy."""
    rows, width = matrix.shape
    return _binary(np.arange(rows + 1, dtype=np.int64) * width, pa.py_buffer(np.ascontiguousarray(matrix)))


def _binary(offsets: NDArray[np.int64], data: pa.Buffer) -> pa.LargeBinaryArray:
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data])


NOTHING: Final = Entries(
    np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64), fixed(np.empty((0, 1), np.uint8))
)


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the entries of some parts, one after another."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return NOTHING
    if len(parts) == 1:
        return parts[0]
    high, low, time = (np.concatenate([getattr(part, name) for part in parts]) for name in ("high", "low", "time"))
    return Entries(high, low, time, pa.concat_arrays([part.data for part in parts]))


def newest(parts: Sequence[Entries]) -> Entries:
    """Sort the entries of some parts, and keep the last one of each hash."""
    whole = joined(parts)
    order = np.argsort(whole.high, kind="stable")  # fast, because the parts are sorted
    high, low = whole.high[order], whole.low[order]
    if (low[1:] != low[:-1])[high[1:] == high[:-1]].any():
        order = np.lexsort((whole.low, whole.high))
        high, low = whole.high[order], whole.low[order]
    last = np.ones(len(order), bool)
    last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return whole.take(order[last])


_HEAD: Final = struct.Struct("<IIqq")
"""Of a page: the number of entries, the bytes of a time, the first time, the bytes of a payload or `_ANY`."""
_ANY: Final = -1
_WORD: Final = (1 << 64) - 1


def written_entries(entries: Entries) -> bytes:
    """Return entries as bytes."""
    first = int(entries.time.min())
    later = entries.time.view(np.uint64) - np.uint64(first & _WORD)
    width = 4 if later.max() < 1 << 32 else 8
    sizes = np.diff(entries.offsets)
    is_fixed = bool((sizes == sizes[0]).all())
    columns = [entries.high, entries.low, later.astype(f"<u{width}"), *([] if is_fixed else [sizes.astype("<u4")])]
    head = _HEAD.pack(len(entries), width, first, int(sizes[0]) if is_fixed else _ANY)
    return b"".join([head, *(column.tobytes() for column in columns), entries.payloads().tobytes()])


def read_entries(raw: bytes) -> Entries:
    """Return the entries that `written_entries` wrote, without a copy of the payloads."""
    count, width, first, size = _HEAD.unpack_from(raw)
    at = _HEAD.size

    def column(type: str) -> NDArray[Any]:
        nonlocal at
        values = np.frombuffer(raw, type, count, at)
        at += values.nbytes
        return values

    high, low, later = column("<u8"), column("<u8"), column(f"<u{width}")
    offsets = np.arange(count + 1, dtype=np.int64) * size
    if size == _ANY:
        offsets[0] = 0
        np.cumsum(column("<u4"), out=offsets[1:])
    time = (later.astype(np.uint64) + np.uint64(first & _WORD)).view(np.int64)
    return Entries(high, low, time, _binary(offsets, pa.py_buffer(raw)[at:]))


_PAGE: Final = np.dtype(
    [("first", "<u8"), ("last", "<u8"), ("earliest", "<i8"), ("latest", "<i8")]
    + [(name, "<u4") for name in ("number", "entries", "bytes", "payloads", "filter")]
)
"""A page: the range of the first halves of its hashes, its times, the number of its value, and sizes in bytes."""
_RUN: Final = np.dtype([("filters", "<u4"), ("pages", "<u4")])
"""A run in the head: the number of the value with its filters, and the number of its pages."""
_START: Final = struct.Struct("<III")
"""Of the head: `FORMAT`, the number of the next value, and the number of runs."""
FORMAT: Final = 9
"""The version of the stored format."""
HEAD: Final = -1
"""The number of the value that is the head."""
_BITS: Final = 12
"""The bits of a filter for each entry: with five probes, 0.3 % of other hashes seem to be in it."""
_PROBES: Final = 5
_ODD: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))
_HALF: Final = np.uint64(32)


def mixed(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each hash that look random even if the bytes of the hash do not."""
    words: NDArray[np.uint64] = high * _ODD[0] ^ low * _ODD[1]
    words = (words ^ words >> _HALF) * _ODD[1]
    words ^= words >> _HALF
    return words


def _bit(words: NDArray[np.uint64], probe: int, bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bit of a probe in filters of so many bits, for hashes that `mixed` returned."""
    turned = words + np.uint64(probe) * (words >> _HALF | np.uint64(1)) & np.uint64(0xFFFFFFFF)
    indexes: NDArray[np.int64] = (turned * bits.astype(np.uint64) >> _HALF).astype(np.int64)
    return indexes


def _filter(entries: Entries) -> bytes:
    bits = np.zeros(-(-len(entries) * _BITS // 8) * 8, np.uint8)
    words = mixed(entries.high, entries.low)
    for probe in range(_PROBES):
        bits[_bit(words, probe, np.array(len(bits)))] = 1
    return np.packbits(bits, bitorder="little").tobytes()


@dataclass(frozen=True)
class Run:
    """Sorted entries that never change."""

    pages: NDArray[np.void]
    number: int
    """The number of the value with the filters of the pages, one after another."""

    @cached_property
    def level(self) -> int:
        """Runs of a level have about the same number of entries: less than eight times as many as the smallest."""
        return (int(self.pages["entries"].sum()).bit_length() - 1) // 3

    @cached_property
    def latest(self) -> int:
        """The latest time of an entry."""
        return int(self.pages["latest"].max())

    @cached_property
    def filters(self) -> NDArray[np.int64]:
        """The place of each page's filter, in bytes, and the end of the last one."""
        return np.concatenate([[0], np.cumsum(self.pages["filter"], dtype=np.int64)])

    def page_of(self, high: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the page in whose range each hash is; -1 if none is."""
        page = np.searchsorted(self.pages["first"], high, "right") - 1
        page[high > self.pages["last"][page]] = -1
        return page


class BucketLog:
    """The entries of a bucket during one micro-batch; `commit` finishes it.

    Args:
        values: Where the entries are stored.
        dead: An entry with an earlier time does not count, and is deleted.
        bare: The payload of an entry with an earlier time is deleted.
        sizes: The thresholds.

    Raises:
        ValueError: If another version wrote the entries.
    """

    def __init__(self, values: Values, dead: int = BEFORE_ALL, bare: int = BEFORE_ALL, *, sizes: Sizes = USUAL) -> None:
        self._values = values
        self._dead = dead
        self._bare = bare
        self._sizes = sizes
        head = values.get(HEAD)
        self.runs: list[Run] = []
        self._next = 0
        self._has_changed = head is None
        self._recent = None if head else NOTHING
        self._recent_values = 0
        self._filters_of: dict[int, NDArray[np.uint8]] = {}
        if head is not None:
            self._read_head(head)

    def _read_head(self, head: bytes) -> None:
        version, self._next, count = _START.unpack_from(head)
        if version != FORMAT:
            raise ValueError(
                f"cannot read the checkpoint: its state has format {version}, this version reads {FORMAT}; "
                "start with a new checkpoint"
            )
        runs = np.frombuffer(head, _RUN, count, _START.size)
        pages = np.frombuffer(head, _PAGE, offset=_START.size + runs.nbytes)
        parts = np.split(pages, np.cumsum(runs["pages"])[:-1]) if count else []
        self.runs = [Run(part, number) for part, number in zip(parts, runs["filters"].tolist(), strict=True)]

    @property
    def entry_bytes(self) -> int:
        """The mean number of bytes of an entry in the runs."""
        entries = sum(int(run.pages["entries"].sum()) for run in self.runs)
        return sum(int(run.pages["bytes"].sum()) for run in self.runs) // max(entries, 1)

    def find(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> tuple[NDArray[np.intp], Entries]:
        """Look up hashes, each once.

        Returns:
            For each hash its index in the entries that were found, -1 for a missing one; and these entries.
        """
        index = np.full(len(high), -1)
        parts: list[Entries] = []
        count = 0

        def ask(entries: Entries, asked: NDArray[np.intp]) -> None:
            nonlocal count
            at = entries.find(high[asked], low[asked])
            hit = at >= 0
            index[asked[hit]] = count + np.arange(hit.sum())
            parts.append(entries.take(at[hit]))
            count += len(parts[-1])

        ask(self._recently(), np.arange(len(high)))
        for run in reversed(self.runs):
            missing = np.flatnonzero(index < 0)
            for page, asked in self._candidates(run, high[missing], low[missing]):
                ask(self._page(page), missing[asked])
        listed = joined(parts)
        hit = np.flatnonzero(index >= 0)
        index[hit[listed.time[index[hit]] < self._dead]] = -1
        return index, listed

    def add(self, entries: Entries) -> None:
        """Add entries, at most one of each hash, that replace earlier ones.

        No entry has an earlier time than the one that it replaces, which would count again after it.
        """
        if not len(entries):
            return
        recent, count = newest([self._recently(), entries]), self._recent_values + 1
        if recent.bytes < self._sizes.page and count < self._sizes.recent:
            self._values.append(written_entries(entries))
            self._recent, self._recent_values = recent, count
            return
        if self._recent_values:
            self._values.append(None)
        self._recent, self._recent_values = NOTHING, 0
        writer = _Writer(self._put, self._sizes.page)
        writer.add(self._alive(recent))
        self._replace(len(self.runs), len(self.runs), writer)
        while self.runs:
            first = len(self.runs)
            while first and self.runs[first - 1].level <= self.runs[-1].level:
                first -= 1
            if len(self.runs) - first < self._sizes.runs:
                break
            self._merge(first, len(self.runs))

    def commit(self) -> None:
        """Delete expired entries, and write the head if it has changed."""
        for index in reversed(range(len(self.runs))):
            run = self.runs[index]
            if run.latest < self._dead or (run.latest < self._bare and run.pages["payloads"].any()):
                self._merge(index, index + 1)
        if self._has_changed:
            start = _START.pack(FORMAT, self._next, len(self.runs))
            runs = np.array([(run.number, len(run.pages)) for run in self.runs], _RUN)
            self._values.put(HEAD, b"".join([start, runs.tobytes(), *(run.pages.tobytes() for run in self.runs)]))

    def _put(self, value: bytes) -> int:
        """Write a value; return its number."""
        number = self._next
        self._next += 1
        self._values.put(number, value)
        return number

    def _candidates(
        self, run: Run, high: NDArray[np.uint64], low: NDArray[np.uint64]
    ) -> Iterator[tuple[np.void, NDArray[np.intp]]]:
        """Yield the pages of a run that may have some hashes, by range and filter, and the indexes of these hashes."""
        page = run.page_of(high)
        asked = np.flatnonzero(page >= 0)
        if len(asked):
            filters, words = self._filters(run), mixed(high, low)
            for probe in range(_PROBES):
                start, size = run.filters[page[asked]], run.pages["filter"][page[asked]].astype(np.int64)
                bit = _bit(words[asked], probe, size * 8)
                asked = asked[(filters[start + (bit >> 3)] >> (bit & 7) & 1).astype(bool)]
        asked = asked[np.argsort(page[asked], kind="stable")]
        numbers, starts = np.unique(page[asked], return_index=True)
        for number, some in zip(numbers.tolist(), np.split(asked, starts[1:]), strict=False):
            yield run.pages[number], some

    def _recently(self) -> Entries:
        """Return the recent entries, sorted, the newest of each hash."""
        if self._recent is None:
            values = self._values.recent()
            self._recent, self._recent_values = newest([read_entries(raw) for raw in values]), len(values)
        return self._recent

    def _page(self, page: np.void) -> Entries:
        return read_entries(self._value(int(page["number"])))

    def _filters(self, run: Run) -> NDArray[np.uint8]:
        if run.number not in self._filters_of:
            self._filters_of[run.number] = np.frombuffer(self._value(run.number), np.uint8)
        return self._filters_of[run.number]

    def _value(self, number: int) -> bytes:
        value = self._values.get(number)
        if value is None:
            raise ValueError(f"the state of the query lacks value {number} of a bucket: its checkpoint is damaged")
        return value

    def _alive(self, entries: Entries) -> Entries:
        """Return entries without those that are dead, and without the payloads that have expired."""
        is_dead, is_bare = entries.time < self._dead, entries.time < self._bare
        if is_bare.any():
            data = pc.if_else(pa.array(is_bare), pa.scalar(b"", pa.large_binary()), entries.data)
            entries = Entries(entries.high, entries.low, entries.time, data)
        return entries.take(np.flatnonzero(~is_dead)) if is_dead.any() else entries

    def _merge(self, start: int, end: int) -> None:
        """Replace some neighboring runs by one with their newest entries."""
        writer = _Writer(self._put, self._sizes.page)
        runs = self.runs[start:end]
        pages = np.concatenate([run.pages for run in runs])
        ages = np.repeat(np.arange(len(runs)), [len(run.pages) for run in runs])
        order = np.lexsort((ages, pages["first"]))
        bounds = [*pages["first"][order[1:]].tolist(), None]
        waiting: list[tuple[int, Entries]] = []
        for index, bound in zip(order.tolist(), bounds, strict=True):
            page, age = pages[index], int(ages[index])
            if page["latest"] < self._dead:
                pass
            elif not waiting and self._may_stay(page) and (bound is None or page["last"] < bound):
                start_of = runs[age].filters[index - np.searchsorted(ages, age)]
                writer.keep(page, self._filters(runs[age])[start_of : start_of + page["filter"]].tobytes())
            else:
                waiting.append((age, self._page(page)))
            waiting = self._write(writer, waiting, bound)
        self._replace(start, end, writer)

    def _write(
        self, writer: _Writer, waiting: list[tuple[int, Entries]], bound: int | None
    ) -> list[tuple[int, Entries]]:
        """Write the entries before a bound, of parts with their ages; return the rest."""
        ends = [len(part) if bound is None else int(np.searchsorted(part.high, bound)) for _, part in waiting]
        ready = [(age, part.part(0, end)) for (age, part), end in zip(waiting, ends, strict=True) if end]
        if ready:
            writer.add(self._alive(newest([part for _, part in sorted(ready, key=lambda item: item[0])])))
        rest = zip(waiting, ends, strict=True)
        return [(age, part.part(end, len(part))) for (age, part), end in rest if end < len(part)]

    def _may_stay(self, page: np.void) -> bool:
        """Return whether a merge may keep a page that no other one touches: it is large, and nothing expired."""
        is_well = page["earliest"] >= self._dead and (page["earliest"] >= self._bare or not page["payloads"])
        return bool(is_well and 2 * page["bytes"] >= self._sizes.page)

    def _replace(self, start: int, end: int, writer: _Writer) -> None:
        """Replace some runs by the one that a writer made, and delete the values that only they had."""
        run = writer.finish()
        kept = set() if run is None else set(run.pages["number"].tolist())
        for old in self.runs[start:end]:
            for number in [*old.pages["number"].tolist(), old.number]:
                if number not in kept:
                    self._values.put(number, None)
        self.runs[start:end] = [] if run is None else [run]
        self._has_changed = True


class _Writer:
    """Writes sorted entries as the pages of a run."""

    def __init__(self, put: Callable[[bytes], int], page_bytes: int) -> None:
        self._put = put
        self._page_bytes = page_bytes
        self._pages: list[Any] = []
        self._filters: list[bytes] = []
        self._waiting = NOTHING

    def add(self, entries: Entries) -> None:
        """Add entries whose hashes are higher than those before."""
        *whole, self._waiting = self._divided(joined([self._waiting, entries]))
        for part in whole:
            self._write(part)

    def keep(self, page: np.void, filter: bytes) -> None:
        """Add a page that is stored already."""
        self._flush()
        self._pages.append(page)
        self._filters.append(filter)

    def finish(self) -> Run | None:
        """Write the rest and the filters; return the run, or None if it does not have entries."""
        self._flush()
        if not self._pages:
            return None
        return Run(np.array(self._pages, _PAGE), self._put(b"".join(self._filters)))

    def _flush(self) -> None:
        if len(self._waiting):
            self._write(self._waiting)
            self._waiting = NOTHING

    def _divided(self, entries: Entries) -> Iterator[Entries]:
        """Yield parts of about a page each, the last one smaller; hashes with the same first half stay together."""
        page = self._page_bytes
        ends = np.cumsum(np.diff(entries.offsets) + _ENTRY_BYTES)
        behind = np.searchsorted(ends, np.arange(page, entries.bytes + 1, page)) + 1
        starts = np.searchsorted(entries.high, entries.high[behind[behind < len(entries)]])
        bounds = [0, *np.unique(starts[starts > 0]).tolist(), len(entries)]
        for start, end in pairwise(bounds):
            yield entries.part(start, end)

    def _write(self, entries: Entries) -> None:
        raw, filter = written_entries(entries), _filter(entries)
        time, high = entries.time, entries.high
        sizes = (len(entries), len(raw), len(entries.payloads()), len(filter))
        self._pages.append((high[0], high[-1], time.min(), time.max(), self._put(raw), *sizes))
        self._filters.append(filter)
