"""Simulated schedules of faults, few of them: `simulation.processing` has the rules; ``nox -s simulate`` runs more."""

import logging

import pytest
from simulation.processing import KINDS, checked

SCHEDULES = 50
"""The number of schedules of each kind."""


@pytest.mark.parametrize("kind", KINDS)
def test_faults_at_any_step_change_each_state_once_and_in_order(tmp_path, kind, caplog):
    """The text of a broken promise names the seed that repeats it."""
    if kind == "tables":
        pytest.importorskip("pyspark")
    caplog.set_level(logging.CRITICAL, logger="msgid.processing")
    broken = [text for seed in range(SCHEDULES) for _, text in [checked(seed, kind, tmp_path)] if text]
    assert broken == []


@pytest.mark.variants
@pytest.mark.parametrize("kind", KINDS[:3])
def test_states_in_postgres_survive_the_same_faults(postgres, kind):
    """The same programs on a real server."""
    assert [text for seed in range(20) for _, text in [checked(seed, kind, address=postgres)] if text] == []


@pytest.mark.parametrize("kind", KINDS[:3])
def test_schedule_depends_on_its_seed_alone(kind):
    assert [checked(7, kind) for _ in range(2)] == [checked(7, kind)] * 2
