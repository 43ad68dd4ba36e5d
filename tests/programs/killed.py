"""python killed.py FOLDER KILL_AT MASTER: handle what is in FOLDER/in, a file a batch, and end at the nth step.

The steps of a batch: before it is written; while it is written (its rows are there, not yet the mark that they are
all); after it is written, before the query notes that it is done. KILL_AT "executor": end an executor, once, while it
handles rows.
"""

import os
import signal
import sys
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))
import shooting_range

import spark_ext
from spark_ext.streaming._state_store import NO_DATA_BATCHES, PROVIDER, ROCKSDB

folder, kill_at, master = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
cloudpickle.register_pickle_by_value(shooting_range)
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1").config(PROVIDER, ROCKSDB).config(NO_DATA_BATCHES, "false")
# It lives for seconds: what is compiled at all is compiled quickly.
builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
spark = builder.getOrCreate()
steps = 0


def step():
    """End this process and its JVM, without a word, when it is the nth step."""
    global steps
    steps += 1
    if kill_at != "executor" and steps == int(kill_at):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


ended = str(folder / "ended")


def handler(state, message, context):
    """Shoot; end the executor that this is run by the first time that it comes here."""
    if kill_at == "executor" and message.body["kind"] == "fire":
        try:
            os.close(os.open(ended, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            daemon = os.getppid()
            with open(f"/proc/{daemon}/stat") as stat:
                executor = int(stat.read().rsplit(")", 1)[1].split()[1])
            os.kill(executor, signal.SIGKILL)
    return shooting_range.shoot(state, message, context)


def write(batch, number):
    step()
    path = folder / "out"
    spark_ext.write_once(batch, number, str(path), partition_by=("kind",))
    if kill_at != "executor" and steps + 1 == int(kill_at):
        (mark,) = path.glob(f"writer=*/batch={number}/_SUCCESS")
        mark.unlink()  # as if it had ended just before that was written
    step()
    step()


df = spark.readStream.schema("id string, player string, kind string, position int")
df = df.option("maxFilesPerTrigger", 1).json(str(folder / "in"))
query = (
    spark_ext.process(df, "player", handler, buckets=2)
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", str(folder / "checkpoint"))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()
