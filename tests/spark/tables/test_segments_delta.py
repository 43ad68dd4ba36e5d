"""Clean-up of Delta tables: one commit, and only rows that were checked are deleted."""

import re
from datetime import datetime, timedelta, timezone

import pytest

import spark_ext as ids
from msgid.retention import RetentionPolicy
from spark_ext import TableBusy

pytest.importorskip("deltalake")
pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATE = START + timedelta(days=1)
POLICY = RetentionPolicy(default_expiry=60, topics={"audit": 0})
SCHEMA = (
    "source string, topic string, partition int, segment bigint, offset bigint, timestamp timestamp, state string, "
    "payload binary"
)
COLUMNS = ("topic", "partition", "segment")
ODD = 'it\'s 100% \\ "odd"'


def row(source, topic, segment, payload=b"abc"):
    """Return the last message of a segment of two."""
    last = None if segment is None else segment + 1
    return (source, topic, 0, segment, last, START, "available", payload)


ROWS = [
    *(row("iggy:1", "orders", segment) for segment in (0, 2, 4)),
    row("iggy:2", "orders", 0),  # the active segment of another stream
    *(row("iggy:1", "audit", segment) for segment in (0, 2)),
    *(row("iggy:1", ODD, segment) for segment in (0, 2)),
    *(row("iggy:1", None, segment) for segment in (0, 2)),
    row("iggy:1", "orders", None),
]
GONE = {("iggy:1", "orders", 0), ("iggy:1", "orders", 2), ("iggy:1", ODD, 0), ("iggy:1", None, 0)}


@pytest.fixture
def path(spark, tmp_path):
    made = str(tmp_path / "delta")
    write(spark, made, ROWS, 0)
    return made


def write(spark, path, rows, batch):
    df = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    ids.write_once(df, batch, path, format="delta", partition_by=COLUMNS, app_id="messages")


def clean(spark, path, **options):
    return ids.clean(path, POLICY, LATE, spark=spark, format="delta", **options)


def version(path):
    from deltalake import DeltaTable

    return DeltaTable(path).version()


def keys(spark, path, where="true"):
    found = ids.read_table(spark, path).where(where).select("source", "topic", "segment").collect()
    return {tuple(key) for key in found}


WRITTEN = 1
"""The version of the table with its rows; version 0 creates it."""
ALL = {(source, topic, segment) for source, topic, _, segment, *_ in ROWS}


@pytest.mark.details
def test_clean_of_a_delta_table_deletes_the_expired_segments_in_one_commit(spark, path):
    """A dry run commits nothing, and a second run finds no expired segment and commits nothing."""
    found = clean(spark, path)
    assert {(part.source, part.topic, part.segment) for part in found if part.action == "removed"} == GONE
    assert (keys(spark, path), version(path)) == (ALL, WRITTEN)
    assert clean(spark, path, apply=True) == found
    assert (keys(spark, path), version(path)) == (ALL - GONE, WRITTEN + 1)
    assert {part.action for part in clean(spark, path, apply=True)} == {"kept"}
    assert version(path) == WRITTEN + 1


@pytest.mark.details
def test_clean_of_a_delta_table_with_mark_sets_the_state_in_one_commit(spark, path):
    """The rows stay with the state ``marked_for_deletion``, in one commit."""
    clean(spark, path, apply=True, mark=True)
    assert (keys(spark, path), version(path)) == (ALL, WRITTEN + 1)
    assert keys(spark, path, "state = 'marked_for_deletion'") == GONE


@pytest.mark.details
def test_clean_of_a_delta_table_keeps_rows_that_another_commit_adds(spark, path, monkeypatch):
    """Rows that are added to a segment after it was checked are checked too."""
    import spark_ext.tables.delta as module

    original, late = module._predicate, []

    def predicate(rows):
        if not late:
            late.append((*row("iggy:1", "orders", 0)[:5], LATE, "available", b"late"))
            write(spark, path, late, 1)
        return original(rows)

    monkeypatch.setattr(module, "_predicate", predicate)
    found = clean(spark, path, apply=True)
    removed = {(part.source, part.topic, part.segment) for part in found if part.action == "removed"}
    assert removed == GONE - {("iggy:1", "orders", 0)}
    assert keys(spark, path) == ALL - removed
    assert ids.read_table(spark, path).where("payload = X'6C617465'").count() == 1


@pytest.mark.details
def test_clean_of_a_delta_table_that_always_changes_raises(spark, path, monkeypatch):
    """Rows that were checked in another version of the table are not deleted."""
    import spark_ext.tables.delta as module

    original, count = module._read, []

    def read(*arguments):
        found = original(*arguments)
        count.append(1)
        write(spark, path, [row("iggy:1", "audit", 4)], len(count))
        return found

    monkeypatch.setattr(module, "_CLEANING_ATTEMPTS", 2)
    monkeypatch.setattr(module, "_read", read)
    with pytest.raises(TableBusy, match=f"{re.escape(path)} is being written to: 2 commits of others came first"):
        clean(spark, path, apply=True)
    assert keys(spark, path) >= ALL


def test_clean_of_a_delta_table_with_another_format_raises(spark, path, tmp_path):
    """A Delta table is rejected as Parquet: its files would be deleted, and its log would still name them."""
    with pytest.raises(ValueError, match="it is part of a Delta table; pass format='delta'"):
        ids.clean(path, POLICY, LATE, apply=True, spark=spark)
    with pytest.raises(ValueError, match="a table of the format 'iceberg' cannot be cleaned"):
        ids.clean(path, POLICY, LATE, spark=spark, format="iceberg")
    with pytest.raises(FileNotFoundError, match="cannot find a Delta table at"):
        clean(spark, str(tmp_path / "nothing"))
    assert keys(spark, path) == ALL


def test_predicate_of_thousands_of_topics_has_little_depth():
    """The predicate stays flat, because the parser rejects a chain of a thousand conditions."""
    from spark_ext.tables.delta import _predicate

    text = _predicate([{"topic": str(number), "segment": 0} for number in range(4096)])
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert deepest < 20
    assert text.count("topic = ") == 4096
