"""The keys of buckets, chosen so that Spark gives each partition of a stateful operator equally many buckets."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BUCKETS: Final = 1 << 16
DEFAULT_BUCKETS: Final = 32
"""More buckets cost each micro-batch time; with fewer, a worker has more of its rows in memory."""

_ROUND: Final = 100_800
"""2**6 * 3**2 * 5**2 * 7. Any divisor of it, such as 2, 48 or 200, is a number of partitions that get equal shares."""
_CANDIDATES: Final = 1 << 21
"""So many keys contain one for each of `MAX_BUCKETS` buckets."""
_SEED: Final = 42


@functools.lru_cache(maxsize=4)
def bucket_keys(buckets: int) -> NDArray[np.int32]:
    """Return the keys of buckets: Spark puts bucket ``b`` into partition ``b`` modulo the number of partitions.

    The numbers from 0 are bad keys: of the keys 0 to 31, Spark puts 12 into one of two partitions and 20 into the
    other. The key of a bucket does not depend on ``buckets``.
    """
    candidates = np.arange(1, _CANDIDATES, dtype=np.int32)  # not 0, under which `process` keeps its number of buckets
    residues = spark_hash(candidates).astype(np.int64) % _ROUND
    first = np.full(_ROUND, -1, np.int32)
    first[residues[::-1]] = candidates[::-1]
    return first[:buckets]


def spark_hash(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the hashes by which Spark partitions integers: ``hash(value)`` in SQL, the 32-bit Murmur3 of four bytes.

    >>> spark_hash(np.array([1], np.int32)).tolist()
    [-559580957]
    """
    mixed = _rotated(values.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed ^= np.uint32(values.itemsize)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
    hashes: NDArray[np.int32] = (mixed ^ (mixed >> np.uint32(16))).view(np.int32)
    return hashes


def _rotated(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    turned: NDArray[np.uint32] = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return turned
