"""The rule that assigns seconds and sequence numbers: a pure function of the state and the time.

| what the clock does        | second and sequence number of the next ID                               |
|----------------------------|-------------------------------------------------------------------------|
| shows a time before 2021   | second 0, until the clock has passed it                                 |
| stands still               | the same second, the next sequence number                               |
| goes back, at most a day   | the last second used, kept until the clock has passed it                |
| goes back more than a day  | the generator begins anew                                               |
| jumps forward              | the new second                                                          |
| any, at sequence 2^32      | sequence 0, and a second after the last one used, even before its time  |

So (second, sequence) strictly increases from ID to ID, and no pair repeats, until the generator begins anew. It then
has another random node, even if the caller had named one, and another random sequence number. Its earlier IDs can be of
the same seconds, but an ID with the new node does not exist yet. So a clock that is years ahead for a moment dates only
the IDs of that moment in that year.

The rule counts seconds from the epoch without a limit; an ID holds their low 32 bits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgid.layout import UINT32_SPAN

BLOCK: Final = 256
"""The number of IDs in a block. They differ only in their last byte."""
MAX_BEHIND: Final = 86_400
"""Seconds that a clock may go back before the generator begins anew: more than all time zones are apart."""


class State(NamedTuple):
    """The state of a generator."""

    second: int
    """The second of the last ID, counted from 2021-01-01T00:00:00Z."""
    sequence: int
    """The sequence number of the next ID; 2**32 if the counter wraps next."""


class SecondOfIds(NamedTuple):
    """Consecutive IDs with the same second."""

    second: int
    sequences: range


def fresh(sequence: int) -> State:
    """Return the state of a new generator: its first ID has number ``sequence`` and a second of 2021 or later."""
    return State(0, sequence)


def is_behind(state: State, now: int) -> bool:
    """Return whether the clock has gone back so far that the generator must begin anew.

    >>> is_behind(State(second=100_000, sequence=0), 13_599), is_behind(State(second=100_000, sequence=0), 13_600)
    (True, False)
    """
    return state.second - max(now, 0) > MAX_BEHIND


def reserve(state: State, now: int, count: int) -> tuple[tuple[SecondOfIds, ...], State]:
    """Reserve ``count`` IDs at the second ``now``.

    Args:
        state: The state of the generator.
        now: Time of the clock, in seconds since 2021-01-01T00:00:00Z; any integer that `is_behind` accepts.
        count: Number of IDs, 0 or more.

    Returns:
        The runs of IDs in order, and the new state. There are two or more runs if the sequence wraps between them.

    >>> runs, state = reserve(State(second=7, sequence=4294967295), now=7, count=3)
    >>> runs
    (SecondOfIds(second=7, sequences=range(4294967295, 4294967296)), SecondOfIds(second=8, sequences=range(0, 2)))
    >>> state
    State(second=8, sequence=2)
    """
    runs = []
    second, sequence = state
    while count:
        if sequence == UINT32_SPAN:
            # Sequence numbers repeat from here, so the IDs need a new second.
            second, sequence = second + 1, 0
        second = max(second, now)
        stop = min(sequence + count, UINT32_SPAN)
        runs.append(SecondOfIds(second, range(sequence, stop)))
        count -= stop - sequence
        sequence = stop
    return tuple(runs), State(second, sequence)


def reserve_block(state: State, now: int) -> tuple[SecondOfIds, State]:
    """Reserve the IDs at the second ``now`` up to the next multiple of 256 of the sequence: 1 to 256 IDs.

    >>> reserve_block(State(second=7, sequence=4294967290), now=9)
    (SecondOfIds(second=9, sequences=range(4294967290, 4294967296)), State(second=9, sequence=4294967296))
    """
    (run,), after = reserve(state, now, BLOCK - state.sequence % BLOCK)
    return run, after
