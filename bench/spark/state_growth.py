"""How the state of `deduplicate` and `process` on streams grows: with its entries, and with the messages of a key.

python bench/spark/state_growth.py [--ids random ordered] [--entries 200000 1000000 4000000 10000000]
    [--rows 1000 10000 500000] [--batches 20] [--ways dropDuplicatesWithinWatermark deduplicate process]
    [--rounds 1] [--messages 200000] [--per-key 1 10 100 1000 10000 100000] [--chart bench/spark/state_growth.svg]

Each query fills its state, and then reads micro-batches of each size. The bytes per row are those of all files that
RocksDB writes, when it flushes a micro-batch and when it compacts earlier ones. Spark's own metrics leave out what
RocksDB compacts between two micro-batches. ``--per-key`` and ``--entries`` without a number leave out their part. The
way ``floor`` is the plan of `deduplicate` with an operator that keeps nothing. The ways alternate, and each runs once
before the first that is measured: Java compiles a query's code for a hundred micro-batches and more.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import statistics
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import deduplicate_stream
import process as process_bench
import psutil
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.streaming import _labelled_stream
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table, table_row

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress

PRELOAD = 1_000_000
"""The most rows of a micro-batch that fills the state."""
MEASURED = {1_000: 20, 10_000: 20, 500_000: 4}
"""Micro-batches that are measured, by their rows."""
WAYS = ("dropDuplicatesWithinWatermark", "deduplicate", "process", "floor")
IDS = ("random", "ordered")
SETTLING = 12
"""Micro-batches of 1,000 rows after the filling: RocksDB still compacts what the large ones before them wrote."""
FILES = 2
"""The files of a micro-batch."""
WITHIN = "1 day"
SCHEMA = "id string, at timestamp, payload string, customer string"
HEADERS = [
    "IDs",
    "entries",
    "rows",
    "way",
    "ms",
    "CPU s, JVM",
    "Python",
    "bytes per row",
    "rows per s",
    "worker MB",
    "checkpoint MB",
    "per million IDs",
]


class Watch(threading.Thread):
    """Watches this process and its children: the seconds of CPU of the JVM and of Python, and the largest worker in MB.

    It also watches the files that RocksDB writes below a folder. They have new names, never change, and live until they
    are compacted.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.folder = folder
        self.sizes: dict[str, tuple[float, int]] = {}
        """The time of day at which a file was first seen, and its bytes."""
        self.seen: list[tuple[float, float, float, float]] = []
        """The time of day in seconds; until then, the seconds of CPU of the JVM and of Python, and the peak memory."""

    def run(self) -> None:
        peak = 0.0
        while not self.stopped.wait(0.1):
            jvm = python = 0.0
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    # A daemon counts the workers that have ended.
                    cpu = sum(process.cpu_times()[:4])
                    jvm, python = (jvm + cpu, python) if process.name() == "java" else (jvm, python + cpu)
                    # A process that the JVM forks has the JVM's size until it runs its own program.
                    command = process.cmdline()
                    if "pyspark.daemon" in command and "python" in command[0]:
                        peak = max(peak, process.memory_info().rss / 1e6)
                except psutil.Error:
                    pass
            self.seen.append((time.time(), jvm, python, peak))
            for name in glob.iglob(f"{self.folder}/spark-*/StateStoreId*/workingDir-*/*.sst"):
                with contextlib.suppress(FileNotFoundError):
                    first = self.sizes.get(name, (time.time(), 0))[0]
                    self.sizes[name] = (first, os.stat(name).st_size)

    def written(self, start: float, end: float) -> int:
        """Return the bytes of the files of RocksDB that were begun between two times."""
        return sum(size for first, size in self.sizes.values() if start <= first < end)

    def at(self, moment: float) -> tuple[float, float, float]:
        """Return the CPU of the JVM and of Python, and the peak memory, until a time."""
        _, *sample = self.seen[max(bisect_right(self.seen, (moment, float("inf"), 0.0, 0.0)) - 1, 0)]
        return tuple(sample)


class BatchCost(NamedTuple):
    """Medians of a micro-batch, and means over all of them."""

    millis: float
    jvm: float
    python: float
    written: float
    """Bytes per row."""
    worker: float


