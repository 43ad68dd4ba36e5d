"""The older entries of a key with many messages: segments that are written once, found by sorted runs of hashed IDs."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np

from spark_ext.streaming._plain import dump, load
from spark_ext.streaming._processing.pages import MARK_BYTES, Entry, KeyState

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from spark_ext.streaming._pages import Values

SEGMENT_ENTRIES: Final = 256
SEGMENT_BYTES: Final = 64 << 10
_NO_SEGMENT: Final = -1
_RUN: Final = np.dtype([("hash", "<u8"), ("segment", "<i4"), ("stored", "<i8")])


def forget(values: Values, key: str, state: KeyState, horizon: int, limit: int) -> bool:
    """Forget the entries of a key that were stored before the horizon; keep their hashes until the limit.

    A segment is forgotten as a whole, when its last entry is.

    Args:
        values: Where the bucket's state is.
        key: The key.
        state: Its state, which is changed.
        horizon: Milliseconds since 1970. An entry that was stored before is forgotten.
        limit: Milliseconds since 1970. The hash of an entry that was stored before is deleted.

    Returns:
        Whether anything changed.
    """
    changed = False
    while state.first < state.next and state.first_stored < horizon:
        values.remove(_segment(key), state.first)  # the hashes of its IDs stay in the runs
        state.first += 1
        if state.first < state.next:
            state.first_stored = max(entry.stored for entry in _read(values, key, state.first))
        changed = True
    # Entries are forgotten in their order: an entry stays as long as an older one stays.
    if state.first == state.next and state.ids and state.oldest < horizon:
        entries = state.entries()
        gone = next((place for place, entry in enumerate(entries) if entry.stored >= horizon), len(entries))
        state.forgotten = [*state.forgotten, *((_hash(entry.id), entry.stored) for entry in entries[:gone])]
        state.replace(entries[gone:])
        changed = True
    if state.forgotten and state.forgotten[0][1] < limit:
        state.forgotten = [pair for pair in state.forgotten if pair[1] >= limit]
        changed = True
    if all(run[2] >= limit for run in state.runs):
        return changed
    kept = [run for run in state.runs if run[2] >= limit]
    for number, _, _ in set(state.runs).difference(kept):
        values.remove(_run(key), number)
    state.runs = kept
    return True


class Segments:
    """The older entries of one key, during one micro-batch.

    Args:
        values: Where the bucket's state is.
        key: The key.
        state: Its state.
        limit: Milliseconds since 1970. The hash of an entry that was stored before does not count.
    """

    def __init__(self, values: Values, key: str, state: KeyState, limit: int) -> None:
        self._values = values
        self._key = key
        self._state = state
        self._limit = limit
        self._found: dict[str, list[int]] = {}
        self._read: dict[int, dict[str, Entry]] = {}
        self._forgotten: dict[str, int] = {}

    def look_up(self, ids: Iterable[str]) -> None:
        """Read the runs for some IDs that are not among the recent entries, for `find` and `forgotten`."""
        state = self._state
        if not state.runs and not state.forgotten:
            return
        hash_of = {id: _hash(id) for id in ids}
        if state.forgotten:
            stored_of = dict(state.forgotten)
            self._forgotten = {id: stored_of[number] for id, number in hash_of.items() if number in stored_of}
        wanted = list(hash_of)
        hashes = np.fromiter(hash_of.values(), np.uint64, len(wanted))
        for number, _, _ in state.runs:
            run = self._run(number)
            starts = np.searchsorted(run["hash"], hashes, "left")
            ends = np.searchsorted(run["hash"], hashes, "right")
            for place in np.flatnonzero(ends > starts).tolist():
                for _, segment, stored in run[starts[place] : ends[place]].tolist():
                    if segment >= state.first:
                        self._found.setdefault(wanted[place], []).append(segment)
                    elif stored >= self._limit:
                        self._forgotten[wanted[place]] = stored

    def find(self, id: str) -> Entry | None:
        """Return the entry of an ID that was looked up; None: no segment has it."""
        for segment in self._found.get(id, ()):
            if segment not in self._read:
                self._read[segment] = {entry.id: entry for entry in _read(self._values, self._key, segment)}
            if id in self._read[segment]:
                return self._read[segment][id]
        return None

    def forgotten(self, id: str) -> int | None:
        """Return when the forgotten entry of an ID was stored; None if no entry was forgotten."""
        return self._forgotten.get(id)

    def add(self, fresh: list[Entry], marks: list[bytes]) -> None:
        """Add entries that were stored just now; ``marks`` has the `mark` of each.

        If there are many, entries move to segments, and hashes to a run.
        """
        state = self._state
        if len(state.forgotten) >= SEGMENT_ENTRIES:
            run = np.empty(len(state.forgotten), _RUN)
            run["hash"] = [number for number, _ in state.forgotten]
            run["segment"] = _NO_SEGMENT
            run["stored"] = [stored for _, stored in state.forgotten]
            state.forgotten = []
            self._add_run(run)
        entries = fresh
        if len(state.ids) // MARK_BYTES + len(fresh) < 2 * SEGMENT_ENTRIES:
            if fresh:
                state.append(fresh, marks)
            if len(state.recent) < 2 * SEGMENT_BYTES:
                return
            entries = []
        held: list[Entry] = []
        size = 0
        added = []
        for entry in [*state.entries(), *entries]:
            held.append(entry)
            size += _size(entry)
            if len(held) == SEGMENT_ENTRIES or size >= SEGMENT_BYTES:
                added.append(self._write(held))
                held, size = [], 0
        if held:
            added.append(self._write(held))
        state.replace([])
        self._add_run(np.concatenate(added))

    def _write(self, entries: list[Entry]) -> npt.NDArray[np.void]:
        state = self._state
        number = state.next
        if state.first == number:
            state.first_stored = max(entry.stored for entry in entries)
        plain = [tuple(entry) for entry in entries]
        self._values.put(_segment(self._key), number, zlib.compress(dump(plain), 1))
        state.next += 1
        run = np.empty(len(entries), _RUN)
        run["hash"] = [_hash(entry.id) for entry in entries]
        run["segment"] = number
        run["stored"] = [entry.stored for entry in entries]
        return run

    def _add_run(self, run: npt.NDArray[np.void]) -> None:
        """Add a run, and merge it with the runs that are not much larger: their number stays logarithmic."""
        state = self._state
        merged = [run]
        size = len(run)
        runs = list(state.runs)
        number = max((number for number, _, _ in runs), default=-1) + 1
        while runs and runs[-1][1] <= 2 * size:
            old, _, _ = runs.pop()
            known = self._run(old)
            merged.append(known[known["stored"] >= self._limit])
            size += len(merged[-1])
            self._values.remove(_run(self._key), old)
        whole = np.concatenate(merged)
        whole = whole[np.argsort(whole["hash"], kind="stable")]
        self._values.put(_run(self._key), number, whole.tobytes())
        state.runs = [*runs, (number, len(whole), int(whole["stored"].max()))]

    def _run(self, number: int) -> npt.NDArray[np.void]:
        raw = self._values.get(_run(self._key), number)
        return np.frombuffer(raw or b"", _RUN)


def _read(values: Values, key: str, segment: int) -> list[Entry]:
    raw = values.get(_segment(key), segment)
    return [] if raw is None else [Entry._make(entry) for entry in load(zlib.decompress(raw))]


def _segment(key: str) -> str:
    return f"s{key}"


def _run(key: str) -> str:
    return f"r{key}"


def _size(entry: Entry) -> int:
    kept = 0 if isinstance(entry.answer, bytes) else sum(len(body) for _, _, body in entry.answer)
    return len(entry.before or b"") + kept + 80


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
