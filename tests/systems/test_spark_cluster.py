"""A cluster whose workers have a Python of their own: the ways to ship the packages, and faults."""

import json

import pytest

pytestmark = pytest.mark.systems

PLACES = """
import json, os, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()

def describe(batches):
    import importlib.util, sys, locale
    import pyarrow as pa
    for batch in batches:
        found = importlib.util.find_spec("msgid")
        time.sleep(1)
        yield pa.RecordBatch.from_pylist([{"folder": os.getcwd(), "python": sys.executable, "msgid": str(found),
                                           "zone": time.tzname[0]}])

rows = spark.range(0, 3, 1, 3).mapInArrow(describe, "folder string, python string, msgid string, zone string")
print(json.dumps([row.asDict() for row in rows.collect()]))
"""


def test_workers_have_a_python_of_their_own_without_msgid(spark_cluster, tmp_path):
    """Each executor runs in a folder of its own, in another time zone than the driver, and lacks msgid."""
    (tmp_path / "places.py").write_text(PLACES)
    done = spark_cluster.submit("places.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    places = json.loads(done.stdout.splitlines()[-1])
    assert {place["msgid"] for place in places} == {"None"}
    assert {place["python"] for place in places} == {str(spark_cluster.python)}
    assert {place["zone"] for place in places} == {"+0545"}
    assert len({place["folder"] for place in places}) == len(places)
