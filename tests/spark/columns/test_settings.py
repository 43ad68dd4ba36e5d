"""Columns have the same values under any settings: names of types, reserved words, time zone and ANSI mode."""

import pytest
from helpers.versions import since
from pyspark.sql import functions as F

import spark_ext
from spark_ext.columns._identity import identity
from spark_ext.columns._moments import micros_column, moment_column

pytestmark = [pytest.mark.spark, since(4, 0)]

V1 = "0156F7E71C361B21BC024CCDBE00000007"
BROKER = "7F0000010000238F000000000001E240"
CLIENT = "C0A8F001103E214D29547ACFD6E30000"
SETTINGS = [
    {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"},
]


def values(spark):
    """Return the values of all columns for IDs of each version and for other text, as text in Unix time."""
    rows = [(id, 1234, f"2024-03-0{n}T12:00:00+01:00") for n, id in enumerate((V1, BROKER, CLIENT, "n/a"), 1)]
    df = spark.createDataFrame(rows, ["id", "offset", "said"])
    df = df.withColumn("at", F.timestamp_seconds(F.lit(1648047038) + F.col("offset")))
    wrong_time = F.when(F.col("id") == V1, spark_ext.parse_id("id"))
    made = {
        "position": spark_ext.position_id(F.lit("kafka://orders/3"), "offset", "at"),
        "derived": spark_ext.derive_id(F.lit(V1), "id", "at"),
        "assigned": spark_ext.assign_id("run", at=1795219200),
        "parsed": wrong_time.time.cast("bigint"),
        "parsed origin": wrong_time.origin,
        "try parsed": spark_ext.try_parse_id("id").time.cast("double"),
        "time": spark_ext.id_time("id").cast("bigint"),
        "version 0": spark_ext.try_parse_v0("id").cast("string"),
        "host": F.when(F.col("id") == BROKER, spark_ext.parse_v0("id")).host,
        "kind": spark_ext.id_kind("id"),
        "time of version 0": spark_ext.v0_time("id", "at", F.lit("Asia/Shanghai")).cast("double"),
        "expired": spark_ext.is_expired("at", 10, F.timestamp_seconds(F.lit(1648047038) + F.col("offset") + 9)),
        "binary": F.hex(spark_ext.id_to_binary("id")),
        "uuid": spark_ext.id_to_uuid("id"),
        "key": F.hex(spark_ext.time_key("id")),
        "identity": identity("id"),
        "said": F.unix_micros(moment_column(df, "said")),
        "micros": micros_column(df, "said"),
    }
    return df.select(*(column.alias(name) for name, column in made.items())).collect()


@pytest.fixture(scope="module")
def usual(spark):
    """The values under the settings of the tests."""
    rows = values(spark)
    assert [row["time of version 0"] is None for row in rows] == [True, True, False, True]
    return rows


@pytest.mark.parametrize("changed", SETTINGS, ids=lambda changed: next(reversed(changed)).split(".")[-1])
def test_columns_have_the_same_values_under_other_settings(spark, usual, changed):
    """A name of a type or of a field is never read by the rules of the session."""
    before = {key: spark.conf.get(key, None) for key in changed}
    try:
        for key, value in changed.items():
            spark.conf.set(key, value)
        assert values(spark) == usual
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
