"""Random numbers that are the same on every machine and on every version of Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

_T = TypeVar("_T")
_CHUNK: Final = 32
"""The number of bits taken from one ``random()``, which has 53 random bits; the first 32 are exact."""


class Random:
    """Random numbers that depend only on a seed.

    Python guarantees that ``random.Random(seed).random()`` returns the same numbers in every version, and guarantees
    this for no other method. So each method here uses only ``random()``. A normal distribution is missing, because its
    logarithm differs between C libraries.

    >>> dice = Random(7)
    >>> [dice.randint(1, 6) for _ in range(5)]
    [3, 2, 6, 1, 5]
    """

    __slots__ = ("_source", "random")

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)  # repeatable, and therefore not for secrets
        self.random = self._source.random
        """Return the next number of at least 0 and less than 1."""

    def getrandbits(self, bits: int) -> int:
        """Return an integer of ``bits`` random bits: 32 bits from each ``random()``, the most significant first."""
        if bits < 0:
            raise ValueError(f"bits must be 0 or more, got {bits}")
        number = 0
        for _ in range(-(-bits // _CHUNK)):
            number = number << _CHUNK | int(self.random() * (1 << _CHUNK))
        return number >> (-bits % _CHUNK)

    def randbytes(self, count: int) -> bytes:
        """Return ``count`` random bytes."""
        return self.getrandbits(8 * count).to_bytes(count, "big")

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return an element of ``range(start, stop, step)``, or of ``range(start)``."""
        if stop is None:
            start, stop = 0, start
        if not step:
            raise ValueError("step must not be 0")
        count = -((start - stop) // step)  # len(range(...)) is limited to 2**63
        if count <= 0:
            raise ValueError(f"the range must not be empty, got {start} to {stop} by {step}")
        return start + step * self._below(count)

    def randint(self, low: int, high: int) -> int:
        """Return an integer of ``low`` to ``high``, both included."""
        return self.randrange(low, high + 1)

    def choice(self, options: Sequence[_T]) -> _T:
        """Return one element of a sequence."""
        if not len(options):
            raise IndexError("cannot choose from an empty sequence")
        return options[self._below(len(options))]

    def choices(self, options: Sequence[_T], weights: Sequence[float] | None = None, *, k: int = 1) -> list[_T]:
        """Return ``k`` elements of a sequence, each chosen from all of them, in proportion to their weights."""
        if weights is None:
            return [self.choice(options) for _ in range(k)]
        if len(weights) != len(options) or min(weights, default=0) < 0 or not sum(weights) > 0:
            raise ValueError("weights must be one number of 0 or more per option, and not all 0")
        return [options[self._weighed(weights)] for _ in range(k)]

    def sample(self, options: Sequence[_T], k: int) -> list[_T]:
        """Return ``k`` elements from different indices of a sequence, in random order."""
        if not 0 <= k <= len(options):
            raise ValueError(f"k must be 0 to {len(options)}, got {k}")
        left = list(options)
        self.shuffle(left)
        return left[:k]

    def shuffle(self, values: MutableSequence[Any]) -> None:
        """Shuffle a list in place (Fisher-Yates, from the last index down)."""
        for place in range(len(values) - 1, 0, -1):
            other = self._below(place + 1)
            values[place], values[other] = values[other], values[place]

    def uniform(self, low: float, high: float) -> float:
        """Return ``low + (high - low) * random()``."""
        return low + (high - low) * self.random()

    def _below(self, limit: int) -> int:
        """Return an integer of 0 to ``limit - 1`` with equal probability; a larger number is drawn again."""
        bits = limit.bit_length()
        number = self.getrandbits(bits)
        while number >= limit:
            number = self.getrandbits(bits)
        return number

    def _weighed(self, weights: Sequence[float]) -> int:
        left = self.random() * sum(weights)
        last = 0
        for place, weight in enumerate(weights):
            if not weight:
                continue
            if left < weight:
                return place
            left -= weight
            last = place
        return last  # reached only by rounding
