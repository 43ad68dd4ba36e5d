#!/bin/sh
# Guess: PyArrow writes a dictionary column of UUIDs to Parquet as it writes one of plain bytes, or refuses it.
# Version: PyArrow 26.0.1.
# Behaviour: `write_table` of a table with this column alone returns without an error, and the file has no rows. Its own
#   reader refuses the schema that PyArrow has stored beside them.
# Output seen on 2026-11-29:
#   bytes: 3 of 3 rows
#   UUIDs: 0 of 3 rows
#   read again: ArrowInvalid
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
cat > "$folder/expected" <<'END'
bytes: 3 of 3 rows
UUIDs: 0 of 3 rows
read again: ArrowInvalid
END
"$folder/venv/bin/python" - "$folder/ids.parquet" > "$folder/seen" <<'END'
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

path = sys.argv[1]
ids = [uuid.UUID(int=number) for number in (1, 2)]
for name, values in {"bytes": pa.array([one.bytes for one in ids], pa.binary(16)), "UUIDs": pa.array(ids, pa.uuid())}.items():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), values)
    pq.write_table(pa.table({"id": column}), path, store_schema=False)
    print(f"{name}: {pq.read_metadata(path).num_rows} of {len(column)} rows")
pq.write_table(pa.table({"id": column}), path)
try:
    print(f"read again: {pq.read_table(path).num_rows} rows")
except pa.ArrowException as error:
    print(f"read again: {type(error).__name__}")
END
cat "$folder/seen"
diff "$folder/expected" "$folder/seen"
