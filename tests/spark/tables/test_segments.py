"""Retention on Spark follows the rules of Python, and a deletion can be interrupted at any step."""

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from helpers.message_tables import EXPIRED, ONLY_DEFAULT, POLICY, SCHEMA, left, now, rows, write_table
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.retention import RetentionPolicy, Segment, decide
from spark_ext import TableBusy

pytestmark = pytest.mark.spark


@pytest.mark.details
def test_segment_report_of_a_table_counts_each_segment(spark):
    """The report has one row per segment; only the last one of a partition is open, and the latest message decides."""
    df = spark.createDataFrame([*rows(), *rows("audit", 2), *rows("orders", 2, 1)], SCHEMA)
    report = ids.segment_report(df, POLICY, now(121)).collect()
    assert [(row.topic, row.partition, row.segment, row.closed, row.expired) for row in report] == [
        ("audit", 0, 0, True, False),
        ("audit", 0, 2, False, False),
        ("orders", 0, 0, True, True),
        ("orders", 0, 2, True, True),
        ("orders", 0, 4, True, False),
        ("orders", 0, 6, False, False),
        ("orders", 1, 0, True, True),
        ("orders", 1, 2, False, False),
    ]
    assert {(row.messages, row.bytes, row.last_offset - row.first_offset) for row in report} == {(2, 6, 1)}
    undated = df.withColumn("timestamp", F.when(F.col("offset") > 0, F.col("timestamp")))
    (first,) = (
        ids.segment_report(undated, POLICY, now(10**6))
        .where("topic = 'orders' and partition = 0 and segment = 0")
        .collect()
    )
    assert (first.closed, first.expired) == (True, False)


def random_log(random):
    """Return segments that follow each other, leave gaps, overlap, or are empty; the last of them is any segment."""
    first, log = random.randrange(3), {}
    for _ in range(random.randrange(1, 6)):
        last = random.choice([None, first, first, first + 1, first + 1, first + 4, first - 1])
        latest = None if last is None or random.random() < 0.1 else random.choice([60, 61, 10**6]) * 1_000_000
        log[first] = Segment(first, last, 0, False, latest)
        ended = first if last is None else last
        first = max(ended + random.choice([1, 1, 1, 2, 5, 0, -1]), first + 1)
    return list(log.values())


