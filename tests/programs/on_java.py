"""python on_java.py FOLDER TURN CONNINFO: go on where an earlier turn, perhaps on another Java, stopped.

The rows of a turn are those of all earlier turns, one row with other content, and new rows. The content is numbers
whose text depends on the version of Java. The program prints the results as JSON.
"""

import json
import sys
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

folder, turn, conninfo = sys.argv[1], int(sys.argv[2]), sys.argv[3]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
builder = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "1")
spark = builder.config("spark.local.dir", folder).getOrCreate()

NUMBERS = [1e23, 2e23, 2.0e-3, 2.2e-322, 4.35e-7, 1.1e-23, -0.0, float("nan")]
NEW = 3 * len(NUMBERS)
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
SCHEMA = (
    "source string, offset bigint, id string, at timestamp, number double, few array<float>, more struct<x: double>"
)


def row(n, number):
    return "orders", n, f"order-{n}", AT, number, [number, number * 3], (number,)


def rows_of(turn):
    return [row(n, NUMBERS[n % len(NUMBERS)]) for n in range(NEW * turn, NEW * (turn + 1))]


def table_of(rows):
    return spark.createDataFrame(rows, SCHEMA)


known = [row for earlier in range(turn) for row in rows_of(earlier)]
changed = [row(0, 1.5)] if turn else []
table = table_of(known + rows_of(turn))
table_of(known + changed + rows_of(turn)).write.parquet(f"{folder}/in/turn={turn}")
stream = spark.readStream.schema(f"{SCHEMA}, turn int").parquet(f"{folder}/in").where(F.col("turn") == turn)
content = ["number", "few", "more"]
labelled = spark_ext.deduplicate(stream, content=content, timestamp="at", within="1 day", buckets=1)
query = labelled.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
query.start(f"{folder}/out", format="parquet").awaitTermination()
labels = {
    row[0]: row[1]
    for row in spark.read.parquet(f"{folder}/out").where(F.col("turn") == turn).groupBy("delivery").count().collect()
}
written = [
    spark_ext.write_once(table_of(rows_of(batch)), batch, f"{folder}/table", app_id="orders")
    for batch in range(turn + 1)
]
columns = {"source": "source", "offset": "offset", "id": "id"}
made = spark_ext.digest(table_of(rows_of(0)), **columns)
made.write.mode("ignore").parquet(f"{folder}/digest")
carried = spark.read.parquet(f"{folder}/digest")
compared = spark_ext.compare(table_of(rows_of(0)), table_of(rows_of(0)), digests=(carried, made), **columns)
result = {
    "java": spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.specification.version')").first()[0],
    "labels": labels,
    "written": written,
    "rows": spark_ext.read_table(spark, f"{folder}/table").count(),
    # The text of a nested number depends on Java: docs/pages/limits.md.
    "upserted": spark_ext.upsert_postgres(table.drop("few", "more"), conninfo, "orders")._asdict(),
    "compared": compared.counts(),
    "report": json.loads(spark_ext.audit(table_of([*rows_of(0)[1:], rows_of(0)[5]]), **columns).to_json()),
}
print(json.dumps(result))
