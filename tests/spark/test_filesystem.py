"""Paths and URLs: every function of the package resolves a path as Spark does."""

import os

import pyarrow.fs as pafs
import pytest
from helpers.sinks import numbers

import spark_ext
from spark_ext import _filesystem
from spark_ext._filesystem import PathError, filesystem, resolve
from spark_ext._settings import settings

pytestmark = pytest.mark.spark

SAME_PLACES = [
    ("s3a://lake/orders", "s3://lake/orders"),
    ("s3n://lake/orders/", "s3://lake/orders"),
    ("S3A://lake//orders/./2026/..", "s3://lake/orders"),
    ("s3a://lake", "s3://lake"),
    ("s3a://lake/", "s3://lake"),
    ("s3a://lake/a%20b?c", "s3://lake/a%20b?c"),
    ("gcs://lake/orders", "gs://lake/orders"),
    ("abfss://c@a.dfs.core.windows.net/orders/", "abfss://c@a.dfs.core.windows.net/orders"),
    ("hdfs://node:8020/orders", "hdfs://node:8020/orders"),
    ("hdfs:///orders", "hdfs:///orders"),
    ("dbfs:/orders/", "dbfs:/orders"),
    ("file:///data/a%20b", "/data/a%20b"),
    ("file:/data/a b", "/data/a b"),
    ("file:///", "/"),
    ("/data//orders/", "/data/orders"),
]


@pytest.mark.parametrize(("path", "place"), SAME_PLACES)
def test_resolve_of_a_path_has_one_form_per_place(path, place):
    """Two spellings of a place resolve to one path, and URLs are not decoded, as in Spark."""
    assert resolve(path) == place


@pytest.mark.parametrize(
    ("path", "kind", "inner"),
    [
        ("s3a://lake/a%20b/", "s3", "lake/a%20b"),
        ("s3://lake", "s3", "lake"),
        ("gs://lake/orders", "gcs", "lake/orders"),
        ("abfss://c@a.dfs.core.windows.net/orders", "abfs", "c/orders"),
        ("file:/data/orders", "local", "/data/orders"),
        ("memory://orders/1", "py::fsspec+memory", "/orders/1"),
    ],
)
def test_filesystem_of_a_url_is_arrows_or_fsspecs(monkeypatch, path, kind, inner):
    """Arrow is used for the schemes that it supports, and fsspec for other schemes."""
    if kind.startswith("py::"):
        pytest.importorskip("fsspec")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # Arrow does not look up the region of a bucket
    files, found = filesystem(path)
    assert (files.type_name, found) == (kind, inner)


def test_filesystem_of_dbfs_is_the_mount_of_databricks(monkeypatch, tmp_path):
    """If the mount of Databricks exists, ``dbfs:`` is a local path."""
    monkeypatch.setattr(_filesystem, "_DBFS", tmp_path)
    assert filesystem("dbfs:/orders") == (pafs.LocalFileSystem(), f"{tmp_path}/orders")


def test_filesystem_of_a_path_without_a_scheme_is_sparks_default(spark, monkeypatch):
    """A path without a scheme is on the default file system of the session."""
    if not hasattr(spark, "_jvm"):
        pytest.skip("Spark Connect does not show Hadoop's settings")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with settings(spark, {"fs.defaultFS": "s3a://lake"}):
        assert resolve("/data/orders/") == "s3://lake/data/orders"
        files, inner = filesystem("/data/orders")
        assert (files.type_name, inner) == ("s3", "lake/data/orders")
        assert resolve("file:///data") == "/data"
    assert resolve("/data/orders") == "/data/orders"


def test_resolve_in_a_worker_reads_hadoops_settings(monkeypatch, tmp_path):
    """A Spark worker does not have a session; it reads Hadoop's configuration folder."""
    monkeypatch.setattr(_filesystem, "_session", lambda: None)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    assert resolve("/data") == "/data"
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert resolve("/data") == "/data"
    entry = "<property><name>fs.defaultFS</name><value>hdfs://node:8020/</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{entry}</configuration>")
    assert resolve("/data") == "hdfs://node:8020/data"
    with pytest.raises(PathError, match="a path on hdfs://node:8020/ must be absolute, got 'data'"):
        resolve("data")


@pytest.mark.parametrize("folder", ["", "/data/", "file:///data/", "s3://lake/"])
def test_path_that_is_not_utf_8_is_refused(spark, folder):
    """Java and Arrow cannot name such a file; Py4J raised an error of its own."""
    name = os.fsdecode(b"M\xe4rz.csv")
    for use in (resolve, filesystem):
        with pytest.raises(PathError, match=r"a path must be UTF-8, got '.*M\\udce4rz\.csv'"):
            use(folder + name)


def test_resolve_of_a_relative_path_is_in_sparks_working_folder(spark, monkeypatch, tmp_path):
    """Spark keeps its working folder when Python changes its own."""
    if not hasattr(spark, "_jvm"):
        pytest.skip("the working folder of a server is not known")
    started = os.getcwd()
    spark_folder = spark._jvm.java.lang.System.getProperty("user.dir")
    monkeypatch.chdir(tmp_path)
    assert resolve("orders") == f"{spark_folder}/orders"
    monkeypatch.chdir(started)


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_write_once_to_a_url_writes_where_spark_reads(spark, tmp_path, format):
    """A URL with '%20' names a folder with these three characters, and a replay finds the batch there."""
    if format == "delta":
        pytest.importorskip("deltalake")
    url = f"file://{tmp_path}/a%20b" if format == "parquet" else f"file://{tmp_path}/a b"
    for expected in (True, False):
        assert spark_ext.write_once(spark.range(3), 0, url, format=format, app_id="w") is expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["a%20b" if format == "parquet" else "a b"]
    assert numbers(spark_ext.read_table(spark, url)) == [0, 1, 2]


@pytest.mark.parametrize("url", ["nosuch://host/orders", "file://host/orders"])
def test_functions_of_a_path_that_nothing_serves_refuse_it(spark, tmp_path, monkeypatch, url):
    """An unsupported scheme is an error before a row is written."""
    monkeypatch.setattr("pyspark.sql.DataFrame.write", property(lambda df: pytest.fail("something was written")))
    calls = [
        lambda: spark_ext.write_once(spark.range(1), 0, url, app_id="w"),
        lambda: spark_ext.write_once(spark.range(1), 0, url, app_id="w", format="delta"),
        lambda: spark_ext.read_table(spark, url),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"nosuch://host/: Arrow does not serve 'nosuch'|must not name a host"):
            call()
