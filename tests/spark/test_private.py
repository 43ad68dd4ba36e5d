"""Each interface of Spark that is not public is there, and does what its function says."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from spark_ext import _private

pytestmark = pytest.mark.spark


def test_session_knows_hadoops_file_system_and_folder(spark, connect):
    """A classic session gives Hadoop's default file system and Spark's folder; a client of Connect lacks the folder."""
    assert _private.is_classic(spark) == (not connect)
    if connect:
        assert _private.qualified_path(spark, "orders") is None
        return
    assert _private.default_filesystem(spark) == "file:///"
    assert _private.qualified_path(spark, "orders") == f"file:{os.getcwd()}/orders"
    with pytest.raises(_private.Unresolved, match="nowhere"):
        _private.qualified_path(spark, "nowhere://orders")


def test_session_without_a_jvm_is_one_of_connect():
    """A session without Spark's attributes has its own settings alone."""

    class Session:
        class conf:
            get = staticmethod({"fs.defaultFS": "hdfs://node:8020"}.get)

    assert not _private.is_classic(Session())
    assert _private.default_filesystem(Session()) == "hdfs://node:8020"
    assert _private.qualified_path(Session(), "orders") is None


def held_session(master, python, setting):
    """A classic session with a master, the interpreter of its workers, and a setting that names another."""
    context = SimpleNamespace(master=master, pythonExec=python)
    conf = SimpleNamespace(get=lambda name, default: setting)
    return SimpleNamespace(_jsparkSession=None, sparkContext=context, conf=conf)


@pytest.mark.parametrize(
    ("master", "python", "setting", "environment", "expected"),
    [
        ("local[*]", "python3", None, "", sys.executable),
        ("local", "python3", None, "", sys.executable),
        ("local-cluster[2,1,1024]", "python3", None, "", "python3"),
        ("spark://host:7077", "python3", None, "", "python3"),
        ("spark://host:7077", "python3", "/opt/python", "", "python3"),
        ("local[*]", "/opt/python", None, "", "/opt/python"),
        ("local[*]", "python3", "/opt/python", "", "/opt/python"),
        ("local[*]", "python3", "/opt/python", "python3", "python3"),
        ("local[*]", "python3", None, "python3", "python3"),
    ],
)
def test_workers_of_a_local_master_run_this_python_unless_another_is_chosen(
    master, python, setting, environment, expected, monkeypatch
):
    """So an environment that is not activated serves its workers, too."""
    monkeypatch.setenv("PYSPARK_PYTHON", environment)
    session = held_session(master, python, setting)
    _private.use_own_python(session)
    assert session.sparkContext.pythonExec == expected
    _private.use_own_python(None)


PROGRAM = """
import sys
from pyspark.sql import SparkSession
import spark_ext as ids
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config(map=dict.fromkeys(sys.argv[1:], sys.executable)).getOrCreate()
print(spark.range(3).select(ids.generate_id()).distinct().count())
rows = spark.createDataFrame([("orders", offset) for offset in (0, 1, 2, 6, 7, 7)], ["source", "offset"])
print(ids.audit(rows, id=None, source="source", offset="offset").findings.count())
ids.register(spark)
print(spark.sql("SELECT msgid_generate()").count())
"""


@pytest.mark.details
@pytest.mark.parametrize("settings", [[], ["spark.pyspark.python"]])
def test_script_of_an_environment_that_is_not_activated_runs(settings, tmp_path):
    """The ``python3`` of the path lacks the package. A setting may name the environment."""
    python3 = tmp_path / "python3"
    python3.write_text("#!/bin/sh\necho no msgid here >&2\nexit 1\n")
    python3.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment = {**kept, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-c", PROGRAM, *settings]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["3", "2", "1"], done.stderr


def test_watermark_is_found_in_the_plan(spark, tmp_path):
    """The column and its delay; the mark alone, which Spark stores in files too, is not a watermark."""
    stream = spark.readStream.format("rate").load()
    marked = stream.withWatermark("timestamp", "1 minute")
    assert _private.watermark_of(marked) == {"timestamp": 60_000}
    assert _private.watermark_of(marked.select("value")) == {}
    read = spark.readStream.schema(marked.schema).parquet(str(tmp_path))
    assert (read.schema == marked.schema, _private.watermark_of(read)) == (True, None)


@pytest.fixture
def query(spark, tmp_path):
    """Run a stream of two micro-batches; return its ID and the IDs seen inside."""
    (tmp_path / "in").mkdir()
    for name in ("a b", "c"):
        (tmp_path / "in" / name).write_text("x\n")
    seen = []

    def look(batch, number):
        reads = [_private.read_by_batch(batch.sparkSession, one) for one in (number, number, number + 1)]
        seen.append((_private.running_query(batch.sparkSession), *reads))

    running = (
        spark.readStream.option("maxFilesPerTrigger", 1)
        .text(str(tmp_path / "in"))
        .writeStream.foreachBatch(look)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(300)
    return running.id, seen


def test_query_is_known_inside_it_alone(spark, query, connect):
    """``foreachBatch`` knows the query that runs it; no ID is guessed elsewhere, nor over Spark Connect."""
    id, seen = query
    if not connect:
        assert [one[0] for one in seen] == [id, id]
        assert all(read == again and len(read) == 32 and after is None for _, read, again, after in seen)
        assert seen[0][1] != seen[1][1]
    assert _private.running_query(spark) is None
    assert _private.read_by_batch(spark, 0) is None


def test_conditions_and_cause_of_a_file_that_cannot_be_read(spark, tmp_path):
    """The condition is found in a batch and in a stream, and the cause is one line."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.parquet").write_bytes(b"no Parquet")
    with pytest.raises(Exception, match="FAILED_READ_FILE") as batch:
        spark.read.schema("a int").parquet(str(tmp_path / "in")).collect()
    with pytest.raises(StreamingQueryException) as stream:
        stream_of(spark.readStream.schema("a int").parquet(str(tmp_path / "in")), tmp_path)
    for error in (batch.value, stream.value):
        assert any(found.startswith("FAILED_READ_FILE") for found in _private.conditions_of(error))
        assert "\n" not in _private.cause_of(error)
    with pytest.raises(AnalysisException) as missing:
        spark.read.parquet(str(tmp_path / "none"))
    assert "PATH_NOT_FOUND" in _private.conditions_of(missing.value)


def test_error_of_python_is_found_in_that_of_a_stream(spark, tmp_path):
    """The words of an error that `foreachBatch` raised are in the error of the query."""

    def refuse(batch, number):
        raise ValueError(f"buckets must be {number}")

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x").write_text("x\n")
    writer = spark.readStream.text(str(tmp_path / "in")).writeStream.foreachBatch(refuse)
    with pytest.raises(StreamingQueryException) as raised:
        ended(writer, tmp_path)
    assert _private.python_error_in(raised.value, r"ValueError: (buckets .*)") == "buckets must be 0"
    assert _private.python_error_in(raised.value, "(other words)") is None


def test_error_of_java_is_recognized(spark, connect):
    """Py4J's error is one of Java, and no other error is."""
    assert not _private.is_java_error(ValueError("x"))
    if not connect:
        with pytest.raises(Exception, match="For input string") as raised:
            spark._jvm.java.lang.Integer.parseInt("x")
        assert _private.is_java_error(raised.value) or raised.value.getCondition is not None


def stream_of(df, folder):
    ended(df.writeStream.format("noop"), folder)


def ended(writer, folder):
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(300)
