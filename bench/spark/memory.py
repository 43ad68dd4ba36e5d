"""The peak memory of a Python worker for micro-batches of growing size: `process`, `deduplicate`, `upsert_postgres`.

python bench/spark/memory.py [--rows 200000] [--times 1 10] [--buckets 1] [--payload 200] [--only process upsert]

Each query has one micro-batch, and each task a worker of its own, so no memory of an earlier query counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table, table_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgid.processing import Context, Message

KEYS = 50_000
"""The number of keys of `process`, at most."""


def count(state: Any, message: Message, context: Context) -> Any:
    """Count the messages of a key, and publish the count."""
    after = (state or 0) + 1
    context.publish({"count": after})
    return after


class Peak(threading.Thread):
    """Watches the Python workers of this process; `peak` is the memory of the largest one, in MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(0.1):
            for process in psutil.Process().children(recursive=True):
                try:
                    command = process.cmdline()
                    if "pyspark.daemon" in command and "python" in command[0]:
                        self.peak = max(self.peak, _peak_of(process.pid))
                except (psutil.Error, OSError):
                    pass


def _peak_of(pid: int) -> float:
    """Return the peak memory of a process since its start, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def write(spark: SparkSession, folder: str, rows: int, payload: int) -> None:
    """Write messages: every tenth one repeats the message five rows before it."""
    number = F.when(F.col("id") % 10 == 9, F.col("id") - 5).otherwise(F.col("id"))
    at = F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(number / 1000))
    spark.range(0, rows, 1, 4).select(
        spark_ext.position_id(F.lit("bench"), number, at).alias("id"),
        F.concat(F.lit("customer "), F.pmod(F.xxhash64(number), F.lit(KEYS)).cast("string")).alias("customer"),
        at.alias("at"),
        F.substring(F.repeat(F.sha2(number.cast("string"), 256), payload // 64 + 1), 1, payload).alias("payload"),
    ).write.parquet(folder)


def streamed(df: DataFrame, checkpoint: str) -> None:
    """Run a query over all rows in one micro-batch."""
    query = df.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sum(bool(progress.numInputRows) for progress in query.recentProgress) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--buckets", type=int, default=1)
    parser.add_argument("--payload", type=int, default=200)
    ways = ["process", "deduplicate", "upsert"]
    parser.add_argument("--only", nargs="+", choices=ways, default=ways)
    chosen = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.python.worker.reuse", "false").config("spark.sql.files.minPartitionNum", "1")
    print(f"{machine()}; Spark on 2 cores, one micro-batch, {chosen.buckets} buckets, payloads of {chosen.payload} B\n")
    print(table(["function", "rows", "largest Python worker, MB", "rows per second"], []), flush=True)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        conninfo = stack.enter_context(_postgres()) if "upsert" in chosen.only else ""
        for times in chosen.times:
            write(spark, f"{folder}/in-{times}", chosen.rows * times, chosen.payload)
        for way in chosen.only:
            for times in chosen.times:
                run = _runs(spark, f"{folder}/in-{times}", f"{folder}/state-{way}-{times}", chosen.buckets, conninfo)
                watch, start = Peak(), time.perf_counter()
                watch.start()
                run[way]()
                rate = chosen.rows * times / (time.perf_counter() - start)
                watch.stopped.set()
                shown = [way, f"{chosen.rows * times:,}", f"{watch.peak:,.0f}", f"{rate:,.0f}"]
                print(table_row(shown), flush=True)
        spark.stop()


def _runs(
    spark: SparkSession, source: str, checkpoint: str, buckets: int, conninfo: str
) -> dict[str, Callable[[], Any]]:
    rows = spark.read.parquet(source)

    def stream() -> DataFrame:
        return spark.readStream.schema(rows.schema).parquet(source)

    def deduplicated() -> DataFrame:
        return spark_ext.deduplicate(stream(), timestamp="at", within="1 day", buckets=buckets)

    return {
        "process": lambda: streamed(spark_ext.process(stream(), "customer", count, buckets=buckets), checkpoint),
        "deduplicate": lambda: streamed(deduplicated(), checkpoint),
        "upsert": lambda: spark_ext.upsert_postgres(rows.coalesce(1), conninfo, f"t{Path(source).name[3:]}"),
    }


@contextmanager
def _postgres() -> Iterator[str]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from helpers.servers import running_postgres

    with running_postgres() as conninfo:
        yield conninfo


if __name__ == "__main__":
    main()
