"""How `deduplicate` and `process` on streams grow: with IDs in state, with messages per key, and in memory.

python bench/spark/state_growth.py [--ids 100000 300000 1000000 3000000 10000000] [--messages 200000]
    [--per-key 1 10 100 1000 10000 100000] [--rounds 2] [--rival] [--chart bench/spark/state_growth.svg]

``python bench/spark/state_growth.py --rival --ids 10000000 --per-key`` prints the lines for which there are goals.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import process as process_bench
from deduplicate_stream import FILES, PRELOAD, WorkerMemory, messages, rates, started
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

MEASURED = 500_000
"""Rows of a measured micro-batch."""
BATCHES = 4
"""Micro-batches of a query that starts without state."""
WAYS = ("dropDuplicatesWithinWatermark", "deduplicate")


def write_growing(spark: SparkSession, source: str, sizes: list[int]) -> list[int]:
    """Write messages; return the number of the measured micro-batch for each number of IDs in the state."""
    first = batches = 0
    measured = []
    for size in sizes:
        wanted = size * 10 // 9 // 10 * 10
        while first < wanted:
            rows = min(PRELOAD, wanted - first)
            batches += add_batch(spark, source, first, rows)
            first += rows
        measured.append(batches)
        batches += add_batch(spark, source, first, MEASURED)
        first += MEASURED
    return measured


def ids_in_state(
    spark: SparkSession, folder: str, way: str, sizes: list[int], measured: list[int]
) -> dict[int, tuple[float, float]]:
    """Return rows per second and the MB of the largest Python worker, by the IDs in the state."""
    watch = WorkerMemory()
    watch.start()
    query = started(spark, way, f"{folder}/ids", f"{folder}/checkpoint-{way}", files=FILES)
    query.awaitTermination()
    watch.stopped.set()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    found = {}
    for size, place in zip(sizes, measured, strict=True):
        one = progress[place]
        millis = one["durationMs"]["triggerExecution"]
        end = datetime.fromisoformat(one["timestamp"].replace("Z", "+00:00")).timestamp() + millis / 1000
        memory = max((megabytes for at, megabytes in watch.seen if at <= end), default=0)
        found[size] = (one["numInputRows"] / millis * 1000, memory)
    return found


def add_batch(spark: SparkSession, source: str, first: int, rows: int) -> int:
    """Write the messages of a micro-batch, which Spark reads after the earlier ones; return 1."""
    messages(spark, first, rows).write.mode("append").parquet(source)
    time.sleep(0.1)  # files are read in the order of their times
    return 1


def without_state(spark: SparkSession, folder: str, rounds: int) -> dict[str, float]:
    """Return the rows per second of queries that start without state, alternating; the first round warms up."""
    for batch in range(BATCHES):
        add_batch(spark, f"{folder}/fresh", batch * MEASURED, MEASURED)
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        for way in WAYS:
            taken[way].append(rates(spark, way, f"{folder}/fresh", f"{folder}/fresh-{way}-{number}", BATCHES))
    return {way: statistics.median(found[1:]) for way, found in taken.items()}


def messages_per_key(spark: SparkSession, folder: str, total: int, per_key: list[int]) -> dict[int, float]:
    """Return the messages per second of `process` in the second half of all messages, by the messages of each key."""
    found = {}
    for number in [per_key[0], *per_key]:  # the first run warms up
        keys = max(total // number, 1)
        source = f"{folder}/per-key-{len(found)}-{number}"
        customer = F.concat(F.lit("customer "), (F.col("id") % keys).cast("string"))
        process_bench.write(spark, source, 0, max(total, number), customer, 4)
        df = spark_ext.process(process_bench.stream(spark, source), "customer", process_bench.count)
        _, progress = process_bench.run(df, f"{source}-checkpoint")
        half = progress[2:]
        millis = sum(one.durationMs["triggerExecution"] for one in half)
        found[number] = sum(one.numInputRows for one in half) / millis * 1000
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids", type=int, nargs="*", default=[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--per-key", type=int, nargs="*", default=[1, 10, 100, 1000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rival", action="store_true", help="measure dropDuplicatesWithinWatermark, too")
    parser.add_argument("--chart", help="write the chart to this SVG file")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cloudpickle.register_pickle_by_value(process_bench)  # Python workers cannot import it
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        print(f"{machine()}; Spark on 2 cores, noop sink, load {os.getloadavg()[0]:.1f}\n", flush=True)
        by_key = messages_per_key(spark, folder, arguments.messages, arguments.per_key) if arguments.per_key else {}
        lines = [[f"{number:,}", f"{rate:,.0f}"] for number, rate in by_key.items()]
        if lines:
            print(table(["messages per key", "process, messages per second"], lines) + "\n", flush=True)
        if arguments.rival:
            rival, ours = without_state(spark, folder, arguments.rounds).values()
            told = f"{BATCHES} micro-batches of {MEASURED:,} rows, no state before"
            lines = [[f"{rival:,.0f}", f"{ours:,.0f}", f"{ours / rival:.2f}"]]
            print(f"{told}, the median of {arguments.rounds} rounds, rows per second\n")
            print(table([*WAYS, "ratio"], lines) + "\n", flush=True)
        by_ids = {}
        measured = write_growing(spark, f"{folder}/ids", arguments.ids)
        for way in (WAYS if arguments.rival else WAYS[1:]) if arguments.ids else ():
            by_ids[way] = ids_in_state(spark, folder, way, arguments.ids, measured)
            lines = [
                [f"{size:,}", f"{rate:,.0f}", f"{memory:,.0f}" if memory else ""]
                for size, (rate, memory) in by_ids[way].items()
            ]
            print(table(["IDs in state", f"{way}, rows per second", "largest Python worker, MB"], lines), flush=True)
            print(flush=True)
        if arguments.rival and by_ids:
            theirs, own = (by_ids[way] for way in WAYS)
            lines = [[f"{size:,}", f"{own[size][0] / theirs[size][0]:.2f}"] for size in own]
            print(table(["IDs in state", f"{WAYS[1]} over {WAYS[0]}"], lines) + "\n", flush=True)
        spark.stop()
    if arguments.chart:
        from charts import state_growth

        state_growth(by_ids, by_key, arguments.chart)


if __name__ == "__main__":
    main()
