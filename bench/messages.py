"""Measure the rate and the memory of reading Iggy's messages: to Arrow tables in Python, and to rows in Spark.

python bench/messages.py [--megabytes 10 100 1000]
python bench/messages.py --layouts

``--layouts`` measures one row per layout of Iggy, without Spark. ``MSGID_PURE=1`` measures the Python scanner.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rounds import machine, table

from msgid import iggy
from msgid.iggy._records.checksums import BACKEND

PAYLOAD = 100
ROUNDS = 5
PER_MESSAGE = 45 + PAYLOAD


def write(path: Path, megabytes: int) -> int:
    """Write a segment file of messages of 100 bytes; return their number."""
    block = iggy.encode_log(
        iggy.Message.new(os.urandom(PAYLOAD), id=n + 1, offset=n, timestamp=1_700_000_000_000_000 + n)
        for n in range(10_000)
    )
    blocks = max(1, megabytes * 1_000_000 // len(block))
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(block)
    return blocks * 10_000


def layout_rates() -> None:
    """Print how many messages per second and core of each layout become Arrow tables, checksums verified."""
    files = {}
    for layout in iggy.LAYOUTS:
        made = (
            iggy.Message.new(os.urandom(PAYLOAD), id=n + 1, offset=n, timestamp=1_700_000_000_000_000, layout=layout)
            for n in range(20_000)
        )
        files[layout] = iggy.encode_log(made, layout) * 10
    taken: dict[str, list[float]] = {layout: [] for layout in files}
    for _ in range(ROUNDS + 1):
        for layout, raw in files.items():
            asked = layout if layout == "previous" else "auto"
            start = time.process_time()
            rows = sum(found.table.num_rows for found in iggy.read_tables(io.BytesIO(raw), asked))
            taken[layout].append(time.process_time() - start)
            assert rows == 200_000
    lines = []
    for layout, raw in files.items():
        rate = 200_000 / statistics.median(taken[layout][1:])
        lines.append([f"`{layout}`", f"{rate:,.0f}", f"{rate * len(raw) / 200_000 / 1e6:,.0f}"])
    print(table([f"messages of {PAYLOAD} bytes, scanner in {BACKEND}", "messages per second and core", "MB/s"], lines))


def python_seconds(path: Path) -> float:
    """Read a file to Arrow tables in this process."""
    start = time.perf_counter()
    with path.open("rb") as file:
        rows = sum(found.table.num_rows for found in iggy.read_tables(file, length=path.stat().st_size))
    assert rows
    return time.perf_counter() - start


def message_seconds(path: Path, count: int) -> float:
    """Read the first messages of a file one by one as Python values."""
    start = time.perf_counter()
    with path.open("rb") as file:
        for number, _ in enumerate(iggy.read_log(file), 1):
            if number == count:
                break
    return time.perf_counter() - start


def rates(path: Path, rows: int) -> None:
    """Print messages per second and core, with Python and Spark in turns."""
    from pyspark.sql import SparkSession

    from spark_ext.formats.iggy_source import IggyDataSource

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.getOrCreate()
    spark.dataSource.register(IggyDataSource)
    df = spark.read.format("iggy").load(str(path))

    def spark_seconds() -> float:
        start = time.perf_counter()
        df.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - start

    few = min(rows, 200_000)
    ways = {
        "`read_tables(file)`, Python to Arrow": (lambda: python_seconds(path), rows),
        '`spark.read.format("iggy")`, one core': (spark_seconds, rows),
        "`read_log(file)`, one value per message": (lambda: message_seconds(path, few), few),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for run, _ in ways.values():
        run()
    for _ in range(ROUNDS):
        for name, (run, _) in ways.items():
            taken[name].append(run())
    spark.stop()
    first = None
    lines = []
    for name, (_, count) in ways.items():
        rate = count / statistics.median(taken[name])
        first = first or rate
        lines.append([name, f"{rate:,.0f}", f"{rate * PER_MESSAGE / 1e6:,.0f}", f"{rate / first:.2f}"])
    print(table([f"{rows:,} messages of {PAYLOAD} bytes", "messages a second", "MB a second", "of the first"], lines))


def memory(path: Path) -> None:
    """Print the peak memory of this process while it reads a file."""
    python_seconds(path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def spark_memory(path: Path) -> None:
    """Print the peak memory of Spark's Python worker and of its JVM while they read a file."""
    import threading

    import psutil
    from pyspark.sql import SparkSession

    from spark_ext.formats.iggy_source import IggyDataSource

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()
    spark.dataSource.register(IggyDataSource)
    most = {"java": 0, "python": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            for process in psutil.Process().children(recursive=True):
                try:
                    name = "java" if "java" in process.name() else "python"
                    most[name] = max(most[name], process.memory_info().rss >> 20)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    spark.read.format("iggy").load(str(path)).write.format("noop").mode("overwrite").save()
    done.set()
    watcher.join()
    print(most["python"], most["java"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--layouts", action="store_true", help="only a row for each layout, without Spark")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--spark-memory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory(Path(arguments.memory))
    if arguments.spark_memory:
        return spark_memory(Path(arguments.spark_memory))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    print(f"{machine()}; the median of {ROUNDS} alternating rounds\n", flush=True)
    layout_rates()
    print(flush=True)
    if arguments.layouts:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020d}.log"
        rates(path, write(path, 600))
        lines = []
        for megabytes in arguments.megabytes:
            write(path, megabytes)
            here = [sys.executable, __file__]
            python = subprocess.run([*here, "--memory", str(path)], capture_output=True, text=True, check=True)
            spark = subprocess.run([*here, "--spark-memory", str(path)], capture_output=True, text=True, check=True)
            worker, java = spark.stdout.split()[-2:]
            lines.append([f"{megabytes:,} MB", python.stdout.strip(), worker, java])
    print()
    print(table(["file", "Python, MB", "Spark's Python worker, MB", "its JVM of 1 GB, MB"], lines))
    return None


if __name__ == "__main__":
    main()
