"""IDs made on Spark equal Python's, for every input."""

from datetime import datetime, timedelta, timezone

import pytest
from helpers import vector_files as vectors
from helpers.covering import covering
from helpers.spark_errors import query_fails
from helpers.strategies import ids, many, names, offsets
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import msgid
import spark_ext

pytestmark = pytest.mark.spark

PARENT = "0156F7E71C361B21BC024CCDBE00000000"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ANSI = ["true", "false"]
ZONES = ["UTC", "Asia/Tokyo", "America/New_York"]

# What a Spark timestamp can hold, in microseconds: years 1 to 9999, before 1970 and after 2157 among them.
micros = st.one_of(
    st.integers(-62_000_000_000_000_000, 253_000_000_000_000_000),
    st.sampled_from([0, -1, 1_609_459_199_999_999, 1_609_459_200_000_000, (1_609_459_200 + 2**32) * 10**6]),
)


# Milliseconds of a month that not every month has.
long_spans = st.integers(28 * 86_400_000 - 3_600_000, 32 * 86_400_000)


@pytest.fixture(params=["America/New_York", *(pytest.param(zone, marks=pytest.mark.details) for zone in ZONES[:2])])
def session_zone(request, spark):
    """Three time zones: an ID does not depend on the session's time zone; `test_settings` has another one."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def moment(us):
    return EPOCH + timedelta(microseconds=us)


def test_position_id_of_a_column_is_the_one_of_msgid(spark, session_zone):
    """Any Unicode source, any offset, any time, in any time zone of the session."""
    df = spark.createDataFrame(many(st.tuples(names, offsets, micros), 300), "source string, offset bigint, us bigint")
    made = df.select("*", spark_ext.position_id("source", "offset", F.timestamp_micros("us")).alias("id")).collect()
    for row in made:
        assert row.id == str(msgid.position_id(row.source, row.offset, moment(row.us)))


def test_derive_id_of_a_column_is_the_one_of_msgid(spark, session_zone):
    """Any parent in any form, any Unicode name, with and without a time."""
    forms = [str, lambda id: str(id).lower(), lambda id: id.canonical]
    listed = [(forms[n % 3](id), name, us) for n, (id, name, us) in enumerate(many(st.tuples(ids, names, micros), 300))]
    df = spark.createDataFrame(listed, "parent string, name string, us bigint")
    made = df.select(
        "*",
        spark_ext.derive_id("parent", "name").alias("own"),
        spark_ext.derive_id("parent", "name", at=F.timestamp_micros("us")).alias("at"),
        spark_ext.derive_id("parent", "name", "us", "name").alias("third"),
        spark_ext.derive_id("parent", "name", "us", at=F.timestamp_micros("us")).alias("second"),
    ).collect()
    for row in made:
        assert row.own == str(msgid.derive_id(row.parent, row.name))
        assert row.at == str(msgid.derive_id(row.parent, row.name, at=moment(row.us)))
        assert row.third == str(msgid.derive_id(row.parent, row.name, row.us, row.name))
        assert row.second == str(msgid.derive_id(row.parent, row.name, row.us, at=moment(row.us)))


def test_derive_id_of_integer_names_and_binary_parents_is_the_same(spark, ansi):
    """An integer stands for its decimal digits; a parent's bytes for its text."""
    df = spark.createDataFrame([(bytearray.fromhex(PARENT), n) for n in (0, -7, 2**62)], "parent binary, n bigint")
    made = df.select("n", spark_ext.derive_id("parent", "n").alias("id")).collect()
    assert {row.n: row.id for row in made} == {n: str(msgid.derive_id(PARENT, n)) for n in (0, -7, 2**62)}


@pytest.mark.parametrize(
    ("offset", "ansi"), covering([-1, 2**48, 2**62, -(2**63)], ANSI, strength=1), indirect=["ansi"]
)
def test_position_id_with_an_offset_out_of_range_raises(spark, ansi, offset):
    """The words are Python's own."""
    with pytest.raises(ValueError, match="offset") as python:
        msgid.position_id("log", offset, 0)
    df = spark.createDataFrame([(offset,)], "offset bigint")
    with query_fails(by_user=True) as caught:
        df.select(spark_ext.position_id(F.lit("log"), "offset", F.lit(0))).collect()
    assert str(python.value) in str(caught.value)


