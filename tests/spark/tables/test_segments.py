"""Retention on Spark: the rules of Python, segment by segment, and a removal that can be stopped anywhere."""

import os
import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import retention
from msgid.retention import InvalidPolicy, RetentionPolicy
from spark_ext.tables._segment_folders import SegmentFolders
from spark_ext.tables.segments import TableBusy

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
POLICY = RetentionPolicy(default_expiry=60, topics={"audit": 0, "slow": 10**6})
SCHEMA = "topic string, partition int, segment bigint, offset bigint, timestamp timestamp, state string, payload binary"


def rows(topic="orders", segments=4, partition=0):
    """Two messages a segment, a minute a segment."""
    return [
        (topic, partition, 2 * n, 2 * n + k, START + timedelta(minutes=n, seconds=k), "available", b"abc")
        for n in range(segments)
        for k in range(2)
    ]


def now(seconds):
    return START + timedelta(seconds=seconds)


def test_is_expired_of_a_column_is_the_one_of_msgid(spark, ansi):
    """At the boundary to the microsecond, for NULL as the default, 0 as never."""
    moment = START.timestamp() * 1e6
    cases = [(age, expiry) for age in (-5, 0, 9_999_999, 10_000_000, 10_000_001, 10**15) for expiry in (None, 0, 10)]
    df = spark.createDataFrame([(int(moment) - age, expiry) for age, expiry in cases], "sent bigint, expiry int")
    df = df.select(F.timestamp_micros("sent").alias("sent"), "expiry")
    for default in (0, 10):
        found = [row[0] for row in df.select(ids.is_expired("sent", "expiry", START, default)).coalesce(1).collect()]
        assert found == [retention.is_expired(int(moment) - age, expiry, int(moment), default) for age, expiry in cases]
    nothing = spark.createDataFrame([(None,)], "sent timestamp")
    assert nothing.select(ids.is_expired("sent", 1, START)).first()[0] is None
    with pytest.raises(ValueError, match="now must be an aware datetime"):
        ids.is_expired("sent", 1, datetime(2026, 1, 1))


def test_segment_report_of_a_table_counts_each_segment(spark):
    """A row a segment: closed but for the last of its partition, expired by its latest message."""
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


@pytest.fixture
def table(spark, tmp_path):
    path = tmp_path / "messages"
    df = spark.createDataFrame([*rows(), *rows("audit", 2), *rows("007", 2)], SCHEMA)
    df.write.partitionBy("topic", "partition", "segment").parquet(str(path))
    return path


def left(spark, table):
    """The segments that a reader sees; Spark guesses that the topic 007 is the number 7, which `clean` does not."""
    rows = spark.read.parquet(str(table)).select("topic", "segment").distinct().collect()
    return {({"7": "007"}.get(row.topic, row.topic), row.segment) for row in rows}


ALL = {("orders", n) for n in (0, 2, 4, 6)} | {("audit", n) for n in (0, 2)} | {("007", n) for n in (0, 2)}
EXPIRED = {("orders", 0), ("orders", 2), ("007", 0)}


def test_clean_in_a_dry_run_deletes_nothing(spark, table):
    """It says what would be done."""
    found = ids.clean(str(table), POLICY, now(121), spark=spark)
    assert {(segment.topic, segment.segment) for segment in found} == ALL
    assert {(segment.topic, segment.segment) for segment in found if segment.action == "removed"} == EXPIRED
    assert (
        left(spark, table) == {(topic if topic != "007" else "7", n) for topic, n in ALL} or left(spark, table) == ALL
    )


def test_clean_of_expired_segments_deletes_them_whole(spark, table):
    """Whole; and again there is nothing to do."""
    ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert {segment for topic, segment in left(spark, table) if topic == "orders"} == {4, 6}
    assert {path.name for path in (table / "topic=007" / "partition=0").iterdir()} == {"segment=2"}
    assert not list(table.rglob(".removed-*"))
    again = ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert {segment.action for segment in again} == {"kept"}


