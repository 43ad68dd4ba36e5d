"""A cluster whose workers have a Python of their own: the ways to ship the packages, and faults."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import markdown
from systems.spark_cluster import make_python

ROOT = Path(__file__).parents[2]
GUIDE = markdown.PAGES / "guides" / "cluster.md"
SEGMENTS = ROOT / "tests" / "vectors" / "segments"
pytestmark = pytest.mark.systems

HANDLERS = """
def count(state, message, context):
    number = (state or 0) + 1
    context.publish({"number": number})
    return number
"""

# Each function that needs a Python worker, once.
JOB = """
import json, os
from pyspark.sql import SparkSession, functions as F
import msgid
import spark_ext as ids
from handlers import count

spark = SparkSession.builder.config("spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider").getOrCreate()

def cores(batches):
    import msgid
    import pyarrow as pa
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"core": [msgid.backend] * batch.num_rows})

def run(df, name):
    query = df.writeStream.option("checkpointLocation", f"{name}-checkpoint").trigger(availableNow=True)
    query.format("parquet").option("path", os.path.abspath(name)).start().awaitTermination()
    return spark.read.parquet(os.path.abspath(name)).count()

stream = spark.readStream.schema("id string, customer string, at string").json(os.path.abspath("orders"))
stream = stream.withColumn("at", F.to_timestamp("at"))
ids.register(spark)
found = {
    "deduplicate": run(ids.deduplicate(stream, order_by="at", timestamp="at", within="1 day"), "labelled"),
    "process": run(ids.process(stream, "customer", count, timestamp="at"), "handled"),
    "generate_id": spark.range(0, 9, 1, 3).select(ids.generate_id()).distinct().count(),
    "iggy": ids.messages(spark.read.format("iggy").load(os.environ["SEGMENTS"])).count(),
    "cores": [row.core for row in spark.range(0, 9, 1, 3).mapInArrow(cores, "core string").distinct().collect()],
    "driver": msgid.backend,
}
print(json.dumps(found))
"""
ORDERS = [{"id": id, "customer": "a", "at": f"2026-01-01 00:00:0{number}"} for number, id in enumerate("xyx")]
EXPECTED = {"deduplicate": 3, "process": 3, "generate_id": 9, "iggy": 3}


def commands(name):
    """Return the commands of a block of the guide, as a script."""
    (block,) = (block for block in markdown.blocks(GUIDE) if block.mark == "cluster" and block.value == name)
    return block.code if block.language == "python" else "\n".join(line[2:] for line in block.code.splitlines())


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a copy of what an installation of the repository needs."""
    folder = tmp_path_factory.mktemp("sources") / "msgid"
    for name in ("msgid", "spark_ext"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def work(tmp_path, clone):
    """Return the folder in which a user types the commands, next to the clone."""
    (tmp_path / "msgid").symlink_to(clone)
    folder = tmp_path / "work"
    (folder / "orders").mkdir(parents=True)
    (folder / "orders" / "1.json").write_text("".join(json.dumps(order) + "\n" for order in ORDERS))
    (folder / "handlers.py").write_text(HANDLERS)
    (folder / "job.py").write_text(JOB)
    return folder


def typed(cluster, work, script, **environment):
    """Type commands in a folder, with the workers' Python for Spark's workers on the driver too."""
    python = {"PYSPARK_PYTHON": str(cluster.python), "PYSPARK_DRIVER_PYTHON": "python", "SEGMENTS": str(SEGMENTS)}
    return cluster.run(["bash", "-ec", script], cwd=work, timeout=900, **{**python, **environment})


@pytest.mark.parametrize(
    ("way", "core"),
    [
        ("packages", "c"),
        pytest.param("environment", "c", marks=pytest.mark.variants),
        pytest.param("zip", "python", marks=pytest.mark.variants),
    ],
)
def test_each_way_of_the_guide_runs_as_typed(spark_cluster, work, way, core):
    """Every function with a Python worker runs, and the executors have the core that the guide's table names."""
    done = typed(spark_cluster, work, commands(way))
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    driver = seen.pop("driver")
    assert seen == {**EXPECTED, "cores": [core]}
    assert ("CoreNote" in done.stdout + done.stderr) == (driver != core)


FAILS = {
    "nothing shipped": ("spark-submit --py-files handlers.py job.py", r"cannot import msgid: No module named 'msgid'"),
    "a wheel": ("touch msgid.whl && spark-submit --py-files msgid.whl,handlers.py job.py", "Spark ignores a wheel"),
    "no environment where it is submitted": (
        "export PYSPARK_PYTHON=./environment/bin/python; spark-submit --py-files handlers.py job.py",
        "'./environment/bin/python' is missing in",
    ),
    "an older version": (
        "mkdir -p old/msgid && echo \"__version__ = '0.1.9'; backend = 'python'\" > old/msgid/__init__.py\n"
        "spark-submit --conf spark.executorEnv.PYTHONPATH=$PWD/old --py-files handlers.py job.py",
        "has msgid 0.1.9, and the driver has ",
    ),
}


@pytest.mark.variants
@pytest.mark.parametrize(("script", "said"), FAILS.values(), ids=FAILS)
def test_what_cannot_work_is_found_before_the_query_starts(spark_cluster, work, script, said):
    """One line names the missing or ignored file, or the other version."""
    done = typed(spark_cluster, work, script)
    assert done.returncode != 0
    # spark-submit passes on what Python writes to standard error as its standard output, or as standard error.
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "WorkerError: " in line]
    assert len(lines) == 1, done.stderr[-3000:]
    assert said in lines[0]
    assert not (work / "labelled-checkpoint").exists()


