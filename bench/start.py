"""Time the start: `import msgid` against `import uuid`, and `msgid inspect ID` against an import of Click.

    python bench/start.py

The sides alternate. A figure is the least CPU time of a process, in milliseconds, with that of Python itself.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

ID = "0156F7E71C361B21BC024CCDBE00000000"
SIDES = {
    "import msgid": (["-c", "import msgid"], ["-c", "import uuid"], "import uuid", 1.3),
    "import msgid, and a first ID": (["-c", "import msgid; msgid.generate()"], ["-c", "import uuid; uuid.uuid4()"],
                                     "import uuid, and a first uuid4", None),
    "msgid inspect ID": (["-m", "msgid", "inspect", ID], ["-c", "import click"], "import click", 1.6),
}  # fmt: skip


def seconds_of(arguments: list[str]) -> float:
    """Return the CPU seconds of a process of this Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="processes of each side")
    rounds = parser.parse_args().rounds
    for name, (ours, theirs, other, goal) in SIDES.items():
        times = [(seconds_of(ours), seconds_of(theirs)) for _ in range(rounds)]
        own, least = (1_000 * min(side) for side in zip(*times, strict=True))
        wanted = "" if goal is None else f" (goal: {goal})"
        print(f"{name}: {own:.0f} ms; {other}: {least:.0f} ms; ratio {own / least:.2f}{wanted}")


if __name__ == "__main__":
    main()
