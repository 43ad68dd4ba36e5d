#!/bin/sh
# Guess: a line of JSON with two objects is a corrupt record of `spark.read.json`, or two rows; in FAILFAST mode it is an
#   error.
# Version: PySpark 4.3.0.
# Behaviour: the row of the first object. The second is lost without a word, in every mode, and also in `from_json`.
# Output seen on 2026-11-29:
#   PERMISSIVE: [('1', None)]
#   FAILFAST: [('1',)]
#   from_json, FAILFAST: ['1']
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0
cat > "$folder/expected" <<'END'
PERMISSIVE: [('1', None)]
FAILFAST: [('1',)]
from_json, FAILFAST: ['1']
END
"$folder/venv/bin/python" - "$folder" > "$folder/seen" 2> "$folder/log" <<'END' || { cat "$folder/log"; exit 1; }
import pathlib
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

path = pathlib.Path(sys.argv[1], "lines.json")
path.write_text('{"id": "1"} {"id": "2"}\n')
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
read = spark.read.schema("id string, _corrupt_record string").json(str(path)).cache()
print("PERMISSIVE:", [tuple(row) for row in read.collect()])
print("FAILFAST:", [tuple(row) for row in spark.read.schema("id string").json(str(path), mode="FAILFAST").collect()])
text = spark.read.text(str(path)).select(F.from_json("value", "id string", {"mode": "FAILFAST"}).alias("read"))
print("from_json, FAILFAST:", [row.read.id for row in text.collect()])
spark.stop()
END
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
