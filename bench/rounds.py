"""Measuring rivals in turns: the one way all scripts here take time."""

from __future__ import annotations

import gc
import platform
import timeit
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def alternate(calls: Mapping[str, Callable[[], object]], *, number: int, rounds: int) -> dict[str, float]:
    """Call each rival ``number`` times, then each again, for so many rounds; give the least ns a call took in any.

    The call is made by `timeit`'s own loop, so what a loop costs is in every figure alike.
    """
    timers = {name: timeit.Timer("call()", globals={"call": call}) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, timer in timers.items():
            gc.collect()
            best[name] = min(best[name], timer.timeit(number) / number * 1e9)
    return best


def table(headers: list[str], rows: list[list[str]]) -> str:
    """Lay rows out as a Markdown table, the first column to the left and numbers to the right."""
    widths = [max(len(row[n]) for row in [headers, *rows]) for n in range(len(headers))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if n else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join(("-" * (width + 1) + ":") if n else "-" * (width + 2) for n, width in enumerate(widths)) + "|"
    return "\n".join([line(headers), rule, *map(line, rows)])


def machine() -> str:
    """Name the processor and the Python that ran."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}, {model}"


def versioned(distribution: str) -> str:
    """Name a distribution with its version."""
    return f"{distribution} {version(distribution)}"
