"""IDs made on Spark equal Python's, for every input."""

from datetime import datetime, timedelta, timezone

import pytest
from helpers import vector_files as vectors
from helpers.covering import covering
from helpers.sessions import collected
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

# What a Spark timestamp can hold, in microseconds: years 1 to 9999, before 1970 and after 2157 among them.
micros = st.one_of(
    st.integers(-62_000_000_000_000_000, 253_000_000_000_000_000),
    st.sampled_from([0, -1, 1_609_459_199_999_999, 1_609_459_200_000_000, (1_609_459_200 + 2**32) * 10**6]),
)


# Milliseconds of a month that not every month has.
long_spans = st.integers(28 * 86_400_000 - 3_600_000, 32 * 86_400_000)


def moment(us):
    return EPOCH + timedelta(microseconds=us)


def test_position_id_of_a_column_is_the_one_of_msgid(spark, connect, ansi):
    """Any Unicode source, any offset, any time; NULL if one of them is NULL."""
    rows = [*many(st.tuples(names, offsets, micros), 300), (None, 1, 0), ("log", None, 0), ("log", 1, None)]
    df = spark.createDataFrame(rows, "source string, n bigint, us bigint")
    made = df.select("*", spark_ext.position_id("source", "n", F.timestamp_micros("us")).alias("id"))
    for row in collected(made, connect):
        is_null = None in row[:3]
        assert row.id == (None if is_null else str(msgid.position_id(row.source, row.n, moment(row.us))))


def test_derive_id_of_a_column_is_the_one_of_msgid(spark, connect, ansi):
    """Any parent in any form, any Unicode name, integers as names, with and without a time; NULL if one is NULL."""
    forms = [str, lambda id: str(id).lower(), lambda id: id.canonical]
    rows = [
        (forms[n % 3](id), bytes.fromhex(id.canonical), name, us)
        for n, (id, name, us) in enumerate(many(st.tuples(ids, names, micros), 300))
    ]
    rows += [(None, None, "x", 0), (PARENT, bytes.fromhex(PARENT), None, None)]
    df = spark.createDataFrame(rows, "parent string, raw binary, name string, us bigint")
    at = F.timestamp_micros("us")
    made = df.select(
        "*",
        spark_ext.derive_id("parent", "name").alias("own"),
        spark_ext.derive_id("raw", "us").alias("integer"),
        spark_ext.derive_id("parent", "name", at=at).alias("at"),
        spark_ext.derive_id("parent", "name", "us", at=at).alias("second"),
        spark_ext.derive_id(spark_ext.derive_id("parent", "name", at=at), "us").alias("nested"),
        spark_ext.derive_id(spark_ext.derive_id("parent", "name"), "us", at=at).alias("dated"),
    )
    for row in collected(made, connect):
        if None in row[:4]:
            assert row[4:] == (None,) * 6
            continue
        assert row.own == str(msgid.derive_id(row.parent, row.name))
        assert row.integer == str(msgid.derive_id(row.parent, row.us))
        assert row.at == str(msgid.derive_id(row.parent, row.name, at=moment(row.us)))
        assert row.dated == str(msgid.derive_id(row.own, row.us, at=moment(row.us)))
        assert row.second == row.nested == str(msgid.derive_id(row.parent, row.name, row.us, at=moment(row.us)))


def test_derive_id_with_a_constant_time_raises_as_a_column_does(spark):
    """Spark folds what a constant NULL makes NULL, and must not fold the errors of the other arguments."""
    first, millis, again = spark_ext.derive_id, F.lit(1_700_000_000_000), F.lit("b")
    wrong = [first(first("id", "n", at=millis), again), first("id", "n", again, at=millis),
             first(first("id", "n"), again, at=millis), first(first("n", "n", at=F.lit(None)), again)]  # fmt: skip
    df = spark.createDataFrame([(PARENT, "n")], "id string, n string")
    for column in wrong:
        with query_fails(by_user=True):
            df.select(column).collect()
    assert df.select(first(first("id", "n"), again, at=F.lit(None).cast("bigint"))).first() == (None,)


@pytest.mark.parametrize(("offset", "ansi"), [(-1, "false"), (2**48, "true"), (-(2**63), "true")], indirect=["ansi"])
def test_position_id_with_an_offset_out_of_range_raises(spark, ansi, offset):
    """The words are Python's own."""
    with pytest.raises(ValueError, match="offset") as python:
        msgid.position_id("log", offset, 0)
    df = spark.createDataFrame([(offset,)], "offset bigint")
    with query_fails(by_user=True) as caught:
        df.select(spark_ext.position_id(F.lit("log"), "offset", F.lit(0))).collect()
    assert str(python.value) in str(caught.value)


seen_ids = st.tuples(
    ids | st.builds(msgid.ClientUniqueId, *map(st.just, ("10.0.0.1", 1, 2)), long_spans, st.just(0)),
    st.integers(0, 4 * 10**15),
    st.sampled_from(["Asia/Kolkata", "UTC", "Europe/Berlin"]),
)


