"""Combinations of settings: few of them in the default run, and all of them at night."""

import itertools

import pytest


def covering(*lists, strength=2):
    """Return every combination of one value of each list, as parameters of a test.

    The default run has combinations with every pair of values, with ``strength=1`` every value, and with ``strength=0``
    the first combination. The others have the mark ``variants``.
    """
    places = list(itertools.combinations(range(len(lists)), strength))

    def parts(combination):
        return {(place, tuple(combination[n] for n in place)) for place in places}

    # Positions stand for the values, which may be equal or unhashable.
    waiting = list(itertools.product(*(range(len(values)) for values in lists)))
    missing = set().union(*map(parts, waiting))
    first = set()
    while missing:
        best = max(waiting, key=lambda combination: len(parts(combination) & missing))
        first.add(best)
        missing -= parts(best)
    return [
        pytest.param(
            *(values[n] for values, n in zip(lists, combination, strict=True)),
            marks=[] if combination in first else [pytest.mark.variants],
        )
        for combination in waiting
    ]


def first_by_default(values, count):
    """Return values as parameters of a test, with the mark ``variants`` on those after the first ones."""
    return [pytest.param(value, marks=[] if n < count else [pytest.mark.variants]) for n, value in enumerate(values)]
