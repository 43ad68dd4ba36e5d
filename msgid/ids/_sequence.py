"""The rule by which seconds and sequence numbers are handed out: pure, with time as an argument.

| what the clock does        | what the next id gets                                                   |
|----------------------------|-------------------------------------------------------------------------|
| shows a time before 2021   | second 0, until the clock has passed it                                 |
| stands still               | the same second, the next sequence number                               |
| goes back                  | the last second used, kept until the clock has passed it                |
| jumps forward              | the new second                                                          |
| anything, sequence at 2^32 | sequence 0, and a second above the last one used even if time has not come |

So (second, sequence) strictly grows from id to id, and no pair comes twice. Seconds are counted from the epoch without
an end; an id takes their low 32 bits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgid.layout import UINT32_SPAN

__all__ = ["BLOCK", "Run", "State", "fresh", "reserve", "reserve_block"]

BLOCK: Final = 256
"""The ids of one block have all but their last byte in common."""


class State(NamedTuple):
    """What a generator remembers."""

    second: int
    """The second of the last id."""
    sequence: int
    """The next id's sequence number; 2**32 when the counter is about to wrap."""


class Run(NamedTuple):
    """Neighbouring ids that share a second."""

    second: int
    sequences: range


def fresh(sequence: int) -> State:
    """Return the state of a generator without IDs, whose first ID gets ``sequence`` and no second before 2021."""
    return State(0, sequence)


def reserve(state: State, now: int, count: int) -> tuple[tuple[Run, ...], State]:
    """Take ``count`` ids at the second ``now``.

    Args:
        state: what the generator remembers.
        now: the clock, in seconds since the epoch (any integer).
        count: 0 or more.

    Returns:
        The runs that hold the ids in order (two where the sequence wraps in between), and the new state.

    >>> runs, state = reserve(State(second=7, sequence=4294967295), now=7, count=3)
    >>> runs
    (Run(second=7, sequences=range(4294967295, 4294967296)), Run(second=8, sequences=range(0, 2)))
    >>> state
    State(second=8, sequence=2)
    """
    runs = []
    second, sequence = state
    while count:
        if sequence == UINT32_SPAN:
            # The numbers begin again: within one second they would repeat, so that second is over.
            second, sequence = second + 1, 0
        second = max(second, now)
        stop = min(sequence + count, UINT32_SPAN)
        runs.append(Run(second, range(sequence, stop)))
        count -= stop - sequence
        sequence = stop
    return tuple(runs), State(second, sequence)


def reserve_block(state: State, now: int) -> tuple[Run, State]:
    """Take the ids at the second ``now`` up to where the sequence's last byte is 0 again: 1 to 256 of them.

    >>> reserve_block(State(second=7, sequence=4294967290), now=9)
    (Run(second=9, sequences=range(4294967290, 4294967296)), State(second=9, sequence=4294967296))
    """
    (run,), after = reserve(state, now, BLOCK - state.sequence % BLOCK)
    return run, after