def test_ids_of_null_are_null(spark, ansi):
    """An ID is NULL if one of its arguments is NULL."""
    df = spark.createDataFrame([(None, None, None, None)], "text string, n bigint, t timestamp, zone string")
    row = df.select(
        spark_ext.position_id(F.lit("log"), "n", F.lit(0)),
        spark_ext.position_id("text", F.lit(1), F.lit(0)),
        spark_ext.position_id(F.lit("log"), F.lit(1), "t"),
        spark_ext.derive_id("text", F.lit("x")),
        spark_ext.derive_id(F.lit(PARENT), "text"),
        spark_ext.derive_id(F.lit(PARENT), F.lit("x"), "text"),
        spark_ext.derive_id(F.lit(PARENT), F.lit("x"), at="t"),
        spark_ext.v0_time("text", F.lit(0), F.lit("UTC")),
        spark_ext.v0_time(F.lit(CLIENT), "t", F.lit("UTC")),
        spark_ext.v0_time(F.lit(CLIENT), F.lit(0), "zone"),
    ).first()
    assert tuple(row) == (None,) * 10


def test_v0_time_of_real_ids_is_that_of_rocketmq(spark, session_zone):
    """Every vector of RocketMQ's own Java, to the millisecond, whatever the session's time zone."""
    rows = [
        (row.id, round(row.now.timestamp() * 1000), row.zone, round(row.born.timestamp() * 1000))
        for row in vectors.UNIQ_ID_TIMES
    ]
    df = spark.createDataFrame(rows, "id string, now_ms bigint, zone string, born_ms bigint")
    time = spark_ext.v0_time("id", F.timestamp_millis("now_ms"), "zone")
    found = df.select(F.unix_millis(time), "born_ms").collect()
    assert len(found) == 216
    assert [row for row in found if row[0] != row[1]] == []


seen_ids = st.tuples(
    ids | st.builds(msgid.ClientUniqueId, *map(st.just, ("10.0.0.1", 1, 2)), long_spans, st.just(0)),
    st.integers(0, 4 * 10**15),
    st.sampled_from(["Asia/Kolkata", "UTC", "Europe/Berlin"]),
)


def test_v0_time_of_any_id_is_the_one_of_msgid(spark):
    """Any client ID near any moment has the time of `msgid`, or is NULL if no month has its milliseconds."""
    rows = [(str(id), us, zone) for id, us, zone in many(seen_ids, 300)]
    df = spark.createDataFrame(rows, "id string, us bigint, zone string")
    made = df.select("*", F.unix_micros(spark_ext.v0_time("id", F.timestamp_micros("us"), "zone")).alias("made"))
    for row in made.collect():
        assert row.made == time_near(msgid.parse(row.id), row.us, row.zone), row


def time_near(id, us, zone):
    """Return the time of `msgid` in microseconds; None for an ID without one."""
    if not isinstance(id, msgid.ClientUniqueId):
        return None
    try:
        return (id.time_near(near=moment(us), timezone=zone) - moment(0)) // timedelta(microseconds=1)
    except ValueError:
        return None


def test_v0_time_of_an_id_up_to_a_day_later_is_that_of_python(spark):
    """A message is stored in the millisecond of its ID, and clocks differ."""
    made = msgid.parse(CLIENT).time_near(near=moment(1_700_000_000_000_000), timezone="UTC")
    day, us = 86_400_000_000, (made - moment(0)) // timedelta(microseconds=1)
    nears = [us + 1, us, us - day, us - day - 1]
    rows = spark.createDataFrame([(near,) for near in nears], "us bigint")
    found = rows.select(
        F.unix_micros(spark_ext.v0_time(F.lit(CLIENT), F.timestamp_micros("us"), F.lit("UTC")))
    ).collect()
    expected = [msgid.parse(CLIENT).time_near(near=moment(near), timezone="UTC") for near in nears]
    assert [moment(row[0]) for row in found] == expected
    assert expected[:3] == [made] * 3
    assert expected[3] < made


