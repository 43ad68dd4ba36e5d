"""Older versions of Spark: one-line errors for functions that they cannot run, and pandas UDFs for Arrow UDFs."""

import subprocess
import sys

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as F

import msgid
import spark_ext
from spark_ext import _compat
from spark_ext.columns.udfs import outcomes

pytestmark = pytest.mark.spark

MESSAGE = pa.struct(
    [
        pa.field("number", pa.int64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("attributes", pa.map_(pa.string(), pa.binary())),
        pa.field("inner", pa.struct([pa.field("names", pa.list_(pa.string()))])),
    ]
)


def reader():
    """Return a function that reads bytes to a message with fields of every kind; two bytes are malformed.

    It is defined in a function because a worker of Spark cannot import this module.
    """

    def read(raw):
        if len(raw) == 2:
            raise msgid.InvalidMessage("two bytes", 0)
        text = raw.hex()
        return {
            "number": 2**62 + len(raw),
            "at": 1_700_000_000_000_001,
            "attributes": [(text, raw)] if raw else [],
            "inner": {"names": [text, None]} if len(raw) > 3 else None,
        }

    return read


def in_python(program, version):
    """Run a program in a process where PySpark has a version; return its last line of output or errors."""
    start = f"import pyspark; pyspark.__version__ = {version!r}; import spark_ext\n"
    result = subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, check=False)
    return (result.stdout + result.stderr).strip().splitlines()[-1]


@pytest.mark.details
def test_functions_on_spark_3_5_raise_one_line_when_they_are_called():
    """A function that needs Spark 4 can be imported; its call names the version that it needs."""
    program = "from spark_ext import register, process, is_expired, deduplicate; print('imported')\n"
    assert in_python(program, "3.5.9") == "imported"
    assert in_python(program + "register(None)", "3.5.9") == (
        "NotImplementedError: register needs Spark 4.0 or later, got 3.5.9"
    )
    assert in_python(program + "print(register.__module__)", "4.0.0") == "spark_ext.sql.registration"


def test_a_stream_of_iggy_before_spark_4_2_raises_one_line(monkeypatch):
    """The batch reader works on every version of Spark 4."""
    from spark_ext.formats.iggy_source import IggyDataSource

    source = IggyDataSource({"path": "/segments"})
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    with pytest.raises(NotImplementedError, match=r'a stream of format\("iggy"\) needs Spark 4.2 or later, got 4.1.4'):
        source.streamReader(None)


@pytest.mark.parametrize("found", ["3.5.9", "4.0.2", "4.1.0.dev3", "4.10.1+databricks.2"])
def test_version_of_pyspark_is_two_numbers(monkeypatch, found):
    """Suffixes of development versions and of vendors do not matter."""
    monkeypatch.setattr(pyspark, "__version__", found)
    assert _compat.version() == tuple(map(int, found.split(".")[:2]))


def test_pandas_udfs_give_the_values_of_arrow_udfs(spark, monkeypatch):
    """Before Spark 4.1, pandas UDFs give the same structs, maps, arrays, timestamps, large integers and NULLs."""
    df = spark.createDataFrame([(b"",), (b"ab",), (b"abc",), (b"abcdef",), (None,)], "raw binary")
    read = reader()

    def rows():
        return df.select(
            outcomes(read, MESSAGE, "raw").alias("one"),
            outcomes(lambda raw: [read(raw)] * 2 if len(raw) != 2 else [], pa.list_(MESSAGE), "raw").alias("many"),
        ).collect()

    now = rows()
    monkeypatch.setattr(_compat, "_ARROW_UDF", (99, 0))
    assert rows() == now
    assert [row.one.value and row.one.value.number for row in now] == [2**62, None, 2**62 + 3, 2**62 + 6, None]


def test_pandas_udfs_of_several_columns_keep_integers_and_nulls(spark, monkeypatch):
    """A column of integers with NULL does not become one of floating-point numbers."""
    monkeypatch.setattr(_compat, "_ARROW_UDF", (99, 0))
    df = spark.createDataFrame([(2**62 + 1, "a"), (None, "b"), (3, None)], "n bigint, text string")

    def joined(numbers, texts):
        return pa.array([f"{n} {text}" for n, text in zip(numbers.to_pylist(), texts.to_pylist(), strict=True)])

    made = _compat.arrow_column(joined, pa.string(), F.col("n"), F.col("text"))
    assert {row[0] for row in df.select(made).collect()} == {f"{2**62 + 1} a", "None b", "3 None"}


def test_pandas_udf_of_generate_id_makes_different_ids(spark, monkeypatch):
    """Before Spark 4.1 `generate_id` is a pandas UDF."""
    monkeypatch.setattr(_compat, "_ARROW_UDF", (99, 0))
    made = [msgid.MessageId(row[0]) for row in spark.range(1000).select(spark_ext.generate_id()).collect()]
    assert len(set(made)) == 1000
