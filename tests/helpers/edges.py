"""The edge values of Spark's types, for tests of every sink."""

from contextlib import contextmanager

ZONE = "spark.sql.session.timeZone"


@contextmanager
def session_zone(spark, zone):
    """Set the time zone of a session."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, zone)
    try:
        yield
    finally:
        spark.conf.set(ZONE, before)
