"""The job `messages` of Iggy's segments to Parquet: messages per second, the share of each stage, one core and two.

python bench/spark/messages.py [--messages 2000000] [--layout batch256] [--rounds 3]
python bench/spark/messages.py --rows 5000000 [--rounds 3]

With ``--rows``, rows of Kafka, RocketMQ and Danube become the message table, and `position_id` of the same rows takes
turns with it in one session. The ratio of the two is the result, because two runs differ in their load. A query that
passes the columns on beside `position_id` shows the floor: the message table has them, too. The rows of `kafka` suit
the function. Those of `kafka, faults` do not: four partitions, 2,000 bytes each, every tenth without an own ID, and one
of a hundred with a header that is not an ID.

The segments are copies of one file. A process bound to one core and one bound to two take turns. The share of a stage
is the difference of two queries: each has one stage more than the query before it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from rounds import machine, table

from msgid import iggy

if TYPE_CHECKING:
    from collections.abc import Iterator

PAYLOAD = 100
SEGMENTS = 8
COMPILING = 2
"""Rounds in which Java compiles; they are not measured."""
STAGES = ("decoding", "Spark's rows", "columns of the table", "writing and counting")


def messages_of(count: int, layout: str) -> Iterator[iggy.Message]:
    """Yield messages with the UUIDs that today's clients make."""
    chance = random.Random(1)
    for n in range(count):
        id = int.from_bytes(uuid.UUID(int=chance.getrandbits(128), version=4).bytes, "little")
        time_of = 1_795_219_200_000_000 + n // 1000
        yield iggy.Message.new(chance.randbytes(PAYLOAD), id=id, offset=n, timestamp=time_of, layout=layout)