@pytest.mark.details
def test_v0_time_of_any_id_is_the_one_of_msgid(spark, connect, ansi):
    """To the millisecond: the vectors of RocketMQ's own Java, and any ID near any moment, or NULL if none is near.

    The moments of one ID up to a day earlier, because a message is stored in the millisecond of its ID and clocks
    differ, have its time; an earlier moment has the time of the month before.
    """
    vector_times = {(row.id, us_of(row.now), row.zone): us_of(row.born) for row in vectors.UNIQ_ID_TIMES}
    assert len(vector_times) == 216
    made, day = us_of(msgid.parse(CLIENT).time_near(near=moment(1_700_000_000_000_000), timezone="UTC")), 86_400_000_000
    rows = [*vector_times, *((str(id), us, zone) for id, us, zone in many(seen_ids, 300))]
    rows += [(CLIENT, near, "UTC") for near in (made + 1, made, made - day, made - day - 1)]
    nulls = [(None, 0, "UTC"), (CLIENT, None, "UTC"), (CLIENT, 0, None)]
    df = spark.createDataFrame(rows + nulls, "id string, us bigint, zone string")
    found = df.select("*", F.unix_micros(spark_ext.v0_time("id", F.timestamp_micros("us"), "zone")).alias("made"))
    for row in collected(found, connect):
        key = tuple(row[:3])
        near = None if None in key else time_near(msgid.parse(row.id), row.us, row.zone)
        assert row.made == vector_times.get(key, near), row
    a_day, more = (time_near(msgid.parse(CLIENT), made - day - us, "UTC") for us in (0, 1))
    assert a_day == made > more


def us_of(time):
    """Return a time in microseconds since 1970."""
    return (time - EPOCH) // timedelta(microseconds=1)


def time_near(id, us, zone):
    """Return the time of `msgid` in microseconds; None for an ID without one."""
    if not isinstance(id, msgid.ClientUniqueId):
        return None
    try:
        return us_of(id.time_near(near=moment(us), timezone=zone))
    except ValueError:
        return None


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


AT_A_MOMENT = {
    "position_id: at": lambda: spark_ext.position_id(F.lit("log"), F.lit(1), "at"),
    "derive_id: at": lambda: spark_ext.derive_id("parent", F.lit("x"), at="at"),
    "v0_time: near": lambda: spark_ext.v0_time(F.lit(CLIENT), "at", F.lit("UTC")),
    "is_expired: timestamp": lambda: spark_ext.is_expired("at", 0, F.timestamp_seconds(F.lit(0))),
    "is_expired: now": lambda: spark_ext.is_expired(F.timestamp_seconds(F.lit(0)), 10, "at"),
}


@pytest.mark.parametrize(
    ("type", "ansi"), [("timestamp_ntz", "true"), ("date", "false"), ("string", "true")], indirect=["ansi"]
)
def test_moments_without_a_zone_raise_before_the_query_runs(spark, ansi, type):
    """A moment whose meaning depends on the session's time zone is refused when the column is resolved."""
    df = spark.range(1).select(F.lit("2021-11-21").cast(type).alias("at"), F.lit(PARENT).alias("parent"))
    for name, made in AT_A_MOMENT.items():
        with pytest.raises(AnalysisException, match=rf"{name} must be a timestamp .* got {type}"):
            _ = df.select(made()).schema


def test_position_id_of_an_offset_that_is_not_an_integer_raises_before_the_query_runs(spark, ansi):
    """No fraction is cut off, no NaN becomes 0, and text is not read as a number."""
    for offset in ("1.2D", "double('NaN')", "7.0BD", "'7'", "X'07'", "true"):
        df = spark.range(1).select(F.expr(offset).alias("offset"))
        with pytest.raises(AnalysisException, match=r"DATATYPE_MISMATCH|position_id: offset must be an integer, got"):
            _ = df.select(spark_ext.position_id(F.lit("log"), "offset", F.lit(0))).schema


@pytest.mark.parametrize(("at", "ansi"), [(1_648_047_038_000, "true"), (-62_135_596_801, "false")], indirect=["ansi"])
@pytest.mark.details
def test_times_outside_the_years_1_to_9999_raise_as_in_python(spark, ansi, at):
    """Milliseconds are not read as seconds; an offset or parent that is NULL still gives NULL."""
    with pytest.raises(ValueError, match=f"within the years 1 to 9999, got {at}"):
        msgid.position_id("log", 1, at)
    schema = "parent string, offset bigint, at bigint"
    rows, nulls = (spark.createDataFrame([row], schema) for row in ((PARENT, 1, at), (None, None, at)))
    made = [spark_ext.position_id(F.lit("log"), "offset", "at"), spark_ext.derive_id("parent", F.lit("x"), at="at")]
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


@pytest.mark.parametrize(
    ("at", "name", "ansi"), covering(list(MOMENTS_OUTSIDE), list(AT_A_MOMENT), ANSI, strength=1), indirect=["ansi"]
)
@pytest.mark.details
def test_numbers_that_are_no_moment_raise_before_spark_changes_them(spark, ansi, at, name):
    """No ID is made of what Spark's cast leaves of the number."""
    df = spark.range(1).select(F.lit(PARENT).alias("parent"), F.expr(at).alias("at"))
    outside = f"must be Unix seconds within the years 1 to 9999, got {MOMENTS_OUTSIDE[at]}"
    words = f"(at|near|timestamp|now) {outside}|CAST_INVALID_INPUT"
    with query_fails(words):
        df.select(AT_A_MOMENT[name]()).collect()


@pytest.mark.details
def test_sources_and_names_that_are_neither_text_nor_integers_raise(spark, ansi):
    """The text of a timestamp depends on the session's time zone, so no ID is made of it."""
    for value in ("current_timestamp()", "current_date()", "1.5D", "1.5BD", "X'07'", "true", "array(1)"):
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
