"""The states of a bucket's keys and the entries of its messages, in two logs.

The first log has the newest state of each key, by the hash of the key. The second one has an entry for each message,
by the hash of its key and ID: when it was stored, and what a redelivery needs. Without that payload, the message is
forgotten: it is too late.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from msgid.processing.context import FINGERPRINT_LENGTH
from msgid.processing.flow import Earlier
from spark_ext.streaming._state.bucket_log import BucketLog, Entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from msgid.processing.context import WrittenOutput
    from spark_ext.streaming._state.bucket_log import Values

LOGS: Final = ("keys", "messages")
"""The names of the logs."""
_HASH_BYTES: Final = 16
_HANDLED, _OUTPUTS = b"h", b"o"
"""The first byte of a payload: a fingerprint and the state before, which is empty for the first message; outputs."""


def packed(state: bytes | None, fingerprint: bytes, outputs: Sequence[WrittenOutput] | None) -> bytes:
    """Return the payload of an entry: the outputs, or else their fingerprint and the state before."""
    if outputs is not None:
        return _OUTPUTS + json.dumps(outputs).encode()
    return _HANDLED + fingerprint + (state or b"")


def unpacked(payload: bytes) -> Earlier:
    """Return how the message of a payload was handled."""
    if payload[:1] == _OUTPUTS:
        return Earlier(None, b"", json.loads(payload[1:]))
    end = FINGERPRINT_LENGTH + 1
    return Earlier(payload[end:] or None, payload[1:end])


class Bucket:
    """The states and entries of a bucket during one micro-batch.

    Args:
        values: The values of the logs.
        now_ms: The time of the micro-batch, milliseconds since 1970.
        horizon_ms: A message that was stored before is forgotten.
        limit_ms: The hash of a message that was stored before does not count.
    """

    def __init__(self, values: Sequence[Values], now_ms: int, horizon_ms: int, limit_ms: int) -> None:
        self._keys = BucketLog(values[0])
        self._messages = BucketLog(values[1], limit_ms, horizon_ms)
        self._now_ms = now_ms
        self._horizon_ms = horizon_ms
        self._hash_of: dict[str, bytes] = {}
        self._states: dict[str, bytes] = {}
        self._changed: dict[str, bytes] = {}
        self._entries: dict[bytes, tuple[int, bytes]] = {}
        self._fresh: dict[bytes, bytes] = {}
        self.size = 0
        """The number of bytes that `store` will write."""

    @property
    def message_bytes(self) -> int:
        """About the number of bytes that `read` has in memory for each message."""
        return self._keys.entry_bytes + self._messages.entry_bytes

    def read(self, messages: Sequence[tuple[str, str]]) -> list[bytes]:
        """Look up some messages by key and ID; return their hashes, for `earlier` and `add`."""
        self._hash_of = {key: _hash(key.encode()) for key in dict.fromkeys(key for key, _ in messages)}
        hashes = [_hash(self._hash_of[key] + id.encode()) for key, id in messages]
        states = _stored(self._keys, list(self._hash_of.values()))
        self._states = {key: states[hash][1] for key, hash in self._hash_of.items() if hash in states}
        self._entries = _stored(self._messages, list(dict.fromkeys(hashes)))
        return hashes

    def state(self, key: str) -> bytes | None:
        """Return the newest state of a key that was read."""
        return self._states.get(key)

    def earlier(self, hash: bytes) -> tuple[Earlier | None, int | None]:
        """Return how a message was handled, or when a forgotten one was stored: microseconds since 1970."""
        if hash in self._fresh:
            return unpacked(self._fresh[hash]), None
        if hash not in self._entries:
            return None, None
        stored, payload = self._entries[hash]
        return (unpacked(payload), None) if payload and stored >= self._horizon_ms else (None, stored * 1000)

    def add(self, key: str, hash: bytes, payload: bytes, state: bytes) -> None:
        """Add the entry of a message that was handled just now, and set the state of its key."""
        self._fresh[hash] = payload
        self._states[key] = self._changed[key] = state
        self.size += len(payload) + len(state)

    def store(self) -> None:
        """Write the new entries and states, and drop those that were read."""
        if self._fresh:
            self._messages.add(_entries(self._fresh, self._now_ms, self._fresh.values()))
            keys = (self._hash_of[key] for key in self._changed)
            self._keys.add(_entries(keys, self._now_ms, self._changed.values()))
        self._fresh, self._changed, self._states, self._entries, self.size = {}, {}, {}, {}, 0

    def commit(self) -> None:
        """Delete expired entries, and finish the logs."""
        self._keys.commit()
        self._messages.commit()


def _hash(value: bytes) -> bytes:
    return blake2b(value, digest_size=_HASH_BYTES).digest()


def _words(hashes: Iterable[bytes]) -> NDArray[np.uint64]:
    """Return the halves of hashes."""
    return np.ascontiguousarray(np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2).T)


def _stored(log: BucketLog, hashes: Sequence[bytes]) -> dict[bytes, tuple[int, bytes]]:
    """Return the time and the payload of each hash that a log has."""
    index, entries_of_hashes = log.find(*_words(hashes))
    entries = list(zip(entries_of_hashes.time.tolist(), entries_of_hashes.data.to_pylist(), strict=True))
    return {hashes[number]: entries[index[number]] for number in np.flatnonzero(index >= 0).tolist()}


def _entries(hashes: Iterable[bytes], time: int, payloads: Iterable[bytes]) -> Entries:
    high, low = _words(hashes)
    data = pa.array(list(payloads), pa.large_binary())
    return Entries(high, low, np.full(len(high), time, np.int64), data)