def write(spark: SparkSession, source: str, kind: str, first: int, rows: int, customer: Column) -> None:
    """Write the messages of a micro-batch; every tenth message repeats the message five rows before it."""
    number = F.when(F.col("id") % 10 == 9, F.col("id") - 5).otherwise(F.col("id"))
    at = F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(number / 1000))
    id = (
        deduplicate_stream.random_id(number)
        if kind == "random"
        else spark_ext.position_id(F.lit("kafka://orders/3"), number, at)
    )
    payload = F.sha2(number.cast("string"), 256)
    columns = (id.alias("id"), at.alias("at"), payload.alias("payload"), customer.alias("customer"))
    spark.range(first, first + rows, 1, FILES).select(*columns).write.mode("append").parquet(source)
    time.sleep(0.1)  # files are read in the order of their times


def write_all(spark: SparkSession, source: str, kind: str, entries: int, groups: dict[int, int]) -> int:
    """Write the micro-batches that fill the state and those that are measured; return the number of those before."""
    first = batches = 0
    fill = entries * 10 // 9
    while first < fill:
        rows = min(PRELOAD, fill - first)
        write(spark, source, kind, first, rows, F.concat(F.lit("customer "), (F.col("id") % entries).cast("string")))
        first += rows
        batches += 1
    for rows in [1_000] * SETTLING + [rows for rows, count in groups.items() for _ in range(count)]:
        known = F.pmod(F.xxhash64("id"), F.lit(entries)).cast("string")
        write(spark, source, kind, first, rows, F.concat(F.lit("customer "), known))
        first += rows
    return batches + SETTLING


def output(df: DataFrame, way: str) -> DataFrame:
    """Return the result of one way."""
    if way == "process":
        return spark_ext.process(df.select("id", "customer"), "customer", process_bench.count)
    if way in ("deduplicate", "floor"):
        operator = deduplicate_stream.OPERATORS[way]
        with mock.patch.object(_labelled_stream, "Seen", operator):
            return spark_ext.deduplicate(df, content=["payload"], timestamp="at", within=WITHIN)
    return df.withWatermark("at", WITHIN).dropDuplicatesWithinWatermark(["id"])


def began(progress: StreamingQueryProgress) -> float:
    """Return the time of day at which a micro-batch began, in seconds."""
    return datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()


def measured(
    spark: SparkSession, folder: str, source: str, way: str, filled: int, groups: dict[int, int]
) -> tuple[dict[int, BatchCost], float]:
    """Return what each size of a micro-batch costs, and the MB of the checkpoint."""
    checkpoint = tempfile.mkdtemp(dir=folder)
    watch = Watch(folder)
    watch.start()
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES).parquet(source)
    query = output(df, way).writeStream.format("noop").option("checkpointLocation", checkpoint)
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    watch.stopped.set()
    watch.join()
    progress = [p for p in running.recentProgress if p["numInputRows"]][filled:]
    costs = {}
    for rows, count in groups.items():
        group, progress = progress[:count], progress[count:]
        millis = [one["durationMs"]["triggerExecution"] for one in group]
        start, end = began(group[0]), began(progress[0]) if progress else float("inf")
        before, (jvm, python, peak) = watch.at(start), watch.at(began(group[-1]) + millis[-1] / 1000)
        cpu = (jvm - before[0]) / len(group), (python - before[1]) / len(group)
        written = watch.written(start, end) / sum(one["numInputRows"] for one in group)
        costs[rows] = BatchCost(statistics.median(millis), *cpu, written, peak)
    size = sum(path.stat().st_size for path in Path(checkpoint).rglob("*") if path.is_file()) / 1e6
    return costs, size


def alternating(
    spark: SparkSession, folder: str, source: str, ways: list[str], filled: int, groups: dict[int, int], rounds: int
) -> dict[str, tuple[dict[int, BatchCost], float]]:
    """Run the ways in turn; return the medians of `measured` for each."""
    runs = [{way: measured(spark, folder, source, way, filled, groups) for way in ways} for _ in range(rounds)]
    medians = {}
    for way in ways:
        costs, sizes = zip(*(run[way] for run in runs), strict=True)
        by_rows = {
            rows: BatchCost(*map(statistics.median, zip(*(one[rows] for one in costs), strict=True))) for rows in groups
        }
        medians[way] = by_rows, statistics.median(sizes)
    return medians


