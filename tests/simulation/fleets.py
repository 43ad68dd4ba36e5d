"""Fleets of look-alike processes: one pid, up to 1,000 processes, 100,000 IDs per second each, for years.

Each process applies the rule of `msgid.ids._sequence` at its restarts, at the steps of its clock and where its
sequence wraps. In between, the numbers of its IDs grow by its rate in each second. So a fleet is a table of stretches
of seconds, and two stretches are compared by their ends, however many IDs they have.

With the default node, no ID is made twice. With ``node="mac"``, as many fleets make an ID twice as
`msgid.audit.collision_risk` says.
"""

from __future__ import annotations

import time
from random import Random
from typing import NamedTuple, NoReturn

import numpy as np

from msgid.audit import collision_risk
from msgid.ids import _sequence
from msgid.ids.node import Process, choose_node
from msgid.layout import SYNTHETIC_BITS, UINT32_SPAN, synthetic_node

NOON = 93_000_000  # seconds since 2021
YEAR = 365 * 86_400
CONTAINER = 4_026_532_201
"""The inode of a PID namespace that is not that of the whole system."""
MOST_PAIRS = 1_500_000
"""The number of pairs of stretches up to which a fleet is compared; its time is shorter if it has more."""


class Violation(AssertionError):
    """Raised if an ID is made twice."""


class Stretch(NamedTuple):
    """Seconds of one process with one number of IDs each, whose numbers follow on each other."""

    node: int
    second: int
    seconds: int
    sequence: int
    rate: int

    @property
    def last(self) -> int:
        """The last second."""
        return self.second + self.seconds - 1


class Fleet(NamedTuple):
    """The settings of a fleet."""

    rates: list[int]
    """IDs per second of each process."""
    seconds: int
    restarts: float
    """The mean number of restarts of a process."""
    steps: float
    """The mean number of steps of a process's clock."""

    def __str__(self) -> str:
        low, high = min(self.rates), max(self.rates)
        return (
            f"{len(self.rates)} processes, {low} to {high} IDs per second, {self.seconds} seconds, "
            f"{self.restarts} restarts and {self.steps} clock steps per process"
        )


class Meeting(NamedTuple):
    """Two stretches that have an ID in common, and its second and sequence number."""

    one: Stretch
    other: Stretch
    second: int
    sequence: int


class Result(NamedTuple):
    """The outcome of many fleets."""

    fleets: int
    ids: int
    plain: int
    """The fleets without restarts and clock steps."""
    repeating: int
    """The plain fleets that repeat an ID with ``node="mac"``."""
    expected: float
    """The sum of `collision_risk` of the plain fleets."""
    deviation: float
    """Its standard deviation."""
    others: int
    """The other fleets that repeat an ID with ``node="mac"``."""

    @property
    def agrees(self) -> bool:
        """Whether the plain fleets repeat IDs as `collision_risk` says: within 5 deviations and its own error."""
        return abs(self.repeating - self.expected) <= 5 * self.deviation + 0.03 * self.expected

    def __str__(self) -> str:
        return (
            f"{self.fleets:,} fleets made {self.ids:.1e} IDs: no ID twice with the default node. "
            f'With node="mac", {self.repeating:,} of {self.plain:,} fleets without restarts and clock steps repeat '
            f"an ID; collision_risk expects {self.expected:,.1f}, with a deviation of {self.deviation:.1f}. "
            f"So do {self.others:,} of the {self.fleets - self.plain:,} other ones."
        )


def drawn(random: Random) -> Fleet:
    """Return random settings."""

    def between(low: float, high: float) -> float:
        return low * (high / low) ** random.random()

    rate, spread = between(1, 100_000), random.choice([1, 1.01, 2, 10])
    classes = [max(1, min(100_000, round(between(rate / spread, rate * spread)))) for _ in range(random.randint(1, 12))]
    rates = random.choices(classes, k=round(between(1, 1_000)))
    is_plain = random.random() < 0.5
    restarts, steps = (0.0, 0.0) if is_plain else (random.choice([0, 0.5, 3, 20]), random.choice([0, 0.5, 3, 10]))
    seconds = round(between(1, 10 * YEAR))
    while seconds > 1 and _pairs(rates, seconds, restarts, steps) > MOST_PAIRS:
        seconds //= 2
    return Fleet(rates, seconds, restarts, steps)


