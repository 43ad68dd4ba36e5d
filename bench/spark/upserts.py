"""`upsert_postgres` beside a bare COPY of text that was made before, into a table with the same key.

python bench/spark/upserts.py [--rows 1000000] [--rounds 3] [--large 20000000] [--postgres "host=... dbname=..."]

Without ``--postgres``, an installed server is started in a temporary folder. Both sides use two connections, and take
turns. The time of a side depends on the load of the machine, and the CPU time of all processes does not, so the table
has both. With ``--large``, rows with random keys are written into a table with as many rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_ext

sys.path.insert(0, str(Path(__file__).parent.parent))
from processing import server, verdict
from rounds import machine, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

GOAL = 1.5
"""Goal: the maximum time of `upsert_postgres`, relative to a bare COPY."""
GOAL_LARGE = 1.3
"""Goal: the maximum time per row in the large table, relative to a table with a million rows."""
COLUMNS = "id text PRIMARY KEY, place bigint, at timestamptz, payload text"
PARTS = 2


def rows(spark: SparkSession, start: int, number: int, *, random: bool = False) -> DataFrame:
    """Return rows with ascending or random keys."""
    offset = F.col("id")
    log, at = F.lit("kafka://orders/3"), F.timestamp_seconds(F.lit(1_795_219_200) + F.floor(offset / 1000))
    id = F.expr("sha2(CAST(id AS STRING), 224)") if random else spark_ext.position_id(log, "id", at)
    payload = F.sha2(F.concat(F.lit("p"), offset.cast("string")), 256)
    return spark.range(start, start + number, 1, PARTS).select(
        id.alias("id"), offset.alias("place"), at.alias("at"), payload.alias("payload")
    )


def stored(df: DataFrame, path: str) -> DataFrame:
    """Write rows to files, and return them as they are read again."""
    df.write.parquet(path)
    return df.sparkSession.read.parquet(path)


def texts(df: DataFrame) -> list[list[bytes]]:
    """Return the lines of a COPY, in as many parts as there are connections."""
    lines = df.select(F.concat_ws("\t", "id", "place", F.concat(F.col("at").cast("string"), F.lit("+00")), "payload"))
    rows = [row[0] for row in lines.collect()]
    size = -(-len(rows) // PARTS)
    parts = [rows[index : index + size] for index in range(0, len(rows), size)]
    return [
        ["".join(f"{line}\n" for line in part[at : at + 10_000]).encode() for at in range(0, size, 10_000)]
        for part in parts
    ]


def copy(address: str, parts: list[list[bytes]], name: str) -> None:
    """Copy text by one connection per part, in threads that only wait."""

    def one(part: list[bytes]) -> None:
        command = f"COPY {name} FROM STDIN"
        with psycopg.connect(address) as connection, connection.cursor() as cursor, cursor.copy(command) as copying:
            for text in part:
                copying.write(text)

    threads = [threading.Thread(target=one, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cpu_seconds(address: str) -> float:
    """Return the CPU time of this process, its children and the server, also of processes that have ended."""
    with psycopg.connect(address) as connection:
        folder = connection.execute("SHOW data_directory").fetchone()[0]  # type: ignore[index]
    roots = {os.getpid(), int(Path(folder, "postmaster.pid").read_text().split()[0])}
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    while new := {pid for pid, parent in parents.items() if parent in roots} - roots:
        roots |= new
    return sum(ticks.get(pid, 0) for pid in roots) / os.sysconf("SC_CLK_TCK")


def measured(address: str, work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of a call, and its CPU seconds."""
    cpu, start = cpu_seconds(address), time.perf_counter()
    work()
    return time.perf_counter() - start, cpu_seconds(address) - cpu


