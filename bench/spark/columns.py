"""The column functions against Spark's own uuid() and against Python UDFs, in turns in one session.

python bench/spark/columns.py [--rows 10000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import msgid
import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

PARENT = "0156F7E71C361B21BC024CCDBE00000000"


def session(cores: int = 2) -> SparkSession:
    """Give a local session of so many cores."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the UDFs run in this environment
    return (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def seconds(df: DataFrame) -> float:
    """Take the time of computing all rows and writing them nowhere."""
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def codec_in_python(row):
    """What the official client's codec does, a row at a time."""
    index = row.to_bytes(4, "big")
    return "01" + "56F7E71C361B21BC" + ((186_000_000).to_bytes(8, "big")[4:8] + index).hex().upper()


def parsed_in_python(id):
    """All fields, a row at a time."""
    raw = bytes.fromhex(id)
    number = int.from_bytes
    return raw[1:7].hex(":"), number(raw[7:9], "big"), number(raw[9:13], "big"), number(raw[13:17], "big")


def time_in_python(id):
    """The time alone, a row at a time."""
    return int.from_bytes(bytes.fromhex(id)[9:13], "big") + msgid.layout.EPOCH_UNIX


def valid_in_python(id):
    """Whether it is an id, a row at a time."""
    return msgid.is_valid(id)


def measure(calls: dict[str, DataFrame], sizes: dict[str, int], rounds: int) -> dict[str, float]:
    """Run all in turns, a warm-up first; give millions of rows a second, by the median."""
    for df in calls.values():
        seconds(df)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, df in calls.items():
            taken[name].append(seconds(df))
    return {name: sizes[name] / statistics.median(times) / 1e6 for name, times in taken.items()}


def main() -> None:
    """Measure, and print a table of making and one of reading."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    spark = session()
    print(f"{machine()}; Spark {spark.version}, 2 cores, {arguments.rows:,} rows (a tenth for Python UDFs), noop sink, "
          f"the median of {arguments.rounds} alternating rounds\n")  # fmt: skip

    def compare(title: str, columns: dict[str, object], rows: DataFrame, few: DataFrame, base: tuple[str, str]) -> None:
        slow = {name for name in columns if "Python UDF" in name}
        calls = {name: (few if name in slow else rows).select(column.alias("x")) for name, column in columns.items()}
        sizes = {name: arguments.rows // 10 if name in slow else arguments.rows for name in columns}
        rates = measure(calls, sizes, arguments.rounds)
        lines = [
            [name, f"{rate:.2f}", *(f"{rate / rates[other]:.2f}" for other in base)] for name, rate in rates.items()
        ]
        print(table([title, "M rows a second", *(f"times {other}" for other in base)], lines) + "\n", flush=True)

    numbers, few = spark.range(0, arguments.rows, 1, 4), spark.range(0, arguments.rows // 10, 1, 4)
    making = {
        "uuid()": F.expr("uuid()"),
        "assign_id()": spark_ext.assign_id("bench", 1_795_219_200),
        "position_id(lit, id, lit)": spark_ext.position_id(F.lit("kafka://orders/3"), "id", F.lit(1_795_219_200)),
        "derive_id(lit, id)": spark_ext.derive_id(F.lit(PARENT), "id"),
        "generate_id(), an Arrow UDF": spark_ext.generate_id(),
        "Python UDF of the codec's algorithm": F.udf(codec_in_python, "string")("id"),
    }
    compare("making", making, numbers, few, ("uuid()", "Python UDF of the codec's algorithm"))

    def ids(df: DataFrame) -> DataFrame:
        return df.select(spark_ext.assign_id("bench", 1_795_219_200).alias("id")).cache()

    many, fewer = ids(numbers), ids(few)
    many.count(), fewer.count()
    for title, columns in {
        "all fields": {
            "parse_id(id)": spark_ext.parse_id("id"),
            "Python UDF with int.from_bytes": F.udf(
                parsed_in_python, "mac string, pid int, seconds bigint, sequence bigint"
            )("id"),
        },
        "the time": {
            "id_time(id)": spark_ext.id_time("id"),
            "Python UDF with int.from_bytes": F.udf(time_in_python, "bigint")("id"),
        },
        "validity": {
            "is_valid_id(id)": spark_ext.is_valid_id("id"),
            "Python UDF of is_valid": F.udf(valid_in_python, "boolean")("id"),
        },
    }.items():
        compare(title, columns, many, fewer, (list(columns)[1],))


if __name__ == "__main__":
    main()
