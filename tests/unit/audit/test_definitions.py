"""The definitions of an audit: names, severities, meanings, and where a run ends."""

import pytest

from msgid.audit.definitions import CHECKS, FIRST_NUMBERS, MAX_RUNS, SEVERITIES, Piece, split_pieces


def test_checks_are_in_the_order_of_their_severity():
    """Reports list the findings in this order."""
    ranks = [SEVERITIES.index(check.severity) for check in CHECKS.values()]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("pieces", "runs"),
    [
        ([], []),
        ([(5, -1)], [0]),
        ([(5, -1), (9, -1)], [0, 0]),  # the clock was set back: no number is used twice
        ([(5, -1), (9, 5)], [0, 1]),  # a restart: a number of the run is used again
        ([(5, -1), (9, 5), (20, 8)], [0, 1, 1]),  # used before, but by the run before
        ([(5, -1), (9, 5), (20, 9)], [0, 1, 2]),
    ],
)
def test_pieces_belong_to_a_run_until_they_repeat_a_number_of_it(pieces, runs):
    """A piece that does not count from 0 starts a run if and only if it repeats a number of the current run."""
    assert split_pieces(map(piece, pieces)) == runs


def piece(times, low=FIRST_NUMBERS, high=10_000):
    return Piece(*times, low, high)


@pytest.mark.parametrize(
    ("earlier", "later", "runs"),
    [
        ((187, 261), (0, 156), [0, 1]),  # a restart, and the numbers 157 to 186 are those of the time before
        ((157, 261), (0, 156), [0, 0]),  # one process: the clock was set back after number 156
        ((10_000, 10_050), (FIRST_NUMBERS, 9_000), [0, 0]),  # a random number hardly ever is so close below
        ((10_000, 10_050), (FIRST_NUMBERS - 1, 9_000), [0, 1]),
    ],
)
def test_process_that_counts_from_0_again_is_a_run(earlier, later, runs):
    """In a table that begins in the middle of a process's life, the next process may share no number with it."""
    assert split_pieces([piece((0, -1), *earlier), piece((60, -1), *later)]) == runs


def test_pieces_of_too_many_runs_are_a_run_each():
    """A generator that resets its sequence often has one run per piece; a clock that is set back often has not."""
    often = [piece((second, second - 1)) for second in range(MAX_RUNS)]
    back, again = piece((MAX_RUNS, -1)), piece((MAX_RUNS + 1, MAX_RUNS - 1))
    assert split_pieces([*often, back]) == [*range(MAX_RUNS), MAX_RUNS - 1]
    assert split_pieces([*often, back, again]) == list(range(MAX_RUNS + 2))
    assert set(split_pieces(piece((second, -1)) for second in range(2 * MAX_RUNS))) == {0}