def _pairs(rates: list[int], seconds: int, restarts: float, steps: float) -> float:
    """Return about how many pairs of stretches have a second in common."""
    wraps = 3 * sum(rates) * seconds / UINT32_SPAN
    return len(rates) * (len(rates) * (1 + restarts + 2 * steps) + wraps)


def stretches(fleet: Fleet, random: Random) -> list[Stretch]:
    """Return the IDs of a fleet whose processes have a random node of their own after each restart."""
    found: list[Stretch] = []
    for rate in fleet.rates:
        ends = {fleet.seconds}
        ends.update(random.sample(range(fleet.seconds), min(_about(fleet.restarts, random), fleet.seconds)))
        begin = offset = 0
        for end in sorted(ends):
            # A process that is started again makes its first IDs in the second of the last ones.
            offset = _life(found, rate, begin, end + (end < fleet.seconds), offset, fleet, random)
            begin = end
    return found


def _about(mean: float, random: Random) -> int:
    return int(random.expovariate(1 / mean) + 0.5) if mean else 0


def _life(found: list[Stretch], rate: int, begin: int, end: int, offset: int, fleet: Fleet, random: Random) -> int:
    """Add the stretches of one process from its start to its end; return how far its clock is ahead at the end."""
    node = default_node(random)
    state = _sequence.fresh(random.getrandbits(31))
    share = fleet.steps * (end - begin) / fleet.seconds
    steps = sorted(random.randint(begin, end) for _ in range(_about(share, random)))
    for start, stop in zip([begin, *steps], [*steps, end], strict=True):
        if start != begin:
            offset += random.choice([-1, 1]) * round(10 ** random.uniform(0, 6))
        now, until = NOON + start + offset, NOON + stop + offset
        while now < until:
            if _sequence.is_behind(state, now):
                node, state = default_node(random), _sequence.fresh(random.getrandbits(31))
            held = min(state.second - now + 1, until - now)
            if held > 0:  # the clock is behind the last ID
                state = _reserved(found, node, state, now, rate * held)
                now += held
                continue
            whole = min(until - now, (UINT32_SPAN - state.sequence) // rate)
            if whole:
                state = _counted(found, node, state, now, whole, rate)
            else:  # the sequence wraps in this second
                state, whole = _reserved(found, node, state, now, rate), 1
            now += whole
    return offset


def _reserved(found: list[Stretch], node: int, state: _sequence.State, now: int, count: int) -> _sequence.State:
    """Add the IDs that the rule reserves at one time of the clock."""
    runs, state = _sequence.reserve(state, now, count)
    found += [Stretch(node, run.second, 1, run.sequences.start, len(run.sequences)) for run in runs]
    return state


def _counted(
    found: list[Stretch], node: int, state: _sequence.State, now: int, seconds: int, rate: int
) -> _sequence.State:
    """Add seconds in which the clock goes on and the sequence does not wrap; the rule is asked for both ends."""
    sequence, last = state.sequence, now + seconds - 1
    runs, state = _sequence.reserve(state, now, rate)
    assert runs == (_sequence.Run(now, range(sequence, sequence + rate)),)
    if seconds > 1:
        before = _sequence.State(last - 1, sequence + rate * (seconds - 1))
        runs, state = _sequence.reserve(before, last, rate)
        assert runs == (_sequence.Run(last, range(before.sequence, before.sequence + rate)),)
    found.append(Stretch(node, now, seconds, sequence, rate))
    return state


def default_node(random: Random) -> int:
    """Return the node that a new process in a container chooses."""
    bits = synthetic_node("random", random.getrandbits(SYNTHETIC_BITS))
    return choose_node(None, {}, Process(pid=1, pid_namespace=CONTAINER), _no_cards, bits).node


def _no_cards() -> NoReturn:
    raise AssertionError("a container needs no network card")


def meeting(found: list[Stretch], *, by_node: bool) -> Meeting | None:
    """Return two stretches that have an ID in common; of the same node, or as if all had one."""
    if by_node:
        found = sorted(found)
        node = np.array([one.node for one in found], np.uint64)
        group = np.cumsum(np.concatenate([[False], node[1:] != node[:-1]]))
    else:
        found = sorted(found, key=lambda one: one[1:])
        group = np.zeros(len(found), np.int64)
    second, seconds, sequence, rate = np.array([one[1:] for one in found], np.int64).T
    last = second + seconds - 1
    key = group << 40 | second
    after = np.searchsorted(key, group << 40 | last, side="right") - np.arange(len(found)) - 1
    total = np.cumsum(after)
    begin = 0
    while begin < len(found):
        end = max(begin + 1, int(np.searchsorted(total, (total[begin - 1] if begin else 0) + MOST_PAIRS)))
        count = after[begin:end]
        one = np.repeat(np.arange(begin, begin + len(count)), count)
        other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
        common = np.minimum(last[one], last[other]) - second[other]
        # How far the second process is ahead, at the first and at the last common second. In a second, it changes by
        # less than the numbers of both, so it does not pass from one side to the other without a common number.
        ahead = sequence[other] - sequence[one] - rate[one] * (second[other] - second[one])
        at_last = ahead + (rate[other] - rate[one]) * common
        is_ahead = np.minimum(ahead, at_last) >= rate[one]
        is_behind = np.maximum(ahead, at_last) <= -rate[other]
        hits = np.flatnonzero(~is_ahead & ~is_behind)
        if len(hits):
            return _meeting(found[one[hits[0]]], found[other[hits[0]]])
        begin = end
    return None


def _meeting(one: Stretch, other: Stretch) -> Meeting:
    """Return the first ID that two stretches have in common."""
    low, high = max(one.second, other.second), min(one.last, other.last)
    numbers = {place: one.sequence + one.rate * (place - one.second) for place in (low, high)}
    others = {place: other.sequence + other.rate * (place - other.second) for place in (low, high)}
    if other.rate != one.rate:  # begin a little before the second in which one overtakes the other
        behind = others[low] - numbers[low]
        low += max(0, min(high - low, abs(behind) // abs(other.rate - one.rate) - 100_000))
    for place in range(low, high + 1):
        a = one.sequence + one.rate * (place - one.second)
        b = other.sequence + other.rate * (place - other.second)
        if a < b + other.rate and b < a + one.rate:
            return Meeting(one, other, place, max(a, b))
    raise AssertionError(f"{one} and {other} do not have an ID in common")


def check(fleet: Fleet, found: list[Stretch]) -> None:
    """Raise `Violation` if an ID of a fleet is made twice with the default node."""
    twice = meeting(found, by_node=True)
    if twice is not None:
        raise Violation(f"an ID is made twice: {twice}\nfleet: {fleet}")


def run(seed: int, fleets: int | None = None, minutes: float = 0.0) -> Result:
    """Run random fleets: a number of them, or as many as the minutes allow.

    Raises:
        Violation: if an ID is made twice with the default node, with the settings.
    """
    end = time.monotonic() + 60 * minutes
    number = ids = plain = repeating = others = 0
    expected = variance = 0.0
    while number < fleets if fleets is not None else time.monotonic() < end:
        random = Random(f"{seed} {number}")
        fleet = drawn(random)
        found = stretches(fleet, random)
        try:
            check(fleet, found)
        except Violation as error:
            raise Violation(f"seed {seed}, fleet {number}: {error}") from None
        number += 1
        ids += sum(one.seconds * one.rate for one in found)
        repeats = meeting(found, by_node=False) is not None
        if fleet.restarts or fleet.steps:
            others += repeats
            continue
        risk = collision_risk(fleet.rates, fleet.seconds)
        plain, repeating = plain + 1, repeating + repeats
        expected, variance = expected + risk, variance + risk * (1 - risk)
    return Result(number, ids, plain, repeating, expected, variance**0.5, others)