def test_clean_stopped_half_way_and_run_again_does_the_rest(spark, table):
    """After the rename and before, or within, the deletion: no reader sees half a segment."""
    folder = table / "topic=orders" / "partition=0"
    hidden = folder / ".removed-segment=0"
    (folder / "segment=0").rename(hidden)
    next(hidden.glob("*.parquet")).unlink()
    assert {segment for topic, segment in left(spark, table) if topic == "orders"} == {2, 4, 6}
    ids.clean(str(table), POLICY, now(0), spark=spark)
    assert hidden.exists()  # a dry run
    ids.clean(str(table), POLICY, now(0), dry_run=False, spark=spark)
    assert not hidden.exists()


def test_clean_with_mark_sets_the_state_and_keeps_the_messages(spark, table):
    """The messages stay, and say what they are; again it changes nothing."""
    for _ in range(2):
        found = ids.clean(str(table), POLICY, now(121), dry_run=False, mark=True, spark=spark)
        assert {(segment.topic, segment.segment) for segment in found if segment.action == "marked"} == EXPIRED
        df = spark.read.parquet(str(table))
        assert df.count() == 2 * len(ALL)
        states = {(row.segment, row.state) for row in df.where("topic = 'orders'").select("segment", "state").collect()}
        assert states == {(0, "marked_for_deletion"), (2, "marked_for_deletion"), (4, "available"), (6, "available")}
        assert {bytes(row.payload) for row in df.select("payload").collect()} == {b"abc"}
    files = {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}
    ids.clean(str(table), POLICY, now(121), dry_run=False, mark=True, spark=spark)
    assert files == {path: path.stat().st_mtime_ns for path in table.rglob("*.parquet")}


@pytest.mark.parametrize("name", ["_temporary/0/part.parquet", ".spark-staging-1/part.parquet"])
def test_clean_of_a_table_that_is_being_written_to_is_refused(spark, table, name):
    """Is refused, by what Spark has in it meanwhile."""
    path = table / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(TableBusy, match="is being written to"):
        ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert len(list(table.glob("topic=orders/partition=0/segment=0"))) == 1


def test_clean_of_a_table_that_changes_meanwhile_is_refused(spark, table, monkeypatch):
    """Is refused: what is new in a segment would go with it."""
    import spark_ext.tables.segments as module

    report = module.segment_report

    def written_to(*arguments):
        segment = table / "topic=orders" / "partition=0" / "segment=0"
        shutil.copy(next(segment.glob("*.parquet")), segment / "new.parquet")
        return report(*arguments)

    monkeypatch.setattr(module, "segment_report", written_to)
    with pytest.raises(TableBusy, match="changed while they were looked at"):
        ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert (table / "topic=orders" / "partition=0" / "segment=0").exists()


def test_clean_of_a_folder_that_is_not_such_a_table_is_refused(spark, tmp_path):
    """Not partitioned so, or a segment in two places: an error, and nothing is removed."""
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    with pytest.raises(ValueError, match="is not partitioned by topic and segment: there is part-"):
        ids.clean(str(tmp_path / "plain"), POLICY, now(0), spark=spark)
    for batch in (0, 1):
        df = spark.createDataFrame(rows(segments=1), SCHEMA)
        df.write.partitionBy("topic", "partition", "segment").parquet(str(tmp_path / "twice" / f"batch={batch}"))
    with pytest.raises(ValueError, match="segment 0 of topic 'orders' is in both"):
        ids.clean(str(tmp_path / "twice"), POLICY, now(0), spark=spark)


def test_clean_of_a_disabled_policy_or_an_empty_table_finds_nothing(spark, tmp_path, table):
    """Nothing is done."""
    assert ids.clean(str(table), replace(POLICY, enabled=False), now(10**6), dry_run=False, spark=spark) == []
    Path(tmp_path / "empty").mkdir()
    assert ids.clean(str(tmp_path / "empty"), POLICY, now(0), dry_run=False, spark=spark) == []


# --- what must not be deleted ------------------------------------------------------------------------------------

STREAMS = "source string, " + SCHEMA


def streams():
    """Two streams with a topic of the same name: of the second one, segment 0 is the active one."""
    first = [("iggy:1/orders#0", *row) for row in rows(segments=3)]
    second = [("iggy:2/orders#0", *row) for row in rows(segments=1)]
    return [*first, *second]


def of_streams(found):
    return [(segment.source, segment.segment, segment.closed, segment.action) for segment in found]