@pytest.mark.parametrize("allow_gaps", [False, True])
def test_segment_report_decides_as_python_does(spark, allow_gaps):
    """In random logs, one per partition, the same segments are closed, expired, or kept with the same reason."""
    random = Random(7)
    logs = [random_log(random) for _ in range(400)]
    held = []
    for partition, log in enumerate(logs):
        for first, last, _, _, latest, _ in log:
            at = None if latest is None else now(latest // 1_000_000)
            offsets = [None] if last is None else [last - 1, last] if last > first else [last]
            held += [("orders", partition, first, offset, at, b"x") for offset in offsets]
    schema = "topic string, partition int, segment bigint, offset bigint, timestamp timestamp, payload binary"
    df = spark.createDataFrame(held, schema)
    policy = RetentionPolicy(default_expiry=60)
    rows = ids.segment_report(df, policy, now(120), allow_gaps).collect()
    found = {(row.partition, row.segment): (row.closed, row.expired, row.action, row.reason) for row in rows}
    expected = {
        (partition, segment.first_offset): (*decision[:2], decision.action, decision.reason)
        for partition, log in enumerate(logs)
        for segment, decision in zip(
            log, decide(log, policy, 120_000_000, topic="orders", allow_gaps=allow_gaps), strict=True
        )
    }
    assert found == expected
    assert {reason is None for *_, reason in found.values()} == ({True} if allow_gaps else {True, False})


@pytest.mark.parametrize("allow_gaps", [False, True])
def test_segment_report_messages_without_a_segment_never_expire(spark, allow_gaps):
    """They are one row per partition, which no segment closes."""
    held = [("orders", 0, segment, offset, now(0), b"x") for segment, offset in [(None, 0), (5, 5), (None, 7), (9, 9)]]
    schema = "topic string, partition int, segment bigint, offset bigint, timestamp timestamp, payload binary"
    policy = RetentionPolicy(default_expiry=60)
    found = ids.segment_report(spark.createDataFrame(held, schema), policy, now(120), allow_gaps).collect()
    assert [(row.segment, row.messages, row.action) for row in found] == [
        (None, 2, "kept"), (5, 1, "removed" if allow_gaps else "kept"), (9, 1, "kept"),
    ]  # fmt: skip
    assert (found[0].closed, found[0].expired, found[0].reason) == (False, False, None)


@pytest.mark.parametrize(
    ("default", "topics", "expired"),
    [
        (60, {"adit": 0}, []),
        pytest.param(60, {"adit": 0, "orders": 60}, [("orders", 0), ("orders", 2)], marks=pytest.mark.variants),
        (60, {"adit": 90, "brief": 1}, [("audit", 0), ("orders", 0)]),
        (60, {"adit": 60, "brief": 1, "later": None}, [("audit", 0), ("orders", 0), ("orders", 2)]),
        pytest.param(0, {"adit": 60}, [], marks=pytest.mark.variants),
    ],
)
def test_segment_report_of_a_policy_that_names_a_missing_topic_keeps_more(spark, default, topics, expired):
    """The entry may be a misspelt name: it lengthens the expiry of topics without an entry, and never shortens one."""
    table = [*rows(), *rows("audit", 2)]
    policy = RetentionPolicy(default_expiry=default, topics=topics)
    found = ids.segment_report(spark.createDataFrame(table, SCHEMA), policy, now(121)).collect()
    assert [(row.topic, row.segment) for row in found if row.expired] == expired
    by_default = {("audit", 0), ("orders", 0), ("orders", 2)} if default else set()
    kept = {(row.topic, row.segment) for row in found if row.reason is not None}
    assert kept == by_default - set(expired)
    assert all("'adit'" in row.reason for row in found if row.reason is not None)


@pytest.mark.details
def test_clean_with_a_misspelt_topic_deletes_nothing_of_it(spark, table):
    """A topic that is kept forever stays if its entry is misspelt; segments of other entries are deleted."""
    policy = RetentionPolicy(default_expiry=60, topics={"adit": 0, "orders": 60})
    found = ids.clean(str(table), policy, now(10**6), apply=True, spark=spark)
    assert {(row.topic, row.segment) for row in found if row.action == "removed"} == {("orders", n) for n in (0, 2, 4)}
    (kept,) = (row.reason for row in found if (row.topic, row.segment) == ("audit", 0))
    assert kept == "the default expiry does not apply, because the table lacks topics that the policy names: 'adit'"


def test_clean_of_a_table_with_missing_offsets_keeps_the_segment_before_them(spark, tmp_path):
    """The reason names the offsets; with ``allow_gaps`` the segment is deleted."""
    held = [row for row in rows("orders", 4) if row[2] != 2]  # partition, segment
    spark.createDataFrame(held, SCHEMA).write.partitionBy("topic", "partition", "segment").parquet(str(tmp_path / "t"))
    first, second, third = ids.clean(str(tmp_path / "t"), ONLY_DEFAULT, now(10**6), spark=spark)
    assert (first.action, first.closed, first.expired) == ("kept", False, False)
    assert first.reason == "the next segment starts at offset 4, not at 2: offsets are missing, or it is a stray file"
    assert (second.action, third.action, third.reason) == ("removed", "kept", None)
    allowed = ids.clean(str(tmp_path / "t"), ONLY_DEFAULT, now(10**6), spark=spark, allow_gaps=True)
    assert [segment.action for segment in allowed] == ["removed", "removed", "kept"]


@pytest.fixture
def table(spark, tmp_path):
    return write_table(spark, tmp_path / "messages")


ALL = {("orders", n) for n in (0, 2, 4, 6)} | {("audit", n) for n in (0, 2)} | {("007", n) for n in (0, 2)}


def test_clean_in_a_dry_run_deletes_nothing(spark, table):
    """A dry run reports the segments that would be deleted."""
    found = ids.clean(str(table), POLICY, now(121), spark=spark)
    assert {(segment.topic, segment.segment) for segment in found} == ALL
    assert {(segment.topic, segment.segment) for segment in found if segment.action == "removed"} == EXPIRED
    assert (
        left(spark, table) == {(topic if topic != "007" else "7", n) for topic, n in ALL} or left(spark, table) == ALL
    )


def test_clean_of_expired_segments_deletes_them_whole(spark, table):
    """Expired segments are deleted as a whole; a second run deletes nothing."""
    ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert {segment for topic, segment in left(spark, table) if topic == "orders"} == {4, 6}
    assert {path.name for path in (table / "topic=007" / "partition=0").iterdir()} == {"segment=2"}
    assert not list(table.rglob(".removed-*"))
    again = ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert {segment.action for segment in again} == {"kept"}


@pytest.mark.details
def test_clean_stopped_half_way_and_run_again_does_the_rest(spark, table):
    """A run that ends between rename and deletion, or within the deletion, never shows a part of a segment."""
    folder = table / "topic=orders" / "partition=0"
    hidden = folder / ".removed-segment=0"
    (folder / "segment=0").rename(hidden)
    next(hidden.glob("*.parquet")).unlink()
    assert {segment for topic, segment in left(spark, table) if topic == "orders"} == {2, 4, 6}
    ids.clean(str(table), POLICY, now(0), spark=spark)
    assert hidden.exists()  # a dry run
    ids.clean(str(table), POLICY, now(0), apply=True, spark=spark)
    assert not hidden.exists()


@pytest.mark.details
def test_clean_with_mark_sets_the_state_and_keeps_the_messages(spark, table):
    """The messages stay with the state ``marked_for_deletion``; a second run changes nothing."""
    for _ in range(2):
        found = ids.clean(str(table), POLICY, now(121), apply=True, mark=True, spark=spark)
        assert {(segment.topic, segment.segment) for segment in found if segment.action == "marked"} == EXPIRED
        df = spark.read.parquet(str(table))
        assert df.count() == 2 * len(ALL)
        states = {(row.segment, row.state) for row in df.where("topic = 'orders'").select("segment", "state").collect()}
        assert states == {(0, "marked_for_deletion"), (2, "marked_for_deletion"), (4, "available"), (6, "available")}
        assert {bytes(row.payload) for row in df.select("payload").collect()} == {b"abc"}
    files = {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}
    ids.clean(str(table), POLICY, now(121), apply=True, mark=True, spark=spark)
    assert files == {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}


@pytest.mark.parametrize("name", ["_temporary/0/part.parquet", ".spark-staging-1/part.parquet"])
def test_clean_of_a_table_that_is_being_written_to_is_refused(spark, table, name):
    """A table in which Spark has temporary files is rejected."""
    path = table / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(TableBusy, match="is being written to"):
        ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert len(list(table.glob("topic=orders/partition=0/segment=0"))) == 1


def test_clean_of_a_table_that_changes_meanwhile_is_refused(spark, table, monkeypatch):
    """A table that changes during the run is rejected, because new messages of a segment would be deleted too."""
    import spark_ext.tables.segments as module

    report = module.segment_report

    def written_to(*arguments):
        segment = table / "topic=orders" / "partition=0" / "segment=0"
        shutil.copy(next(segment.glob("*.parquet")), segment / "new.parquet")
        return report(*arguments)

    monkeypatch.setattr(module, "segment_report", written_to)
    with pytest.raises(TableBusy, match="changed while they were read"):
        ids.clean(str(table), POLICY, now(121), apply=True, spark=spark)
    assert (table / "topic=orders" / "partition=0" / "segment=0").exists()


def test_clean_of_a_folder_that_is_not_such_a_table_is_refused(spark, tmp_path):
    """Other partitions, or a segment in two folders, raise an error, and nothing is deleted."""
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    with pytest.raises(ValueError, match="is not partitioned by topic and segment: there is part-"):
        ids.clean(str(tmp_path / "plain"), POLICY, now(0), spark=spark)
    for batch in (0, 1):
        df = spark.createDataFrame(rows(segments=1), SCHEMA)
        df.write.partitionBy("topic", "partition", "segment").parquet(str(tmp_path / "twice" / f"batch={batch}"))
    with pytest.raises(ValueError, match="segment 0 of topic 'orders' is in both"):
        ids.clean(str(tmp_path / "twice"), POLICY, now(0), spark=spark)


def test_clean_of_a_disabled_policy_or_an_empty_table_finds_nothing(spark, tmp_path, table):
    """A disabled policy and an empty table give an empty report."""
    assert ids.clean(str(table), replace(POLICY, enabled=False), now(10**6), apply=True, spark=spark) == []
    Path(tmp_path / "empty").mkdir()
    assert ids.clean(str(tmp_path / "empty"), POLICY, now(0), apply=True, spark=spark) == []
