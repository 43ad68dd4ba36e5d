"""A driver of a cluster that may be killed at any moment: ``cluster_programs.py PLAN``; PLAN is JSON.

It has two streams, of `process` and `deduplicate`, each into tables of Parquet and Delta and into PostgreSQL. It ends
after the file ``done`` stands in ``folder``, and all input is read.
"""

import json
import shutil
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import spark_ext

SETTINGS = {
    # A process that is paused for longer than this counts as lost, and comes back.
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "4s",
    "spark.rpc.askTimeout": "60s",
    "spark.task.maxFailures": "12",
    "spark.stage.maxConsecutiveAttempts": "12",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
BUCKETS, POLL_SECONDS = 3, 0.5
TABLES = ("parquet", "delta")
"""The formats of the tables; the third sink is PostgreSQL."""


def session(plan):
    """Return the session of a driver whose executors find the packages in a folder."""
    builder = SparkSession.builder.config("spark.executorEnv.PYTHONPATH", plan["packages"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def count(state, message, context):
    """Number the orders of a customer."""
    number = (state or 0) + 1
    context.publish({"number": number, "customer": message.key, "order": message.body["text"]})
    return number


def results_of(stream):
    """Return the rows of both functions, and the condition of the rows that PostgreSQL gets, which has an ID once."""
    labelled = spark_ext.deduplicate(stream, timestamp="at", within="1 day", buckets=BUCKETS)
    handled = spark_ext.process(stream, "customer", count, timestamp="at", buckets=BUCKETS)
    return {"labelled": (labelled, "delivery = 'new'"), "handled": (handled, "kind = 'new'")}


def start(name, plan, rows, kept, **trigger):
    """Start a query that writes its rows to three sinks."""

    def write(batch, number):
        batch.persist()
        for format in TABLES:
            spark_ext.write_once(batch, number, f"{plan['place']}/{name}-{format}", format=format)
        spark_ext.upsert_postgres(batch.where(kept), plan["conninfo"], name)
        batch.unpersist()

    checkpoint = f"{plan['place']}/{name}-checkpoint"
    if not Path(checkpoint, "offsets", "0").exists():
        # A driver that ends as it begins its first batch leaves part of a file, and Spark refuses the checkpoint.
        shutil.rmtree(checkpoint, ignore_errors=True)
    return rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).trigger(**trigger).start()


def streams(plan):
    """Run both streams until the input is complete; then write what the tables hold to the file ``rows``."""
    spark, folder = session(plan), Path(plan["folder"])
    stream = spark.readStream.schema("id string, customer string, at timestamp, text string")
    stream = stream.option("maxFilesPerTrigger", 4).json(f"{folder}/in")
    for trigger in ({"processingTime": "1 second"}, {"availableNow": True}):
        queries = [start(name, plan, *given, **trigger) for name, given in results_of(stream).items()]
        is_active = True
        while is_active:
            is_active = any(query.isActive for query in queries)  # before the errors: the last query may fail, too
            failed = next((error for query in queries if (error := query.exception()) is not None), None)
            if failed is not None:
                raise failed
            if "processingTime" in trigger and (folder / "done").exists():
                for query in queries:
                    query.stop()
            time.sleep(POLL_SECONDS)
    found = {}
    for name in results_of(stream):
        for format in TABLES:
            table = spark_ext.read_table(spark, f"{plan['place']}/{name}-{format}")
            found[f"{name}-{format}"] = [json.loads(row) for row in table.drop("writer", "batch").toJSON().collect()]
    handled = spark_ext.read_table(spark, f"{plan['place']}/handled-parquet").where("kind = 'new'")
    found["audit"] = [finding.check for finding in spark_ext.audit(handled, id="id").local.findings]
    (folder / "rows.part").write_text(json.dumps(found))
    (folder / "rows.part").rename(folder / "rows")


if __name__ == "__main__":
    streams(json.loads(sys.argv[1]))
