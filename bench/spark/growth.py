"""Measure how the rate and the memory grow with rows and cores, in a JVM of 1 GB.

python bench/spark/growth.py [--rows 1000000 10000000 100000000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

import psutil
from columns import seconds
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

ROUNDS = 3


def run(cores: int, sizes: list[int]) -> None:
    """Print one line per size for a number of cores: rows, rates, and the JVM's memory."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()
    java = max(psutil.Process().children(recursive=True), key=lambda process: process.memory_info().rss)

    def columns(rows: int) -> list:
        numbers = spark.range(0, rows, 1, 4)
        assigned = numbers.select(spark_ext.assign_id("bench", 1_795_219_200).alias("id"))
        at = F.lit(1_795_219_200)
        return [
            assigned,
            numbers.select(spark_ext.position_id(F.lit("kafka://orders/3"), "id", at)),
            assigned.select(spark_ext.id_time("id")),
        ]

    for _ in range(5):
        for df in columns(1_000_000):
            seconds(df)
    for rows in sizes:
        rates = [rows / statistics.median(seconds(df) for _ in range(ROUNDS)) / 1e6 for df in columns(rows)]
        print(rows, *(f"{rate:.2f}" for rate in rates), f"{java.memory_info().rss / 1e6:.0f}", flush=True)


def main() -> None:
    """Measure, and print one table by rows and one by cores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]
    )
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cores:
        run(arguments.cores, arguments.rows)
        return

    def measure(cores: int, sizes: list[int]) -> list[list[str]]:
        command = [sys.executable, __file__, "--cores", str(cores), "--rows", *map(str, sizes)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return [line.split() for line in printed.splitlines()]

    print(f"{machine()}; millions of rows a second, noop sink, a JVM of 1 GB, the median of {ROUNDS}\n")
    names = ["assign_id()", "position_id(lit, id, lit)", "id_time(assign_id())"]
    grown = measure(2, arguments.rows)
    print(table(["rows", *names, "memory of the JVM, MB"], [[f"{int(line[0]):,}", *line[1:]] for line in grown]) + "\n")
    many = [30_000_000]
    by_cores = [[str(cores), *measure(cores, many)[0][1:4]] for cores in (1, 2)]
    one, two = ([float(rate) for rate in line[1:]] for line in by_cores)
    by_cores.append(["2 over 1", *(f"{b / a:.2f}" for a, b in zip(one, two, strict=True))])
    print(table([f"cores, {many[0]:,} rows", *names], by_cores))


if __name__ == "__main__":
    main()
