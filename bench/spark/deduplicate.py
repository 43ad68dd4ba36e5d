"""Compare `deduplicate` with Spark's dropDuplicates on messages with a tenth of duplicates, by the number of rows.

python bench/spark/deduplicate.py [--rows 1000000 3000000 10000000 30000000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from columns import seconds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

ROUNDS = 3


def messages(spark: SparkSession, rows: int, folder: str) -> DataFrame:
    """Write messages, one tenth of them duplicates, and return them as read back."""
    number = F.when(F.col("id") % 10 == 9, F.col("id") - 5).otherwise(F.col("id"))
    at = F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(number / 1000))
    df = spark.range(0, rows, 1, 8).select(
        spark_ext.position_id(F.lit("kafka://orders/3"), number, at).alias("id"),
        number.alias("offset"),
        at.alias("timestamp"),
        F.sha2(number.cast("string"), 256).alias("payload"),
    )
    path = f"{folder}/{rows}"
    df.write.parquet(path)
    return spark.read.parquet(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000, 30_000_000])
    sizes = parser.parse_args().rows
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "16")
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        lines = []
        for rows in sizes:
            df = messages(spark, rows, folder)
            ways = {
                'dropDuplicates(["id"])': df.dropDuplicates(["id"]),
                "deduplicate(df)": spark_ext.deduplicate(df),
                'deduplicate(df, content=["offset"])': spark_ext.deduplicate(df, content=["offset"]),
            }
            taken: dict[str, list[float]] = {name: [] for name in ways}
            for way in ways.values():
                seconds(way)
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    taken[name].append(seconds(way))
            medians = [statistics.median(taken[name]) for name in ways]
            lines.append([f"{rows:,}", *(f"{s:.1f} s, {s / medians[0]:.2f}" for s in medians)])
        spark.stop()
    print(f"{machine()}; Spark on 2 cores, noop sink, the median of {ROUNDS} rounds; seconds, times the first")
    print()
    print(table(["rows, a tenth twice", *ways], lines))


if __name__ == "__main__":
    main()
