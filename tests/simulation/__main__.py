"""Run random fleets of processes until an ID is made twice with the default node."""

from __future__ import annotations

import argparse
import sys

from simulation import fleets


def main() -> int:
    """Run the fleets of one seed, and print how many repeat an ID; return 1 if that is not as expected."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the seed of all fleets")
    parser.add_argument("--fleets", type=int, help="the number of fleets; default: until the time is over")
    parser.add_argument("--minutes", type=float, default=1, help="the time for new fleets; default: 1")
    arguments = parser.parse_args()
    try:
        result = fleets.run(arguments.seed, arguments.fleets, arguments.minutes)
    except fleets.Violation as error:
        print(error)
        return 1
    print(f"seed {arguments.seed}: {result}")
    if not result.agrees:
        print("collision_risk does not agree with the fleets")
    return 0 if result.agrees else 1


if __name__ == "__main__":
    sys.exit(main())
