#!/bin/sh
# Guess: Spark interprets the lambda functions of `filter`, `exists` and `transform`, outside of the code of a stage. It
#   has done so since they exist, so a query with many of them may be upgraded without a look at that code.
# Versions: PySpark 4.2.1 and 4.3.0.
# Behaviour: 4.3.0 writes the code of each lambda function into the one method of the stage. Java does not compile a
#   method of more than 8,000 bytecodes, and interprets it. A query with 30 short lambda functions passes that limit, and
#   in 4.2.1 its lambda functions are not in that method.
# Output seen on 2026-11-29:
#   4.2.1: the largest method of the stage has fewer than 1,000 bytecodes
#   4.3.0: the largest method of the stage has more than 8,000 bytecodes
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/expected" <<'END'
4.2.1: the largest method of the stage has fewer than 1,000 bytecodes
4.3.0: the largest method of the stage has more than 8,000 bytecodes
END
cat > "$folder/query.py" <<'END'
import contextlib
import io
import re

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(1).select(F.array(F.struct(F.col("id").cast("string").alias("key"))).alias("headers")).cache()
last = (F.element_at(F.filter("headers", lambda header, n=n: header["key"] == f"name {n}"), -1) for n in range(30))
shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    rows.select(*(column.alias(f"c{n}") for n, column in enumerate(last))).explain("codegen")
largest = max(map(int, re.findall(r"maxMethodCodeSize:(\d+)", shown.getvalue())), default=0)
size = "more than 8,000" if largest > 8_000 else "fewer than 1,000" if largest < 1_000 else f"{largest:,}"
print(f"{pyspark.__version__}: the largest method of the stage has {size} bytecodes")
spark.stop()
END
for version in 4.2.1 4.3.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet "pyspark==$version"
    "$folder/$version/bin/python" "$folder/query.py" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
done > "$folder/seen"
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