def test_segment_report_of_two_streams_with_equal_topics_keeps_them_apart(spark):
    """The active segment of a stream is not closed by another stream's segments."""
    report = ids.segment_report(spark.createDataFrame(streams(), STREAMS), POLICY, now(10**6)).collect()
    assert [(row.source, row.segment, row.closed, row.expired) for row in report] == [
        ("iggy:1/orders#0", 0, True, True),
        ("iggy:1/orders#0", 2, True, True),
        ("iggy:1/orders#0", 4, False, False),
        ("iggy:2/orders#0", 0, False, False),
    ]


@pytest.mark.parametrize("mark", [False, True])
def test_clean_of_a_folder_with_an_active_segment_of_another_stream_keeps_it(spark, tmp_path, mark):
    """A table that is not parted by source has both in one folder."""
    path = str(tmp_path / "mixed")
    spark.createDataFrame(streams(), STREAMS).write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, POLICY, now(10**6), dry_run=False, mark=mark, spark=spark)
    done = "marked" if mark else "removed"
    assert [(segment.source[5], segment.segment, segment.action) for segment in found] == [
        ("1", 0, "kept"),
        ("1", 2, done),
        ("1", 4, "kept"),
        ("2", 0, "kept"),
    ]
    assert found[0].reason == "its folder holds a segment that has not expired"
    left_rows = spark.read.parquet(path).where("state = 'available'")
    assert {(row.source[5], row.segment) for row in left_rows.collect()} == {("1", 0), ("1", 4), ("2", 0)}


def test_clean_of_a_table_parted_by_source_deletes_one_streams_segment(spark, tmp_path):
    """The other stream's segment of the same name stays."""
    path = str(tmp_path / "parted")
    spark.createDataFrame(streams(), STREAMS).write.partitionBy("source", "topic", "partition", "segment").parquet(path)
    ids.clean(path, POLICY, now(10**6), dry_run=False, spark=spark)
    found = {(row.source, row.segment) for row in spark.read.parquet(path).collect()}
    assert found == {("iggy:1/orders#0", 4), ("iggy:2/orders#0", 0)}


def test_clean_with_a_policy_that_is_not_allowed_raises(spark, table):
    """A negative expiry is an error wherever it enters, and nothing is deleted."""
    policy = RetentionPolicy(default_expiry=60)
    policy.topics["orders"] = -(10**6)
    for attempt in (
        lambda: ids.clean(str(table), policy, now(0), dry_run=False, spark=spark),
        lambda: ids.segment_report(spark.createDataFrame(rows(), SCHEMA), policy, now(0)),
        lambda: ids.is_expired("timestamp", -1, now(0)),
        lambda: ids.is_expired("timestamp", 1, now(0), -1),
    ):
        with pytest.raises(InvalidPolicy, match="must be whole seconds, 0 to 4294967295, not -"):
            attempt()
    with pytest.raises(TypeError, match="policy must be a RetentionPolicy"):
        ids.clean(str(table), {"default_expiry": 60}, now(0), spark=spark)
    negative = spark.createDataFrame([(START, -1)], "sent timestamp, expiry int")
    with pytest.raises(Exception, match="expiry must be whole seconds, 0 to 4294967295, not -1"):
        negative.select(ids.is_expired("sent", "expiry", START)).collect()
    assert left(spark, table)


@pytest.mark.parametrize(
    ("inner", "says"),
    [
        ("_spark_metadata/0", "Spark's own file sink manages it"),
        ("_delta_log/0.json", "it is part of a Delta table; pass format='delta'"),
        ("metadata/v1.metadata.json", "it is part of an Iceberg table"),
        ("topic=orders/_delta_log/0.json", "it is part of a Delta table"),
        ("../_delta_log/0.json", "it is part of a Delta table"),
        ("../metadata/v1.metadata.json", "it is part of an Iceberg table"),
    ],
)
@pytest.mark.parametrize("mark", [False, True])
def test_clean_of_a_folder_that_another_system_manages_raises(spark, table, inner, says, mark):
    """That system has a list of the files: without some of them, its table cannot be read."""
    path = table / inner
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    before = sorted(table.rglob("*"))
    with pytest.raises(ValueError, match=f"cannot clean .*{says}"):
        ids.clean(str(table), POLICY, now(10**6), dry_run=False, mark=mark, spark=spark)
    assert sorted(table.rglob("*")) == before


