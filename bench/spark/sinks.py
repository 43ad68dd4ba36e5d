"""Sinks: rows per second beside a plain write, and the cost of a commit after many batches.

python bench/spark/sinks.py [--rows 1000000] [--batches 10 100 1000] [--postgres "host=... dbname=..."]
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3


def measured(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rates(spark: SparkSession, rows: int, folder: str, conninfo: str | None) -> str:
    """Write the same rows by each sink in turns; return rows per second, the median of the rounds."""
    spark.range(0, rows, 1, 4).select(
        spark_ext.position_id(F.lit("kafka://orders/3"), "id", F.timestamp_seconds(F.lit(1_795_219_200))).alias("id"),
        F.col("id").alias("offset"),
        F.sha2(F.col("id").cast("string"), 256).alias("payload"),
    ).write.parquet(f"{folder}/rows")
    df = spark.read.parquet(f"{folder}/rows")
    number = itertools.count()

    def sink(format: str) -> Callable[[], object]:
        return lambda: spark_ext.write_once(df, next(number), f"{folder}/{format}", format=format, app_id="bench")

    ways: dict[str, Callable[[], object]] = {
        "df.write.parquet": lambda: df.write.parquet(f"{folder}/plain-{next(number)}"),
        'write_once(format="parquet")': sink("parquet"),
        'write_once(format="delta")': sink("delta"),
    }
    if conninfo is not None:
        ways["upsert_postgres, new rows"] = lambda: spark_ext.upsert_postgres(
            df.withColumn("id", F.concat("id", F.lit(f"-{next(number)}"))), conninfo, "bench_sinks"
        )
    for way in ways.values():
        way()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            taken[name].append(measured(way))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    plain = medians["df.write.parquet"]
    lines = [[name, f"{rows / median:,.0f}", f"{plain / median:.2f}"] for name, median in medians.items()]
    return table([f"{rows:,} rows", "rows/s", "of the plain write"], lines)


def commits(spark: SparkSession, counts: list[int], folder: str) -> str:
    """Write small batches; return the milliseconds of one around each count of batches before it."""
    df = spark.range(10)
    lines = [[f'write_once(format="{format}")'] for format in ("parquet", "delta")]
    for line, format in zip(lines, ("parquet", "delta"), strict=True):
        times = [
            measured(lambda n=n: spark_ext.write_once(df, n, f"{folder}/{format}", format=format, app_id="bench"))  # type: ignore[misc]  # noqa: B023
            for n in range(max(counts) + 10)
        ]
        line += [f"{statistics.median(times[count : count + 10]) * 1e3:,.0f} ms" for count in counts]
    return table(["time of 10 rows, by the earlier batches", *(f"{count:,}" for count in counts)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--postgres", help="a connection string; the table bench_sinks is written")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).config("spark.sql.shuffle.partitions", "4").getOrCreate()
        print(f"{machine()}; Spark on 2 cores, local disk, the median of {ROUNDS} rounds")
        print()
        print(rates(spark, arguments.rows, f"{folder}/rates", arguments.postgres))
        print()
        print(commits(spark, arguments.batches, f"{folder}/commits"))
        spark.stop()


if __name__ == "__main__":
    main()
