"""Time `msgid.audit.trace` of one ID against DuckDB's own ``WHERE id = '...'`` on the same Parquet file.

    python bench/trace.py [ROWS] [ROUNDS]

The sides alternate. A third one is DuckDB with the two spellings that the statistics of the file allow: a trace finds
both, so that is its floor. It prints the median of each side in milliseconds, the ratios, and the peak memory of the
process of the trace.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from msgid.audit import trace

_MEMORY = """
import sys
from msgid.audit import trace
trace(sys.argv[1], sys.argv[2])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""
"""The peak of getrusage would include that of the process that starts this one, which has written the file.
"""


def make(path: Path, rows: int, order: str) -> str:
    """Write a table of IDs of 100 processes, in the order of time or of a hash; return one ID in the middle."""
    id = "printf('0156F7E71C%04X21BC%08X%08X', (range * 7919) % 100, 38587838 + range // 1000, range // 100)"
    duckdb.execute(
        f"COPY (SELECT {id} AS id, 'orders' AS topic, range AS amount FROM range({rows}) ORDER BY {order}) "
        f"TO '{path}' (FORMAT parquet)"
    )
    ((id,),) = duckdb.execute(f"SELECT id FROM '{path}' WHERE amount = {rows // 2}").fetchall()
    return str(id)


def plain(path: Path, *ids: str) -> None:
    """Search as a user of DuckDB would, one query for each spelling."""
    connection = duckdb.connect()
    texts = (f"SELECT * FROM read_parquet('{path}') WHERE id = '{id}'" for id in ids)
    assert len(connection.execute(" UNION ALL ".join(texts)).fetchall()) == 1
    connection.close()


def main(rows: int = 5_000_000, rounds: int = 7) -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        for name, order in (("sorted by time", "range"), ("unsorted", "hash(range)")):
            path = Path(folder) / "ids.parquet"
            id = make(path, rows, order)
            spellings = {"duckdb": [id], "both": [id, id[:18] + id[18:].lower()]}
            times: dict[str, list[float]] = {"trace": [], "duckdb": [], "both": []}
            for number in range(rounds + 1):
                for side in random.sample([*times], 3):
                    start = time.perf_counter()
                    if side == "trace":
                        assert trace(id, str(path)).exists
                    else:
                        plain(path, *spellings[side])
                    if number:  # the first round imports and warms up
                        times[side].append(time.perf_counter() - start)
            ours, theirs, both = (statistics.median(of) for of in times.values())
            ratio, floor = (
                statistics.median(a / b for a, b in zip(times["trace"], times[side], strict=True)) for side in spellings
            )
            child = subprocess.run(
                [sys.executable, "-c", _MEMORY, id, str(path)], capture_output=True, text=True, check=True
            )
            print(
                f"{rows:,} rows {name}: trace {ours * 1000:.0f} ms, DuckDB {theirs * 1000:.0f} ms, ratio {ratio:.2f}; "
                f"with both spellings {both * 1000:.0f} ms, ratio {floor:.2f}; "
                f"peak memory {child.stdout.strip()} MiB"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
