"""Measure the rate and the memory of reading Iggy's messages: to Arrow tables in Python, and to rows in Spark.

python bench/messages.py [--megabytes 10 100 1000]
python bench/messages.py --layouts

``--layouts`` measures one row per layout of Iggy and the planning of 100 segments, without a Spark session.
``MSGID_PURE=1`` measures the Python scanner.
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
from typing import TYPE_CHECKING

from rounds import machine, table

from msgid import iggy
from msgid.iggy.records.checksums import BACKEND

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOAD = 100
ROUNDS = 5
PER_MESSAGE = 45 + PAYLOAD
WITH_HEADERS = ("m45", "h64", "batch256")
SEGMENTS = 100
PLANNED_BYTES = 100_000_000
PLANNED_SPLIT = 16 << 20


def write(path: Path, megabytes: int) -> int:
    """Write a segment file of messages of 100 bytes; return their number."""
    block = iggy.encode_log(
        [
            iggy.Message.new(os.urandom(PAYLOAD), id=n + 1, offset=n, timestamp=1_700_000_000_000_000 + n, layout="m45")
            for n in range(10_000)
        ],
        "m45",
    )
    blocks = max(1, megabytes * 1_000_000 // len(block))
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(block)
    return blocks * 10_000


def messages_of(
    count: int, layout: str, first: int = 0, headers: dict[str, object] | None = None
) -> Iterator[iggy.Message]:
    """Yield messages of 100 bytes, perhaps with user headers."""
    for n in range(first, first + count):
        yield iggy.Message.new(
            os.urandom(PAYLOAD),
            id=n + 1,
            offset=n,
            timestamp=1_700_000_000_000_000 + n // 1000,
            layout=layout,
            headers=headers and {**headers, "number": n},
        )


def layout_rates() -> None:
    """Print how many messages per second and core of each layout become Arrow tables, checksums verified."""
    files = {}
    for layout in iggy.LAYOUTS:
        files[f"`{layout}`"] = layout, iggy.encode_log(messages_of(20_000, layout), layout) * 10
        if layout in WITH_HEADERS:
            text = {"trace": "4bf92f3577b34da6"}
            raw = iggy.encode_log(messages_of(20_000, layout, headers=text), layout) * 10
            files[f"`{layout}`, 2 user headers"] = layout, raw
    taken: dict[str, list[float]] = {name: [] for name in files}
    for _ in range(ROUNDS + 1):
        for name, (layout, raw) in files.items():
            asked = layout if layout == "previous" else "auto"
            start = time.process_time()
            rows = sum(part.table.num_rows for part in iggy.read_tables(io.BytesIO(raw), asked))
            taken[name].append(time.process_time() - start)
            assert rows == 200_000
    lines, least = [], float("inf")
    for name, (_, raw) in files.items():
        rate = 200_000 / statistics.median(taken[name][1:])
        least = min(least, rate)
        lines.append([name, f"{rate:,.0f}", f"{rate * len(raw) / 200_000 / 1e6:,.0f}"])
    print(table([f"messages of {PAYLOAD} bytes, scanner in {BACKEND}", "messages per second and core", "MB/s"], lines))
    print(f"\nGoal: each layout at least 1,000,000 messages per second and core. The slowest row has {least:,.0f}.")


def indexed(raw: bytes, layout: str) -> bytes:
    """Return the ``.index`` file that a server writes for a log of one layout."""
    import numpy as np

    from msgid.iggy.records.rows import row_type
    from msgid.iggy.records.scanning import scan
    from msgid.iggy.wire import LAYOUTS

    rows = np.frombuffer(scan(raw, LAYOUTS[layout].code).rows, row_type())
    if layout == "m45":
        return bytes(rows["position"].astype("<u4").tobytes())
    if layout == "batch256":
        rows = rows[np.unique(rows["batch"], return_index=True)[1]]
        entries = np.rec.fromarrays([rows["offset"], rows["timestamp"], rows["batch"]], dtype="<u8,<u8,<u8")
    else:
        entries = np.rec.fromarrays([rows["offset"], rows["end"], rows["timestamp"]], dtype="<u4,<u4,<u8")
    return bytes(entries.tobytes())


def planning() -> None:
    """Print the time of planning 100 segments of 100 MB, and its share of decoding them.

    Planning is the driver's list of parts. The segments are 100 names of one file, so that they fit on the disk: the
    planner opens and reads each as a file of its own.
    """
    from spark_ext.formats.iggy_source import IggyReader

    lines, worst = [], 0.0
    for layout in ("m45", "h64", "batch256"):
        with tempfile.TemporaryDirectory() as temporary:
            one = Path(temporary) / f"{0:020d}.log"
            one.write_bytes(iggy.encode_log(messages_of(PLANNED_BYTES // 164, layout), layout))
            raw = one.read_bytes()
            decoding = min(python_seconds(one) for _ in range(3)) * SEGMENTS
            for number in range(SEGMENTS):
                folder = Path(temporary) / "all" / f"{number:03d}"
                folder.mkdir(parents=True)
                os.link(one, folder / one.name)
            for index in ("with", "without"):
                if index == "with":
                    entries = indexed(raw, layout)
                    for number in range(SEGMENTS):
                        (Path(temporary) / "all" / f"{number:03d}" / one.with_suffix(".index").name).write_bytes(
                            entries
                        )
                else:
                    for file in Path(temporary).rglob("*.index"):
                        file.unlink()
                reader = IggyReader({"path": f"{temporary}/all", "splitBytes": str(PLANNED_SPLIT)})
                start = time.perf_counter()
                parts = reader.partitions()
                planned = time.perf_counter() - start
                if index == "with":
                    worst = max(worst, planned / decoding)
                lines.append(
                    [
                        f"`{layout}`, {index} `.index`",
                        f"{len(parts)}",
                        f"{planned:.3f}",
                        f"{decoding:.0f}",
                        f"{planned / decoding:.1%}",
                    ]
                )
    size = f"{SEGMENTS} segments of {PLANNED_BYTES // 1_000_000} MB (100 names of one file)"
    print(table([size, "parts", "planning, s", "decoding on one core, s", "planning of decoding"], lines))
    print(f"\nGoal: planning takes at most 2% of decoding. With `.index` files it takes {worst:.1%} at most.")


def python_seconds(path: Path) -> float:
    """Read a file to Arrow tables in this process."""
    start = time.perf_counter()
    with path.open("rb") as file:
        rows = sum(part.table.num_rows for part in iggy.read_tables(file, length=path.stat().st_size))
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
    planning()
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