def write(folder: Path, messages: int, layout: str) -> int:
    """Write the segments; return the number of their bytes."""
    raw = iggy.encode_log(messages_of(messages // SEGMENTS, layout), layout)
    for number in range(SEGMENTS):
        partition = folder / "streams" / "1" / "topics" / "1" / "partitions" / str(number)
        partition.mkdir(parents=True)
        (partition / f"{0:020d}.log").write_bytes(raw)
    return len(raw) * SEGMENTS


def decode(folder: Path) -> int:
    """Decode all segments in this process."""
    rows = 0
    for path in folder.rglob("*.log"):
        with path.open("rb") as file:
            rows += sum(part.table.num_rows for part in iggy.read_tables(file))
    return rows


def serve(cores: int, folder: str) -> None:
    """Measure one round for each line of the standard input, and print its seconds as a line of JSON."""
    from pyspark.sql import SparkSession

    import spark_ext
    from spark_ext.formats.iggy import IGGY_COLUMNS
    from spark_ext.formats.iggy_source import IggyDataSource
    from spark_ext.jobs import messages_job

    if hasattr(os, "sched_setaffinity"):  # a task and its Python worker would take two cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.config("spark.sql.shuffle.partitions", str(cores)).getOrCreate()
    spark.dataSource.register(IggyDataSource)
    rows = spark.read.format("iggy").option("columns", ",".join(IGGY_COLUMNS)).load(folder)
    output = f"{folder}.out-{cores}"

    def noop(df: Any) -> None:
        df.write.format("noop").mode("overwrite").save()

    def job() -> None:
        summary = messages_job.run(spark, folder, output, messages_job.Source("iggy"), mode="overwrite")
        assert summary.states == [("available", summary.rows)], summary

    stages = [
        lambda: decode(Path(folder)),
        lambda: noop(rows),
        lambda: noop(spark_ext.messages(rows, "iggy")),
        job,
    ]
    for _ in sys.stdin:
        seconds = []
        for stage in stages:
            start = time.perf_counter()
            stage()
            seconds.append(time.perf_counter() - start)
        print(json.dumps([seconds[0] / cores, *seconds[1:]]), flush=True)
    spark.stop()
    shutil.rmtree(output, ignore_errors=True)


FILE_ROWS = 50_000
"""The rows of one file, which is read as often as the number of rows needs."""


def written_rows(spark: Any, folder: Path) -> dict[str, tuple[str, Any]]:
    """Write a file of rows of each format; return its path, and the `position_id` of its rows."""
    from pyspark.sql import functions as F

    import spark_ext
    from msgid.danube import MessageID, StreamMessage

    ids = spark.range(FILE_ROWS).withColumn("own", spark_ext.position_id(F.lit("producer"), "id", F.lit(1.7e9)))
    body, at = F.repeat(F.lit("x"), PAYLOAD).cast("binary"), F.timestamp_millis(F.col("id") + 1_790_000_000_000)
    header = F.array(F.struct(F.lit("message_id").alias("key"), F.col("own").cast("binary").alias("value")))
    kafka = ids.select(
        F.lit(b"shop").alias("key"), body.alias("value"), F.lit("orders").alias("topic"), F.lit(0).alias("partition"),
        F.col("id").alias("offset"), at.alias("timestamp"), header.alias("headers"),
    )  # fmt: skip
    number, log = F.col("id"), F.pmod(F.col("id"), F.lit(4)).cast("int")
    own = F.when(number % 100 == 7, F.lit("not an ID")).otherwise(F.col("own")).cast("binary")
    faulty_header = F.when(number % 10 != 0, F.array(F.struct(F.lit("message_id").alias("key"), own.alias("value"))))
    faulty = ids.select(
        F.col("own").cast("binary").alias("key"),
        F.repeat(F.md5(number.cast("string")), 63).cast("binary").alias("value"),
        F.lit("orders").alias("topic"), log.alias("partition"), number.alias("offset"), at.alias("timestamp"),
        faulty_header.alias("headers"),
    )  # fmt: skip
    text = F.to_json(F.struct(F.col("own").alias("UNIQ_KEY"), F.lit("shop").alias("KEYS"), F.lit("true").alias("WAIT")))
    rocketmq = ids.select(
        F.lit("orders").alias("topic"), body.alias("body"), text.alias("properties"), F.lit("a").alias("brokerName"),
        F.lit(0).alias("queueId"), F.col("id").alias("queueOffset"), at.alias("storeTimestamp"),
    )  # fmt: skip
    messages = [
        StreamMessage(1, MessageID(7, "/default/orders", "http://a:1", n), b"x" * PAYLOAD, 1_790_000_000_000 + n, "p")
        for n in range(FILE_ROWS)
    ]
    danube = spark.createDataFrame(
        [(message.encode(), message.msg_id.topic_offset, message.time) for message in messages],
        "value binary, offset bigint, time timestamp",
    )
    tables = {
        "kafka": (kafka, spark_ext.position_id(F.lit("kafka:kafka/orders/0"), "offset", "timestamp")),
        "kafka, faults": (
            faulty,
            spark_ext.position_id(F.concat_ws("/", F.lit("kafka:kafka/orders"), "partition"), "offset", "timestamp"),
        ),
        "rocketmq": (rocketmq, spark_ext.position_id(F.lit("rocketmq:a/orders/0"), "queueOffset", "storeTimestamp")),
        "danube": (danube, spark_ext.position_id(F.lit("danube:/default/orders#7"), "offset", "time")),
    }
    for name, (df, _) in tables.items():
        df.repartition(1).write.parquet(str(folder / name))
    return {name: (str(folder / name), id) for name, (_, id) in tables.items()}


def compare_formats(count: int, rounds: int) -> None:
    """Print the rows per second of `position_id`, of it beside all columns, and of `messages`; and two ratios."""
    from pyspark.sql import SparkSession

    import spark_ext

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    spark = builder.getOrCreate()
    count = max(1, count // FILE_ROWS) * FILE_ROWS
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, (path, id) in written_rows(spark, Path(temporary)).items():
            rows = spark.read.parquet(*[path] * (count // FILE_ROWS))
            options = {"logged": True} if name == "danube" else {}
            queries = [rows.select(id), rows.select("*", id), spark_ext.messages(rows, name.split(",")[0], **options)]
            taken: list[list[float]] = [[], [], []]
            for number in range(1 + rounds):
                for query, seconds in zip(queries, taken, strict=True):
                    start = time.perf_counter()
                    query.write.format("noop").mode("overwrite").save()
                    if number:
                        seconds.append(time.perf_counter() - start)
            ids, columns, table_of = (count / statistics.median(seconds) for seconds in taken)
            ratios = [f"{columns / ids:.2f}", f"{table_of / ids:.2f}"]
            lines.append([name, *(f"{rate:,.0f}" for rate in (ids, columns, table_of)), *ratios])
    spark.stop()
    print(f"{machine()}; medians of {rounds} rounds in turns; {count:,} rows of {PAYLOAD} bytes, 2,000 with faults\n")
    head = [
        "format",
        "position_id, rows/s",
        "and columns, rows/s",
        "messages, rows/s",
        "ratio of columns",
        "of messages",
    ]
    print(table(head, lines))
    print("\nGoal: a ratio of at least 0.8 for each format.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--layout", choices=[*iggy.LAYOUTS], default="batch256")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="compare the formats of rows, with so many rows of each")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(int(arguments.serve[0]), arguments.serve[1])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if arguments.rows:
        return compare_formats(arguments.rows, arguments.rounds)
    messages = arguments.messages // SEGMENTS * SEGMENTS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "in"
        size = write(folder, messages, arguments.layout)
        processes = {
            cores: subprocess.Popen(
                [sys.executable, __file__, "--serve", str(cores), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for cores in (1, 2)
        }
        taken: dict[int, list[list[float]]] = {cores: [] for cores in processes}
        for number in range(COMPILING + arguments.rounds):
            for cores, process in processes.items():
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write("go\n")
                process.stdin.flush()
                seconds = json.loads(process.stdout.readline())
                if number >= COMPILING:
                    taken[cores].append(seconds)
        for process in processes.values():
            process.communicate()
    medians = {
        cores: [statistics.median(column) for column in zip(*runs, strict=True)] for cores, runs in taken.items()
    }
    lines = []
    for number, stage in enumerate(STAGES):
        line = [stage]
        for reached in medians.values():
            own = reached[number] - (reached[number - 1] if number else 0)
            line += [f"{own:.2f}", f"{own / reached[-1]:.0%}"]
        lines.append(line)
    whole = [messages / reached[-1] for reached in medians.values()]
    lines.append(["the job", *(text for reached in medians.values() for text in (f"{reached[-1]:.2f}", "100%"))])
    print(f"{machine()}; medians of {arguments.rounds} rounds in turns")
    print(
        f"{messages:,} messages of {PAYLOAD} bytes in {arguments.layout}, {size / 1e6:.0f} MB in {SEGMENTS} segments\n"
    )
    print(table(["stage", "1 core, s", "share", "2 cores, s", "share"], lines))
    print(
        f"\nGoal: 300,000 messages per second on 2 cores. The job has {whole[1]:,.0f}, and {whole[0]:,.0f} on 1 core."
        f"\nSeconds per million messages on 2 cores: {1e6 / whole[1]:.1f}"
    )
    sources = [reached[1] for reached in medians.values()]
    print(f"Goal: 2 cores at least 1.8 times 1 core. The job has {whole[1] / whole[0]:.2f} times, ", end="")
    print(f"the source alone {sources[0] / sources[1]:.2f} times.")
    return None


if __name__ == "__main__":
    main()
