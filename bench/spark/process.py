"""`process` against the same handler without state; its growth with messages of a key and with keys; a restart.

python bench/spark/process.py [--messages 1000000] [--keys 100000] [--rounds 3] [--only rate hot restart]
    [--tables ordered random]

The rate has two tables: one of position IDs and short bodies, and one that does not suit the state, of random UUIDs and
bodies with 1,000 characters of text.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import spark_ext
from msgid.processing import Context, Message, dumps, loads
from spark_ext.streaming._state.buckets import DEFAULT_BUCKETS
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from deduplicate_stream import random_id
from rounds import machine, table

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "id string, customer string, amount bigint, note string"
OUTPUT = "id string, body string"


def count(state: Any, message: Message, context: Context) -> Any:
    """Count the messages of a key, and publish the count."""
    after = (state or 0) + 1
    context.publish({"count": after})
    return after


def stateless(rows: pd.DataFrame) -> pd.DataFrame:
    """Run the same handler over the rows of a bucket, on states that live as long as this call."""
    states: dict[str, bytes] = {}
    outputs = []
    for id, customer, amount, note in zip(rows["id"], rows["customer"], rows["amount"], rows["note"], strict=True):
        message = Message(id, customer, {"amount": amount, "note": note})
        context = Context(message)
        before = states.get(customer)
        states[customer] = dumps(count(None if before is None else loads(before), message, context))
        outputs += [(output.id, dumps(output.body).decode()) for output in context.outputs]
    return pd.DataFrame(outputs, columns=["id", "body"])


FILES: Final = 2
"""The files of a micro-batch, one for each core."""


class Floor(StatefulProcessor):
    """Counts the rows of a bucket in Spark's state, and returns them: the least that such an operator does."""

    def init(self, handle: Any) -> None:
        self._rows = handle.getValueState("rows", "rows bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        count = self._rows.get()[0] if self._rows.exists() else 0
        for frame in rows:
            count += len(frame)
            yield pd.DataFrame({"id": frame["id"], "body": frame["customer"]})
        self._rows.update((count,))

    def close(self) -> None:
        pass


TABLES = ("ordered", "random")


def write(
    spark: SparkSession,
    folder: str,
    first: int,
    messages: int,
    customer: F.Column,
    batches: int,
    kind: str = "ordered",
) -> None:
    """Write messages in `FILES` files for each micro-batch."""
    at = F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(F.col("id") / 1000))
    id, note = spark_ext.position_id(F.lit("bench"), "id", at), F.lit("paid")
    if kind == "random":
        id, note = random_id(F.col("id")), F.repeat(F.md5(F.col("id").cast("string")), 31)
    Path(folder).mkdir(parents=True, exist_ok=True)
    batches *= FILES
    for batch in range(batches):
        size = messages // batches
        start = first + batch * size
        df = spark.range(start, start + size, 1, 1).select(
            id.alias("id"), customer.alias("customer"), F.col("id").alias("amount"), note.alias("note")
        )
        df.write.parquet(f"{folder}.new")
        (part,) = Path(f"{folder}.new").glob("*.parquet")
        part.rename(f"{folder}/{start:012}.parquet")
        os.utime(f"{folder}/{start:012}.parquet", (1_795_219_200 + start,) * 2)
        shutil.rmtree(f"{folder}.new")


def run(df: DataFrame, checkpoint: str) -> tuple[float, list[Any]]:
    """Run a query over all files that are there; return the seconds and the progress of its micro-batches."""
    start = time.perf_counter()
    query = df.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return time.perf_counter() - start, [progress for progress in query.recentProgress if progress.numInputRows]


def stream(spark: SparkSession, folder: str, files: int = FILES) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(folder)


def batch_rates(progress: list[Any]) -> list[float]:
    """Return the messages per second of each micro-batch."""
    return [1000 * one.numInputRows / one.durationMs["triggerExecution"] for one in progress]


def workers_memory() -> int:
    """Return the memory of the largest Python worker, in bytes."""
    sizes = [child.memory_info().rss for child in psutil.Process().children(recursive=True) if "python" in child.name()]
    return max(sizes, default=0)


