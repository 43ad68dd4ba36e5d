"""Simulated clusters whose tables have known faults."""

import random

from msgid.audit._simulation import FAULTS, Cluster


def simulated(seed, name=""):
    """Return one of many small clusters: every sixth is without a fault, and the others have some."""
    chance = random.Random(seed * 7919)
    faults = () if seed % 6 == 0 else tuple(chance.sample(FAULTS, chance.randint(1, 6)))
    if "restarts" in faults:  # a clock that went far ahead of a restart hides which process was first
        faults = tuple(fault for fault in faults if fault != "clock jump")
    return Cluster(seed, faults, name=name)
