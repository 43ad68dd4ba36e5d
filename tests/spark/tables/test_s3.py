"""The library against a server of the S3 protocol on the loopback interface.

Spark's own client of S3, the JAR hadoop-aws, is not part of PySpark. A small client of the same protocol takes its
place in Spark, so that Spark writes and reads ``s3a://``. Arrow and deltalake use their own clients.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from helpers.servers import running_s3

import msgid
from spark_ext._filesystem import _opened, filesystem

pytestmark = pytest.mark.spark

PROGRAMS = Path(__file__).parents[2] / "programs"


def compiled(folder):
    """Compile the client for Spark, and return the folder of the classes; skip the test without a compiler."""
    import pyspark

    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed")
    jars = Path(pyspark.__file__).parent / "jars"
    classpath = os.pathsep.join(map(str, jars.glob("hadoop-client-*.jar")))
    subprocess.run(["javac", "-d", folder, "-cp", classpath, PROGRAMS / "S3Files.java"], check=True)
    return str(folder)


@pytest.mark.programs
def test_tables_and_sources_on_s3_do_what_they_do_on_a_disk(tmp_path):
    """Batches are written once, and Iggy's segments are read."""
    pytest.importorskip("deltalake")
    classes = compiled(tmp_path)
    with running_s3("lake") as environment:
        command = [sys.executable, str(PROGRAMS / "s3_tables.py"), classes, environment["AWS_ENDPOINT_URL"]]
        package = {"PYTHONPATH": str(Path(msgid.__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **package, **environment})
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "parquet": "cannot write to s3a://lake/parquet table: its store does not rename folders; use format='delta'",
        "delta": [True, True, False, 8],
        "iggy": [[["available", 6]]],
        "messages": 6,
    }


@pytest.mark.details
def test_filesystem_of_s3_takes_keys_as_they_are(monkeypatch):
    """A key with '%20' or '?' is used unchanged, and s3 and s3a are the same store."""
    with running_s3("keys") as environment:  # all servers of a process have the same buckets
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            files, path = filesystem("s3a://keys/a%20b?c=1")
            with files.open_output_stream(path) as file:
                file.write(b"x")
            again, found = filesystem("s3://keys//a%20b?c=1")
            assert again.get_file_info(found).size == 1
            assert [info.path for info in again.get_file_info(pafs.FileSelector("keys"))] == ["keys/a%20b?c=1"]
        finally:
            _opened.cache_clear()