UNSHARED = """
import sys
from pyspark.sql import SparkSession
from spark_ext import read_table, write_once
from spark_ext.tables._written_files import MissingRows

spark = SparkSession.builder.getOrCreate()

def slowly(batches):  # so that each worker gets a task
    import time
    for batch in batches:
        time.sleep(1)
        yield batch

rows = spark.range(0, 1000, 1, 6).mapInArrow(slowly, "id bigint")
for format in ("parquet", "delta"):
    for place in ("shared", "unshared"):
        path = f"{sys.argv[1]}/{place}/{format}-table"
        try:
            written = write_once(rows, 0, path, format=format, app_id="orders")
            print(format, place, written, read_table(spark, path).count())
        except MissingRows as error:
            print(format, place, error)
"""


def test_batch_in_a_folder_that_a_worker_does_not_share_is_not_committed(spark_cluster, tmp_path):
    """Spark's own writer reports success, and loses the rows of that worker."""
    if not spark_cluster.hides_folder:
        pytest.skip("a private folder of a worker needs the right to mount")
    (tmp_path / "unshared.py").write_text(UNSHARED)
    done = spark_cluster.submit("unshared.py", str(spark_cluster.folder), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert [line for line in lines if " shared" in line] == ["parquet shared True 1000", "delta shared True 1000"]
    lost = [line for line in lines if " unshared" in line]
    assert len(lost) == 2
    assert all("the tasks wrote 1,000 rows, and the driver sees " in line for line in lost), lost


@pytest.mark.variants
def test_job_of_the_guide_runs_as_typed(spark_cluster, work, clone):
    """The master is that of ``spark-defaults.conf``, also without spark-submit."""
    python = make_python(work / "python")
    script = f"pip install -q --no-deps --target packages {clone}\n"
    settings = f"spark.executorEnv.PYTHONPATH {work}/packages\n"
    configuration = work / "conf"
    shutil.copytree(spark_cluster.configuration, configuration)
    with (configuration / "spark-defaults.conf").open("a") as file:
        file.write(settings)
    there = {"SPARK_CONF_DIR": str(configuration), "PYSPARK_PYTHON": str(python)}
    done = typed(spark_cluster, work, script + commands("job"), **there)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "3 rows of orders" in done.stdout
    command = "python -m spark_ext ids orders --format json --output parsed --overwrite"
    done = typed(spark_cluster, work, command, **there)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "3 rows of orders" in done.stdout
    assert spark_cluster.master.output.count("Registered app msgid") >= 2
    alone = spark_cluster.unshared if spark_cluster.hides_folder else None
    if alone is not None:
        shutil.copytree(work / "orders", alone / "orders")
        done = typed(spark_cluster, work, f"python -m spark_ext ids {alone}/orders --format json --output out", **there)
        # Spark starts a task that failed again, maybe on a worker that has the folder. Then the table is whole.
        if done.returncode == 0:
            assert "3 rows of" in done.stdout
        else:
            assert done.returncode == 1
            assert "Error: " in done.stderr.splitlines()[-1]


CONNECT = """
import os
from pyspark.sql import SparkSession
import spark_ext as ids
from spark_ext._shipping import WorkerError
{block}
print(spark.range(0, 9, 1, 3).select(ids.generate_id()).distinct().count())
spark.conf.set("spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
stream = spark.readStream.schema("id string, at timestamp").json(os.path.abspath("orders"))
try:
    ids.deduplicate(stream, order_by="at", timestamp="at", within="1 day")
except WorkerError as error:
    print(error)
"""


@pytest.mark.variants
def test_artifacts_of_spark_connect_serve_batches_alone(spark_cluster, work):
    """A stream, whose tasks do not get the files, is refused before it starts."""
    server_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ["spark-submit", "--class", server_class, "--conf", "spark.connect.grpc.binding.port=0", "spark-internal"]
    environment = {**spark_cluster.environment, "PYSPARK_PYTHON": str(spark_cluster.python)}
    with (work / "server").open("w") as output:
        server = subprocess.Popen(
            command,
            cwd=work,
            stdout=output,
            stderr=output,
            env={**environment, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
    try:
        port = port_of(server, work)
        block = commands("connect").replace("sc://server:15002", f"sc://127.0.0.1:{port}")
        (work / "client.py").write_text(CONNECT.format(block=block))
        script = commands("zip").splitlines()[0] + "\npython client.py"
        done = typed(spark_cluster, work, script)
        assert done.returncode == 0, done.stderr[-3000:]
        *_, count, refused = done.stdout.splitlines()
        assert count == "9"
        assert "cannot run a stream: Spark does not give it the files of addArtifacts" in refused
    finally:
        server.kill()
        server.wait(60)


def port_of(server, folder):
    """Return the port on which a server of Spark Connect listens."""
    import time

    import psutil

    for _ in range(600):
        assert server.poll() is None, (folder / "server").read_text()[-3000:]
        found = [
            connection.laddr.port
            for connection in psutil.Process(server.pid).net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
        for port in found:
            if _answers(port):
                return port
        time.sleep(0.5)
    raise AssertionError((folder / "server").read_text()[-3000:])


def _answers(port):
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    try:
        grpc.channel_ready_future(channel).result(timeout=2)
    except grpc.FutureTimeoutError:
        return False
    finally:
        channel.close()
    return True
