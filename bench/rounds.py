"""Measure rivals in turns and print the results; all benchmarks use these functions."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import timeit
    from collections.abc import Mapping


def alternate(timers: Mapping[str, timeit.Timer], *, number: int, rounds: int) -> dict[str, float]:
    """Run each rival ``number`` times per round, in turns; return the least nanoseconds per call of each rival."""
    best = dict.fromkeys(timers, float("inf"))
    for _ in range(rounds):
        for name, timer in timers.items():
            gc.collect()
            best[name] = min(best[name], timer.timeit(number) / number * 1e9)
    return best


def table(headers: list[str], rows: list[list[str]]) -> str:
    """Return rows as a Markdown table, with the first column on the left and numbers aligned to the right."""
    widths = [max(len(row[n]) for row in [headers, *rows]) for n in range(len(headers))]

    def line(cells: list[str]) -> str:
        sized = enumerate(zip(cells, widths, strict=True))
        return table_row([cell.rjust(width) if n else cell.ljust(width) for n, (cell, width) in sized])

    rule = "|" + "|".join(("-" * (width + 1) + ":") if n else "-" * (width + 2) for n, width in enumerate(widths)) + "|"
    return "\n".join([line(headers), rule, *map(line, rows)])


def table_row(cells: list[str]) -> str:
    """Return one more row of a table, for a table that is printed while it is measured."""
    return "| " + " | ".join(cells) + " |"


def machine() -> str:
    """Return the names of the Python version, the system and the processor."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}, {model}"


def versioned(distribution: str | None) -> str:
    """Return the name of a distribution with its version."""
    return f"{distribution} {version(distribution)}" if distribution else "standard library"


def floor() -> bool:
    """Compile floor.c, so that ``import floor`` works; return False without a compiler."""
    folder = tempfile.mkdtemp()
    target = Path(folder) / f"floor{sysconfig.get_config_var('EXT_SUFFIX')}"
    source = Path(__file__).with_name("floor.c")
    command = ["cc", "-O3", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", str(source), "-o", str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    sys.path.insert(0, folder)
    return True
