"""Delta at night: a table per feature, batches in any order, and drivers that are killed at any step."""

import json
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from lakehouse.delta.tables import (
    PROPERTIES,
    location,
    numbers,
    orders,
    plain_table,
    table_of_many_features,
    without_catalog,
    write,
)

import spark_ext as ids
from spark_ext import TableConflict
from spark_ext.tables import sinks

pytestmark = [pytest.mark.systems, pytest.mark.spark]

PROGRAM = Path(__file__).parents[2] / "programs" / "delta_killed.py"
ROUNDS = 12
"""Each round has two drivers, and kills both."""


@pytest.mark.variants
@pytest.mark.parametrize("feature", [*PROPERTIES, "clustering", "no other feature"])
def test_each_feature_with_computed_columns_has_each_batch_once(spark, feature):
    """OPTIMIZE, VACUUM, DELETE and replays; `deltalake` refuses the columns, and says what is needed."""
    features, clustered = (feature,) if feature in PROPERTIES else (), feature == "clustering"
    table = table_of_many_features(spark, features, clustered=clustered)
    path, other = location(spark, table), without_catalog(spark)
    for number in range(4):
        assert write(orders(spark, number), number, table=table)
        spark.sql(f"OPTIMIZE {table}")
    spark.sql(f"VACUUM {table}")
    spark.sql(f"DELETE FROM {table} WHERE id = 4")
    assert not write(orders(spark, 3), 3, path=path)
    with pytest.raises(TableConflict, match=r"which needs Delta's JAR and its catalog in the session"):
        write(orders(other, 4), 4, path=path)
    assert write(orders(spark, 4), 4, path=path)
    assert numbers(ids.read_table(spark, path)) == [number for number in range(15) if number != 4]


@pytest.mark.variants
@pytest.mark.parametrize("feature", PROPERTIES)
def test_each_feature_alone_is_written_by_both_ways_or_refused(spark, feature):
    """`deltalake` writes a table that it supports, and refuses the others before a row is in the table."""
    table = plain_table(spark, "id BIGINT, at TIMESTAMP, k INT", f"TBLPROPERTIES ({PROPERTIES[feature]})")
    path, other, expected = location(spark, table), without_catalog(spark), []
    for number in range(4):
        way = (spark, other)[number % 2]
        try:
            wrote = write(orders(way, number), number, path=path)
        except TableConflict:
            if way is spark:
                raise
            assert not sinks.is_written(orders(spark, 0), number, path, format="delta", app_id="a")
            wrote = write(orders(spark, number), number, path=path)
        assert wrote
        expected += range(3 * number, 3 * number + 3)
        for each in (spark, other):
            with suppress(TableConflict):
                assert not write(orders(each, number), number, path=path)
        assert numbers(ids.read_table(spark, path)) == expected


@pytest.mark.variants
def test_batches_in_any_order_are_never_lost_or_repeated(spark, tmp_path, seed):
    """True means new rows, False means that they are in the table, and an unknown batch is an error, on both ways."""
    chance, other = random.Random(seed), without_catalog(spark)
    written, told, path = set(), set(), str(tmp_path / "t")
    for _ in range(40):
        series, way = chance.random() < 0.5, chance.choice((spark, other))
        number = max(written, default=-1) + 1 if series else chance.randrange(12)
        try:
            wrote = write(way.range(number, number + 1), number, path=path)
        except TableConflict:
            assert number < max(written), f"seed {seed}"
            wrote = None
        else:
            assert wrote is (number not in written), f"seed {seed}"
            written.add(number)
        told.add(wrote)
        assert numbers(ids.read_table(spark, path)) == sorted(written), f"seed {seed}"
    assert {True, False} <= told


@pytest.mark.faults
def test_drivers_that_are_killed_write_each_batch_once(spark, tmp_path, seed, connect):
    """Two drivers, one per way, have the same batches at once, and each is killed at a step that the seed chooses."""
    if connect:
        pytest.skip("the drivers are programs of their own")
    chance, path, batches = random.Random(seed), str(tmp_path / "t"), ROUNDS
    kills = 0
    for each in range(ROUNDS + 1):
        drivers = []
        for way in ("catalog", "deltalake") if each < ROUNDS else ("catalog",):
            step = chance.choice(("before", "during", "committed", "after")) if each < ROUNDS else None
            plan = {
                "path": path, "way": way, "batches": batches if step is None else each + 2, "step": step,
                "batch": each, "delay": chance.uniform(0, 2), "told": str(tmp_path / f"told-{way}-{each}"),
            }  # fmt: skip
            log = (tmp_path / f"log-{way}-{each}").open("w")
            drivers.append(subprocess.Popen([sys.executable, str(PROGRAM), json.dumps(plan)], stdout=log, stderr=log))
        codes = [driver.wait(400) for driver in drivers]
        logs = "".join(log.read_text()[-3000:] for log in tmp_path.glob(f"log-*-{each}"))
        assert set(codes) <= {0, -signal.SIGKILL}, f"seed {seed}: {logs}"
        kills += codes.count(-signal.SIGKILL)
    rows = numbers(ids.read_table(spark, path))
    assert rows == list(range(10 * batches)), f"seed {seed}"
    told = [line.split() for file in tmp_path.glob("told-*") for line in file.read_text().splitlines()]
    for number in range(batches):
        assert told.count([str(number), "True"]) <= 1, f"seed {seed}: batch {number} was reported twice as written"
    print(f"{kills} kills, seed {seed}: {len(rows)} rows once")
    assert kills >= ROUNDS, f"seed {seed}"
