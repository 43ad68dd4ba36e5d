"""`compare` of two digests, against a comparison of all rows: the rows that are read, and the times.

python bench/spark/compare.py [--rows 10000000]

The queue and its landed table have 16 logs. One message was lost, one changed and one is extra. Each table is written
in the order of its logs and offsets. The times of 1,000,000,000 rows are calculated: the digests grow with the rows,
and the rows that `compare` reads do not.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

LOGS = 16
BILLION = 1_000_000_000
START = 1_795_219_200 - 1_609_459_200


def messages(spark: SparkSession, rows: int) -> DataFrame:
    """Return messages of one generator per log, 1,000 per second."""
    number = F.col("number")
    per_log = -(-rows // LOGS)
    log, offset = F.floor(number / per_log).cast("bigint"), number % per_log
    digits = [
        F.lit("0100163E0000"), F.substring(F.hex(log.bitwiseOR(1 << 8)), 2, 2), F.lit("0001"),
        F.substring(F.hex((F.lit(START) + F.floor(offset / 1000)).bitwiseOR(1 << 36)), 3, 8),
        F.substring(F.hex(offset.bitwiseOR(1 << 36)), 3, 8),
    ]  # fmt: skip
    return spark.range(0, rows, 1, LOGS).toDF("number").select(
        F.concat(*digits).alias("id"),
        F.concat(F.lit("kafka:kafka/orders/"), log.cast("string")).alias("source"),
        offset.cast("bigint").alias("offset"),
    )  # fmt: skip


def landed(sent: DataFrame, rows: int) -> DataFrame:
    """Return the messages with one lost, one changed and one that was not sent."""
    last = -(-rows // LOGS) - 1
    is_first = F.col("source") == "kafka:kafka/orders/3"
    kept = sent.where(~(is_first & (F.col("offset") == last // 2)))
    changed = (F.col("source") == "kafka:kafka/orders/7") & (F.col("offset") == last // 3)
    kept = kept.withColumn("id", F.when(changed, F.lit("changed")).otherwise(F.col("id")))
    extra = sent.where((F.col("source") == "kafka:kafka/orders/15") & (F.col("offset") == 0))
    return kept.union(extra.withColumn("offset", F.lit(last + 70_000).cast("bigint")))


def rows_scanned(spark: SparkSession, job: int) -> int:
    """Return the rows that the scans of files gave to the queries since a number of executions, by Spark's metrics."""
    store = spark._jsparkSession.sharedState().statusStore()
    time.sleep(1)  # Spark writes the metrics of a query after its end
    executions, total = store.executionsList(), 0
    for index in range(executions.size()):
        execution = executions.apply(index)
        if execution.executionId() < job:
            continue
        values = store.executionMetrics(execution.executionId())
        nodes = store.planGraph(execution.executionId()).allNodes()
        for node in (nodes.apply(n) for n in range(nodes.size())):
            if not node.name().startswith("Scan parquet"):
                continue
            metrics = node.metrics()
            for metric in (metrics.apply(n) for n in range(metrics.size())):
                if metric.name() == "number of output rows":
                    total += int(re.sub(r"\D", "", values.get(metric.accumulatorId()).getOrElse(None) or "0"))
    return total


def taken(call):
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "2g").config("spark.sql.shuffle.partitions", "4")
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        spark.conf.set("spark.sql.files.maxPartitionBytes", "64m")
        columns = {"source": "source", "offset": "offset"}
        messages(spark, rows).write.parquet(f"{folder}/sent")
        sent = spark.read.parquet(f"{folder}/sent")
        landed(sent, rows).write.parquet(f"{folder}/landed")
        sides = [sent, spark.read.parquet(f"{folder}/landed")]
        counted, _ = taken(lambda: sent.groupBy("id").count().write.format("noop").mode("overwrite").save())
        both_digests, seconds = [], []
        for name, side in zip(("sent", "landed"), sides, strict=True):
            digest = spark_ext.digest(side, **columns)
            time_of, _ = taken(partial(digest.write.parquet, f"{folder}/{name}-digest"))
            seconds.append(time_of)
            both_digests.append(spark.read.parquet(f"{folder}/{name}-digest"))
        blocks = both_digests[0].count()
        begin = spark._jsparkSession.sharedState().statusStore().executionsCount()
        compared, report = taken(lambda: spark_ext.compare(*sides, **columns, digests=both_digests).local)
        scanned = rows_scanned(spark, begin)
        whole, full = taken(lambda: spark_ext.compare(*sides, **columns).local)
        assert report.differences == full.differences
        assert [one.fault for one in report.differences] == ["lost", "changed", "extra"]
        spark.stop()
    read = sum(report.rows_read)
    print(f"\n{machine()}; local[2], 2 GB; {rows:,} rows on each side in {LOGS} logs\n")
    billion, of_digest = BILLION / rows, sum(seconds) / 2
    heads = ["", f"{rows:,} rows", "per million rows", f"{BILLION:,} rows, calculated"]
    millions = rows / 1e6
    lines = [
        ["groupBy(id).count() of one side, s", f"{counted:.1f}", f"{counted / millions:.2f}", ""],
        ["digest of one side, s", f"{of_digest:.1f}", f"{of_digest / millions:.2f}", f"{billion * of_digest:,.0f}"],
        [
            "bytes of the digest",
            f"{64 * blocks:,}",
            f"{64 * blocks / millions:,.0f}",
            f"{64 * -(-BILLION // 65_536):,}",
        ],
        ["compare of the digests, s", f"{compared:.1f}", f"{compared / millions:.2f}", f"{compared:.1f}"],
        ["compare of all rows, s", f"{whole:.1f}", f"{whole / millions:.2f}", f"{billion * whole:,.0f}"],
        ["rows of both sides in the blocks", f"{read:,}", "", f"{read:,}"],
        ["rows that the scans read, all queries", f"{scanned:,}", "", ""],
        [
            "part of the rows in the blocks",
            f"{100 * read / (2 * rows):.3f} %",
            "",
            f"{100 * read / (2 * BILLION):.5f} %",
        ],
    ]
    print(table(heads, lines))


if __name__ == "__main__":
    main()
