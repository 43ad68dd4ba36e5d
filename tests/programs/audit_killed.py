"""Audit a table on two executors, kill one at each action, and print how many reports were the same. Not a test.

python audit_killed.py FOLDER WAY ADAPTIVE KILLS

WAY is where the rules run: ``driver``, or ``spread`` over Python workers. ``checkpoint`` is ``spread`` with a folder of
checkpoints.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Lock

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.auditing import _generators, _id_facts, _log_blocks, _small_table

ROWS, GENERATORS, LOGS = 20_000, 5, 10
SECONDS = 1_795_219_200
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A killed executor does not answer again.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}


def messages(spark, path):
    """Write messages, some of them lost and some repeated, and return them as read back."""
    n = F.col("id")

    def digits(value, length):
        return F.substring(F.hex(value.bitwiseOR(1 << 4 * length)), 2, length)

    second, sequence = F.lit(SECONDS) + F.floor(n / 1000), F.floor(n / GENERATORS).cast("bigint")
    id = F.concat(
        F.lit("0100163E0000"), digits(n % GENERATORS, 2), F.lit("0001"),
        digits((second - 1_609_459_200).cast("bigint"), 8), digits(sequence, 8),
    )  # fmt: skip
    columns = {
        "source": (n % LOGS).cast("string"),
        "offset": F.floor(n / LOGS),
        "timestamp": F.timestamp_seconds(second),
    }
    rows = spark.range(0, ROWS, 1, 4).select(id.alias("id"), *(value.alias(name) for name, value in columns.items()))
    rows = rows.where("offset % 977 != 5")
    rows.unionByName(rows.where("offset % 813 = 7")).write.parquet(path)
    return spark.read.parquet(path)


def executors(spark):
    """The processes of the executors."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "CoarseGrainedExecutorBackend" in line:
            found.append(process.pid)
    return sorted(found)


def main(folder, way, adaptive, kills):
    """Audit once in peace, then once for each kill."""
    _small_table.SMALL_ROWS = 0
    if way != "driver":
        for module in (_generators, _id_facts, _log_blocks):
            module.MOST = dict.fromkeys(module.MOST, 0)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(
        "spark.local.dir", str(Path(folder) / "local")
    )
    for name, value in {**SETTINGS, "spark.sql.adaptive.enabled": adaptive}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if way == "checkpoint":
        spark.sparkContext.setCheckpointDir(str(Path(folder) / "checkpoints"))
    df = messages(spark, str(Path(folder) / "table"))
    columns = {"source": "source", "offset": "offset"} | ({} if way == "driver" else {"timestamp": "timestamp"})
    actions, fatal, killed, lock = 0, 0, 0, Lock()

    def disturbed(action):
        def called(*arguments, **options):
            nonlocal actions, killed
            with lock:  # an audit has two threads
                actions += 1
                is_fatal = actions == fatal
            if is_fatal:
                running = executors(spark)
                os.kill(running[fatal % len(running)], signal.SIGKILL)
                killed += 1
            return action(*arguments, **options)

        return called

    for name in ("collect", "count", "toArrow", "take", "persist", "localCheckpoint", "checkpoint"):
        setattr(type(df), name, disturbed(getattr(type(df), name)))
    expected = spark_ext.audit(df, **columns).to_json()
    assert json.loads(expected)["findings"]
    actions = 0  # the first audit of a session looks at the workers, too
    assert spark_ext.audit(df, **columns).to_json() == expected
    total, same = actions, 0
    for number in range(kills):
        while len(executors(spark)) < 2:
            time.sleep(0.1)
        actions, fatal = 0, 1 + number * (total - 1) // max(kills - 1, 1)
        same += spark_ext.audit(df, **columns).to_json() == expected
        print(f"killed at action {fatal} of {total}: {same} of {number + 1} reports are the same", flush=True)
    spark.stop()
    print(json.dumps({"killed": killed, "same": same}))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
