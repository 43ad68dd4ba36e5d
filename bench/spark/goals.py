"""Print the figures of each goal of speed on Spark, with rows that suit the function and with rows that do not.

python bench/spark/goals.py [--only deduplicate state process columns messages start] [--quick]

Each table is that of another script, which says what its rows are. `--quick` shows with few rows that the scripts run;
its figures mean nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple


class Goal(NamedTuple):
    """A goal, and the arguments of the script that measures it."""

    goal: str
    script: str
    arguments: str
    quick: str
    """The arguments for few rows."""


GOALS: Final = {
    "deduplicate": Goal(
        "deduplicate: 1.0 of the rows per second of dropDuplicatesWithinWatermark",
        "deduplicate_stream.py",
        "--state 0 --ids ordered random",
        "--state 0 --ids ordered random --rows 2000 --batches 2 --rounds 1",
    ),
    "state": Goal(
        "a micro-batch of 1,000 rows: 1.15 of the time of an operator that does nothing, at 0.2 and 4 million IDs",
        "state_growth.py",
        "--ids ordered random --entries 200000 4000000 --rows 1000 --per-key --ways deduplicate floor --rounds 2",
        "--ids ordered random --entries 2000 --rows 1000 --batches 2 --per-key --ways deduplicate floor",
    ),
    "process": Goal(
        "process: 0.75 of the messages per second of the same handler in applyInPandas",
        "process.py",
        "--only rate",
        "--only rate --messages 8000 --keys 100 --rounds 1",
    ),
    "columns": Goal(
        "position_id and derive_id: 0.66 and 0.60 of the rows per second of uuid() and sha2()",
        "columns.py",
        "--goals",
        "--goals --rows 10000 --rounds 1",
    ),
    "messages": Goal(
        "messages: twice 293,000 rows per second, or the rate of the columns beside position_id, its floor",
        "messages.py",
        "--rows 5000000",
        "--rows 1 --rounds 1",
    ),
    "start": Goal("the start of a job: 1.3 of the time of a bare session", "start.py", "", "--rounds 1"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    for name in chosen.only:
        goal = GOALS[name]
        print(f"## {goal.goal}\n", flush=True)
        arguments = (goal.quick if chosen.quick else goal.arguments).split()
        command = [sys.executable, str(Path(__file__).with_name(goal.script)), *arguments]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)  # Spark logs each start there
        if done.returncode:
            sys.exit(done.stderr)
        print(flush=True)


if __name__ == "__main__":
    main()
