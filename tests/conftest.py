"""Fixtures and settings of all tests."""

import os
import sys

import pytest
from hypothesis import settings

# Processes that the tests start import the installed packages, as this process does, and not the working folder.
os.environ["PYTHONSAFEPATH"] = "1"

settings.register_profile("msgid", deadline=None)  # tests must not depend on the speed of the machine
settings.register_profile("same-examples", settings.get_profile("msgid"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "msgid"))


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")
    parser.addoption("--connect", action="store_true", help="run the Spark tests through Spark Connect")


@pytest.fixture(scope="session")
def connect(request):
    """Return whether the Spark tests run through Spark Connect."""
    return request.config.getoption("--connect")


@pytest.fixture(scope="session")
def spark(connect, tmp_path_factory):
    """Return the Spark session of all tests: two cores, few shuffle partitions, no UI, otherwise Spark's defaults.

    Java's first compiler alone takes a quarter of the CPU time from these short queries, whose code runs once.
    """
    from pyspark.sql import SparkSession

    from spark_ext import _compat

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # Code that grows too large to compile is a failure, not a slow pass. But Spark 3.5 computes a value anew in
        # each place that uses it. Then the code of some columns grows too large, and is interpreted.
        "spark.sql.codegen.fallback": str(_compat.version() < _compat.WHOLE).lower(),
        "spark.sql.session.timeZone": "America/New_York",  # a zone in which code that ignores time zones fails
        "spark.python.authenticate.socketTimeout": "120s",  # a busy machine starts workers slowly
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    if connect:
        os.environ["SPARK_TESTING"] = "1"  # a free port for the server, not the one port that another run may have
    builder = SparkSession.builder.appName("msgid tests")
    builder = builder.remote("local[2]") if connect else builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["true", "false"], ids=["ansi", "not-ansi"])
def ansi(request, spark):
    """Run a test with ANSI mode on and off: the results must not depend on it."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param == "true"
    spark.conf.set("spark.sql.ansi.enabled", before)
