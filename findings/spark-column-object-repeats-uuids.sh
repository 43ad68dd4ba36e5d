#!/bin/sh
# Guess: `uuid()` of PySpark gives new UUIDs in each query, and in each batch of `foreachBatch`.
# Version: PySpark 4.3.0.
# Behaviour: a Column object keeps the seed that it got when it was made. So one object `F.uuid()` in two queries, or in
#   two batches of `foreachBatch`, gives the same UUIDs. `F.expr("uuid()")` gives new ones, and so does `F.uuid()` that is
#   called again.
# Output seen on 2026-11-29:
#   one Column, two queries: 3 UUIDs of 6 rows
#   one Column, two batches of foreachBatch: 3 UUIDs of 6 rows
#   uuid() as text of SQL, two queries: 6 UUIDs of 6 rows
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0
cat > "$folder/expected" <<'END'
one Column, two queries: 3 UUIDs of 6 rows
one Column, two batches of foreachBatch: 3 UUIDs of 6 rows
uuid() as text of SQL, two queries: 6 UUIDs of 6 rows
END
"$folder/venv/bin/python" - "$folder" > "$folder/seen" 2> "$folder/log" <<'END' || { cat "$folder/log"; exit 1; }
import pathlib
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = pathlib.Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def uuids(make, rows=None):
    rows = spark.range(3) if rows is None else rows
    return [row[0] for row in rows.select(make()).collect()]


def tell(name, found):
    print(f"{name}: {len(set(found))} UUIDs of {len(found)} rows")


column = F.uuid()
tell("one Column, two queries", uuids(lambda: column) + uuids(lambda: column))
for number in range(2):
    path = folder / "in" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"n": 1}\n' * 3)
found = []
stream = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
query = stream.writeStream.foreachBatch(lambda batch, number: found.extend(uuids(lambda: column, batch)))
query.trigger(availableNow=True).option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
tell("one Column, two batches of foreachBatch", found)
tell("uuid() as text of SQL, two queries", uuids(lambda: F.expr("uuid()")) + uuids(lambda: F.expr("uuid()")))
spark.stop()
END
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
