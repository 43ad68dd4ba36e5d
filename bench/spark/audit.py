"""`audit` against ``groupBy(id).count()`` of the same rows: IDs and positions, growth, and one hot log.

python bench/spark/audit.py [--rows 1000000 10000000] [--logs 1 1000]

The limits: 3 times ``groupBy(id).count()``, linear in the rows, and 1.3 times the time of 1,000 logs for one log.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

ROUNDS = 3
START = 1_795_219_200


def messages(spark: SparkSession, rows: int, logs: int, folder: str) -> DataFrame:
    """Write messages of 16 generators in ``logs`` logs, 1,000 per second, and return them as read back."""
    number = F.col("id")
    generator, sequence = number % 16, F.floor(number / 16).cast("bigint")
    digits = [
        F.lit("0100163E0000"), F.substring(F.hex(generator.bitwiseOR(1 << 8)), 2, 2), F.lit("0001"),
        F.substring(F.hex((F.lit(START - 1_609_459_200) + F.floor(number / 1000)).bitwiseOR(1 << 36)), 3, 8),
        F.substring(F.hex(sequence.bitwiseOR(1 << 36)), 3, 8),
    ]  # fmt: skip
    df = spark.range(0, rows, 1, 8).select(
        F.concat(*digits).alias("id"),
        F.concat(F.lit("kafka:kafka/orders/"), (number % logs).cast("string")).alias("source"),
        F.floor(number / logs).cast("bigint").alias("offset"),
    )
    path = f"{folder}/{rows}-{logs}"
    df.write.parquet(path)
    return spark.read.parquet(path)


def taken(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--logs", type=int, nargs="+", default=[1, 1_000])
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "16")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        java = max(psutil.Process().children(recursive=True), key=lambda process: process.memory_info().rss)
        for rows in arguments.rows:
            for logs in arguments.logs:
                df = messages(spark, rows, logs, folder)

                def count(df=df):
                    df.groupBy("id").count().write.format("noop").mode("overwrite").save()

                def audit(df=df):
                    found = spark_ext.audit(df, source="source", offset="offset")
                    assert found.local.findings == []

                count(), audit()
                times = [(taken(count), taken(audit)) for _ in range(ROUNDS)]
                counted, audited = (statistics.median(column) for column in zip(*times, strict=True))
                memory = java.memory_info().rss / 1e6
                lines.append([f"{rows:,}", f"{logs:,}", f"{counted:.1f}", f"{audited:.1f}", f"{audited / counted:.2f}",
                              f"{memory:.0f}"])  # fmt: skip
        spark.stop()
    print(f"{machine()}; Spark on 2 cores, the median of {ROUNDS} alternating rounds, a JVM of 2 GB\n")
    print(table(["rows", "logs", "groupBy(id).count(), s", "audit(df), s", "times", "memory of the JVM, MB"], lines))


if __name__ == "__main__":
    main()
