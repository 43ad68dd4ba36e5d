"""Seeded simulations: what holds in each world, and proof that a planted defect is found."""

from contextlib import suppress
from unittest import mock

import pytest

from simulation import WORLDS
from simulation.scheduler import Violation, run

SEEDS = range(100)


@pytest.mark.parametrize("mode", [pytest.param("limited", marks=pytest.mark.details), "any"])
@pytest.mark.parametrize("world", WORLDS)
def test_simulation_of_each_world_keeps_its_invariants(world, mode):
    """The first seeds; ``python -m simulation`` runs any number of others."""
    for seed in SEEDS:
        run(WORLDS[world], seed, mode, steps=150)


def violated(world, mode="limited", steps=150):
    """Return the report of the first seed that violates an invariant."""
    for seed in range(1000):
        try:
            run(WORLDS[world], seed, mode, steps)
        except Violation as error:
            return str(error)
    pytest.fail("no seed violates an invariant")


def test_generator_that_does_not_notice_a_fork_is_found():
    """A child that goes on with its parent's block repeats the parent's IDs."""
    with mock.patch("simulation.generators.Life.__getitem__", return_value=1):
        assert "was made before" in violated("generators")


def test_sink_that_writes_in_place_is_found():
    """Without a hidden folder and its rename, a reader sees a part of a batch."""
    from spark_ext.tables import parquet

    with mock.patch.object(parquet, "_RENAMES", ()):
        assert "Violation" in violated("sinks")


def test_sink_that_takes_any_rename_for_its_own_is_found():
    """HDFS moves a folder into an incomplete one, so the batch would be nowhere."""
    from spark_ext.tables import parquet

    def rename(files, hidden, folder):
        with suppress(OSError):
            files.move(hidden, folder)
            return True
        return False

    with mock.patch.object(parquet, "_rename", rename):
        assert "Violation" in violated("sinks")


def test_report_of_a_failing_seed_runs_it_again():
    """The report has the command for the seed and the last operations; the same seed fails the same way."""
    with mock.patch("simulation.generators.Life.__getitem__", return_value=1):
        assert violated("generators") == violated("generators")
        assert "python -m simulation --world generators --mode limited --seed" in violated("generators")