def test_clean_of_a_table_of_500_topics_judges_each(spark, tmp_path):
    """The expression of the policies does not grow with them."""
    policy = RetentionPolicy(default_expiry=60, topics={f"t{n}": n % 2 * 10**9 for n in range(500)})
    made = [row for n in (0, 1, 499) for row in rows(f"t{n}", 2)] + rows("other", 2)
    path = str(tmp_path / "many")
    spark.createDataFrame(made, SCHEMA).coalesce(1).write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, policy, now(10**6), dry_run=False, spark=spark)
    assert [segment.topic for segment in found if segment.action == "removed"] == ["other"]


@pytest.mark.parametrize("missing", ["segment", "topic", "timestamp"])
def test_clean_of_a_table_with_a_row_without_a_value_keeps_the_row(spark, tmp_path, missing):
    """A row of an unknown segment is never deleted, and stops nothing."""
    df = spark.createDataFrame([*rows(), *rows("audit", 1)], SCHEMA)
    df = df.withColumn(missing, F.when(F.col("topic") != "audit", F.col(missing)))
    path = str(tmp_path / "nulls")
    df.write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, POLICY, now(121), dry_run=False, spark=spark)
    assert [segment.segment for segment in found if segment.action == "removed"] == [0, 2]
    assert spark.read.parquet(path).where(f"{missing} is null").count() == 2


@pytest.mark.parametrize(
    ("column", "type", "says"),
    [
        ("timestamp", "timestamp_ntz", "timestamp must be a timestamp with a time zone, got timestamp_ntz"),
        ("timestamp", "string", "timestamp must be a timestamp with a time zone, got string"),
        ("segment", "string", "segment must be an integer, got string"),
        ("topic", "int", "topic must be a string, got int"),
    ],
)
def test_segment_report_of_a_column_of_another_type_raises(spark, column, type, says):
    """Text would be ordered as text, and a local time would depend on the session's zone."""
    df = spark.createDataFrame(rows(), SCHEMA).withColumn(column, F.expr(f"try_cast({column} as {type})"))
    with pytest.raises(ValueError, match=says):
        ids.segment_report(df, POLICY, now(0))


def test_clean_does_not_depend_on_the_time_zone_of_the_session(spark, table):
    """At the second before and at the moment of expiry."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for other in ("Pacific/Kiritimati", "Pacific/Niue"):
            spark.conf.set("spark.sql.session.timeZone", other)
            for seconds, expected in ((60, set()), (61, {("orders", 0), ("007", 0)})):
                found = ids.clean(str(table), POLICY, now(seconds), spark=spark)
                assert {(part.topic, part.segment) for part in found if part.expired} == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


# --- writers and other clean-ups at the same time ----------------------------------------------------------------


def before_the_first_removal(monkeypatch, action):
    """Have something done between the look and the first removal."""
    original, done = SegmentFolders.remove, []

    def remove(self, folder, judged):
        if not done:
            done.append(folder)
            action()
        return original(self, folder, judged)

    monkeypatch.setattr(SegmentFolders, "remove", remove)


@pytest.mark.parametrize("rename", [True, False], ids=["rename", "no-rename"])
def test_clean_of_a_segment_that_a_writer_has_added_to_puts_it_back(spark, table, monkeypatch, rename):
    """Rows that are committed between two deletions stay, with the rows that were judged."""
    import spark_ext.tables._segment_folders as module

    if not rename:
        monkeypatch.setattr(module, "RENAMES", ())
    late = spark.createDataFrame([("orders", 0, 2, 2, START, "available", b"late")], SCHEMA)
    writer = late.write.mode("append").partitionBy("topic", "partition", "segment")
    before_the_first_removal(monkeypatch, lambda: writer.parquet(str(table)))
    found = ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    kept = [segment for segment in found if segment.reason]
    assert [(segment.topic, segment.segment, segment.action) for segment in kept] == [("orders", 2, "kept")]
    assert kept[0].reason == "its files have changed since they were read"
    left_rows = spark.read.parquet(str(table)).where("topic = 'orders' and segment = 2")
    assert sorted(bytes(row.payload) for row in left_rows.collect()) == [b"abc", b"abc", b"late"]
    assert not list(table.rglob(".remov*"))
    assert ("orders", 0) not in left(spark, table)


def test_clean_puts_files_back_into_a_folder_that_was_made_anew(spark, table):
    """A writer makes the folder again after the rename: both have their files in it."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    hidden = folder.parent / f".removing-{'0' * 32}-segment=0"
    old = len(list(folder.glob("*.parquet")))
    folder.rename(hidden)
    folder.mkdir()
    shutil.copy(next(hidden.glob("*.parquet")), folder / "new.parquet")
    ids.clean(str(table), POLICY, now(0), dry_run=False, spark=spark)
    assert len(list(folder.glob("*.parquet"))) == 1 + old
    assert not hidden.exists()


