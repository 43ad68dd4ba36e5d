"""Clean-up of a message table keeps every segment that it must keep, for any policy, types and rows."""

import shutil

import pytest
from helpers.message_tables import ONLY_DEFAULT, POLICY, SCHEMA, left, now, rows, write_table
from pyspark.sql import functions as F

import spark_ext as ids
from msgid.retention import InvalidPolicy, RetentionPolicy

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark, tmp_path):
    return write_table(spark, tmp_path / "messages")


STREAMS = "source string, " + SCHEMA


def streams():
    """Return rows of two streams with a topic of the same name; segment 0 of the second stream is active."""
    first = [("iggy:1/orders#0", *row) for row in rows(segments=3)]
    second = [("iggy:2/orders#0", *row) for row in rows(segments=1)]
    return [*first, *second]


def of_streams(found):
    return [(segment.source, segment.segment, segment.closed, segment.action) for segment in found]


def test_segment_report_of_two_streams_with_equal_topics_keeps_them_apart(spark):
    """The active segment of a stream is not closed by another stream's segments."""
    report = ids.segment_report(spark.createDataFrame(streams(), STREAMS), ONLY_DEFAULT, now(10**6)).collect()
    assert [(row.source, row.segment, row.closed, row.expired) for row in report] == [
        ("iggy:1/orders#0", 0, True, True),
        ("iggy:1/orders#0", 2, True, True),
        ("iggy:1/orders#0", 4, False, False),
        ("iggy:2/orders#0", 0, False, False),
    ]


@pytest.mark.details
@pytest.mark.parametrize("mark", [False, True])
def test_clean_of_a_folder_with_an_active_segment_of_another_stream_keeps_it(spark, tmp_path, mark):
    """A table that is not partitioned by source has both segments in one folder."""
    path = str(tmp_path / "mixed")
    spark.createDataFrame(streams(), STREAMS).write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, ONLY_DEFAULT, now(10**6), apply=True, mark=mark, spark=spark)
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


@pytest.mark.details
def test_clean_of_a_table_parted_by_source_deletes_one_streams_segment(spark, tmp_path):
    """The segment of the same name of the other stream stays."""
    path = str(tmp_path / "parted")
    spark.createDataFrame(streams(), STREAMS).write.partitionBy("source", "topic", "partition", "segment").parquet(path)
    ids.clean(path, ONLY_DEFAULT, now(10**6), apply=True, spark=spark)
    found = {(row.source, row.segment) for row in spark.read.parquet(path).collect()}
    assert found == {("iggy:1/orders#0", 4), ("iggy:2/orders#0", 0)}


@pytest.mark.details
def test_clean_with_a_policy_that_is_not_allowed_raises(spark, table):
    """A negative expiry is an error in every argument, and nothing is deleted."""
    policy = RetentionPolicy(default_expiry=60)
    policy.topics["orders"] = -(10**6)
    for attempt in (
        lambda: ids.clean(str(table), policy, now(0), apply=True, spark=spark),
        lambda: ids.segment_report(spark.createDataFrame(rows(), SCHEMA), policy, now(0)),
    ):
        with pytest.raises(InvalidPolicy, match="must be an integer of 0 to 4294967295 seconds, got -"):
            attempt()
    with pytest.raises(TypeError, match="policy must be a RetentionPolicy"):
        ids.clean(str(table), {"default_expiry": 60}, now(0), spark=spark)
    assert left(spark, table)


MANAGED = {
    "_spark_metadata/0": "Spark's own file sink manages it",
    "_delta_log/0.json": "it is part of a Delta table; pass format='delta'",
    "metadata/v1.metadata.json": "it is part of an Iceberg table",
    "topic=orders/_delta_log/0.json": "it is part of a Delta table",
    "../_delta_log/0.json": "it is part of a Delta table",
    "../metadata/v1.metadata.json": "it is part of an Iceberg table",
}


@pytest.mark.details
@pytest.mark.parametrize("mark", [False, True])
def test_clean_of_a_folder_that_another_system_manages_raises(spark, table, mark):
    """The other system has a list of the files, and cannot read its table if some are missing."""
    for inner, says in MANAGED.items():
        path = table / inner
        path.parent.mkdir(parents=True)
        path.write_text("{}")
        before = sorted(table.rglob("*"))
        with pytest.raises(ValueError, match=f"cannot clean .*{says}"):
            ids.clean(str(table), POLICY, now(10**6), apply=True, mark=mark, spark=spark)
        assert sorted(table.rglob("*")) == before
        shutil.rmtree(path.parent)


@pytest.mark.details
def test_clean_of_a_table_of_500_topics_judges_each(spark, tmp_path):
    """The depth of the expression does not grow with the number of topics."""
    policy = RetentionPolicy(
        default_expiry=60, topics={f"t{n}": 10**9 if n in (0, 1, 499) else n % 60 + 1 for n in range(500)}
    )
    made = [row for n in (0, 1, 499) for row in rows(f"t{n}", 2)] + rows("other", 2)
    path = str(tmp_path / "many")
    spark.createDataFrame(made, SCHEMA).coalesce(1).write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, policy, now(10**6), apply=True, spark=spark)
    assert [segment.topic for segment in found if segment.action == "removed"] == ["other"]


@pytest.mark.details
@pytest.mark.parametrize("missing", ["segment", "topic", "timestamp"])
def test_clean_of_a_table_with_a_row_without_a_value_keeps_the_row(spark, tmp_path, missing):
    """A row without a segment is never deleted, and other segments are still deleted."""
    df = spark.createDataFrame([*rows(), *rows("audit", 1)], SCHEMA)
    df = df.withColumn(missing, F.when(F.col("topic") != "audit", F.col(missing)))
    path = str(tmp_path / "nulls")
    df.write.partitionBy("topic", "partition", "segment").parquet(path)
    found = ids.clean(path, ONLY_DEFAULT, now(121), apply=True, spark=spark)
    assert [segment.segment for segment in found if segment.action == "removed"] == [0, 2]
    assert spark.read.parquet(path).where(f"{missing} is null").count() == 2


@pytest.mark.details
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


@pytest.mark.details
def test_clean_does_not_depend_on_the_time_zone_of_the_session(spark, table):
    """A segment expires at the same time in every time zone of the session."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for other in ("Pacific/Kiritimati", "Pacific/Niue"):
            spark.conf.set("spark.sql.session.timeZone", other)
            for seconds, expected in ((60, set()), (61, {("orders", 0), ("007", 0)})):
                found = ids.clean(str(table), POLICY, now(seconds), spark=spark)
                assert {(part.topic, part.segment) for part in found if part.expired} == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
