"""Fixtures and settings of all tests."""

import functools
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

# Processes that the tests start import the installed packages, as this process does, and not the working folder.
os.environ["PYTHONSAFEPATH"] = "1"

usual = settings(deadline=None)  # tests must not depend on the speed of the machine
settings.register_profile("msgid", usual, max_examples=30)
settings.register_profile("same-examples", usual, derandomize=True)
settings.register_profile("night", usual, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "msgid"))

SKIPS = Path(__file__).with_name("skips.txt")
"""The reasons of the skips that ``--strict-skips`` accepts."""
UNLISTED = pytest.StashKey[list]()
"""The tests that are skipped for another reason."""

# Spark gives up on a Python worker that does not connect within ten seconds, and no setting changes that.
BUSY = "Python worker failed to connect back"

QUICK = {
    # The queries of the tests are short, and run once: planning and compiling them takes longer than their rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.log.level": "ERROR",
    # PySpark records the caller of each function of a column, and Spark compares plans after each rule.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    # The rows of `with_local_rows` are computed by the plan that other rows have.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
"""Settings that save time; ``--spark-defaults`` runs the tests without them."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
JAVA += " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java's first compiler alone, a plain collector, and classes as they are take half of the CPU time from code that runs
once."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")
    parser.addoption("--seed", type=int, help="the seed of random faults in the tests of systems")
    parser.addoption("--minutes", type=float, default=6, help="the length of the soak of the brokers; default: 6")
    parser.addoption(
        "--write-versions", action="store_true", help="write the systems whose tests passed to the page of versions"
    )
    parser.addoption("--connect", action="store_true", help="run the Spark tests through Spark Connect")
    parser.addoption(
        "--spark-defaults",
        action="store_true",
        help="run the Spark tests with generated code, adaptive execution and two shuffle partitions, as users do",
    )
    parser.addoption(
        "--strict-skips", action="store_true", help=f"fail if a test is skipped for a reason that {SKIPS.name} lacks"
    )


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # the files of Spark come first, and the short ones fill the end
    config.stash[UNLISTED] = []
    lines = SKIPS.read_text(encoding="utf-8").splitlines()
    listed = [re.compile(line) for line in lines if line and not line.startswith("#")]

    class Skips:
        """Collects the skips for a reason that is not listed."""

        def pytest_runtest_logreport(self, report):
            if report.skipped and not hasattr(report, "wasxfail"):
                reason = report.longrepr[2].removeprefix("Skipped: ")
                if not any(one.search(reason) for one in listed):
                    config.stash[UNLISTED].append(f"{report.nodeid}: {reason}")

        def pytest_collectreport(self, report):
            self.pytest_runtest_logreport(report)

        def pytest_terminal_summary(self, terminalreporter):
            if config.stash[UNLISTED]:
                terminalreporter.section(f"skipped, and the reason is not in {SKIPS.name}", red=True)
                for line in config.stash[UNLISTED]:
                    terminalreporter.line(line)

        def pytest_sessionfinish(self, session, exitstatus):
            if config.stash[UNLISTED] and exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    if config.getoption("--write-versions"):
        from systems.versions import Versions

        config.pluginmanager.register(Versions(), "versions")
    if config.getoption("--strict-skips"):
        config.pluginmanager.register(Skips(), "strict-skips")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a Spark test once more if a busy machine was the reason of its failure."""
    if item.get_closest_marker("spark") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if any(report.failed and BUSY in report.longreprtext for report in reports):
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def with_local_rows(session):
    """Make small tables of rows local relations, as Spark Connect does: each query on a Python RDD takes longer."""
    try:
        from pyspark.sql.conversion import LocalDataToArrowConversion
    except ImportError:  # an older Spark
        return
    create = session.createDataFrame

    def local(data, schema=None, *arguments, **named):
        df = create(data, schema, *arguments, **named)
        is_plain = isinstance(data, list) and data and isinstance(schema, str)
        if not (is_plain and all(isinstance(row, tuple) for row in data)):
            return df
        return create(LocalDataToArrowConversion.convert(data, df.schema, False), df.schema)

    session.createDataFrame = local


def with_known_names():
    """Ask Java for each class and static method once: PySpark asks for each column, and Java looks in all JARs."""
    from py4j.java_gateway import JavaClass, JVMView

    for kind in (JavaClass, JVMView):
        kind.__getattr__ = functools.cache(kind.__getattr__)


@pytest.fixture(scope="session")
def connect(request):
    """Return whether the Spark tests run through Spark Connect."""
    return request.config.getoption("--connect")


@pytest.fixture(scope="session")
def spark(connect, request, tmp_path_factory):
    """Return the Spark session of all tests: two cores, no UI, and the settings that save time."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or 21")
    from pyspark.sql import SparkSession

    from spark_ext import _compat

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": JAVA,
        # Code that grows too large to compile is a failure, not a slow pass. But Spark 3.5 computes a value anew in
        # each place that uses it. Then the code of some columns grows too large, and is interpreted.
        "spark.sql.codegen.fallback": str(_compat.version() < _compat.WHOLE).lower(),
        "spark.sql.session.timeZone": "America/New_York",  # a zone in which code that ignores time zones fails
        "spark.python.authenticate.socketTimeout": "120s",  # a busy machine starts workers slowly
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **({} if request.config.getoption("--spark-defaults") else QUICK),
    }
    if connect:
        os.environ["SPARK_TESTING"] = "1"  # a free port for the server, not the one port that another run may have
    builder = SparkSession.builder.appName("msgid tests")
    builder = builder.remote("local[2]") if connect else builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if not connect and not request.config.getoption("--spark-defaults"):
        with_local_rows(session)
        with_known_names()
    yield session
    session.stop()


@pytest.fixture(params=["true", pytest.param("false", marks=pytest.mark.details)], ids=["ansi", "not-ansi"])
def ansi(request, spark):
    """Run a test with ANSI mode on and off: the results must not depend on it."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param == "true"
    spark.conf.set("spark.sql.ansi.enabled", before)
