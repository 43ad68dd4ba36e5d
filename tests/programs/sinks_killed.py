"""python sinks_killed.py PLAN: write the files in FOLDER/NAME/in to a sink for each query NAME, one per batch.

PLAN is JSON: ``folder``, ``master``, ``conninfo``, ``checkpoint`` and ``queries``, the step by the query's name at
which it is killed, or null. The sink is the name's first word; ``process`` writes the outputs of a handler to Parquet.
The steps of a batch: before and after it; around what writes its rows and what makes them visible; in a worker, while
it passes on or handles rows. With ``ends_executors``, an executor ends in each batch. With ``who``, the process waits
at some steps for another one.
"""

import json
import sys
from pathlib import Path

from pyspark import cloudpickle

sys.path.insert(0, str(Path(__file__).parent))
import killing

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB
from spark_ext.tables import delta, parquet, upsert

plan = json.loads(sys.argv[1])
who = plan.get("who")
for module in (killing, upsert):  # with the steps that are added to it
    cloudpickle.register_pickle_by_value(module)
spark = killing.session(plan["master"]).config(PROVIDER, ROCKSDB).getOrCreate()
killing.step_around(parquet, "mark", "_mark", "marked")
killing.step_around(parquet, "rename", "_rename", "renamed")
killing.step_around(delta._Table, "files", "write_files", "written")
killing.step_around(delta._Table, "commit", "commit", "committed")
running = {}
"""The folder of the query that was started last and the number of its batch, as its workers get them."""


def step_in_worker(name, before=None, after=None):
    """Make a step in the workers around a function that writes to PostgreSQL."""
    function = getattr(upsert, name)

    def stepped(*arguments):
        folder, batch = running["folder"], running["batch"]
        if before:
            killing.worker_step(folder, before)
        value = function(*arguments)
        if after:
            killing.worker_step(folder, after)
        if after == "committed" and plan.get("ends_executors") and killing.once(f"{folder}/ended-committed-{batch}"):
            killing.end_executor()
        return value

    setattr(upsert, name, stepped)


step_in_worker("_copy", before="copy", after="copied")
step_in_worker("_insert_rows", after="inserted")
step_in_worker("_insert", after="committed")


class Steps(killing.Steps):
    """Steps at which two processes meet."""

    def step(self, name):
        if who and name in ("before", "rename", "commit"):
            killing.meet(self.folder, f"{name}-{running['batch']}", who)
        super().step(name)


def counting(folder):
    """Return a handler that counts the rows of a key. It makes a step, and ends its executor once."""

    def count(state, message, context):
        killing.worker_step(folder, "rows")
        if plan.get("ends_executors") and killing.once(f"{folder}/ended-{message.body['batch']}"):
            killing.end_executor()
        number = (state or 0) + 1
        context.publish({"number": number, "text": message.body["text"]})
        return number

    return count


def disturbed(df, folder, batch):
    """Return the rows. A worker makes a step between them, and ends its executor: at once, or as it commits."""

    def pass_on(batches):
        for rows in batches:
            yield rows
            killing.worker_step(folder, "rows")
            if plan.get("ends_executors") and killing.once(f"{folder}/ended-{batch}"):
                killing.end_executor(batch * 0.1)

    return df.mapInArrow(pass_on, df.schema)


def start(name, at):
    folder = f"{plan['folder']}/{name}"
    sink = name.split("-")[0]
    steps = Steps(folder, at)
    running.update(folder=folder, batch=None)
    df = spark.readStream.schema("id string, k int, text string").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    if sink == "process":
        df = spark_ext.process(df.selectExpr("*", "split(id, '/')[0] AS batch"), "k", counting(folder), buckets=2)

    def write(batch, number):
        running.update(batch=number)
        steps.step("before")
        rows = batch if sink == "process" else disturbed(batch, folder, number)
        if sink == "postgres":
            spark_ext.upsert_postgres(rows, plan["conninfo"], name.replace("-", "_"))
        else:
            given = {"format": "parquet"} if sink == "process" else {"format": sink, "partition_by": ("k",)}
            spark_ext.write_once(rows, number, f"{folder}/table", **given)
        steps.step("after")

    query = (
        df.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/{plan.get('checkpoint', 'checkpoint')}")
        .trigger(availableNow=True)
        .start()
    )
    return query, steps


killing.run_until_killed(spark, plan["queries"], start)
