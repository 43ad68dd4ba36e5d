"""Run a job on two executors, disturb it in the middle, and print the result as JSON. This is not a test.

python disturbed.py HOW TROUBLE FOLDER ADAPTIVE PARTITIONS

The rows go through a shuffle, get their ids, and go through another; then, once, from inside a task:

- executor: the executor ends. Its shuffle data is lost and computed again, after some rows have been read;
- stage: all shuffle data is deleted, so Spark runs the stage before it again;
- task: the task fails after it has returned some rows, and Spark runs it again;
- speculation: the task hangs, and Spark starts a copy of it on another host.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext

PARENT = "0156F7E71C361B21BC024CCDBE00000000"
ROWS = 20_000
# The error of newer versions of Spark if a stage that runs again returns other rows than before.
REFUSAL = "A shuffle map stage with indeterminate output was failed and retried"


@contextlib.contextmanager
def two_hosts(folder):
    """Start a cluster of two workers with separate addresses, and return its URL."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    url = f"spark://127.0.0.1:{port}"
    deploy, output = "org.apache.spark.deploy", subprocess.DEVNULL
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    commands += [
        [f"{deploy}.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(folder), url]
        for host in ("127.0.0.2", "127.0.0.3")
    ]
    with contextlib.ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(
                subprocess.Popen([start, *command, "--webui-port", "0"], stdout=output, stderr=output)
            )
            stack.callback(process.terminate)
        yield url


def main(how, trouble, folder, adaptive, partitions):
    with two_hosts(folder) if trouble == "speculation" else contextlib.nullcontext("local-cluster[2,1,1024]") as url:
        run(url, how, trouble, folder, adaptive, partitions)


def run(url, how, trouble, folder, adaptive, partitions):
    spark = (
        SparkSession.builder.master(url)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.adaptive.enabled", adaptive)
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        .config("spark.local.dir", str(Path(folder) / "local"))
        .config("spark.speculation", str(trouble == "speculation").lower())
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.minTaskRuntime", "500ms")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.1")
        .config("spark.speculation.efficiency.enabled", "false")
        .getOrCreate()
    )
    rows = spark.range(0, ROWS, 1, int(partitions)).withColumnRenamed("id", "n")
    if how == "assign before":
        made = rows.withColumn("id", spark_ext.assign_id("run", 0)).repartition(6)
    elif how == "assign in SQL":
        spark_ext.register(spark)
        made = rows.selectExpr("n", "msgid_assign() AS id").repartition(6)
    else:
        shuffled = rows.repartition(4)
        made = {
            "position": lambda: shuffled.withColumn("id", spark_ext.position_id(F.lit("log"), "n", F.lit(0))),
            "derive": lambda: shuffled.withColumn("id", spark_ext.derive_id(F.lit(PARENT), "n")),
            "assign after": lambda: shuffled.withColumn("id", spark_ext.assign_id("run", 0)),
            "assign ordered": lambda: shuffled.transform(spark_ext.assign_ids, order_by="n", run="run", at=0),
        }[how]()
    done = Path(folder) / "done"

    def end_the_executor():
        daemon, executor = psutil.Process().parents()[:2]
        executor.kill()
        daemon.kill()
        time.sleep(60)

    def delete_what_was_shuffled():
        deleted = [file.unlink() for file in (Path(folder) / "local").rglob("shuffle_*") if file.is_file()]
        assert deleted
        sys.exit(1)  # this task fails; its second attempt finds no data to read

    def fail():
        raise RuntimeError("the task fails once")

    disturb = {
        "executor": end_the_executor,
        "stage": delete_what_was_shuffled,
        "task": fail,
        "speculation": lambda: time.sleep(20),
    }[trouble]

    def disturb_once(batches):
        from pyspark import TaskContext

        first = TaskContext.get().partitionId() == 5 and not done.exists()
        if TaskContext.get().partitionId() == 5 and done.exists():
            (Path(folder) / "again").touch()
        for batch in batches:
            yield batch
            if first:
                done.touch()
                time.sleep(1)
                disturb()

    try:
        out = made.repartition(8, "n").mapInArrow(disturb_once, "n bigint, id string").collect()
    except Exception as error:
        if REFUSAL not in str(error):
            raise
        spark.stop()
        print(json.dumps({"refused": True, "done": (Path(folder) / "again").exists()}))
        return
    undisturbed = made.collect()  # after the disturbance, in one task: the current IDs of the rows
    spark.stop()
    print(json.dumps({"rows": [[row.n, row.id] for row in out], "again": [[row.n, row.id] for row in undisturbed],
                      "done": (Path(folder) / "again").exists()}))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
