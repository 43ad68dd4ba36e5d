"""The guarantees of IDs under failure: executors lost, queries restarted, batches replayed.

Each test does what one cell of the README's table of IDs and rows says.
"""

import json
import os
import subprocess
import sys

import pytest
from helpers import vector_files as vectors
from pyspark.sql import functions as F

import msgid
import spark_ext

pytestmark = pytest.mark.spark

PARENT = "0156F7E71C361B21BC024CCDBE00000000"


def disturbed(how, trouble, folder, adaptive="true", partitions=8):
    """Run the program that does, and give (number, id) of its rows, and of the same rows read once more.

    None where Spark itself found that the rows are no longer the same, and failed the job.
    """
    folder.mkdir(exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_TESTING"}
    result = subprocess.run(
        [
            sys.executable,
            str(vectors.PROGRAMS / "disturbed.py"),
            how,
            trouble,
            str(folder),
            adaptive,
            str(partitions),
        ],
        capture_output=True,
        text=True,
        env={**environment, "PYSPARK_PYTHON": sys.executable},
        timeout=300,
        cwd=folder,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["done"]
    if "refused" in found:
        return None
    return [tuple(row) for row in found["rows"]], dict(map(tuple, found["again"]))


@pytest.fixture
def classic(connect):
    """The test starts a cluster of its own: once is enough."""
    if connect:
        pytest.skip("starts its own cluster, in classic mode")


@pytest.mark.kills
@pytest.mark.parametrize(
    ("how", "trouble", "adaptive", "partitions"),
    [
        ("position", "executor", "true", 8),
        ("position", "executor", "false", 3),
        ("derive", "executor", "true", 8),
        ("position", "stage", "true", 5),
        ("derive", "speculation", "false", 8),
        ("position", "task", "true", 1),
    ],
)
def test_ids_of_content_when_tasks_run_again_stay_the_same(classic, tmp_path, how, trouble, adaptive, partitions):
    """Ids that follow from the row are the same for every row, however often and wherever it is computed.

    An executor is lost, a stage or a task is run again, a task is run twice at once; adaptive execution is on or off.
    """
    rows, again = disturbed(how, trouble, tmp_path / "run", adaptive, partitions)
    expected = {
        n: str(msgid.position_id("log", n, 0) if how == "position" else msgid.derive_id(PARENT, n))
        for n in range(20_000)
    }
    assert len(rows) == 20_000
    assert dict(rows) == again == expected


@pytest.mark.kills
@pytest.mark.parametrize("trouble", ["executor", "stage", "task", "speculation"])
def test_numbers_assigned_before_a_shuffle_stay_the_same(classic, tmp_path, trouble):
    """Before any shuffle the rows of a partition come in the same order each time, and so do their numbers."""
    rows, again = disturbed("assign before", trouble, tmp_path / "run")
    assert len(rows) == len({id for _, id in rows}) == 20_000
    assert dict(rows) == again


@pytest.mark.kills
def test_numbers_of_sql_have_one_node_when_tasks_run_again(classic, tmp_path):
    """Spark computes the node in a subquery, once before the tasks, and its attempts of a task have that node."""
    rows, _ = disturbed("assign in SQL", "executor", tmp_path / "run")
    assert len(rows) == len({id for _, id in rows}) == 20_000
    assert len({msgid.MessageId(id).node for _, id in rows}) == 1


@pytest.mark.kills
def test_numbers_assigned_after_a_shuffle_change_unless_sorted(classic, tmp_path):
    """After a shuffle, a stage that is run again numbers its rows otherwise: many get another row's id.

    Spark fails the job if it notices that the rows it computed again differ from the rows that were read.
    With ``order_by`` each partition is sorted by a unique key first: then every row keeps its number.
    """
    for attempt in range(3):  # the order in which blocks arrive is chance
        found = disturbed("assign after", "executor", tmp_path / f"after{attempt}")
        if found is None or dict(found[0]) != found[1]:
            break
    else:
        pytest.fail("three times the rows happened to arrive in the same order")
    rows, again = disturbed("assign ordered", "executor", tmp_path / "ordered")
    assert len(rows) == len({id for _, id in rows}) == 20_000
    assert dict(rows) == again


def put(folder, number, values):
    """Put a file of JSON lines into a folder as a whole, as a stream's source must be fed."""
    folder.mkdir(exist_ok=True)
    partial = folder.parent / f"{number}.partial"
    partial.write_text("".join(json.dumps(value) + "\n" for value in values))
    partial.rename(folder / f"{number}.json")


def stream_once(spark, tmp_path, attempt):
    """Run the query from its checkpoint over the new rows; return the written rows."""
    out = str(tmp_path / f"out{attempt}")

    def write(batch, batch_id):
        batch.write.mode("append").parquet(out)

    query = (
        spark.readStream.schema("n bigint")
        .json(str(tmp_path / "in"))
        .select(
            "n",
            spark_ext.position_id(F.lit("log"), "n", F.lit(0)).alias("position"),
            spark_ext.derive_id(F.lit(PARENT), "n").alias("derived"),
            spark_ext.generate_id().alias("generated"),
        )
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(write)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return {row.n: row for row in spark.read.parquet(out).collect()}


def test_stream_stopped_restarted_and_replayed_has_the_same_ids(spark, tmp_path):
    """Positions and offspring are the same in every run; generated ids are new, and never come twice.

    The last micro-batch is replayed as after a crash between writing and committing: its commit is removed.
    """
    put(tmp_path / "in", 1, [{"n": n} for n in range(100)])
    first = stream_once(spark, tmp_path, 1)
    put(tmp_path / "in", 2, [{"n": n} for n in range(100, 200)])
    second = stream_once(spark, tmp_path, 2)
    assert (set(first), set(second)) == (set(range(100)), set(range(100, 200)))

    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    replayed = stream_once(spark, tmp_path, 3)
    assert set(replayed) == set(second)

    for run in (first, second, replayed):
        for n, row in run.items():
            assert row.position == str(msgid.position_id("log", n, 0))
            assert row.derived == str(msgid.derive_id(PARENT, n))
    generated = [row.generated for run in (first, second, replayed) for row in run.values()]
    assert len(set(generated)) == len(generated) == 300


def test_union_with_itself_repeats_numbers_made_before_it(spark):
    """Why to assign after a union: a DataFrame that was numbered before it is numbered alike on both sides."""
    rows = spark.range(100, numPartitions=2)
    before = rows.withColumn("new", spark_ext.assign_id("run", 0))
    assert before.union(before).select("new").distinct().count() == 100
    assert rows.union(rows).withColumn("new", spark_ext.assign_id("run", 0)).select("new").distinct().count() == 200
