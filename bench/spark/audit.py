"""`audit` of a table against ``groupBy(id).count()`` of the same rows, and its growth with rows and logs.

python bench/spark/audit.py [--rows 1000000 10000000 30000000] [--minutes 5]

Each table has 16 generators and 1,000 logs. The goals are printed at the end: at most 0.7 of
``groupBy(id).count()`` at 10 million rows, linear time, one log at most 1.3 times 1,000 logs, flat memory of the
driver, and 3 seconds for a small table. A table that would begin after the given minutes is left out. The executor is a
process of its own, so that the memory of the driver is only the driver's.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

START = 1_795_219_200
LOGS = 1_000
SMALL = 2_000
MILLION = 1_000_000
COMPARED = 10 * MILLION


class Measured(NamedTuple):
    """The median seconds of a table's count and audit, and the memory of the driver after them."""

    rows: int
    logs: int
    counted: float
    audited: float
    heap: float
    python: float


def messages(spark: SparkSession, rows: int, logs: int, folder: str) -> DataFrame:
    """Write messages of 16 generators in ``logs`` logs, 1,000 per second, and return them as read back."""
    number = F.col("id")
    generator, sequence = number % 16, F.floor(number / 16).cast("bigint")
    digits = [
        F.lit("0100163E0001"), F.substring(F.hex(generator.bitwiseOR(1 << 8)), 2, 2), F.lit("0001"),
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
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def audit(df: DataFrame) -> None:
    """Audit a table without faults."""
    assert spark_ext.audit(df, source="source", offset="offset").local.findings == []


def measured(spark: SparkSession, rows: int, logs: int, folder: str) -> Measured:
    """Measure a table: count and audit take turns, after a table has warmed up both."""
    df = messages(spark, rows, logs, folder)

    def count() -> None:
        df.groupBy("id").count().write.format("noop").mode("overwrite").save()

    rounds = 3 if rows <= MILLION else 2 if rows <= COMPARED else 1
    times = [(taken(count), taken(lambda: audit(df))) for _ in range(rounds)]
    counted, audited = (statistics.median(column) for column in zip(*times, strict=True))
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    time.sleep(1)
    runtime.gc()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 1e6
    found = Measured(rows, logs, counted, audited, heap, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    print(f"{rows:,} rows in {logs:,} logs: count {counted:.1f} s, audit {audited:.1f} s", flush=True)
    return found


def goals(found: list[Measured], small: float) -> list[str]:
    """Return one line per goal: the figure, the goal and whether it is met."""

    def line(what: str, value: float, goal: float) -> str:
        return f"{what}: {value:.2f} (goal: at most {goal}): {'met' if value <= goal else 'MISSED'}"

    lines = [line(f"audit of {SMALL:,} rows, seconds", small, 3)]
    by_size = {(one.rows, one.logs): one for one in found}
    spread, hot = by_size.get((COMPARED, LOGS)), by_size.get((COMPARED, 1))
    if spread is not None:
        lines.append(line(f"audit / groupBy(id).count() of {COMPARED:,} rows", spread.audited / spread.counted, 0.7))
    if spread is not None and hot is not None:
        lines.append(line(f"audit of one log / of {LOGS:,} logs, {COMPARED:,} rows", hot.audited / spread.audited, 1.3))
    grown = [one for one in found if one.logs == LOGS]
    first, last = grown[0], grown[-1]
    if last.rows > first.rows:
        per_row = (last.audited / last.rows) / (first.audited / first.rows)
        lines.append(line(f"seconds per row, {last.rows:,} rows / {first.rows:,} rows", per_row, 1.2))
        largest = (last.heap + last.python) / (first.heap + first.python)
        lines.append(line(f"memory of the driver, {last.rows:,} rows / {first.rows:,} rows", largest, 1.3))
    return lines


def main() -> None:
    """Measure, and print a table and the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[MILLION, COMPARED, 3 * COMPARED])
    parser.add_argument("--minutes", type=float, default=5)
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[1,2,2048]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.executor.memory", "2g").config("spark.sql.shuffle.partitions", "16")
    begin = time.perf_counter()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        few = messages(spark, SMALL, 10, folder)
        small = min(taken(lambda: audit(few)) for _ in range(4))
        measured(spark, MILLION // 2, LOGS, folder)  # compiles what the larger tables need
        tables = [
            (rows, logs) for rows in sorted(arguments.rows) for logs in ([LOGS, 1] if rows == COMPARED else [LOGS])
        ]
        for rows, logs in tables:
            if time.perf_counter() - begin > 60 * arguments.minutes:
                print(f"{rows:,} rows in {logs:,} logs: not measured, the time is over", flush=True)
                continue
            found.append(measured(spark, rows, logs, folder))
        spark.stop()
    print(f"\n{machine()}; an executor of 2 cores and 2 GB; the median of alternating rounds\n")
    heads = ["rows", "logs", "groupBy(id).count(), s", "audit(df), s", "times", "JVM's heap, MB", "peak of Python, MB"]
    lines = [
        [f"{one.rows:,}", f"{one.logs:,}", f"{one.counted:.1f}", f"{one.audited:.1f}",
         f"{one.audited / one.counted:.2f}", f"{one.heap:.0f}", f"{one.python:.0f}"]
        for one in found
    ]  # fmt: skip
    print(table(heads, lines))
    print("", *goals(found, small), sep="\n")


if __name__ == "__main__":
    main()