def rate(spark: SparkSession, folder: str, messages: int, keys: int, rounds: int, kind: str) -> None:
    """Measure the rate of `process` and of the same handler without state, alternating."""
    some = F.concat(F.lit("customer "), F.pmod(F.xxhash64("id"), F.lit(keys)).cast("string"))
    folder = f"{folder}/{kind}"
    write(spark, f"{folder}/rate", 0, messages, some, 4, kind)
    taken: dict[str, list[float]] = {"process": [], "applyInPandas": []}
    bucket = F.pmod(F.xxhash64("customer"), F.lit(DEFAULT_BUCKETS))
    warm: list[float] = []
    memory = 0
    for number in range(rounds + 1):
        if number == 1:  # the first round warms up
            taken, warm = {name: [] for name in taken}, []
        seconds, progress = run(
            spark_ext.process(stream(spark, f"{folder}/rate"), "customer", count), f"{folder}/rate-{number}"
        )
        taken["process"].append(messages / seconds)
        warm.append(statistics.median(batch_rates(progress)[1:]))
        memory = max(memory, workers_memory())
        df = spark.read.schema(SCHEMA).parquet(f"{folder}/rate")
        start = time.perf_counter()
        df.groupBy(bucket).applyInPandas(stateless, OUTPUT).write.format("noop").mode("overwrite").save()
        taken["applyInPandas"].append(messages / (time.perf_counter() - start))
    numbered = stream(spark, f"{folder}/rate").withColumn("bucket", bucket)
    floor = numbered.groupBy("bucket").transformWithStateInPandas(Floor(), OUTPUT, "append", "None")
    least = messages / run(floor, f"{folder}/rate-floor")[0]
    a, b = (statistics.median(taken[name]) for name in ("process", "applyInPandas"))
    c = statistics.median(warm)
    lines = [
        ["process, the whole query", f"{a:,.0f}", f"{a / b:.2f}"],
        ["process, a micro-batch after the first", f"{c:,.0f}", f"{c / b:.2f}"],
        ["the same handler in applyInPandas", f"{b:,.0f}", "1.00"],
        ["transformWithStateInPandas that returns the rows", f"{least:,.0f}", f"{least / b:.2f}"],
    ]  # fmt: skip
    print(table([f"{messages:,} messages, {keys:,} keys, {kind} IDs", "messages per second", "ratio"], lines))
    print(f"memory of the largest Python worker: {memory / 1e6:,.0f} MB\n", flush=True)


def hot(spark: SparkSession, folder: str) -> None:
    """Measure the cost per message of one key, at the start and after 100,000 messages."""
    write(spark, f"{folder}/hot", 0, 120_000, F.lit("the one"), 24)
    _, progress = run(spark_ext.process(stream(spark, f"{folder}/hot"), "customer", count), f"{folder}/hot-0")
    costs = [1e6 / one for one in batch_rates(progress)]
    start, end = statistics.median(costs[2:6]), statistics.median(costs[-4:])
    lines = [["10,000 to 30,000", f"{start:,.0f}"], ["100,000 to 120,000", f"{end:,.0f}"]]
    lines.append(["the second over the first", f"{end / start:.2f}"])
    print(table(["one key, messages handled", "microseconds per message"], lines) + "\n", flush=True)


def restart(spark: SparkSession, folder: str, keys: int) -> None:
    """Measure the rate as keys are added, and the first micro-batch of a query that restarts on all of them."""
    write(spark, f"{folder}/keys", 0, keys, F.concat(F.lit("customer "), F.col("id").cast("string")), 5)
    df = spark_ext.process(stream(spark, f"{folder}/keys"), "customer", count)
    _, progress = run(df, f"{folder}/keys-0")
    lines = [
        [f"{(number + 1) * keys // 5:,}", f"{one:,.0f}", f"{p.stateOperators[0].memoryUsedBytes / 1e6:,.0f}"]
        for number, (one, p) in enumerate(zip(batch_rates(progress), progress, strict=True))
    ]  # fmt: skip
    print(table(["keys in state after the micro-batch", "messages per second", "state in memory, MB"], lines))
    write(spark, f"{folder}/keys", keys, 1000, F.concat(F.lit("customer "), F.col("id").cast("string")), 1)
    # Another program, so that no state is in memory.
    start = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--resume", folder], check=True)
    what = f"restart with {keys:,} keys in state and 1,000 messages, the whole program"
    print(f"{what}: {time.perf_counter() - start:.1f} s\n", flush=True)


def resume(spark: SparkSession, folder: str) -> None:
    """Run the query of `restart` again, and print the seconds of its micro-batch."""
    seconds, progress = run(spark_ext.process(stream(spark, f"{folder}/keys"), "customer", count), f"{folder}/keys-0")
    millis = json.dumps({name: progress[0].durationMs[name] for name in ("addBatch", "triggerExecution")})
    print(f"the query: {seconds:.1f} s (milliseconds: {millis})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--state-keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=["rate", "hot", "restart"], default=["rate", "hot", "restart"])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config(PROVIDER, ROCKSDB)
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        if chosen.resume:
            resume(spark, chosen.resume)
            return
        print(f"{machine()}; Spark on 2 cores, noop sink, load {os.getloadavg()[0]:.1f}\n", flush=True)
        if "rate" in chosen.only:
            for kind in chosen.tables:
                rate(spark, folder, chosen.messages, chosen.keys, chosen.rounds, kind)
        if "hot" in chosen.only:
            hot(spark, folder)
        if "restart" in chosen.only:
            restart(spark, folder, chosen.state_keys)
        spark.stop()


if __name__ == "__main__":
    main()
