"""Retention on Spark follows the rules of Python."""

from datetime import timedelta
from random import Random

import pytest
from helpers.message_tables import ONLY_DEFAULT, POLICY, SCHEMA, START, now, rows
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.retention import InvalidPolicy, RetentionPolicy, Segment, decide
from msgid.shared.moments import unix_micros

pytestmark = pytest.mark.spark


@pytest.mark.details
def test_segment_report_of_a_table_counts_each_segment(spark):
    """The report has one row per segment; only the last one of a partition is open, and the latest message decides."""
    df = spark.createDataFrame([*rows(), *rows("audit", 2), *rows("brief", 1), *rows("orders", 2, 1)], SCHEMA)
    report = ids.segment_report(df, POLICY, now(121)).collect()
    assert [(row.topic, row.partition, row.segment, row.closed, row.expired) for row in report] == [
        ("audit", 0, 0, True, False),
        ("audit", 0, 2, False, False),
        ("brief", 0, 0, False, False),
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
        moments = [unix_micros(now(seconds)) for seconds in (60, 61, 10**6)] + [1_700_000_000_000, 0]
        latest = None if last is None or random.random() < 0.1 else random.choice(moments)
        log[first] = Segment(first, last, 0, False, latest, latest)
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
        for first, last, _, _, _, latest, _ in log:
            at = None if latest is None else START + timedelta(microseconds=latest - unix_micros(START))
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
            log, decide(log, policy, unix_micros(now(120)), topic="orders", allow_gaps=allow_gaps), strict=True
        )
    }
    assert found == expected
    assert {reason is None for *_, reason in found.values()} == {True, False}


@pytest.mark.parametrize("allow_gaps", [False, True])
def test_segment_report_messages_without_a_segment_never_expire(spark, allow_gaps):
    """They are one row per partition, which no segment closes."""
    held = [("orders", 0, segment, offset, now(0), b"x") for segment, offset in [(None, 0), (5, 5), (None, 7), (9, 9)]]
    schema = "topic string, partition int, segment bigint, offset bigint, timestamp timestamp, payload binary"
    policy = RetentionPolicy(default_expiry=60)
    found = ids.segment_report(spark.createDataFrame(held, schema), policy, now(120), allow_gaps).collect()
    assert [(row.segment, row.messages, row.action) for row in found] == [
        (None, 2, "keep"), (5, 1, "delete" if allow_gaps else "keep"), (9, 1, "keep"),
    ]  # fmt: skip
    assert (found[0].closed, found[0].expired, found[0].reason) == (False, False, None)


@pytest.mark.parametrize("topics", [{"adit": 0}, {"adit": 90, "orders": 1}])
def test_segment_report_of_a_policy_that_names_a_missing_topic_is_refused(spark, topics):
    """The entry may be a misspelt name, and the messages of its topic would expire by the default."""
    policy = RetentionPolicy(default_expiry=60, topics=topics)
    with pytest.raises(InvalidPolicy, match=r"topics must name topics of the table \(audit, orders\), got 'adit'"):
        ids.segment_report(spark.createDataFrame([*rows(), *rows("audit", 2)], SCHEMA), policy, now(121))


@pytest.mark.details
def test_expired_segments_of_a_delta_table_are_deleted_by_one_statement(spark, tmp_path):
    """The report names the segments; a dry run is the report alone."""
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "messages")
    ids.write_once(spark.createDataFrame(rows(), SCHEMA), 0, path, format="delta", app_id="messages")
    report = ids.segment_report(ids.read_table(spark, path, format="delta"), ONLY_DEFAULT, now(121))
    expired = [row.segment for row in report.where("expired").collect()]
    assert expired == [0, 2]
    deltalake.DeltaTable(path).delete(f"topic = 'orders' AND segment IN ({', '.join(map(str, expired))})")
    kept = ids.read_table(spark, path, format="delta").select("segment").distinct().collect()
    assert {row.segment for row in kept} == {4, 6}
