"""Find lost and repeated messages by queries of DuckDB, as a person writes them: the rival of `bench/audit.py`.

python bench/audit_by_hand.py audit FILE KEY MEMORY FOLDER
python bench/audit_by_hand.py compare FILE SENT MEMORY FOLDER
python bench/audit_by_hand.py digest FILE MEMORY FOLDER

KEY is the column of IDs, or the columns of a position. MEMORY is DuckDB's limit, and FOLDER has its temporary files.
The program prints the numbers that it found as JSON.
"""

import json
import sys

import duckdb

work, path, *more, memory, folder = sys.argv[1:]
db = duckdb.connect(config={"temp_directory": folder, **({"memory_limit": memory} if memory else {})})
if work == "audit":
    logs = db.execute(
        f"""
        SELECT topic, partition, count(*), min("offset"), max("offset"), min("timestamp"), max("timestamp")
        FROM '{path}' GROUP BY topic, partition ORDER BY topic, partition
        """
    ).fetchall()
    repeated = db.execute(
        f"SELECT {more[0]}, count(*) AS copies FROM '{path}' GROUP BY {more[0]} HAVING count(*) > 1"
    ).fetchall()
    missing = db.execute(
        f"""
        SELECT topic, partition, "offset" + 1, following - 1, following - "offset" - 1
        FROM (
            SELECT topic, partition, "offset",
                lead("offset") OVER (PARTITION BY topic, partition ORDER BY "offset") AS following
            FROM '{path}'
        )
        WHERE following > "offset" + 1 ORDER BY topic, partition, "offset"
        """
    ).fetchall()
    numbers = {
        "rows": sum(row[2] for row in logs),
        "lost": sum(row[-1] for row in missing),
        "repeated": sum(row[-1] - 1 for row in repeated),
    }
elif work == "compare":
    lost = db.execute(
        f"""
        SELECT topic, partition, "offset" FROM '{more[0]}' AS sent
        ANTI JOIN '{path}' AS landed USING (topic, partition, "offset") ORDER BY topic, partition, "offset"
        """
    ).fetchall()
    numbers = {"lost": len(lost)}
else:
    blocks = db.execute(
        f"""
        SELECT topic, partition, "offset" // 65536, count(*), min("offset"), max("offset"), min("timestamp"),
            max("timestamp"), bit_xor(hash("offset")), sum(hash("offset"))
        FROM '{path}' GROUP BY topic, partition, "offset" // 65536 ORDER BY topic, partition, "offset" // 65536
        """
    ).fetchall()
    numbers = {"rows": sum(row[3] for row in blocks)}
print(json.dumps(numbers))
