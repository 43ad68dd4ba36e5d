"""`is_expired` as a column follows the rule of Python, and its arguments do not depend on the session's time zone."""

from datetime import datetime

import pytest
from helpers.covering import covering
from helpers.message_tables import START, now
from helpers.spark_errors import query_fails
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import retention
from spark_ext.columns.expiry import has_expired

pytestmark = pytest.mark.spark
ANSI = ["true", "false"]


def test_is_expired_of_a_column_is_the_one_of_msgid(spark, ansi):
    """The column agrees with Python at the boundary to the microsecond, for NULL (the default) and for 0 (never)."""
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


@pytest.mark.parametrize("seconds", [-1, 4_294_967_296])
def test_expiry_out_of_range_raises(spark, ansi, seconds):
    """A number is refused at once, the value of a column when the query runs, in the same words."""
    words = f"must be an integer of 0 to 4294967295 seconds, got {seconds}"
    for arguments in ((seconds, now(0)), (1, now(0), seconds)):
        with pytest.raises(retention.InvalidPolicy, match=words):
            ids.is_expired("sent", *arguments)
    df = spark.createDataFrame([(START, seconds)], "sent timestamp, expiry bigint")
    with query_fails(f"expiry {words}"):
        df.select(ids.is_expired("sent", "expiry", START)).collect()


@pytest.mark.parametrize(
    ("sent", "ansi"),
    covering(
        ["1700000000000000", "1700000000000", "17E14BD", "double('NaN')", "timestamp_micros(9223372036854775807)"],
        ANSI,
        strength=1,
    ),
    indirect=["ansi"],
)
def test_moments_outside_the_years_raise(spark, ansi, sent):
    """Microseconds do not count as expired, nor milliseconds as never expiring; for any expiry, also 0."""
    df = spark.range(1).select(F.expr(sent).alias("sent"), F.current_timestamp().alias("t"))
    words = "must be Unix seconds within the years 1 to 9999, got|CAST_INVALID_INPUT"
    for name, column in (
        ("timestamp", ids.is_expired("sent", 10, START)),
        ("timestamp", ids.is_expired("sent", 0, START)),
        ("now", ids.is_expired("t", 10, "sent")),
    ):
        with query_fails(f"{name} {words}"):
            df.select(column).collect()


@pytest.mark.parametrize("expiry", [1, 4_294_967_295])
def test_timestamps_outside_the_years_expire_without_an_overflow(spark, ansi, expiry):
    """Such messages do not stop the job that deletes segments: the last of all timestamps has not expired."""
    micros = "timestamp_micros(9223372036854775807)", "timestamp_micros(-9223372036854775808)"
    last, first = (spark.range(1).select(has_expired(F.expr(at), expiry, START, 0)).first()[0] for at in micros)
    assert (last, first) == (False, True)
