"""`deduplicate` on a stream against Spark's dropDuplicatesWithinWatermark: same data, same RocksDB state store.

python bench/spark/deduplicate_stream.py [--rows 500000] [--batches 4] [--state 0 1000000 10000000] [--rounds 3]
    [--ids ordered random]

``--state`` is the number of IDs that the state holds before the measured micro-batches. The floor is the plan of
`deduplicate` with an operator that keeps nothing: the rows go to Python and back, and each one is new. Ordered IDs are
position IDs, whose order is that of the rows. Random IDs are UUIDs without a time, which do not suit the state.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import psutil
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import spark_ext
from spark_ext.streaming import _labelled_stream
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table, table_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.query import StreamingQuery

WITHIN = "1 day"
SCHEMA = "id string, offset bigint, at timestamp, payload string"
PRELOAD = 2_000_000
FILES = 2
"""The files of a micro-batch."""


IDS = ("ordered", "random")


def random_id(number: Column) -> Column:
    """Return a UUID without time."""
    digits = F.md5(number.cast("string"))
    parts = [F.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return F.concat_ws("-", *parts)


def messages(spark: SparkSession, first: int, rows: int, kind: str) -> DataFrame:
    """Return messages; every tenth message repeats the message five rows before it."""
    number = F.when(F.col("id") % 10 == 9, F.col("id") - 5).otherwise(F.col("id"))
    at = F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(number / 1000))
    id = random_id(number) if kind == "random" else spark_ext.position_id(F.lit("kafka://orders/3"), number, at)
    return spark.range(first, first + rows, 1, FILES).select(
        id.alias("id"),
        number.alias("offset"),
        at.alias("at"),
        F.sha2(number.cast("string"), 256).alias("payload"),
    )


class Floor(StatefulProcessor):
    """Labels each row as new, and keeps nothing."""

    def __init__(self, within: int, buckets: int) -> None:
        pass

    def init(self, handle: object) -> None:
        pass

    def handleInputRows(self, key: tuple, rows: Iterator, timerValues: object) -> Iterator:
        import pandas as pd

        from spark_ext.streaming._labelling import HEAD_BYTES
        from spark_ext.streaming._state.packed_rows import CHECK_BUCKET

        if key[0] == CHECK_BUCKET:
            return
        messages = pd.concat(list(rows), ignore_index=True)
        labels = [bytes(len(head) // HEAD_BYTES) for head in messages["head"]]
        yield pd.DataFrame({"labels": labels, "rows": messages["rows"]})

    def close(self) -> None:
        pass


class WorkerMemory(threading.Thread):
    """Watches the largest Python worker of this process, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self.seen: list[tuple[float, float]] = []
        """The time of day in seconds, and the peak memory until then."""
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(0.2):
            for process in psutil.Process().children(recursive=True):
                try:
                    # A process that the JVM forks has the JVM's size until it runs its own program.
                    command = process.cmdline()
                    if "pyspark.daemon" in command and "python" in command[0]:
                        self.peak = max(self.peak, process.memory_info().rss / 1e6)
                except psutil.Error:
                    pass
            self.seen.append((time.time(), self.peak))


def started(spark: SparkSession, way: str, source: str, checkpoint: str, files: int) -> StreamingQuery:
    """Start a query of one method over all files, with a number of files per micro-batch."""
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(source)
    if way in OPERATORS:
        with mock.patch.object(_labelled_stream, "Seen", OPERATORS[way]):
            out = spark_ext.deduplicate(df, timestamp="at", within=WITHIN)
    else:
        out = df.withWatermark("at", WITHIN).dropDuplicatesWithinWatermark(["id"])
    return out.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


OPERATORS = {"deduplicate": _labelled_stream.Seen, "floor": Floor}


def rates(spark: SparkSession, way: str, source: str, checkpoint: str, measured: int) -> float:
    """Run one method over all files; return the rows per second of the measured micro-batches."""
    query = started(spark, way, source, checkpoint, FILES)
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]][-measured:]
    millis = [p["durationMs"]["triggerExecution"] for p in progress]
    return sum(p["numInputRows"] for p in progress) / sum(millis) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--state", type=int, nargs="+", default=[0, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ids", nargs="+", default=["ordered"], choices=IDS)
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "4")
    ways = ("dropDuplicatesWithinWatermark", *OPERATORS)
    print(f"{machine()}; Spark on 2 cores, {arguments.batches} micro-batches of {arguments.rows:,} rows, noop sink,")
    print(f"the median of {arguments.rounds} rounds, alternating; rows per second\n")
    print(table(["IDs", "in the state", *ways, "ratio", "ratio of the floor", "largest Python worker"], []), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        for kind, in_state in itertools.product(arguments.ids, arguments.state):
            source = f"{folder}/in-{kind}-{in_state}"
            sizes = [PRELOAD] * (in_state * 10 // 9 // PRELOAD) + [in_state * 10 // 9 % PRELOAD // 10 * 10]
            first = 0
            for size in [size for size in sizes if size] + [arguments.rows] * arguments.batches:
                messages(spark, first, size, kind).write.mode("append").parquet(source)
                first += size
                time.sleep(0.1)  # the files are read in the order of their times
            taken: dict[str, list[float]] = {way: [] for way in ways}
            memory: dict[str, float] = {}
            for round in range(arguments.rounds):
                for way in ways:
                    watch = WorkerMemory()
                    watch.start()
                    checkpoint = f"{folder}/checkpoint-{kind}-{in_state}-{way}-{round}"
                    rate = rates(spark, way, source, checkpoint, arguments.batches)
                    watch.stopped.set()
                    taken[way].append(rate)
                    memory[way] = max(watch.peak, memory.get(way, 0))
            medians = [statistics.median(taken[way]) for way in ways]
            shown = [
                kind,
                f"{in_state:,}",
                *(f"{rate:,.0f}" for rate in medians),
                *(f"{rate / medians[0]:.2f}" for rate in medians[1:]),
            ]
            print(table_row([*shown, f"{memory[ways[1]]:.0f} MB"]), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
