"""Delta at night: a table per feature, and drivers that are killed at any step."""

from contextlib import suppress

import pytest
from lakehouse.delta.tables import (
    PROPERTIES,
    location,
    numbers,
    orders,
    plain_table,
    without_catalog,
    write,
)
from lakehouse.drivers import ROUNDS, kill_drivers

import spark_ext as ids
from spark_ext import TableConflict

pytestmark = [pytest.mark.systems, pytest.mark.spark]


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
            wrote = write(orders(spark, number), number, path=path)
        assert wrote
        expected += range(3 * number, 3 * number + 3)
        for each in (spark, other):
            with suppress(TableConflict):
                assert not write(orders(each, number), number, path=path)
        assert numbers(ids.read_table(spark, path)) == expected


@pytest.mark.faults
def test_drivers_that_are_killed_write_each_batch_once(spark, tmp_path, seed, connect):
    """Two drivers, one per way, have the same batches at once, and each is killed at a step that the seed chooses."""
    if connect:
        pytest.skip("the drivers are programs of their own")
    path = str(tmp_path / "t")
    off = {"spark.sql.catalog.spark_catalog": "builtin"}
    ways = [{"way": "catalog", "settings": {}}, {"way": "deltalake", "settings": off}]
    steps = ("before", "during", "committed", "after")
    kills = kill_drivers(tmp_path, seed, path, ways, steps)
    rows = numbers(ids.read_table(spark, path))
    print(f"{kills} kills, seed {seed}: {len(rows)} rows once")
    assert rows == list(range(10 * ROUNDS)), f"seed {seed}"
