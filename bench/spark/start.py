"""The start of `python -m spark_ext ids` on 20 rows, against a bare session that counts 20 rows.

python bench/spark/start.py [--rounds 5]

Each side is a program of its own, and the sides take turns. The time of a side depends on the load of the machine, and
the CPU time of its processes does so less, so the table has both. The floor is a program that reads the rows, writes
them to two Parquet tables as the job does, and counts the written rows, without any function of ours. Parquet suits the
job. CSV with a malformed row does not. The CPU time needs Linux: it includes the JVM, which outlives its Python.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
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
FLOOR = """
import sys
from pyspark.sql import SparkSession, functions as F
builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
builder = builder.config("spark.python.sql.dataFrameDebugging.enabled", "false")
spark = builder.master("local[*]").getOrCreate()
reader = spark.read.option("header", "true") if sys.argv[1].endswith("csv") else spark.read
rows = getattr(reader, sys.argv[1].rpartition(".")[2])(sys.argv[1])
is_valid = F.expr("try_cast(offset as bigint)").isNotNull()
rows.where(~is_valid).write.parquet(sys.argv[3] + "/quarantine")
fields = {"id_kind": F.lit("v1"), "id_origin": F.lit("position")}
rows.where(is_valid).withColumns(fields).write.parquet(sys.argv[3] + "/ids")
counts = spark.read.parquet(sys.argv[3] + "/ids").groupBy("id_kind", "id_origin").count().collect()
malformed = spark.read.parquet(sys.argv[3] + "/quarantine").count()
assert sum(row["count"] for row in counts) + malformed == int(sys.argv[2])
spark.stop()
"""
PR_SET_CHILD_SUBREAPER = 36


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
    seconds = time.perf_counter() - start
    with suppress(ChildProcessError):
        while True:  # the JVM, whose time counts when it is waited for
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the JVM becomes a child of this process
    print(f"{machine()}; medians of {rounds} rounds in turns, {ROWS} rows\n")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for path in write(Path(folder)):
            out = Path(folder, "out")
            columns = ["--source", "log", "--offset", "offset", "--at", "at"]
            job = [sys.executable, "-m", "spark_ext", "ids", str(path), "-o", str(out), *columns]
            given = (str(path), str(ROWS), str(out))
            sides = {name: [sys.executable, "-c", code, *given] for name, code in (("bare", BARE), ("floor", FLOOR))}
            sides["ids"] = job
            taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
            for _ in range(rounds):
                for side, command in sides.items():
                    taken[side].append(run(command))
                    shutil.rmtree(out, ignore_errors=True)
            for name, number in (("seconds", 0), ("CPU seconds", 1)):
                bare, floor, ids = (statistics.median(one[number] for one in taken[side]) for side in sides)
                shown = (f"{bare:.1f}", f"{floor:.1f}", f"{ids:.1f}", f"{floor / bare:.2f}", f"{ids / bare:.2f}")
                lines.append([path.suffix[1:], name, *shown])
    print(table(["rows", "time", "bare", "floor", "ids", "ratio of the floor", "of ids"], lines))
    print("\nGoal: a ratio of at most 1.3.")


if __name__ == "__main__":
    main()
