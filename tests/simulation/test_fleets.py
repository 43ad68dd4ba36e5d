"""Fleets of look-alike processes make no ID twice, and repeat IDs with one MAC as often as `collision_risk` says."""

import itertools
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation import fleets
from simulation.fleets import Stretch, Violation


def test_random_fleets_make_no_id_twice_and_agree_with_collision_risk():
    """Restarts, clock steps and years; ``python -m simulation`` runs any number of others."""
    result = fleets.run(seed=0, fleets=600)
    assert result.plain > 200
    assert result.expected > 60
    assert result.agrees, str(result)


def test_processes_with_one_mac_are_found():
    """If the containers took the MAC, the simulation would find an ID that is made twice, and print its seed."""
    with (
        mock.patch.object(fleets, "default_node", return_value=0x56F7E71C361B),
        pytest.raises(Violation, match=r"seed 0, fleet \d+: an ID is made twice"),
    ):
        fleets.run(seed=0, fleets=300)


def test_two_containers_of_1000_and_3000_ids_per_second_cross_within_25_days():
    """The faster counter overtakes the slower one, whatever the random starts: with one MAC, IDs repeat."""
    fleet = fleets.Fleet([1_000, 3_000], 25 * 86_400, restarts=0, steps=0)
    for seed in range(20):
        found = fleets.stretches(fleet, fleets.Random(seed))
        assert fleets.meeting(found, by_node=False) is not None
        fleets.check(fleet, found)


small = st.builds(
    Stretch, st.integers(1, 2), st.integers(0, 9), st.integers(1, 9), st.integers(0, 60), st.integers(1, 9)
)


@given(st.lists(small, min_size=1, max_size=6), st.booleans(), st.integers(1, 4))
def test_ids_in_common_are_those_of_all_ids_one_by_one(found, by_node, most):
    """Stretches that are compared by their ends have an ID in common if and only if their IDs have."""
    made = [
        {
            (one.node if by_node else 0, one.second + place, one.sequence + one.rate * place + number)
            for place, number in itertools.product(range(one.seconds), range(one.rate))
        }
        for one in found
    ]
    repeats = any(one & other for one, other in itertools.combinations(made, 2))
    with mock.patch.object(fleets, "MOST_PAIRS", most):
        twice = fleets.meeting(found, by_node=by_node)
    assert (twice is not None) == repeats
    if twice is not None:
        for one in (twice.one, twice.other):
            assert (one.node if by_node else 0, twice.second, twice.sequence) in made[found.index(one)]
