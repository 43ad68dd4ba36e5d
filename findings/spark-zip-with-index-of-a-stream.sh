#!/bin/sh
# Guess: `zipWithIndex` of a stream numbers its rows on from one micro-batch to the next, or is refused, as
#   `monotonically_increasing_id` is.
# Version: PySpark 4.3.0.
# Behaviour: it is accepted, and begins at 0 in each micro-batch, without a warning.
# Output seen on 2026-11-29:
#   two micro-batches of 3 rows: [0, 0, 1, 1, 2, 2]
#   monotonically_increasing_id: refused
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0
cat > "$folder/expected" <<'END'
two micro-batches of 3 rows: [0, 0, 1, 1, 2, 2]
monotonically_increasing_id: refused
END
"$folder/venv/bin/python" - "$folder" > "$folder/seen" 2> "$folder/log" <<'END' || { cat "$folder/log"; exit 1; }
import pathlib
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder = pathlib.Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for number in range(2):
    path = folder / "in" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"n": 1}\n' * 3)
stream = spark.readStream.schema("n int").option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def run(rows, name):
    query = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(folder / f"{name}.checkpoint"))
    query.format("parquet").start(str(folder / name)).awaitTermination()
    return spark.read.parquet(str(folder / name))


rows = run(stream.zipWithIndex("place"), "zipped").collect()
print(f"two micro-batches of 3 rows: {sorted(row.place for row in rows)}")
try:
    run(stream.withColumn("place", F.monotonically_increasing_id()), "numbered")
    print("monotonically_increasing_id: accepted")
except AnalysisException:
    print("monotonically_increasing_id: refused")
spark.stop()
END
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
