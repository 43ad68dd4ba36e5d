"""Compare the column functions with Spark's uuid() and with Python UDFs, in turns in one session.

python bench/spark/columns.py --goals [--rows 2000000] [--rounds 7]     # each goal and the measured value
python bench/spark/columns.py [--rows 10000000] [--rounds 5] [--chart bench/spark/columns.svg]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import msgid
import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from conv_form import parse_v0 as parse_v0_by_conv
from rounds import machine, table, table_row

PARSED = "version int, mac string, pid int, seconds bigint, time timestamp, sequence bigint, origin string"
PARENT = "0156F7E71C361B21BC024CCDBE00000000"


def session(cores: int = 2) -> SparkSession:
    """Return a local session with a number of cores."""
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
    """Return the seconds to compute all rows without storing them."""
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


# The rivals compute the same results with the same checks in Python, one row at a time.
NODE_AND_PID = "56F7E71C361B21BC"
ORIGINS = [msgid.layout.origin_of(bits << 40) for bits in range(16)]


def codec_in_python(row):
    """Decode an ID as the codec of the official client does."""
    seconds = int(time.time()) - msgid.layout.EPOCH_UNIX
    buffer = bytearray(8)
    buffer[0:4] = seconds.to_bytes(8, byteorder="big")[4:8]
    buffer[4:8] = row.to_bytes(4, byteorder="big")
    return "01" + NODE_AND_PID + buffer.hex().upper()


def bytes_of(id):
    """Return the bytes of a version-1 ID, or None."""
    try:
        raw = bytes.fromhex(id)
    except ValueError:
        return None
    return raw if len(id) == 34 and len(raw) == 17 and raw[0] == 1 else None


def parsed_in_python(id):
    """Return all fields."""
    raw = bytes_of(id)
    if raw is None:
        raise ValueError(f"not a version-1 id: {id!r}")
    number = int.from_bytes
    seconds = number(raw[9:13], "big")
    time = datetime.fromtimestamp(seconds + msgid.layout.EPOCH_UNIX, timezone.utc)
    pid, sequence = number(raw[7:9], "big"), number(raw[13:17], "big")
    return raw[0], raw[1:7].hex(":"), pid, seconds, time, sequence, ORIGINS[raw[1] & 15]


def time_in_python(id):
    """Return only the time."""
    raw = bytes_of(id)
    if raw is None:
        return None
    return datetime.fromtimestamp(int.from_bytes(raw[9:13], "big") + msgid.layout.EPOCH_UNIX, timezone.utc)


def valid_in_python(id):
    """Return whether a text is an ID of any version."""
    try:
        raw = bytes.fromhex(id)
    except ValueError:
        return False
    if len(id) != 2 * len(raw):
        return False
    return len(raw) in (16, 28) or (len(raw) == 17 and raw[0] <= 1) or (len(raw) == 29 and raw[0] == 0)


def measure(calls: dict[str, DataFrame], sizes: dict[str, int], rounds: int) -> dict[str, float]:
    """Run all in turns after a warm-up; return the median of millions of rows per second."""
    for _ in range(2):  # Java compiles hot code while it runs
        for df in calls.values():
            seconds(df)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, df in calls.items():
            taken[name].append(seconds(df))
    return {name: sizes[name] / statistics.median(times) / 1e6 for name, times in taken.items()}


PRINTED = ("goal", "measured", "limit", "met")


def empty_udf() -> Column:
    """Return an Arrow UDF that returns a column of as many texts as `generate_id` makes, and makes nothing."""
    import pyarrow
    from pyspark.sql.pandas.functions import arrow_udf

    ready = []

    def returned(rows: pyarrow.Array) -> pyarrow.Array:
        if not ready or len(ready[0]) < len(rows):
            ready[:] = [pyarrow.array([PARENT] * len(rows))]
        return ready[0].slice(0, len(rows))

    returned.__annotations__ = {"rows": pyarrow.Array, "return": pyarrow.Array}
    return arrow_udf(returned, "string").asNondeterministic()(F.lit(0))


def registration_seconds(spark: SparkSession) -> list[list[str]]:
    """Return the goals of `register`: first in a session that has just started, then in another session."""
    taken = []
    for one in (spark, spark.newSession()):
        start = time.perf_counter()
        spark_ext.register(one)
        taken.append(time.perf_counter() - start)
    named = zip(("register, cold, seconds", "register, warm, seconds"), taken, (3, 1), strict=True)
    return [
        [name, f"{seconds:.2f}", f"at most {most}", "yes" if seconds <= most else "NO"] for name, seconds, most in named
    ]


def rows_of_ids(spark: SparkSession, rows: int) -> DataFrame:
    """Return cached rows with a number, a version-1 ID, and a version-0 ID: a broker's and a client's in turns."""
    broker = F.concat(F.lit("7F0000010000238F"), F.substring(F.hex(F.col("id") + (1 << 60)), 2, 15))
    v0 = F.when(F.col("id") % 2 == 0, F.concat(F.substring(broker, 1, 16), F.lit("0"), F.substring(broker, 17, 15)))
    df = spark.range(0, rows, 1, 4).select(
        F.col("id").alias("number"),
        spark_ext.assign_id("bench", 1_795_219_200).alias("id"),
        v0.otherwise(F.upper(F.md5(F.col("id").cast("string")))).alias("v0"),
    )
    cached = df.cache()
    cached.count()
    return cached


def goals(spark: SparkSession, rows: int, rounds: int) -> None:
    """Measure both sides of each goal in turns, and print the ratio beside the goal."""
    print(table(list(PRINTED), registration_seconds(spark)), flush=True)
    numbers, ids = spark.range(0, rows, 1, 4), rows_of_ids(spark, rows)
    few = rows // 20  # the form with conv is slow
    hashed = F.concat(F.unhex(F.lit(PARENT)), F.unhex(F.lit("00")), F.col("id").cast("string").cast("binary"))
    pairs = {
        "position_id against uuid()": (
            0.6,
            numbers.select(spark_ext.position_id(F.lit("kafka://orders/3"), "id", F.lit(1_795_219_200))),
            numbers.select(F.expr("uuid()")),
        ),
        "position_id of a log in two columns, the same": (
            0.6,
            ids.select(spark_ext.position_id(F.concat_ws("/", "v0", F.col("number") % 8), "number", "number")),
            ids.select(F.expr("uuid()")),
        ),
        "derive_id against sha2 of the same input": (
            0.9,
            numbers.select(spark_ext.derive_id(F.lit(PARENT), "id")),
            numbers.select(F.sha2(hashed, 256)),
        ),
        "derive_id of a column of parents, the same": (
            0.9,
            ids.select(spark_ext.derive_id("id", "v0")),
            ids.select(F.sha2(F.concat(F.unhex("id"), F.unhex(F.lit("00")), F.col("v0").cast("binary")), 256)),
        ),
        "msgid_parse in SQL against parse_id": (
            0.9,
            ids.selectExpr("msgid_parse(id)"),
            ids.select(spark_ext.parse_id("id")),
        ),
        "parse_v0 against its form with conv": (
            2.0,
            ids.select(spark_ext.parse_v0("v0")),
            rows_of_ids(spark, few).select(parse_v0_by_conv("v0")),
            few,
        ),
        "generate_id against an empty Arrow UDF": (
            0.8,
            numbers.select(spark_ext.generate_id()),
            numbers.select(empty_udf()),
        ),
    }
    for name, (least, ours, other, *size) in pairs.items():
        rates = measure({"ours": ours, "other": other}, {"ours": rows, "other": size[0] if size else rows}, rounds)
        ratio = rates["ours"] / rates["other"]
        shown = f"{ratio:.2f} ({rates['ours']:.2f} to {rates['other']:.2f} M rows a second)"
        line = [name, shown, f"at least {least}", "yes" if ratio >= least else "NO"]
        print(table_row(line), flush=True)


def main() -> None:
    """Measure, and print the goals, or one table of making IDs and one of reading IDs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--goals", action="store_true", help="measure the goals alone, on 2,000,000 rows")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--chart", help="draw the chart into this file")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or (2_000_000 if arguments.goals else 10_000_000)
    arguments.rounds = arguments.rounds or (7 if arguments.goals else 5)
    measured: dict[str, dict[str, float]] = {}
    spark = session()
    print(f"{machine()}; Spark {spark.version}, 2 cores, {arguments.rows:,} rows (a tenth for Python UDFs), noop sink, "
          f"the median of {arguments.rounds} alternating rounds\n", flush=True)  # fmt: skip
    if arguments.goals:
        goals(spark, arguments.rows, arguments.rounds)
        return

    def compare(title: str, columns: dict[str, object], rows: DataFrame, few: DataFrame, base: tuple[str, str]) -> None:
        slow = {name for name in columns if "Python UDF" in name}
        calls = {name: (few if name in slow else rows).select(column.alias("x")) for name, column in columns.items()}
        sizes = {name: arguments.rows // 10 if name in slow else arguments.rows for name in columns}
        rates = measured[title] = measure(calls, sizes, arguments.rounds)
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
            "try_parse_id(id)": spark_ext.try_parse_id("id"),
            "Python UDF with int.from_bytes": F.udf(parsed_in_python, PARSED)("id"),
        },
        "the time": {
            "id_time(id)": spark_ext.id_time("id"),
            "floor: id as it is": F.col("id"),
            "Python UDF with int.from_bytes": F.udf(time_in_python, "timestamp")("id"),
        },
        "validity": {
            "is_valid_id(id)": spark_ext.is_valid_id("id"),
            "floor: unhex(id)": F.unhex("id"),
            "Python UDF with bytes.fromhex": F.udf(valid_in_python, "boolean")("id"),
        },
    }.items():
        compare(title, columns, many, fewer, (list(columns)[-1],))
    if arguments.chart:
        from charts import rates

        rates(measured, arguments.chart)


if __name__ == "__main__":
    main()
