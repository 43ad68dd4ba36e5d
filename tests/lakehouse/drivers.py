"""Drivers of Spark that write the same batches at once, and are killed."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "programs" / "lakehouse_killed.py"
ROUNDS = 12
"""Each round has a driver per way, and kills each."""
DRIVER_SECONDS = 400


def start(log, plan):
    """Start a driver with a plan, and return its process."""
    with log.open("w") as output:
        return subprocess.Popen([sys.executable, str(PROGRAM), json.dumps(plan)], stdout=output, stderr=output)


def kill_drivers(folder, seed, place, ways, steps, between=lambda each: None):
    """Let drivers write the batches 0 to ``ROUNDS - 1``, ten rows each, and kill them; return the number of kills.

    Each driver writes in its way, ``way`` and ``settings``, into the table at the place. It is killed at one of the
    named steps, by the seed. The first one is not killed in a last round. ``between`` is called after each round.
    """
    chance, kills = random.Random(seed), 0
    for each in range(ROUNDS + 1):
        drivers = []
        for number, way in enumerate(ways if each < ROUNDS else ways[:1]):
            step = chance.choice(steps) if each < ROUNDS else None
            plan = {
                **way, "place": place, "batches": ROUNDS if step is None else min(each + 2, ROUNDS), "step": step,
                "batch": each, "delay": chance.uniform(0, 2), "told": str(folder / f"told-{number}-{each}"),
            }  # fmt: skip
            drivers.append(start(folder / f"log-{number}-{each}", plan))
        codes = [driver.wait(DRIVER_SECONDS) for driver in drivers]
        logs = "".join(log.read_text()[-3000:] for log in folder.glob(f"log-*-{each}"))
        assert set(codes) <= {0, -signal.SIGKILL}, f"seed {seed}: {logs}"
        kills += codes.count(-signal.SIGKILL)
        between(each)
    told = [line.split() for file in folder.glob("told-*") for line in file.read_text().splitlines()]
    for number in range(ROUNDS):
        assert told.count([str(number), "True"]) <= 1, f"seed {seed}: batch {number} was reported twice as written"
    assert kills >= ROUNDS, f"seed {seed}"
    return kills