def test_clean_killed_between_rename_and_comparison_judges_the_folder_again(spark, table):
    """The folder had perhaps rows that were never judged."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    folder.rename(folder.parent / f".removing-{'0' * 32}-segment=0")
    ids.clean(str(table), POLICY, now(0), dry_run=False, spark=spark)
    assert folder.exists()
    assert left(spark, table) >= {("orders", 0)}


def test_two_clean_ups_at_once_delete_each_segment_once(spark, table, monkeypatch):
    """The one that comes second says that the segment was removed, and does not fail."""
    others = []
    before_the_first_removal(
        monkeypatch, lambda: others.extend(ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark))
    )
    found = ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert {(part.topic, part.segment) for part in others if part.action == "removed"} == EXPIRED
    assert [part for part in found if part.action == "removed"] == []
    assert {part.reason for part in found if part.expired} == {"another process has removed it or put it back"}


def test_clean_of_a_folder_that_cannot_be_deleted_reports_the_others(spark, table, monkeypatch):
    """The report is of the segments that were deleted, also if one was not."""
    original = SegmentFolders.remove

    def remove(self, folder, judged):
        if "segment=0" in folder and "orders" in folder:
            self._files = Refusing()
        try:
            return original(self, folder, judged)
        finally:
            self.__dict__["_files"] = real

    class Refusing:
        type_name = "local"

        def move(self, path, to):
            raise PermissionError(13, "Permission denied")

    import pyarrow.fs as pafs

    real = pafs.LocalFileSystem()
    monkeypatch.setattr(SegmentFolders, "remove", remove)
    found = ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert {(part.topic, part.segment) for part in found if part.action == "removed"} == EXPIRED - {("orders", 0)}
    assert [part.reason for part in found if part.reason] == ["cannot delete it: [Errno 13] Permission denied"]


def test_clean_of_a_table_with_symbolic_links_raises(spark, table, tmp_path):
    """A link may lead to another table, or in a circle."""
    outside = tmp_path / "outside"
    (table / "topic=orders" / "partition=0" / "segment=0").rename(outside)
    os.symlink(outside, table / "topic=orders" / "partition=0" / "segment=0")
    with pytest.raises(ValueError, match="segment=0 is a symbolic link"):
        ids.clean(str(table), POLICY, now(121), dry_run=False, spark=spark)
    assert list(outside.iterdir())


def test_clean_of_odd_names_deletes_the_segments_that_were_judged(spark, tmp_path):
    """Characters of patterns in the table's path, and of escapes in a topic's name."""
    topics = ["a b", "a%20b", "a/b", "it's", 'x"y', "a=b", "[a]*?{b}", "ü\n"]
    made = [row for topic in topics for row in rows(topic, 2)]
    base = tmp_path / "odd [x]*{y}"
    df = spark.createDataFrame(made, SCHEMA).coalesce(1)
    df.write.partitionBy("topic", "partition", "segment").parquet(str(base))
    found = ids.clean(str(base), POLICY, now(121), dry_run=False, spark=spark)
    assert {(part.topic, part.segment) for part in found if part.action == "removed"} == {(t, 0) for t in topics}
    assert not list(base.rglob("segment=0"))
    assert len(list(base.rglob("segment=2"))) == len(topics)


def test_clean_never_leaves_out_a_file_that_cannot_be_read(spark, table):
    """Whatever the session says of corrupt files: their rows were not judged."""
    folder = table / "topic=orders" / "partition=0" / "segment=0"
    (folder / "part-x.parquet").write_bytes(b"not parquet")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception, match=r"part-x\.parquet"):
            ids.clean(str(table), POLICY, now(10**6), dry_run=False, spark=spark)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert folder.exists()
