"""All sinks under faults: killed queries, two drivers at once, and lost executors."""

import json
import os
import signal
import subprocess
import sys
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from helpers import vector_files as vectors
from helpers.servers import running_postgres

import spark_ext

pytestmark = [pytest.mark.spark, pytest.mark.kills]

SINKS = ("parquet", "delta", "postgres", "process")
"""The sinks, and `process`, whose outputs are in a table of Parquet."""
KILLED_AT = {
    "parquet": ("before 1", "rows", "mark 1", "marked 1", "rename 1", "renamed 1", "after 1", "before 2"),
    "delta": ("before 1", "files 1", "rows", "written 1", "commit 1", "committed 1", "after 1", "before 2"),
    "process": ("before 1", "rows", "mark 1", "marked 1", "rename 1", "renamed 1", "after 1", "before 2"),
    "postgres": ("before 1", "rows", "copied", "inserted", "committed", "after 1", "before 2", "after 2"),
}


@pytest.fixture(scope="module")
def conninfo():
    with running_postgres() as conninfo:
        yield conninfo


def put(folder, files):
    """Write files, one per micro-batch; return all their rows."""
    rows = []
    (folder / "in").mkdir(parents=True)
    for number in range(files):
        made = [(f"{number}/{n}", n % 2, f"text {n}") for n in range(10)]
        path = folder / "in" / f"{number:02}.json"
        path.write_text("".join(json.dumps(dict(zip(("id", "k", "text"), row, strict=True))) + "\n" for row in made))
        os.utime(path, (1_700_000_000 + number,) * 2)
        rows += made
    return rows


def start(folder, conninfo, queries, who="", **plan):
    """Start the queries in a separate process."""
    program = vectors.PROGRAMS / "sinks_killed.py"
    plan = {"folder": str(folder), "conninfo": conninfo, "master": "local[8]", "queries": queries, "who": who, **plan}
    with (folder / f"log{who}").open("a") as log:
        return subprocess.Popen([sys.executable, str(program), json.dumps(plan)], stdout=log, stderr=log)


def was_killed(process, folder):
    """Wait for a process, and return whether it was killed."""
    code = process.wait(500)
    assert code in (0, -signal.SIGKILL), "".join(log.read_text()[-5000:] for log in folder.glob("log*"))
    return code != 0


def assert_holds(spark, folder, name, conninfo, rows):
    """Check that every reader of a query's sink sees each row once."""
    columns, expected, table = ["id", "k", "text"], sorted(rows), folder / name / "table"
    sink = name.split("-")[0]
    if sink == "postgres":
        with psycopg.connect(conninfo) as connection:
            held = name.replace("-", "_")
            assert sorted(connection.execute(f"SELECT id, k, text FROM {held}").fetchall()) == expected
            assert connection.execute(f"SELECT * FROM {held}_conflicts").fetchall() == []
        return
    table_rows = spark_ext.read_table(spark, str(table))
    if sink == "process":
        made = [(row.key, json.loads(row.body)) for row in table_rows.where("kind = 'new'").collect()]
        for key in ("0", "1"):
            texts = {text for _, k, text in rows if str(k) == key}
            assert {body["text"] for held, body in made if held == key} == texts
            count = sum(str(k) == key for _, k, _ in rows)
            assert sorted(body["number"] for held, body in made if held == key) == [*range(1, count + 1)]
        return
    assert sorted(map(tuple, table_rows.select(*columns).collect())) == expected
    if sink == "delta":
        read = pa.table(DeltaTable(table).to_pyarrow_table())
        assert sorted(zip(*(read[name].to_pylist() for name in columns), strict=True)) == expected


def test_sinks_of_queries_killed_at_any_step_hold_each_row_once(spark, conninfo, tmp_path):
    """Eight queries per sink are each killed at three steps (24 kills per sink), and then run to their end."""
    steps = {f"{sink}-{number}": (sink, number) for sink in SINKS for number in range(8)}
    rows = {name: put(tmp_path / name, 3) for name in steps}
    for life in range(3):
        queries = {name: KILLED_AT[sink][(number + 3 * life) % 8] for name, (sink, number) in steps.items()}
        assert was_killed(start(tmp_path, conninfo, queries), tmp_path)
    assert not was_killed(start(tmp_path, conninfo, dict.fromkeys(steps)), tmp_path)
    for name in steps:
        assert_holds(spark, tmp_path, name, conninfo, rows[name])


def test_sinks_of_two_drivers_at_once_hold_each_row_once(spark, conninfo, tmp_path):
    """Two processes with one checkpoint run the same batches, and commit each batch at the same time."""
    names = [f"{sink}-twice" for sink in SINKS]
    rows = {name: put(tmp_path / name, 3) for name in names}
    for name in names:
        query = json.dumps({"id": str(uuid4())})
        for checkpoint in ("one", "other"):
            (tmp_path / name / checkpoint).mkdir()
            (tmp_path / name / checkpoint / "metadata").write_text(query)
    drivers = [
        start(tmp_path, conninfo, dict.fromkeys(names), who, checkpoint=who, master="local[2]")
        for who in ("one", "other")
    ]
    assert [was_killed(driver, tmp_path) for driver in drivers] == [False, False]
    for name in names:
        assert_holds(spark, tmp_path, name, conninfo, rows[name])


def test_sinks_of_queries_that_lose_executors_hold_each_row_once(spark, conninfo, tmp_path):
    """In each batch an executor ends while it writes, as it commits, or after it; its task runs again."""
    names = [f"{sink}-lost" for sink in SINKS]
    rows = {name: put(tmp_path / name, 2) for name in names}
    plan = {"master": "local-cluster[2,1,1024]", "ends_executors": True}
    assert not was_killed(start(tmp_path, conninfo, dict.fromkeys(names), **plan), tmp_path)
    for name in names:
        assert len(list((tmp_path / name).glob("ended-*"))) == (4 if name.startswith("postgres") else 2)
        assert_holds(spark, tmp_path, name, conninfo, rows[name])
