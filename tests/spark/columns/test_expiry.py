"""`is_expired` as a column follows the rule of Python, and its arguments do not depend on the session's time zone."""

from datetime import datetime

import pytest
from helpers.message_tables import START, now
from helpers.spark_errors import query_fails
from pyspark.sql import functions as F

import spark_ext as ids
from msgid import retention
from spark_ext.columns.expiry import has_expired

pytestmark = pytest.mark.spark


def test_is_expired_of_a_column_is_the_one_of_msgid(spark, ansi):
    """The column agrees with Python at the boundary to the microsecond, for NULL (the default) and for 0 (never)."""
    moment = START.timestamp() * 1e6
    cases = [(age, expiry) for age in (-5, 0, 9_999_999, 10_000_000, 10_000_001, 10**15) for expiry in (None, 0, 10)]
    rows = [*((int(moment) - age, expiry) for age, expiry in cases), (None, 1)]
    df = spark.createDataFrame(rows, "sent bigint, expiry int")
    df = df.select(F.timestamp_micros("sent").alias("sent"), "expiry")
    defaults = (0, 10)
    found = df.select(*(ids.is_expired("sent", "expiry", START, default) for default in defaults)).collect()
    for place, default in enumerate(defaults):
        expected = [retention.is_expired(int(moment) - age, expiry, int(moment), default) for age, expiry in cases]
        assert [row[place] for row in found] == [*expected, None]
    with pytest.raises(ValueError, match="now must be an aware datetime"):
        ids.is_expired("sent", 1, datetime(2026, 1, 1))


@pytest.mark.parametrize("seconds", [-1, 4_294_967_296])
def test_expiry_out_of_range_raises(spark, ansi, seconds):
    """A number is refused at once, the value of a column when the query runs, in the same words."""
    words = f"must be an integer of 0 to 4294967295 seconds, got {seconds}"
    for arguments in ((seconds, now(0)), (1, now(0), seconds)):
        with pytest.raises(retention.InvalidPolicy, match=words):
            ids.is_expired("sent", *arguments)
    df = spark.createDataFrame([(START, seconds)], "sent timestamp_ltz, expiry bigint")
    with query_fails(f"expiry {words}"):
        df.select(ids.is_expired("sent", "expiry", START)).collect()


def test_timestamps_outside_the_years_expire_without_an_overflow(spark, ansi):
    """Such messages do not stop the job that deletes segments: the last of all timestamps has not expired."""
    last, first = "timestamp_micros(9223372036854775807)", "timestamp_micros(-9223372036854775808)"
    due = [has_expired(F.expr(at), expiry, START, 0) for expiry in (1, 4_294_967_295) for at in (last, first)]
    assert tuple(spark.range(1).select(*(one.alias(f"c{n}") for n, one in enumerate(due))).first()) == (False, True) * 2
