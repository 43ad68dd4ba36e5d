"""Run seeds of the simulation until the first violation."""

from __future__ import annotations

import argparse
import itertools
import sys
import time

from simulation import WORLDS, fleets
from simulation.scheduler import MODES, Violation, run


def main() -> int:
    """Run the seeds, and print how many ran; return 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--world", choices=[*WORLDS, "fleets", "all"], default="all")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, help="the number of seeds or fleets; default: until the time is over")
    parser.add_argument("--minutes", type=float, default=1, help="the time for new seeds; default: 1")
    parser.add_argument("--steps", type=int, default=150, help="operations per seed; default: 150")
    arguments = parser.parse_args()
    if arguments.world == "fleets":
        return _run_fleets(arguments.seed, arguments.seeds, arguments.minutes)
    worlds = list(WORLDS) if arguments.world == "all" else [arguments.world]
    modes = list(MODES) if arguments.mode == "all" else [arguments.mode]
    end = time.monotonic() + 60 * arguments.minutes
    count = 0
    seeds = (
        itertools.count(arguments.seed)
        if arguments.seeds is None
        else range(arguments.seed, arguments.seed + arguments.seeds)
    )
    for seed in seeds:
        if arguments.seeds is None and time.monotonic() > end:
            break
        for world, mode in itertools.product(worlds, modes):
            try:
                run(WORLDS[world], seed, mode, arguments.steps)
            except Violation as error:
                print(error)
                return 1
        count += 1
    print(f"{count} seeds from {arguments.seed} on, {', '.join(worlds)}, modes {', '.join(modes)}: no violation")
    return 0


def _run_fleets(seed: int, count: int | None, minutes: float) -> int:
    """Run the fleets of one seed: a number of them, or as many as the minutes allow; return 1 after a violation."""
    try:
        result = fleets.run(seed, count, minutes)
    except Violation as error:
        print(error)
        return 1
    print(f"seed {seed}: {result}")
    if not result.agrees:
        print("collision_risk does not agree with the fleets")
    return 0 if result.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
