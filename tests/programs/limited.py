"""python limited.py WAY FOLDER ROWS MEGABYTES [CONNINFO]: one batch of rows in one task, with a limit on its worker.

WAY is ``process``, ``deduplicate`` or ``upsert``. The program prints the counts of the result as JSON.
"""

import json
import sys
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext
from spark_ext.streaming._state_store import PROVIDER, ROCKSDB

way, folder, rows, limit, *conninfo = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(PROVIDER, ROCKSDB)
builder = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "1")
builder = builder.config("spark.executor.pyspark.memory", f"{limit}m")
spark = builder.config("spark.local.dir", folder).getOrCreate()


def count(state, message, context):
    after = (state or 0) + 1
    context.publish({"count": after})
    return after


number = F.when(F.col("id") % 10 == 9, F.col("id") - 5).otherwise(F.col("id"))
messages = spark.range(0, int(rows), 1, 4).select(
    F.concat(F.lit("order-"), number.cast("string")).alias("id"),
    F.concat(F.lit("key "), F.pmod(number, F.lit(5000)).cast("string")).alias("key"),
    F.timestamp_seconds(F.lit(1_800_000_000) + number).alias("at"),
    F.repeat(F.lit("payload "), 25).alias("payload"),
)
messages.write.parquet(f"{folder}/in")
if way == "upsert":
    table = spark.read.parquet(f"{folder}/in").coalesce(1)
    print(json.dumps(spark_ext.upsert_postgres(table, conninfo[0], "limited")._asdict()))
    sys.exit()
cloudpickle.register_pickle_by_value(sys.modules[__name__])
stream = spark.readStream.schema(messages.schema).parquet(f"{folder}/in")
if way == "process":
    made, label = spark_ext.process(stream, "key", count, timestamp="at", buckets=1), "kind"
else:
    made, label = spark_ext.deduplicate(stream, timestamp="at", within="1 day", buckets=1), "delivery"
query = made.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
query.start(f"{folder}/out", format="parquet").awaitTermination()
assert len(list(Path(f"{folder}/checkpoint/commits").glob("[0-9]*"))) == 1
found = spark.read.parquet(f"{folder}/out").groupBy(label).count().collect()
print(json.dumps({row[0]: row[1] for row in found}))