def ran(address: str, *statements: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def count_rows(batches: Any) -> Any:
    """Read the rows in the workers, and do nothing with them."""
    import pyarrow as pa

    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def beside_copy(spark: SparkSession, address: str, number: int, rounds: int, folder: str) -> str:
    """Return the times of new, present and mixed rows beside those of a bare COPY."""
    df = stored(rows(spark, 0, number), f"{folder}/rows")
    half = df.where("place % 2 = 0").cache()
    half.count()
    text = texts(df)
    ways: dict[str, Callable[[], Any]] = {
        "a bare COPY": lambda: copy(address, text, "bare"),
        "mapInArrow that drops the rows": lambda: df.mapInArrow(count_rows, "n long").collect(),
        "upsert_postgres: all new": lambda: spark_ext.upsert_postgres(df, address, "upserted"),
        "upsert_postgres: all present": lambda: spark_ext.upsert_postgres(df, address, "upserted"),
        "upsert_postgres: half new": lambda: spark_ext.upsert_postgres(df, address, "upserted"),
        "upsert_postgres: all new, latest_by": lambda: spark_ext.upsert_postgres(
            df, address, "upserted", latest_by="place"
        ),
    }
    seconds_of: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            if "present" not in name:
                for target in ("bare", "upserted"):
                    ran(
                        address,
                        f"DROP TABLE IF EXISTS {target}, {target}_conflicts",
                        f"CREATE TABLE {target} ({COLUMNS})",
                    )
            if "half" in name:
                spark_ext.upsert_postgres(half, address, "upserted")
            ran(address, "CHECKPOINT")
            taken = measured(address, way)
            if turn:
                seconds_of[name].append(taken)
    medians = {
        name: [statistics.median(values) for values in zip(*all, strict=True)] for name, all in seconds_of.items()
    }
    bare, lines = medians["a bare COPY"], []
    for name, (seconds, cpu) in medians.items():
        ratio = seconds / bare[0]
        goal = [f"at most {GOAL}", verdict(ratio <= GOAL)] if "upsert" in name and "latest" not in name else ["", ""]
        lines.append([name, f"{seconds:.2f}", f"{ratio:.2f}", f"{cpu:.2f}", f"{cpu / bare[1]:.2f}", *goal])
    names = [f"{number:,} rows", "seconds", "of COPY", "CPU seconds", "of COPY", "goal", ""]
    return table(names, lines)


def in_large_tables(spark: SparkSession, address: str, large: int, number: int, rounds: int, folder: str) -> str:
    """Return the CPU time per row in a table of a million rows and in a large one, with random keys."""
    tables, lines = {"small": 1_000_000, "large": large}, []
    for name, size in tables.items():
        ran(address, f"DROP TABLE IF EXISTS {name}, {name}_conflicts", f"CREATE TABLE {name} ({COLUMNS})")
        for start in range(0, size, 1_000_000):
            spark_ext.upsert_postgres(rows(spark, start, 1_000_000, random=True), address, name)
        ran(address, f"VACUUM ANALYZE {name}", "CHECKPOINT")
    costs: dict[tuple[str, str], list[float]] = {}
    for turn in range(rounds):
        new = stored(rows(spark, 10**9 + turn * number, number, random=True), f"{folder}/new-{turn}")
        old = stored(rows(spark, turn * number, number, random=True), f"{folder}/old-{turn}")
        for which, df in (("new", new), ("present", old)):
            for name in tables:
                taken = measured(address, lambda df=df, name=name: spark_ext.upsert_postgres(df, address, name))  # type: ignore[misc]
                costs.setdefault((which, name), []).append(taken[1] / number * 1e6)
    for which in ("new", "present"):
        small, big = (statistics.median(costs[which, name]) for name in tables)
        ratio = big / small
        lines.append([which, f"{small:.1f}", f"{big:.1f}", f"{ratio:.2f}", f"at most {GOAL_LARGE}"])
        lines[-1].append(verdict(ratio <= GOAL_LARGE))
    names = [f"CPU microseconds per row, {number:,} rows with random keys", "1,000,000 rows before", f"{large:,}"]
    return table([*names, "ratio", "goal", ""], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, help="the rows of the large table; default: no large table")
    parser.add_argument("--postgres", help="the address of a server on this machine")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{PARTS}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    with tempfile.TemporaryDirectory() as folder, server(arguments.postgres) as address:
        assert address is not None, "no PostgreSQL server is installed"
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        print(f"{machine()}; {PARTS} connections, the median of {arguments.rounds} rounds\n", flush=True)
        print(beside_copy(spark, address, arguments.rows, arguments.rounds, folder), flush=True)
        if arguments.large:
            print()
            print(in_large_tables(spark, address, arguments.large, 200_000, arguments.rounds, folder), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
