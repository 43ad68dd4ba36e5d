"""The rule that assigns (second, sequence), tested for any clock without clocks, threads or processes."""

from helpers.strategies import EDGES32
from hypothesis import given
from hypothesis import strategies as st

from msgid.ids import _sequence
from msgid.ids._sequence import State

seconds = st.integers(-(2**33), 2**33)
steps = st.lists(st.tuples(seconds, st.integers(0, 2**33)), min_size=1, max_size=20)


@given(EDGES32, steps)
def test_runs_under_any_clock_strictly_grow(first, clock):
    """For every clock and every count, (second, sequence) never repeats and never decreases."""
    state, last = _sequence.fresh(first), None
    for now, count in clock:
        runs, state = _sequence.reserve(state, now, count)
        assert sum(len(run.sequences) for run in runs) == count
        for run in runs:
            assert all(0 <= sequence < 2**32 for sequence in (run.sequences[0], run.sequences[-1]))
            # Only the ends of a run can violate order and uniqueness.
            for pair in sorted({(run.second, run.sequences[0]), (run.second, run.sequences[-1])}):
                assert last is None or pair > last
                last = pair


@given(EDGES32, steps)
def test_sequence_of_any_calls_counts_on_without_a_gap(first, clock):
    """The sequence is one counter for the life of the generator: it increases by one, and 0 follows 2**32 - 1."""
    state, expected = _sequence.fresh(first), first
    for now, count in clock:
        runs, state = _sequence.reserve(state, now, count)
        for run in runs:
            assert run.sequences[0] == expected % 2**32
            expected = (expected + len(run.sequences)) % 2**32


@given(EDGES32, st.lists(seconds, min_size=1))
def test_clock_that_goes_forward_is_followed(first, clock):
    """Without a wrap, the second is the latest one that the clock has shown, or 0 before 2021."""
    state, latest = _sequence.fresh(min(first, 2**32 - 1 - len(clock))), 0
    for now in clock:
        (run,), state = _sequence.reserve(state, now, 1)
        latest = max(latest, now)
        assert run.second == latest


@given(seconds, st.integers(0, 2**32), seconds)
def test_block_of_numbers_ends_where_the_last_byte_would_turn(second, sequence, now):
    """The IDs of a block differ only in their last byte, and reserving a block reserves its IDs."""
    state = State(second, sequence)
    run, after = _sequence.reserve_block(state, now)
    assert 1 <= len(run.sequences) <= _sequence.BLOCK
    assert run.sequences[0] // 256 == run.sequences[-1] // 256
    assert run.sequences.stop % 256 == 0
    assert ((run,), after) == _sequence.reserve(state, now, len(run.sequences))
