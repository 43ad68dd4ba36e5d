"""The definitions of an audit: names, severities, meanings, and where a run ends."""

import pytest

from msgid.audit.definitions import CHECKS, MAX_RUNS, SEVERITIES, rate_width, split_pieces

ERRORS = {
    "lost_messages", "changed_messages", "missing_offsets", "duplicate_messages", "conflicting_messages",
    "duplicate_ids", "conflicting_ids",
}  # fmt: skip
WARNINGS = {
    "late_messages", "time_backwards", "missing_sequences", "clock_backwards", "clock_jump", "shared_node",
    "malformed_ids", "missing_ids", "ambiguous_ids", "future_ids", "orphan_ids",
}  # fmt: skip
INFOS = {"extra_messages", "sequence_jump", "synthetic_node", "v0_month_wrap"}


def test_checks_have_the_severity_of_their_kind():
    """A lost, repeated or changed message is an error; reports sort by severity, as the checks do."""
    assert {name for name, check in CHECKS.items() if check.severity == "error"} == ERRORS
    assert {name for name, check in CHECKS.items() if check.severity == "warning"} == WARNINGS
    assert {name for name, check in CHECKS.items() if check.severity == "info"} == INFOS
    ranks = [SEVERITIES.index(check.severity) for check in CHECKS.values()]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize("name", CHECKS)
def test_meanings_are_short_sentences(name):
    """A meaning has sentences of at most 25 words."""
    sentences = CHECKS[name].meaning.split(". ")
    assert CHECKS[name].meaning.endswith(".")
    assert all(len(sentence.split()) <= 25 for sentence in sentences)


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
    """A piece starts a run if and only if it repeats a number of the current run."""
    assert split_pieces(pieces) == runs


def test_pieces_of_too_many_runs_are_a_run_each():
    """A generator that resets its sequence often has one run per piece; a clock that is set back often has not."""
    often = [(second, second - 1) for second in range(MAX_RUNS)]
    assert split_pieces([*often, (MAX_RUNS, -1)]) == [*range(MAX_RUNS), MAX_RUNS - 1]
    assert split_pieces([*often, (MAX_RUNS, -1), (MAX_RUNS + 1, MAX_RUNS - 1)]) == list(range(MAX_RUNS + 2))
    assert set(split_pieces((second, -1) for second in range(2 * MAX_RUNS))) == {0}


def test_rate_has_at_most_120_intervals_of_whole_minutes():
    """The width follows from the span."""
    for span in (0, 59, 60, 7_199, 7_200, 10**9):
        width = rate_width(1_000, 1_000 + span)
        assert width % 60 == 0
        assert span // width + 1 <= 121
