"""Audits of processes that share a node and a pid: restarts and processes at one time differ from losses."""

import pytest
from helpers.lives import KINDS, generator_of

from msgid import layout

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")
audit = pytest.importorskip("msgid.audit")


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 2_000), marks=pytest.mark.volume)], ids=len)
@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_of_processes_of_one_pid_is_found_and_nothing_else(kind, seeds):
    """A restart at any number is not a loss, processes at one time are not a clock step, and each loss is found."""
    for seed in seeds:
        made = generator_of(seed, kind)
        report = audit.audit_ids([layout.pack(0x00163E000001, 1, second, number) for second, number in made.ids])
        checks = {finding.check: finding.count for finding in report.findings}
        # Processes that share a pid may make equal IDs.
        equal = len(made.ids) - len(set(made.ids))
        assert checks.pop("duplicate_ids", 0) == equal
        missing = [number for gap in report.gaps for number in range(gap.first, gap.last + 1)]
        assert checks.pop("missing_sequences", 0) == len(missing)
        assert (checks.pop("shared_node", 0) > 1) == ("shared" in kind)
        assert checks == made.findings
        assert made.surely_lost <= set(missing) <= made.lost
        if "shared" not in kind:
            assert len(report.generators) == len(made.lives)


@pytest.mark.parametrize(("ahead", "found"), [(86_399, []), (86_400, ["clock_jump"])])
def test_clock_that_goes_ahead_by_more_than_a_day_is_found(ahead, found):
    """A process that was silent for a day has such IDs, too."""
    made = [layout.pack(1, 1, 1_000 + n + ahead * (n > 50), n) for n in range(100)]
    assert [one.check for one in audit.audit_ids(made).findings] == found


def test_restart_at_a_higher_number_may_be_a_loss():
    """Both readings are one finding of severity info, with the number and the step."""
    made = [layout.pack(1, 1, second, number) for second, number in ((5, 7), (5, 8), (9, 50_000), (9, 50_001))]
    (found,) = audit.audit_ids(made).findings
    assert (found.check, found.severity, found.count) == ("sequence_jump", "info", 1)
    assert found.example == "sequence 50000, 49,992 numbers forward"


def test_large_step_is_a_loss_if_the_generator_had_the_time_for_it():
    """A consumer that was down for an hour lost what the generator made in that hour."""
    made = [layout.pack(1, 1, n // 10, n) for n in (*range(1_000), *range(37_000, 38_000))]
    (found,) = audit.audit_ids(made).findings
    assert (found.check, found.count, found.example) == ("missing_sequences", 36_000, "1000 to 36999")


def test_restart_from_0_is_no_loss_in_a_table_that_begins_late():
    """The table begins with number 187, and the next process ends at 156: no number occurs twice."""
    first = [layout.pack(1, 1, 1_000 + n // 2, n) for n in range(187, 262)]
    second = [layout.pack(1, 1, 1_200 + n // 2, n) for n in range(157)]
    assert audit.audit_ids([*first, *second]).findings == []


def test_shared_node_is_found_in_a_table_that_begins_late():
    """One process begins at 0 at second 39, and the other is at number 140 at second 27: neither lost an ID."""
    first = [layout.pack(1, 1, 1_039 + n // 3, n) for n in range(424)]
    second = [layout.pack(1, 1, 1_027 + (n - 140) // 10, n) for n in range(140, 592)]
    assert [one.check for one in audit.audit_ids([*first, *second]).findings] == ["shared_node"]
