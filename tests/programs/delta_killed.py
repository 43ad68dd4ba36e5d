"""python delta_killed.py PLAN: write batches to a Delta table, and be killed at one of them.

PLAN is JSON: the ``path`` of the table, the ``way`` (catalog or deltalake), the number of ``batches``, and the ``step``
at which the process kills itself in the batch ``batch``, or null: before it, during it after ``delay`` seconds, after
its commit and before `write_once` returns, or after it. ``told`` is a file for what `write_once` returned.
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
from spark_ext.tables import _delta_catalog, delta

plan = json.loads(sys.argv[1])
builder = killing.session("local[2]").config("spark.databricks.delta.snapshotPartitions", "1")
if plan["way"] == "deltalake":
    builder = builder.config("spark.sql.catalog.spark_catalog", "builtin")
spark = builder.getOrCreate()
assert _delta_catalog.has_catalog(spark) == (plan["way"] == "catalog")
running = {}


def kill():
    """Kill the JVM and this process."""
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_after(module, name):
    """Kill the process after a function of a module has run in the batch of the plan."""
    function = getattr(module, name)

    def run(*arguments, **options):
        value = function(*arguments, **options)
        if plan["step"] == "committed" and running["batch"] == plan["batch"]:
            kill()
        return value

    setattr(module, name, run)


killed_after(_delta_catalog, "save")
killed_after(delta, "_commit")
for number in range(plan["batches"]):
    running["batch"] = number
    chosen = plan["step"] if number == plan["batch"] else None
    if chosen == "before":
        kill()
    if chosen == "during":
        threading.Timer(plan["delay"], kill).start()
    rows = spark.range(10 * number, 10 * number + 10)
    wrote = spark_ext.write_once(rows, number, plan["path"], format="delta", app_id="a")
    if chosen == "after":
        kill()
    with open(plan["told"], "a") as told:
        told.write(f"{number} {wrote}\n")
spark.stop()