@pytest.mark.details
def test_generate_id_on_executors_makes_different_ids(spark):
    """Valid, distinct over all workers, and new ones each time; each worker has a node and pid of its own."""
    df = spark.range(20_000, numPartitions=4).select(spark_ext.generate_id())
    first, second = ([msgid.MessageId(row[0]) for row in df.collect()] for _ in range(2))
    assert len(set(first) | set(second)) == 40_000
    workers = {(id.origin, id.node, id.pid) for id in first}
    assert {origin for origin, _, _ in workers} in ({"mac"}, {"random"})
    assert len({node for _, node, _ in workers}) == (1 if next(iter(workers))[0] == "mac" else len(workers))


def test_assign_ids_with_an_order_sorts_within_partitions_first(spark):
    """With a key to sort by, the numbering is that of the key, whatever order the rows came in."""
    rows = spark.range(1000).withColumn("key", F.sha2(F.col("id").cast("string"), 256)).drop("id")

    def numbered(order):
        df = rows.coalesce(1).orderBy(order).coalesce(1)
        return {row.key: row.mine for row in df.transform(spark_ext.assign_ids, "mine", "key", "run", 0).collect()}

    forward = numbered(F.asc("key"))
    assert forward == numbered(F.desc("key"))
    assert [forward[key] for key in sorted(forward)] == sorted(forward.values())
    many = rows.transform(spark_ext.assign_ids, order_by=["key", F.col("key")])
    assert many.select("id").distinct().count() == 1000


def test_assign_id_in_a_stream_raises_and_names_what_to_use(spark):
    """A stream's rows cannot be counted: the error says which functions a stream has."""
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="in a streaming query use position_id, derive_id or generate_id"):
        spark_ext.assign_ids(stream)
    writer = stream.select(spark_ext.assign_id()).writeStream.format("noop")
    with query_fails("position_id, derive_id or generate_id"):
        writer.start()


