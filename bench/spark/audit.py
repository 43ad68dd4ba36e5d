"""`audit` of tables against the queries that a user writes by hand in the same session, and its growth.

python bench/spark/audit.py [--rows 1000000 10000000] [--minutes 10]

- The table of a user, at the largest number of rows: 8 logs named by two columns, IDs, times, 0.01 % of the messages
  lost and 0.01 % repeated. Two queries by hand find the repeated IDs, and by ``lead`` the missing ranges of each log.
- A table without faults: IDs of one generator, 1,000 logs, against ``groupBy(id).count()``. At 10 million rows also one
  log.

The sides take turns. The goals are printed at the end. A table that would begin after the given minutes is left out.
The executor is a process of its own, so that the memory of the driver is only the driver's.
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
from audit_tables import Contents, make
from rounds import machine, table

START = 1_795_219_200
LOGS = 1_000
SMALL = 2_000
MILLION = 1_000_000
COMPARED = 10 * MILLION
CLEAN = "one generator, no faults"
FAULTY = {
    "IDs of 4 generators, faults": "few",
    "random UUIDs, faults": "random",
}
"""The tables of a user, and the IDs in them; see `audit_tables.make`."""


class Measured(NamedTuple):
    """The median seconds of the queries by hand and of the audit, and the memory of the driver after them."""

    name: str
    rows: int
    logs: int
    by_hand: float
    audited: float
    heap: float
    python: float


def clean_messages(spark: SparkSession, rows: int, logs: int, folder: str) -> DataFrame:
    """Write messages of one generator in ``logs`` logs, 1,000 per second, and return them as read back."""
    number = F.col("id")
    digits = [
        F.lit("0100163E0001000001"),
        F.substring(F.hex((F.lit(START - 1_609_459_200) + F.floor(number / 1000)).bitwiseOR(1 << 36)), 3, 8),
        F.substring(F.hex(number.bitwiseOR(1 << 36)), 3, 8),
    ]
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


def audit_clean(df: DataFrame) -> None:
    """Audit a table without faults."""
    assert spark_ext.audit(df, source="source", offset="offset").local.findings == []


def audit_faulty(df: DataFrame, table: Contents) -> None:
    """Audit the table of a user, and check that the report has its numbers."""
    report = spark_ext.audit(df, source=["topic", "partition"], offset="offset", timestamp="timestamp").local
    numbers = [
        sum(finding.count for finding in report.findings if finding.check == check)
        for check in ("missing_offsets", "duplicate_messages", "duplicate_ids")
    ]
    assert (report.rows, *numbers) == (table.rows, table.lost, table.repeated, table.repeated), numbers


def by_hand(df: DataFrame, table: Contents) -> None:
    """Find the repeated IDs and the missing ranges by two queries."""
    df.createOrReplaceTempView("messages")
    spark = df.sparkSession
    repeated = spark.sql("SELECT id, count(*) AS n FROM messages GROUP BY id HAVING count(*) > 1").collect()
    missing = spark.sql(
        """
        SELECT topic, partition, offset + 1, following - 1, following - offset - 1 AS n
        FROM (
            SELECT topic, partition, offset,
                lead(offset) OVER (PARTITION BY topic, partition ORDER BY offset) AS following
            FROM messages
        )
        WHERE following > offset + 1
        """
    ).collect()
    assert (sum(row.n - 1 for row in repeated), sum(row.n for row in missing)) == (table.repeated, table.lost)


def measured(spark: SparkSession, name: str, df: DataFrame, rows: int, logs: int, sides) -> Measured:
    """Measure a table: the queries by hand and the audit take turns."""
    rounds = 3 if rows <= COMPARED else 1
    times = [[taken(side) for side in sides] for _ in range(rounds)]
    counted, audited = (statistics.median(column) for column in zip(*times, strict=True))
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    time.sleep(1)
    runtime.gc()
    heap = (runtime.totalMemory() - runtime.freeMemory()) / 1e6
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{name}, {rows:,} rows in {logs:,} logs: by hand {counted:.1f} s, audit {audited:.1f} s", flush=True)
    return Measured(name, rows, logs, counted, audited, heap, python)


def measured_clean(spark: SparkSession, rows: int, logs: int, folder: str) -> Measured:
    """Measure a table without faults."""
    df = clean_messages(spark, rows, logs, folder)

    def count() -> None:
        df.groupBy("id").count().write.format("noop").mode("overwrite").save()

    return measured(spark, CLEAN, df, rows, logs, (count, lambda: audit_clean(df)))


def measured_faulty(spark: SparkSession, name: str, rows: int, folder: str) -> Measured:
    """Measure the table of a user."""
    path = Path(folder, f"{FAULTY[name]}-{rows}.parquet")
    table = make(path, rows, FAULTY[name])
    df = spark.read.parquet(str(path))
    return measured(spark, name, df, rows, 8, (lambda: by_hand(df, table), lambda: audit_faulty(df, table)))


def goals(measures: list[Measured], small: float) -> list[str]:
    """Return one line per goal: the figure, the goal and whether it is met."""

    def line(what: str, value: float, goal: float) -> str:
        return f"{what}: {value:.2f} (goal: at most {goal}): {'met' if value <= goal else 'MISSED'}"

    lines = [line(f"audit of {SMALL:,} rows, seconds", small, 3)]
    lines += [
        line(f"{one.name}, {one.rows:,} rows: audit / two queries by hand", one.audited / one.by_hand, 1.0)
        for one in measures
        if one.name in FAULTY
    ]
    by_size = {(one.rows, one.logs): one for one in measures if one.name == CLEAN}
    spread, hot = by_size.get((COMPARED, LOGS)), by_size.get((COMPARED, 1))
    if spread is not None:
        ratio = spread.audited / spread.by_hand
        lines.append(line(f"{CLEAN}, {COMPARED:,} rows: audit / groupBy(id).count()", ratio, 0.75))
    if spread is not None and hot is not None:
        lines.append(line(f"audit of one log / of {LOGS:,} logs, {COMPARED:,} rows", hot.audited / spread.audited, 1.3))
    grown = [one for one in by_size.values() if one.logs == LOGS]
    if len(grown) > 1:
        first, last = grown[0], grown[-1]
        per_row = (last.audited / last.rows) / (first.audited / first.rows)
        lines.append(line(f"seconds per row, {last.rows:,} rows / {first.rows:,} rows", per_row, 1.2))
        largest = (last.heap + last.python) / (first.heap + first.python)
        lines.append(line(f"memory of the driver, {last.rows:,} rows / {first.rows:,} rows", largest, 1.3))
    return lines


def main() -> None:
    """Measure, and print a table and the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[MILLION, COMPARED])
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[1,2,2048]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.executor.memory", "2g").config("spark.sql.shuffle.partitions", "16")
    begin = time.perf_counter()
    measures = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        few = clean_messages(spark, SMALL, 10, folder)
        small = min(taken(lambda: audit_clean(few)) for _ in range(4))
        # These compile the code that the larger tables need.
        measured_clean(spark, MILLION // 2, LOGS, folder)
        measured_faulty(spark, next(iter(FAULTY)), MILLION // 2, folder)
        sizes = sorted(arguments.rows)
        tables = [(name, sizes[-1], 8) for name in FAULTY]
        tables += [(CLEAN, rows, logs) for rows in sizes for logs in ([LOGS, 1] if rows == COMPARED else [LOGS])]
        for name, rows, logs in tables:
            if time.perf_counter() - begin > 60 * arguments.minutes:
                print(f"{name}, {rows:,} rows in {logs:,} logs: not measured, the time is over", flush=True)
                continue
            one = (
                measured_clean(spark, rows, logs, folder)
                if name == CLEAN
                else measured_faulty(spark, name, rows, folder)
            )
            measures.append(one)
        spark.stop()
    print(f"\n{machine()}; an executor of 2 cores and 2 GB; the median of alternating rounds; load {load:.1f}\n")
    heads = ["table", "rows", "logs", "by hand, s", "audit(df), s", "times", "JVM's heap, MB", "peak of Python, MB"]
    lines = [
        [one.name, f"{one.rows:,}", f"{one.logs:,}", f"{one.by_hand:.1f}", f"{one.audited:.1f}",
         f"{one.audited / one.by_hand:.2f}", f"{one.heap:.0f}", f"{one.python:.0f}"]
        for one in measures
    ]  # fmt: skip
    print(table(heads, lines))
    print("", *goals(measures, small), sep="\n")


if __name__ == "__main__":
    main()
