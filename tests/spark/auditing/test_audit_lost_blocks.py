"""An audit goes on if the rows that it keeps between its queries are lost with an executor."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import vector_files as vectors
from helpers.clusters import simulated
from pyspark.sql import functions as F

import msgid.audit
import spark_ext
from spark_ext.auditing import _generators, _id_facts, _log_blocks, _small_table
from spark_ext.auditing._kept import Kept, keeping

pytestmark = pytest.mark.spark

PLACES = {"source": "source", "offset": "offset"}
DETAILS = {**PLACES, "timestamp": "timestamp", "landed": "landed", "content": "content"}


@pytest.fixture
def classic(connect):
    """The test looks at the blocks of Spark's JVM."""
    if connect:
        pytest.skip("Spark Connect hides the blocks")


@pytest.fixture
def large(monkeypatch):
    """Audit a table of any size as a large one, which keeps the most rows."""
    monkeypatch.setattr(_small_table, "SMALL_ROWS", 0)
    for module in (_generators, _id_facts, _log_blocks):
        monkeypatch.setattr(module, "MOST", dict.fromkeys(module.MOST, 0))


def is_empty(spark):
    """Whether no rows are kept."""
    return spark._jsparkSession.sharedState().cacheManager().isEmpty()


def losing_blocks(spark, monkeypatch):
    """Drop all blocks of RDDs before each action, as if all executors were lost; return the numbers of the RDDs."""
    context, kept = spark.sparkContext._jsc, set()

    def before(action):
        def called(df, *arguments, **options):
            kept.update(context.getPersistentRDDs().keySet())
            for rdd in kept:
                context.sc().unpersistRDD(rdd, True)
            return action(df, *arguments, **options)

        return called

    frame = type(spark.range(1))
    for name in ("collect", "count", "toArrow"):
        monkeypatch.setattr(frame, name, before(getattr(frame, name)))
    return kept


@pytest.mark.details
@pytest.mark.parametrize("columns", [PLACES, DETAILS], ids=["places", "all"])
def test_audit_whose_kept_rows_are_lost_has_the_same_report(classic, spark, tmp_path, monkeypatch, large, columns):
    """The audit begins again, and Spark computes lost rows again; after the audit, nothing is kept."""
    table = pa.table(simulated(3).columns())
    pq.write_table(table, tmp_path / "table.parquet", coerce_timestamps="us")
    lost = losing_blocks(spark, monkeypatch)
    report = spark_ext.audit(spark.read.parquet(str(tmp_path / "table.parquet")), **columns)
    assert lost
    assert report.to_json() == msgid.audit.audit_table(table, **columns).to_json()
    assert is_empty(spark)


@pytest.mark.details
def test_audit_begins_again_once_if_a_local_checkpoint_is_lost(classic, spark, monkeypatch):
    """The second time, the loss of rows costs their computation alone."""
    ways = []

    def work(kept):
        ways.append(kept)
        rows = kept.keep(spark.range(3))
        return [rows.count() for _ in range(3)]

    assert losing_blocks(spark, monkeypatch) == set()
    assert keeping(work) == [3, 3, 3]
    assert len(ways) == 2


def test_other_errors_of_an_audit_do_not_begin_it_again(spark):
    """An error of the rows comes at once."""
    calls = []

    def work(kept):
        calls.append(kept)
        return kept.keep(spark.range(3).select(F.raise_error(F.lit("wrong row")))).count()

    with pytest.raises(Exception, match="wrong row"):
        keeping(work)
    assert len(calls) == 1


@pytest.mark.details
def test_rows_are_kept_for_one_audit_alone(spark, tmp_path):
    """An audit does not read the rows that another one of the same folder keeps: they may be older."""
    path = str(tmp_path / "table")
    spark.range(3).write.parquet(path)
    with Kept(survives=True) as kept, Kept(survives=True) as later:
        assert kept.keep(spark.read.parquet(path)).count() == 3
        spark.range(2).write.mode("append").parquet(str(tmp_path / "other"))
        for file in (tmp_path / "other").glob("part-*"):
            os.rename(file, tmp_path / "table" / f"later-{file.name}")
        assert later.keep(spark.read.parquet(path)).count() == 5
    assert spark.read.parquet(path).count() == 5


def test_rows_of_an_audit_that_fails_are_not_kept(classic, spark):
    """An error ends the audit, and its rows leave the memory of the executors."""

    def fail():
        with Kept(survives=True) as kept:
            kept.keep(spark.range(3)).count()
            assert not is_empty(spark)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert is_empty(spark)


def test_rows_are_in_the_checkpoint_folder_if_one_is_set(classic, spark, tmp_path, monkeypatch):
    """With a checkpoint folder, the loss of an executor does not cost a computation: the rows are in the folder."""
    monkeypatch.setattr(type(spark.sparkContext), "getCheckpointDir", lambda context: str(tmp_path))
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    with Kept(survives=True) as kept:
        rows = kept.keep(spark.range(3))
        assert list(tmp_path.rglob("part-*"))
        assert is_empty(spark)
        assert rows.agg(F.sum("id")).collect()[0][0] == 3


@pytest.mark.kills
@pytest.mark.parametrize("way", ["driver", "spread", "checkpoint"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_audit_whose_executors_are_killed_has_the_same_report(classic, tmp_path, way, adaptive):
    """One executor of each of ten audits is killed, each time at another action."""
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_TESTING"}
    program = str(vectors.PROGRAMS / "audit_killed.py")
    result = subprocess.run(
        [sys.executable, program, str(tmp_path), way, adaptive, "10"],
        capture_output=True,
        text=True,
        env={**environment, "PYSPARK_PYTHON": sys.executable},
        timeout=1800,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["killed"] == 10
    assert found["same"] == 10
