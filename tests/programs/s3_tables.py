"""Use sinks, sources and clean-up on an S3 server, and print one JSON line: s3_tables.py CLASSES SERVER."""

import json
import os
import sys

from pyspark.sql import SparkSession

import spark_ext as ids
from msgid import iggy
from spark_ext._filesystem import filesystem
from spark_ext.jobs import messages_job as job


def session(classes, server):
    """Return a session in which the client of the tests serves ``s3a``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.extraClassPath": classes,
        "spark.hadoop.fs.s3a.impl": "S3Files",
        "spark.hadoop.test.s3.server": server,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def count(spark, path, format=None):
    return ids.read_table(spark, path, format).count()


def main(classes, server):
    spark = session(classes, server)
    found = {}
    path, batch = "s3a://lake/delta table", spark.range(4).selectExpr("id", "id % 2 AS kind")
    options = {"app_id": "w", "partition_by": ("kind",)}
    written = [ids.write_once(batch, number, path, format="delta", **options) for number in (0, 1, 1)]
    found["delta"] = [*written, count(spark, path)]
    try:
        ids.write_once(batch, 0, "s3a://lake/parquet table", **options)
    except ids.TableConflict as error:
        found["parquet"] = str(error)

    segments = "s3a://lake/iggy/streams/1/topics/orders/partitions/0"
    files, folder = filesystem(segments)
    messages = [iggy.Message.new(b"p", id=n + 1, offset=n, timestamp=n * 1_000_000, layout="m45") for n in range(6)]
    for start in (0, 3):
        with files.open_output_stream(f"{folder}/{start:020d}.log") as file:
            file.write(iggy.encode_log(messages[start : start + 3], "m45"))
    source = job.Source("iggy")
    summary = job.run(spark, "s3a://lake/iggy", "s3a://lake/out", source)
    found["iggy"] = [summary.states]

    found["messages"] = spark.read.parquet("s3a://lake/out/messages").count()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
