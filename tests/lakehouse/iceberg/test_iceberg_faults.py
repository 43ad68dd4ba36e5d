"""Iceberg at night: drivers that are killed at any step while tables are compacted, and a table of many snapshots."""

import time
from contextlib import suppress

import pytest
from helpers.sinks import numbers
from lakehouse.drivers import ROUNDS, kill_drivers
from lakehouse.iceberg.test_iceberg_sinks import maintain, read, refs, settings_of, stop, write

from spark_ext import TableConflict
from spark_ext.tables import iceberg

pytestmark = [pytest.mark.systems, pytest.mark.spark, pytest.mark.faults]

SNAPSHOTS, PER_COMMIT = 5_000, 100


def test_drivers_that_are_killed_write_each_batch_once(spark, jdbc, tmp_path, seed):
    """Two drivers have the same batches at once; the table is compacted after each round, and snapshots expire."""
    table, settings = f"{jdbc}.t", settings_of(spark, jdbc)
    steps = ("before", "during", "staged", "published", "recorded", "after")

    def between(each):
        if each % 3 == 2:  # a batch that is in the table is recorded before its snapshot expires
            for number in range(each + 1):
                with suppress(TableConflict):  # a later batch is recorded
                    write(spark.range(10 * number, 10 * number + 10), number, table)
        if spark.catalog.tableExists(table):
            maintain(spark, table, expire=each % 3 == 2)

    kills = kill_drivers(tmp_path, seed, table, [{"way": "iceberg", "settings": settings}] * 2, steps, between)
    rows = numbers(read(spark, table))
    print(f"{kills} kills, seed {seed}: {len(rows)} rows once")
    assert rows == list(range(10 * ROUNDS)), f"seed {seed}"
    assert refs(spark, table) == ["main"]


def add_snapshots(spark, table):
    """Add snapshots without rows, many per commit, since each commit writes and reads the metadata of all of them.

    Py4J keeps Java objects until Python collects its cycles, and each append keeps the metadata that it has read.
    """
    loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    release = spark.sparkContext._gateway.detach
    for _ in range(SNAPSHOTS // PER_COMMIT):
        transaction = loaded.newTransaction()
        for _ in range(PER_COMMIT):
            append = transaction.newFastAppend()
            append.commit()
            release(append)
        transaction.commitTransaction()
        release(transaction)


def test_batch_is_found_among_5000_snapshots(spark, db, monkeypatch):
    """Whether it was recorded, or published by a process that ended before it recorded it."""
    table, (ended, end) = f"{db}.t", stop("finish")
    assert write(spark.range(2), 0, table)
    with monkeypatch.context() as patch:
        patch.setattr(iceberg._Table, "finish", end)
        with pytest.raises(ended):
            write(spark.range(2, 4), 1, table)
    add_snapshots(spark, table)

    def timed(rows, number):
        began = time.monotonic()
        wrote = write(rows, number, table)
        print(f"  batch {number}: {wrote}, {time.monotonic() - began:.1f} s", flush=True)
        return wrote

    assert not timed(spark.range(2, 4), 1)  # published, not recorded
    assert timed(spark.range(4, 6), 2)
    assert not timed(spark.range(4, 6), 2)
    assert spark.table(f"{table}.snapshots").count() > SNAPSHOTS
    assert numbers(read(spark, table)) == list(range(6))
