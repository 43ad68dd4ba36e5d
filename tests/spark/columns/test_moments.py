"""Moments in columns and in SQL, against `msgid.shared.moments`: all types and edge values, in any session."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from helpers.edges import ZONES, session_zone
from pyspark.sql import functions as F

import msgid
import spark_ext
from msgid.errors import InvalidMessage
from msgid.shared.moments import UNIX_SECONDS_MAX, UNIX_SECONDS_MIN, moment_of, unix_micros
from spark_ext import _compat
from spark_ext._settings import settings
from spark_ext.columns.moment_columns import micros_column, micros_of, moment_column, moment_in_utc

pytestmark = pytest.mark.spark

FLOATS = [
    0.0, -0.0, 0.5, -0.5, -1e-07, 1e-07, -1.0, -1.0000001, 5.9999999, -5.9999999, 1_700_000_000.999999,
    1_700_000_000.9999998, 1e9 + 0.1, -62_135_596_800.0, -62_135_596_799.5, 253_402_300_799.0, 253_402_300_799.9,
]  # fmt: skip
INTEGERS = [0, -1, 1, 1_700_000_000, -1_700_000_000, UNIX_SECONDS_MIN, UNIX_SECONDS_MAX]
DECIMALS = [Decimal(text) for text in (
    "0", "-0.0000001", "-0.000001", "0.999999999999999999", "-0.000000000000000001", "1700000000.9999999",
    "253402300799.999999999999999999", "-62135596800", "-1.5",
)]  # fmt: skip
TIMESTAMPS = [
    datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=n)
    for n in (0, -1, 1, -1_000_000, -1_000_001, 999_999, 1_792_000_000_123_456, UNIX_SECONDS_MIN * 10**6,
              (UNIX_SECONDS_MAX + 1) * 10**6 - 1)
]  # fmt: skip
WRONG = [float("nan"), -float("inf"), 1.8e12]


@pytest.fixture(scope="module")
def tables(spark):
    """One table per type, in one view each; with the SQL functions."""
    if _compat.version() < (4, 0):
        pytest.skip("needs Spark 4.0")
    spark_ext.register(spark)
    seconds = lambda moment: f"timestamp_micros({unix_micros(moment)}L)"  # noqa: E731
    texts = {
        "double": [f"CAST('{value!r}' AS DOUBLE)" for value in FLOATS],
        "bigint": [f"{value}L" for value in INTEGERS],
        "decimal": [f"CAST('{value}' AS DECIMAL(38, 18))" for value in DECIMALS],
        "timestamp": [seconds(moment) for moment in TIMESTAMPS],
    }
    for name, values in texts.items():
        rows = ", ".join(f"({place}, {value})" for place, value in enumerate(values))
        spark.sql(f"SELECT * FROM VALUES {rows} AS t(n, at)").createOrReplaceTempView(f"moments_{name}")
    return {"double": FLOATS, "bigint": INTEGERS, "decimal": DECIMALS, "timestamp": TIMESTAMPS}


def python_moment(value):
    """Return the value for Python: a decimal number does not have a type there, so its whole seconds stand for it."""
    return math.floor(value) if isinstance(value, Decimal) else value


def test_position_of_a_moment_is_one_id_in_python_columns_and_sql(spark, tables, ansi):
    """Seconds round down, before 1970 too."""
    for name, given in tables.items():
        # The SQL of Spark 4.0 reads a timestamp as a double, which rounds the last one.
        values = given[:-1] if name == "timestamp" and _compat.version() < (4, 1) else given
        df = (
            spark.table(f"moments_{name}")
            .where(F.col("n") < len(values))
            .select(
                "n",
                spark_ext.position_id(F.lit("log"), "n", "at").alias("column"),
                F.expr("msgid_position('log', n, at)").alias("sql"),
                micros_of(F.col("at")).alias("micros"),
            )
        )
        rows = df.sort("n").collect()
        expected = [str(msgid.position_id("log", n, python_moment(value))) for n, value in enumerate(values)]
        assert [(row.column, row.sql) for row in rows] == [(id, id) for id in expected], name
        if name in ("timestamp", "bigint"):
            whole = [unix_micros(v) if isinstance(v, datetime) else v * 10**6 for v in values]
            assert [row.micros for row in rows] == whole


@pytest.mark.parametrize("value", WRONG)
def test_number_outside_the_years_is_refused_everywhere(spark, tables, value):
    """It is usually in milliseconds; the column's error names the allowed types."""
    with pytest.raises(ValueError, match="at must be Unix seconds within the years 1 to 9999"):
        msgid.position_id("log", 1, value)
    df = spark.range(1).select(spark_ext.position_id(F.lit("log"), F.lit(1), F.lit(value)))
    with pytest.raises(Exception, match="at must be Unix seconds within the years 1 to 9999"):
        df.collect()
    in_sql = spark.sql(f"SELECT msgid_position('log', 1, CAST('{value!r}' AS DOUBLE))")
    if math.isfinite(value):
        with pytest.raises(Exception, match=r"within the years|NUMERIC_VALUE_OUT_OF_RANGE"):
            in_sql.collect()
    else:  # Spark's cast to the type of the parameter makes NULL of it
        assert in_sql.collect() == [(None,)]


