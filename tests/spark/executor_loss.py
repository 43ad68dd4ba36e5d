"""A program, not a test: run a job on two executors, end one of them in the middle, and print what came out as JSON.

python executor_loss.py HOW FOLDER

The rows go through a shuffle, get their ids, and go through another; then one executor is ended from inside a task,
once. What it had shuffled is lost and computed again, after some of the rows have been read already.
"""

import json
import os
import sys
import time
from pathlib import Path

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext

PARENT = "0156F7E71C361B21BC024CCDBE00000000"
ROWS = 20_000
# What newer Sparks say when the rows of a stage that was run again are not those that were read already.
REFUSAL = "A shuffle map stage with indeterminate output was failed and retried"


def main(how, folder, adaptive, partitions):
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.adaptive.enabled", adaptive)
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        .config("spark.speculation", "true")
        .getOrCreate()
    )
    rows = spark.range(0, ROWS, 1, int(partitions)).withColumnRenamed("id", "n")
    if how == "assign before":
        made = rows.withColumn("id", spark_ext.assign_id("run", 0)).repartition(6)
    else:
        shuffled = rows.repartition(4)
        made = {
            "position": lambda: shuffled.withColumn("id", spark_ext.position_id(F.lit("log"), "n", F.lit(0))),
            "derive": lambda: shuffled.withColumn("id", spark_ext.derive_id(F.lit(PARENT), "n")),
            "assign after": lambda: shuffled.withColumn("id", spark_ext.assign_id("run", 0)),
            "assign ordered": lambda: shuffled.transform(spark_ext.assign_ids, order_by="n", run="run", at=0),
        }[how]()
    ended = Path(folder) / "ended"

    def end_an_executor_once(batches):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 5 and not ended.exists():
            ended.touch()
            time.sleep(1)
            daemon, executor = psutil.Process().parents()[:2]
            executor.kill()
            daemon.kill()
            time.sleep(60)
        yield from batches

    try:
        out = made.repartition(8, "n").mapInArrow(end_an_executor_once, "n bigint, id string").collect()
    except Exception as error:
        if REFUSAL not in str(error):
            raise
        spark.stop()
        print(json.dumps({"refused": True, "ended": ended.exists()}))
        return
    undisturbed = made.collect()  # after the loss, in one piece: what the rows' ids are now
    spark.stop()
    print(json.dumps({"rows": [[row.n, row.id] for row in out], "again": [[row.n, row.id] for row in undisturbed],
                      "ended": ended.exists()}))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
