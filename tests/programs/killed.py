"""python killed.py PLAN: handle the files in FOLDER/NAME/in for each query NAME, one per batch.

PLAN is JSON: ``folder``, ``master`` and ``queries``, the step by the query's name at which it is killed, or null. The
steps of a batch: before it is written; in the handler; around the mark of its rows and the rename of their folder;
after it is written. With ``ends_executor``, an executor ends, once, while it handles rows.
"""

import json
import sys
from pathlib import Path

from pyspark import cloudpickle

sys.path.insert(0, str(Path(__file__).parent))
import killing
import shooting_range

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB
from spark_ext.tables import parquet

plan = json.loads(sys.argv[1])
ends_executor = plan.get("ends_executor", False)
for module in (shooting_range, killing):
    cloudpickle.register_pickle_by_value(module)
spark = killing.session(plan["master"]).config(PROVIDER, ROCKSDB).getOrCreate()

killing.step_around(parquet, "mark", "_mark", "marked")
killing.step_around(parquet, "rename", "_rename", "renamed")


def start(name, at):
    folder = Path(plan["folder"]) / name
    steps = killing.Steps(folder, at)
    place = str(folder)

    def handler(state, message, context):
        killing.worker_step(place, "handler")
        if ends_executor and message.body["kind"] == "fire" and killing.once(f"{place}/ended"):
            killing.end_executor()
        return shooting_range.shoot(state, message, context)

    def write(batch, number):
        steps.step("before")
        spark_ext.write_once(batch, number, f"{place}/out", partition_by=("kind",))
        steps.step("after")

    df = spark.readStream.schema("id string, player string, kind string, position int")
    df = df.option("maxFilesPerTrigger", 1).json(f"{place}/in")
    query = (
        spark_ext.process(df, "player", handler, buckets=2)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    return query, steps


killing.run_until_killed(spark, plan["queries"], start)
