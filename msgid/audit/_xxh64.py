"""XXH64 in NumPy, as Spark's ``xxhash64`` computes it: the hash of the values before is the seed of the next value.

Source: the specification of XXH64 (github.com/Cyan4973/xxHash), with seed 42 for the first value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

SEED: Final = 42
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_STRIPE, _LANE, _HALF = 32, 8, 4


def _rotated(value: Any, bits: int) -> Any:
    import numpy as np

    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


def _round(value: Any, lane: Any) -> Any:
    import numpy as np

    return _rotated(value + lane * np.uint64(_P2), 31) * np.uint64(_P1)


def hash_rows(rows: NDArray[np.uint8], seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of each row of bytes.

    Args:
        rows: One row of bytes per value; all values have the same length.
        seed: The seed of each row.

    >>> import numpy as np
    >>> hash_rows(np.frombuffer(b"abc", np.uint8)[None], np.zeros(1, np.uint64)).tolist()
    [4952883123889572249]
    """
    import numpy as np

    length = rows.shape[1]
    p1, p2, p3, p4, p5 = (np.uint64(p) for p in (_P1, _P2, _P3, _P4, _P5))

    def words(start: int, stop: int, width: int) -> NDArray[np.uint64]:
        part = np.ascontiguousarray(rows[:, start:stop])
        return part.view(f"<u{width}").astype(np.uint64)

    whole = length // _STRIPE * _STRIPE
    if whole:
        lanes = words(0, whole, _LANE)
        sums = [seed + p1 + p2, seed + p2, seed.copy(), seed - p1]
        for place in range(lanes.shape[1]):
            sums[place % 4] = _round(sums[place % 4], lanes[:, place])
        result = _rotated(sums[0], 1) + _rotated(sums[1], 7) + _rotated(sums[2], 12) + _rotated(sums[3], 18)
        for one in sums:
            result = (result ^ _round(np.uint64(0), one)) * p1 + p4
    else:
        result = seed + p5
    result = result + np.uint64(length)
    end = whole + (length - whole) // _LANE * _LANE
    for lane in words(whole, end, _LANE).T if end > whole else ():
        result = _rotated(result ^ _round(np.uint64(0), lane), 27) * p1 + p4
    if length - end >= _HALF:
        result = _rotated(result ^ words(end, end + _HALF, _HALF)[:, 0] * p1, 23) * p2 + p3
        end += _HALF
    for place in range(end, length):
        result = _rotated(result ^ rows[:, place].astype(np.uint64) * p5, 11) * p1
    result = (result ^ (result >> np.uint64(33))) * p2
    result = (result ^ (result >> np.uint64(29))) * p3
    hashed: NDArray[np.uint64] = result ^ (result >> np.uint64(32))
    return hashed


def hash_integers(values: NDArray[np.int64], seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of each integer of 64 bits."""
    import numpy as np

    return hash_rows(np.ascontiguousarray(values.astype("<i8")).view(np.uint8).reshape(-1, _LANE), seed)


def hash_binary(values: pa.Array, seed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of each binary value; the seed itself for NULL."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    values = values.cast(pa.large_binary())
    result: NDArray[np.uint64] = seed.copy()
    lengths = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
    starts = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    for length in np.unique(lengths[lengths >= 0]).tolist():
        places = np.flatnonzero(lengths == length)
        # A step holds some megabytes, however long the values are.
        for step in np.array_split(places, -(-len(places) * (length + 1) // _STEP)):
            rows = data[starts[step][:, None] + np.arange(length)] if length else np.zeros((len(step), 0), np.uint8)
            result[step] = hash_rows(rows, seed[step])
    return result


_STEP: Final = 1 << 24
