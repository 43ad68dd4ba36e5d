"""Processes that share a node and a pid, one after another or at the same time, and what an audit must find."""

import itertools
import random
from collections import Counter
from dataclasses import dataclass

START = 170_000_000
"""The first second of a generator, since 2021."""
KINDS = ("alone", "from 0", "far", "lower", "higher", "shared", "shared restarts", "shared apart")


@dataclass
class Life:
    """A process: the second and the number of each of its IDs."""

    ids: list[tuple[int, int]]

    @property
    def first(self):
        return min(second for second, _ in self.ids)

    @property
    def last(self):
        return max(second for second, _ in self.ids)


@dataclass
class Generator:
    """The processes of one node and pid, the IDs that landed, and the findings that they must give.

    Args:
        kind: How its processes start, one of `KINDS`.
        lossy: Whether ranges of IDs did not land. ``back``: whether the clock of a process was set back.

    Attributes:
        findings: The number of findings by their check, without missing numbers and shared nodes.
        lost: The numbers that are missing between the first and the last of a process.
        surely_lost: Those of them that an audit must find: a process at the same time may have used the others.
    """

    chance: random.Random
    kind: str
    lossy: bool = False
    back: bool = False

    def __post_init__(self):
        self.lives = list(getattr(self, f"_{self.kind.replace(' ', '_')}")())
        if self.back and "shared" not in self.kind:
            self._set_back(self.chance.choice(self.lives))
        if self.lossy:
            for life in self.lives:
                self._lose(life)
        self.ids = [id for life in self.lives for id in life.ids]
        at_once = "shared" in self.kind
        self.lost = set().union(*(_holes(life.ids) for life in self.lives))
        self.surely_lost = self.lost - {number for _, number in self.ids} if at_once else self.lost
        back = sum(b < a for life in self.lives for (a, _), (b, _) in itertools.pairwise(life.ids))
        jumps = len(self.lives) - 1 if self.kind == "higher" else 0
        self.findings = +Counter(clock_backwards=back, sequence_jump=jumps)

    def _life(self, second, start, least=150, rates=(0.5, 1, 3, 10)):
        """A process that counts from a number, at a rate of its own."""
        rate = self.chance.choice(rates)
        number = range(start, start + self.chance.randrange(least, 2 * least))
        return Life([(int(second + place / rate), n) for place, n in enumerate(number)])

    def _alone(self):
        yield self._life(START, self.chance.randrange(1 << 31))

    def _after(self, start_of):
        """Processes one after another; the start of each follows from those before."""
        life = self._life(START, self.chance.randrange(1 << 20, 1 << 22))
        lives = [life]
        for _ in range(self.chance.randint(1, 12)):
            life = self._life(life.last + self.chance.randint(2, 90), start_of(lives))
            lives.append(life)
        return lives

    def _from_0(self):
        return self._after(lambda lives: 0)[1:]

    def _far(self):
        return self._after(lambda lives: (2 + len(lives) + self.chance.randrange(6) * 20) << 24)

    def _lower(self):
        return self._after(lambda lives: min(life.ids[0][1] for life in lives) - self.chance.randrange(5_000, 80_000))

    def _higher(self):
        return self._after(lambda lives: max(life.ids[-1][1] for life in lives) + self.chance.randrange(5_000, 1 << 20))

    def _starts(self, count, wait):
        """Seconds; processes that start in one second with one rate make equal IDs, which show one process."""
        return self.chance.sample(range(START, START + wait), count)

    def _shared(self):
        """Processes that count from 0 at the same time."""
        return [self._life(second, 0, least=400) for second in self._starts(self.chance.randint(2, 4), 40)]

    def _shared_restarts(self):
        """Two machines, each with processes that count from 0, one after another."""
        while True:
            machines = [[], []]
            for lives, start in zip(machines, self._starts(2, 30), strict=True):
                lives.append(self._life(start, 0, rates=(0.5, 1, 3)))
                for _ in range(self.chance.randint(0, 3)):
                    lives.append(self._life(lives[-1].last + self.chance.randint(2, 90), 0, rates=(0.5, 1, 3)))
            # All IDs of a few seconds may be lost.
            if not any(0 <= overlap(one, other) < 15 for one, other in itertools.product(*machines)):
                return machines[0] + machines[1]

    def _shared_apart(self):
        """Processes at the same time whose numbers are at most 2**20 apart."""
        starts = [100_000 * place + self.chance.randrange(90_000) for place in range(self.chance.randint(2, 4))]
        return [self._life(START + self.chance.randrange(10), start) for start in starts]

    def _set_back(self, life):
        place = self.chance.randrange(50, 100)
        by = self.chance.randint(5, 20)
        if life.ids[place][0] - by > life.first:
            life.ids[place:] = [(second - by, number) for second, number in life.ids[place:]]

    def _lose(self, life):
        for _ in range(self.chance.randint(0, 3)):
            place = self.chance.randrange(1, len(life.ids) - 20)
            del life.ids[place : place + self.chance.randint(1, 12)]


def overlap(one, other):
    """The seconds of two processes at the same time; negative for those between them."""
    return min(one.last, other.last) - max(one.first, other.first)


def _holes(ids):
    return {lost for (_, a), (_, b) in itertools.pairwise(ids) for lost in range(a + 1, b)}


def generator_of(seed, kind=None):
    """One of many generators."""
    chance = random.Random(seed)
    kind = kind or chance.choice(KINDS)
    return Generator(chance, kind, lossy=chance.random() < 0.6, back=chance.random() < 0.3)