EXPORTED = [
    "1970-01-01T00:00:00Z", "2022-03-23T23:50:38+09:00", "2022-03-23 23:50:38.1-05:30", "1648047038000", "-1",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-12:00", "2022-03-23T23:50:38", "",
    "2022-02-30T00:00:00Z", "now", "1e3", "٣", "2022-03-23T23:50:38.1234567Z", "253402300800000", None,
    "2022-03-23T24:00:00Z", "2022-03-23T23:50:60Z", "2022-03-23T23:50:38+19:00", "2022-03-23t23:50:38z",
    "2022-03-23T23:50:38+18:00", "2022-03-23T23:50:38-18:01", "2022-03-23T23:50:38+09:60", "2022-03-23T23:50:38-00:00",
    "-62135596800001", "9999999999999999999", "-0", "+5", "2022-03-23T23:50:38.123456789Z", "2022-03-23 23:50:38+00",
    "1969-12-31T23:59:59.999999999Z", "2022-03-23T23:50:38.1+0530", "2022-03-23T23:50:38-18",
    "2022-03-23T23:50:38+1860", "2022-03-23T23:50:38+5", "2022-03-23T23:50:38+05:3", "2022-03-23T23:50:38.1234567890Z",
    "2022-03-23T23:50:38+19",
]  # fmt: skip
MILLIS = [0, -1, 1, 1_648_047_038_123, 253_402_300_799_999, 253_402_300_800_000, -62_135_596_800_000, 1 << 62, None]


def micros_or_none(value):
    """Return the microseconds of a moment as Python reads it."""
    try:
        return unix_micros(moment_of("at", value))
    except InvalidMessage:
        return None


def micros_in_audit(values):
    """Return the microseconds of an Arrow array of moments as an audit on one machine reads them."""
    pytest.importorskip("duckdb", reason="needs the packages of an audit")
    from msgid.audit._roles import Roles
    from msgid.audit._sources import open_frame
    from msgid.audit.duck import Duck
    from msgid.audit.options import Rules
    from msgid.shared.known_tables import Columns

    duck = Duck()
    source = open_frame(duck, pa.table({"at": values}))
    base = Roles(duck, source, Columns(None, timestamp="at"), Rules()).base
    return [sent for (sent,) in duck.rows(f"SELECT sent FROM {base}")]


@pytest.mark.parametrize(("type", "values"), [("string", EXPORTED), ("bigint", MILLIS), ("timestamp", TIMESTAMPS)])
def test_moment_of_an_export_is_one_moment_in_python_columns_and_audits(spark, tables, type, values):
    """Text with an offset, milliseconds and timestamps; anything else is NULL in a column and an error in Python."""
    kinds = {"string": pa.string(), "bigint": pa.int64(), "timestamp": pa.timestamp("us", "UTC")}
    if type == "timestamp":
        df = spark.sql("SELECT * FROM moments_timestamp").select(F.col("n"), F.col("at"))
    else:
        df = spark.createDataFrame(list(enumerate(values)), f"n int, at {type}")
    rows = df.select("n", F.unix_micros(moment_column(df, "at")), micros_column(df, "at")).sort("n").collect()
    expected = [micros_or_none(value) for value in values]
    assert [row[1] for row in rows] == expected
    assert [row[2] for row in rows] == expected
    assert micros_in_audit(pa.array(values, kinds[type])) == expected


def test_dates_and_nanoseconds_of_an_audit_round_down():
    """A day begins at midnight in UTC; a nanosecond before 1970 belongs to the microsecond before 1970."""
    days = pa.array([date(1969, 12, 31), None, date(1970, 1, 2)])
    assert micros_in_audit(days) == [-86_400_000_000, None, 86_400_000_000]
    assert micros_in_audit(pa.array([-1, 999, 1000, -1001], pa.timestamp("ns"))) == [-1, 0, 1, -2]


@pytest.mark.details
def test_moment_of_a_message_is_the_one_of_a_session_in_utc(spark):
    """In every zone, of every type that Spark casts to a timestamp, also at a clock change; a zone in a text counts."""
    texts = "'2026-03-08 02:30:00', '2026-11-01T01:30:00.5', ' 2026-01-02 ', '2026', '2026-1', '2026-1-2T', "
    texts += "'2026-01-02 03:04:05+01:00', '2026-01-02 03:04:05Z', '2026-01-02 03:04:05 America/New_York', "
    texts += "'+10000-01-01', '-0005-01-01', 'x', '', NULL"
    far = "TIMESTAMP_NTZ'+10000-01-01 00:00:00', TIMESTAMP_NTZ'-0001-12-31 23:59:59.999999'"
    lists = [texts, f"TIMESTAMP_NTZ'2026-03-08 02:30:00', {far}, NULL", "DATE'2026-03-08', DATE'+10000-01-01', NULL"]
    lists += ["TIMESTAMP'2026-03-08 02:30:00Z', NULL", "0, -1, NULL", "0.5D, double('NaN'), NULL"]
    # Under LEGACY, Spark writes dates before 1582 in the Julian calendar.
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": "CORRECTED"}):
        for values in lists:
            rows = spark.sql(f"SELECT posexplode(array({values})) AS (n, at)")
            read = F.unix_micros(moment_in_utc(F.col("at"), rows.schema["at"].dataType))
            with session_zone(spark, "UTC"):
                expected = rows.select("n", F.unix_micros(F.col("at").try_cast("timestamp_ltz"))).sort("n").collect()
            for zone in ZONES:
                with session_zone(spark, zone):
                    assert rows.select("n", read).sort("n").collect() == expected, (values, zone)
