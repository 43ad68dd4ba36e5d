"""The time per ID of `generate_id` in a Python worker, with the C core and with the pure-Python reference.

The ways to ship the packages to a cluster differ in the core that the executors get: see the guide to clusters.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

ROUNDS = 3
ROWS = 1_000_000
PROGRAM = f"""
import time
import msgid
msgid.generate_batch(1000).to_arrow(hex=True)
begin = time.perf_counter()
for _ in range({ROWS} // 10_000):
    msgid.generate_batch(10_000).to_arrow(hex=True).cast("string")
print(msgid.backend, (time.perf_counter() - begin) / {ROWS} * 1e9)
"""


def measure() -> dict[str, float]:
    """Return the median of the nanoseconds per ID of each core; the cores take turns."""
    by_core: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for pure in ("", "1"):
            environment = {**os.environ, "MSGID_PURE": pure}
            environment = {name: value for name, value in environment.items() if value}
            done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment)
            core, nanoseconds = done.stdout.split()
            by_core.setdefault(core.decode(), []).append(float(nanoseconds))
    return {core: statistics.median(values) for core, values in by_core.items()}


if __name__ == "__main__":
    print(f"{'core':8} {'ns per ID':>10}")
    for core, nanoseconds in measure().items():
        print(f"{core:8} {nanoseconds:10.0f}")
