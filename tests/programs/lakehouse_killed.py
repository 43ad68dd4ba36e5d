"""python lakehouse_killed.py PLAN: write batches to a Delta or Iceberg table, and be killed at one of them.

PLAN is JSON: the ``place`` of the table (a path, or a name for Iceberg), the ``way`` (catalog or deltalake for Delta,
or iceberg), the ``settings`` of the session, the number of ``batches``, and the ``step`` at which the process kills
itself in the batch ``batch``, or null: before it, during it after ``delay`` seconds, at a step of ``WAYS`` in
`write_once`, or after it. ``told`` is a file for what `write_once` returned.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import killing

import spark_ext
from spark_ext.tables import delta, iceberg

WAYS = {
    "catalog": {"committed": (delta._Table, "save")},
    "deltalake": {"committed": (delta._Table, "commit")},
    "iceberg": {
        "staged": (iceberg._Table, "_append"),
        "published": (iceberg._Table, "_cherrypick"),
        "recorded": (iceberg._Table, "finish"),
    },
}
"""The steps of each way, and the function after which the process kills itself."""
plan = json.loads(sys.argv[1])
builder = killing.session("local[2]").config("spark.databricks.delta.snapshotPartitions", "1")
for name, value in plan["settings"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
assert plan["way"] == "iceberg" or delta.has_catalog(spark) == (plan["way"] == "catalog")
running = {}


def kill():
    """Kill the JVM and this process."""
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_after(step, place, name):
    """Kill the process after a function has run in the batch of the plan."""
    function = getattr(place, name)

    def run(*arguments, **options):
        value = function(*arguments, **options)
        if plan["step"] == step and running["batch"] == plan["batch"]:
            kill()
        return value

    setattr(place, name, run)


for step, (place, name) in WAYS[plan["way"]].items():
    killed_after(step, place, name)
target = {"table": plan["place"], "format": "iceberg"} if plan["way"] == "iceberg" else {"path": plan["place"]}
for number in range(plan["batches"]):
    running["batch"] = number
    chosen = plan["step"] if number == plan["batch"] else None
    if chosen == "before":
        kill()
    if chosen == "during":
        threading.Timer(plan["delay"], kill).start()
    rows = spark.range(10 * number, 10 * number + 10)
    try:
        wrote = spark_ext.write_once(rows, number, **{"format": "delta", **target}, app_id="a")
    except spark_ext.TableConflict as error:
        if "is in the table" not in str(error):
            raise
        wrote = "behind"  # the other driver has written a later batch
    if chosen == "after":
        kill()
    with open(plan["told"], "a") as told:
        told.write(f"{number} {wrote}\n")
spark.stop()
