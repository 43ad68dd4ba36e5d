"""All sinks under trouble: a query that is killed, two drivers at once, an executor that is lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from helpers import vector_files as vectors
from helpers.servers import running_postgres

import spark_ext

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS = 13  # of one batch


@pytest.fixture(scope="module")
def server():
    with running_postgres() as conninfo:
        yield conninfo


@pytest.fixture
def conninfo(server):
    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS killed, killed_conflicts")
    return server


def put(folder, first, last):
    """Add a file per number, each a micro-batch; return all its rows."""
    rows = []
    for number in range(first, last):
        made = [(f"{number}/{n}", n % 2, f"text {n}") for n in range(10)]
        path = folder / "in" / f"{number:02}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(dict(zip(("id", "k", "text"), row, strict=True))) + "\n" for row in made))
        os.utime(path, (1_700_000_000 + number,) * 2)
        rows += made
    return rows


def start(folder, conninfo, kill_at="never", master="local[2]", checkpoint="checkpoint"):
    """Start the query in a process of its own."""
    program = vectors.PROGRAMS / "sinks_killed.py"
    with (folder / f"log-{checkpoint}").open("a") as log:
        return subprocess.Popen(
            [sys.executable, str(program), str(folder), checkpoint, str(kill_at), master, conninfo],
            stdout=log,
            stderr=log,
        )


def was_killed(process, folder):
    """Wait for a query, and return whether it ended itself."""
    code = process.wait(400)
    assert code in (0, -signal.SIGKILL), "".join(log.read_text()[-5000:] for log in folder.glob("log-*"))
    return code != 0


def assert_holds(spark, folder, conninfo, rows):
    """Check that every reader of every sink sees each row once."""
    columns = ["id", "k", "text"]
    expected = sorted(rows)
    for read in (spark.read.parquet(f"{folder}/parquet"), spark_ext.read_table(spark, f"{folder}/delta")):
        assert sorted(map(tuple, read.select(*columns).collect())) == expected
    delta = pa.table(DeltaTable(folder / "delta").to_pyarrow_table())
    assert sorted(zip(*(delta[name].to_pylist() for name in columns), strict=True)) == expected
    with psycopg.connect(conninfo) as connection:
        assert sorted(connection.execute("SELECT id, k, text FROM killed").fetchall()) == expected
        assert connection.execute("SELECT * FROM killed_conflicts").fetchall() == []


def test_sinks_of_a_query_killed_at_any_step_hold_each_row_once(spark, conninfo, tmp_path):
    """Over twenty times in one query's life after another, seeded; then it runs to its end."""
    chance = random.Random(20261122)
    rows, kills = [], 0
    while kills < 20:
        rows += put(tmp_path, len(rows) // 10, len(rows) // 10 + 1)
        while was_killed(start(tmp_path, conninfo, chance.randint(1, STEPS)), tmp_path):
            kills += 1
    assert not was_killed(start(tmp_path, conninfo), tmp_path)
    assert_holds(spark, tmp_path, conninfo, rows)


def test_sinks_of_two_drivers_at_once_hold_each_row_once(spark, conninfo, tmp_path):
    """Two processes with the same query's checkpoint run the same batches at the same time."""
    rows = put(tmp_path, 0, 1)
    assert not was_killed(start(tmp_path, conninfo), tmp_path)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    rows += put(tmp_path, 1, 4)
    drivers = [start(tmp_path, conninfo, checkpoint=name) for name in ("checkpoint", "copy")]
    assert [was_killed(driver, tmp_path) for driver in drivers] == [False, False]
    assert_holds(spark, tmp_path, conninfo, rows)


def test_sinks_of_a_query_that_loses_executors_hold_each_row_once(spark, conninfo, tmp_path):
    """An executor ends while it writes, once per sink; its tasks run again on another."""
    rows = put(tmp_path, 0, 2)
    assert not was_killed(start(tmp_path, conninfo, "executor", "local-cluster[2,1,1024]"), tmp_path)
    assert len(list(tmp_path.glob("ended-*"))) == 3
    assert_holds(spark, tmp_path, conninfo, rows)
