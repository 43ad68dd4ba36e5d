"""python sinks_killed.py FOLDER CHECKPOINT KILL_AT MASTER CONNINFO: write what is in FOLDER/in to three sinks.

A file is a micro-batch, which goes to Parquet, to Delta and to PostgreSQL. The process ends itself at the nth step:
before and after each sink, between the rows and what makes them visible, and after that. KILL_AT "executor": end an
executor once per sink, while it passes on rows.
"""

import os
import signal
import sys

from pyspark.sql import SparkSession

import spark_ext
from spark_ext.tables import _delta, _parquet

folder, checkpoint, kill_at, master, conninfo = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1")
# It lives for seconds: what is compiled at all is compiled quickly.
builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
spark = builder.getOrCreate()
steps = 0


def step():
    """End this process and its JVM, without a word, when it is the nth step."""
    global steps
    steps += 1
    if kill_at.isdigit() and steps == int(kill_at):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def with_steps(module, name):
    """Make a step before and after a function of a module."""
    function = getattr(module, name)

    def stepped(*arguments):
        step()
        value = function(*arguments)
        step()
        return value

    setattr(module, name, stepped)


with_steps(_parquet, "_mark")
with_steps(_parquet, "_rename")
with_steps(_delta, "_write_files")
with_steps(_delta, "_commit")


def disturbed(df, sink):
    """Return the rows, which end the executor that first passes some of them on to a sink."""
    if kill_at != "executor":
        return df
    mark = f"{folder}/ended-{sink}"

    def pass_on(batches):
        for batch in batches:
            yield batch
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            with open(f"/proc/{os.getppid()}/stat") as stat:
                executor = int(stat.read().rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGKILL)

    return df.mapInArrow(pass_on, df.schema)


def write(batch, number):
    for sink in ("parquet", "delta"):
        step()
        rows = disturbed(batch, sink)
        spark_ext.write_once(rows, number, f"{folder}/{sink}", format=sink, partition_by=("k",))
        step()
    spark_ext.upsert_postgres(disturbed(batch, "postgres"), conninfo, "killed")
    step()


query = (
    spark.readStream.schema("id string, k int, text string")
    .option("maxFilesPerTrigger", 1)
    .json(f"{folder}/in")
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", f"{folder}/{checkpoint}")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()