@pytest.mark.parametrize(
    ("zone", "type", "ansi"),
    covering(ZONES, ["timestamp_ntz", "date", "string"], ANSI, strength=1),
    indirect=["ansi"],
)
def test_moments_without_a_zone_raise_before_the_query_runs(spark, ansi, zone, type):
    """A moment whose meaning depends on the session's time zone is refused when the column is resolved."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.range(1).select(F.lit("2021-11-21").cast(type).alias("at"))
        for name, column in (
            ("position_id: at", spark_ext.position_id(F.lit("log"), F.lit(1), "at")),
            ("derive_id: at", spark_ext.derive_id(F.lit(PARENT), F.lit("invoice"), at="at")),
            ("v0_time: near", spark_ext.v0_time(F.lit(CLIENT), "at", F.lit("UTC"))),
            ("is_expired: timestamp", spark_ext.is_expired("at", 10, F.timestamp_seconds(F.lit(0)))),
            ("is_expired: now", spark_ext.is_expired(F.timestamp_seconds(F.lit(0)), 10, "at")),
        ):
            with pytest.raises(AnalysisException, match=rf"{name} must be a timestamp .* got {type}"):
                _ = df.select(column).schema
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize(
    ("offset", "ansi"),
    covering(["1.2D", "double('NaN')", "7.0BD", "'7'", "X'07'", "true"], ANSI, strength=1),
    indirect=["ansi"],
)
def test_position_id_of_an_offset_that_is_not_an_integer_raises_before_the_query_runs(spark, ansi, offset):
    """No fraction is cut off, no NaN becomes 0, and text is not read as a number."""
    df = spark.range(1).select(F.expr(offset).alias("offset"))
    with pytest.raises(AnalysisException, match=r"DATATYPE_MISMATCH|position_id: offset must be an integer, got"):
        _ = df.select(spark_ext.position_id(F.lit("log"), "offset", F.lit(0))).schema


@pytest.mark.parametrize(
    ("at", "ansi"),
    covering([1_648_047_038_000, -62_135_596_801, 253_402_300_800], ANSI, strength=0),
    indirect=["ansi"],
)
def test_times_outside_the_years_1_to_9999_raise_as_in_python(spark, ansi, at):
    """Milliseconds are not read as seconds; an offset or parent that is NULL still gives NULL."""
    with pytest.raises(ValueError, match=f"within the years 1 to 9999, got {at}"):
        msgid.position_id("log", 1, at)
    schema = "parent string, offset bigint, at bigint"
    rows, nulls = (spark.createDataFrame([row], schema) for row in ((PARENT, 1, at), (None, None, at)))
    made = [
        spark_ext.position_id(F.lit("log"), "offset", "at"),
        spark_ext.derive_id("parent", F.lit("x"), at="at"),
    ]
    for column in made:
        with query_fails(f"at must be Unix seconds within the years 1 to 9999, got {at}"):
            rows.select(column).collect()
    assert tuple(nulls.select(*made).first()) == (None, None)


# Spark's cast to a timestamp wraps a decimal number, and makes NaN NULL without ANSI mode.
MOMENTS_OUTSIDE = {
    "1789400000000000BD": "1789400000000000",
    "CAST(1789400000000000 AS DECIMAL(38, 6))": r"1789400000000000\.000000",
    "1.7894E15D": r"1\.7894E15",
    "253402300800.0BD": r"253402300800\.0",
    "-62135596800.5D": r"-6\.21355968005E10",
    "double('NaN')": "NaN",
    "double('Infinity')": "Infinity",
    "timestamp_micros(9223372036854775807)": "9223372036854",
}


AT_A_MOMENT = {
    "position_id": lambda: spark_ext.position_id(F.lit("log"), F.lit(1), "at"),
    "derive_id": lambda: spark_ext.derive_id("parent", F.lit("x"), at="at"),
    "v0_time": lambda: spark_ext.v0_time(F.lit(CLIENT), "at", F.lit("UTC")),
}


@pytest.mark.parametrize(
    ("at", "name", "ansi"), covering(list(MOMENTS_OUTSIDE), list(AT_A_MOMENT), ANSI, strength=1), indirect=["ansi"]
)
def test_numbers_that_are_no_moment_raise_before_spark_changes_them(spark, ansi, at, name):
    """No ID is made of what Spark's cast leaves of the number."""
    df = spark.range(1).select(F.lit(PARENT).alias("parent"), F.expr(at).alias("at"))
    words = f"(at|near) must be Unix seconds within the years 1 to 9999, got {MOMENTS_OUTSIDE[at]}|CAST_INVALID_INPUT"
    with query_fails(words):
        df.select(AT_A_MOMENT[name]()).collect()


@pytest.mark.parametrize(
    ("value", "ansi"),
    covering(["current_timestamp()", "current_date()", "1.5D", "1.5BD", "X'07'", "true", "array(1)"], ANSI, strength=1),
    indirect=["ansi"],
)
def test_sources_and_names_that_are_neither_text_nor_integers_raise(spark, ansi, value):
    """The text of a timestamp depends on the session's time zone, so no ID is made of it."""
    df = spark.range(1).select(F.expr(value).alias("value"))
    for column in (
        spark_ext.position_id("value", F.lit(1), F.lit(0)),
        spark_ext.derive_id(F.lit(PARENT), "value"),
    ):
        with pytest.raises(AnalysisException, match=r"(source|name) must be text or an integer, got \w+") as caught:
            _ = df.select(column).schema
        said = str(caught.value).partition("\n\nJVM stacktrace:")[0]  # Spark Connect adds the server's stack
        assert "\n" not in said


def test_assign_ids_to_a_name_that_is_taken_raises(spark):
    """No column of the user's is overwritten, whatever the case of its name."""
    df = spark.createDataFrame([("a",)], ["Id"])
    with pytest.raises(ValueError, match="`name` must be the name of a new column, got 'id'"):
        spark_ext.assign_ids(df)