def messages_per_key(spark: SparkSession, folder: str, total: int, per_key: list[int]) -> dict[int, float]:
    """Return the messages per second of `process` in the second half of all messages, by the messages of each key."""
    rates = {}
    for number in [per_key[0], *per_key]:  # the first run warms up
        keys = max(total // number, 1)
        source = f"{folder}/per-key-{len(rates)}-{number}"
        customer = F.concat(F.lit("customer "), (F.col("id") % keys).cast("string"))
        process_bench.write(spark, source, 0, max(total, number), customer, 4)
        df = spark_ext.process(process_bench.stream(spark, source), "customer", process_bench.count)
        _, progress = process_bench.run(df, f"{source}-checkpoint")
        half = progress[2:]
        millis = sum(one.durationMs["triggerExecution"] for one in half)
        rates[number] = sum(one.numInputRows for one in half) / millis * 1000
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", nargs="*", default=IDS, choices=IDS)
    parser.add_argument("--entries", type=int, nargs="*", default=[200_000, 1_000_000, 4_000_000, 10_000_000])
    parser.add_argument("--rows", type=int, nargs="*", default=list(MEASURED))
    parser.add_argument("--batches", type=int, help="micro-batches of each size, in place of 20, 20 and 4")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="*", default=WAYS[:-1], choices=WAYS)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--per-key", type=int, nargs="*", default=[1, 10, 100, 1000, 10_000, 100_000])
    parser.add_argument("--chart", help="write the chart to this SVG file")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for module in (process_bench, deduplicate_stream):  # Python workers cannot import them
        cloudpickle.register_pickle_by_value(module)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    builder = builder.config("spark.sql.streaming.numRecentProgressUpdates", "1000")
    by_size: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        print(f"{machine()}; Spark on 2 cores, noop sink, load {os.getloadavg()[0]:.1f}\n", flush=True)
        by_key = messages_per_key(spark, folder, arguments.messages, arguments.per_key) if arguments.per_key else {}
        lines = [[f"{number:,}", f"{rate:,.0f}"] for number, rate in by_key.items()]
        if lines:
            print(table(["messages per key", "process, messages per second"], lines) + "\n", flush=True)
        if arguments.entries:
            print(table(HEADERS, []), flush=True)
        for kind, entries in [(kind, entries) for kind in arguments.ids for entries in arguments.entries]:
            source = f"{folder}/{kind}-{entries}"
            groups = {rows: arguments.batches or MEASURED.get(rows, 4) for rows in arguments.rows}
            filled = write_all(spark, source, kind, entries, groups)
            if not by_size:  # the first runs compile the code
                alternating(spark, folder, source, arguments.ways, filled, groups, 1)
            medians = alternating(spark, folder, source, arguments.ways, filled, groups, arguments.rounds)
            for way, (costs, size) in medians.items():
                for rows, one in costs.items():
                    rate = rows / one.millis * 1000
                    by_size.setdefault(f"{way}, {kind} IDs, {rows:,} rows", {})[entries] = rate
                    cells = [f"{one.millis:,.0f}", f"{one.jvm:.2f}", f"{one.python:.2f}", f"{one.written:,.0f}"]
                    cells += [f"{rate:,.0f}", f"{one.worker:,.0f}", f"{size:,.0f}", f"{size / entries * 1e6:,.0f}"]
                    print(table_row([kind, f"{entries:,}", f"{rows:,}", way, *cells]), flush=True)
        spark.stop()
    if "floor" in arguments.ways:
        print("\nThe time of a micro-batch, divided by that of an operator that does nothing:\n")
        lines = []
        for name, rates in by_size.items():
            way, rest = name.split(",", 1)
            for entries, rate in rates.items() if way != "floor" else ():
                lines.append([name, f"{entries:,}", f"{by_size[f'floor,{rest}'][entries] / rate:.2f}"])
        print(table(["micro-batch", "entries", "ratio"], lines), flush=True)
    if arguments.chart:
        from charts import state_growth

        state_growth(by_size, by_key, arguments.chart)


if __name__ == "__main__":
    main()
