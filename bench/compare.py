"""Compare IDs with every rival, in turns in one process: make single IDs, read them, and make batches.

python bench/compare.py [--rounds 15] [--number 50000] [--batch 1000000] [--chart bench/compare.svg]
"""

from __future__ import annotations

import argparse
import timeit
from typing import TYPE_CHECKING

import rivals
from rounds import alternate, floor, machine, table, versioned

import msgid

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTIONS = {
    "text": "one id as text",
    "value": "one id as a value",
    "parse": "text read to a value",
    "check": "text checked",
    "batch bytes": "a batch as bytes, back to back",
    "batch text": "a batch as text, back to back",
    "batch list": "a batch as a list of texts",
}
_EMPTY = ("an empty function of C that returns a new text", "from floor import empty_str", "empty_str()")
_MEMSET = "memset of as many bytes"
_FRESH = "memset of as many bytes in large pages"
FLOORS = {
    "text": [_EMPTY],
    "batch bytes": [(_MEMSET, "", "b'1' * (17 * n)"), (_FRESH, "from floor import fresh_bytes", "fresh_bytes(17 * n)")],
    "batch text": [(_MEMSET, "", "b'1' * (34 * n)"), (_FRESH, "from floor import fresh_bytes", "fresh_bytes(34 * n)")],
    "batch list": [("a list of new texts, filled by memset", "from floor import empty_list", "empty_list(n)")],
}


RIVAL = "fastuuidv7"
MOST = 0.9
"""The time of `generate_hex` over the rival's time, at most."""


def goal(best: Mapping[str, float]) -> str:
    """Return the goal of `generate_hex` and the measured ratio."""
    rival = next((ns for name, ns in best.items() if RIVAL in name), None)
    if rival is None:
        return f"goal: {RIVAL} is not installed"
    ratio = next(iter(best.values())) / rival
    met = "met" if ratio <= MOST else "NOT met"
    return f"goal: `generate_hex()` takes at most {MOST} of the time of {RIVAL}: {ratio:.2f}, {met}"


def main() -> None:
    """Measure all sections, and print one table per section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--number", type=int, default=50_000, help="calls a round, one at a time")
    parser.add_argument("--batch", type=int, default=1_000_000, help="ids a batch")
    parser.add_argument("--chart", help="draw the chart into this SVG file")
    arguments = parser.parse_args()
    rival_modules, has_floor = rivals.installed(), floor()
    print(f"{machine()}; msgid.backend: {msgid.backend}; the least of {arguments.rounds} alternating rounds\n")
    measured = {}
    for section, title in SECTIONS.items():
        batch = section.startswith("batch")
        statements = {
            f"`{rival.CALLS[section]}` {versioned(rival.DISTRIBUTION)}": (rival.SETUP, rival.CALLS[section])
            for rival in rival_modules
            if section in rival.CALLS
        }
        for name, setup, statement in FLOORS.get(section, []):
            if has_floor or not setup:
                statements[f"floor: {name}"] = (setup, statement)
        timers = {
            name: timeit.Timer(statement, f"{setup}\nn = {arguments.batch}")
            for name, (setup, statement) in statements.items()
        }
        best = alternate(timers, number=1 if batch else arguments.number, rounds=arguments.rounds if not batch else 7)
        if batch:
            best = {name: ns / arguments.batch for name, ns in best.items()}
        ours = next(iter(best.values()))
        rows = [[name, f"{ns:.1f}", f"{ns / ours:.2f}"] for name, ns in sorted(best.items(), key=lambda pair: pair[1])]
        print(table([title, "ns an id", "times msgid"], rows) + "\n")
        measured[title] = best
        if section == "text":
            print(goal(best) + "\n")
    if arguments.chart:
        from charts import bars

        bars(measured, arguments.chart)


if __name__ == "__main__":
    main()
