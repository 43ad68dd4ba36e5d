"""The start of `python -m spark_ext ids` on 20 rows, against a bare session that counts 20 rows.

python bench/spark/start.py [--rounds 5]

Each side is a program of its own, and the sides take turns. The time of a side depends on the load of the machine, and
the CPU time of its processes does not, so the table has both. Parquet suits the job. CSV with a malformed row does not.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

ROWS = 20
BARE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
spark = builder.master("local[*]").getOrCreate()
reader = spark.read.option("header", "true") if sys.argv[1].endswith("csv") else spark.read
rows = getattr(reader, sys.argv[1].rpartition(".")[2])(sys.argv[1])
assert rows.count() == int(sys.argv[2])
spark.stop()
"""


def write(folder: Path) -> list[Path]:
    """Write the rows as Parquet, and as CSV with one offset that is not a number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    log, offsets, at = ["orders"] * ROWS, list(range(ROWS)), [1_790_000_000 + n for n in range(ROWS)]
    pq.write_table(pa.table({"log": log, "offset": offsets, "at": at}), folder / "rows.parquet")
    lines = [f"orders,{'none' if n == 7 else n},{1_790_000_000 + n}" for n in range(ROWS)]
    (folder / "rows.csv").write_text("\n".join(["log,offset,at", *lines]) + "\n")
    return [folder / "rows.parquet", folder / "rows.csv"]


def run(command: list[str]) -> tuple[float, float]:
    """Run a program; return its seconds, and the seconds of CPU of its processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    print(f"{machine()}; medians of {rounds} rounds in turns, {ROWS} rows\n")
    lines = []
    with tempfile.TemporaryDirectory() as name:
        for path in write(Path(name)):
            out = Path(name, "out")
            columns = ["--source", "log", "--offset", "offset", "--at", "at"]
            job = [sys.executable, "-m", "spark_ext", "ids", str(path), "-o", str(out), *columns]
            sides = {"bare": [sys.executable, "-c", BARE, str(path), str(ROWS)], "ids": job}
            taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
            for _ in range(rounds):
                for side, command in sides.items():
                    taken[side].append(run(command))
                    shutil.rmtree(out, ignore_errors=True)
            seconds, cpu = ([statistics.median(one[n] for one in taken[side]) for side in sides] for n in range(2))
            shown = [*(f"{value:.1f}" for value in (*seconds, *cpu)), f"{seconds[1] / seconds[0]:.2f}"]
            lines.append([path.suffix[1:], *shown, f"{cpu[1] / cpu[0]:.2f}"])
    print(table(["rows", "bare, s", "ids, s", "bare, CPU s", "ids, CPU s", "ratio", "of CPU"], lines))
    print("\nGoal: a ratio of at most 1.3.")


if __name__ == "__main__":
    main()
