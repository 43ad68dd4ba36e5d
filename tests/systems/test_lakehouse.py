"""Delta and Iceberg with their newest JAR files: the tests in `tests/lakehouse` run in one process per format."""

from pathlib import Path

import pytest
from systems import lakehouse

pytestmark = pytest.mark.systems

TESTS = Path(__file__).parents[1] / "lakehouse"
DELTA, ICEBERG = str(TESTS / "delta"), str(TESTS / "iceberg")
DAY, NIGHT = "systems and not (faults or variants)", "systems and (faults or variants)"


def environment(lake, tmp_path_factory, request):
    """Return an environment of PySpark with the JAR file of a format."""
    options = ["--update-golden"] if request.config.getoption("--update-golden") else []
    return lakehouse.Lakehouse(lake, tmp_path_factory.mktemp(lake.name), *options)


@pytest.fixture(scope="module")
def delta(tmp_path_factory, request):
    return environment(lakehouse.DELTA, tmp_path_factory, request)


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory, request):
    return environment(lakehouse.ICEBERG, tmp_path_factory, request)


def test_delta(delta):
    """The tests of Delta pass with Delta's JAR."""
    delta.run_tests(DELTA, "-m", DAY)


@pytest.mark.faults
def test_delta_through_connect(delta):
    """They pass through Spark Connect, too."""
    delta.run_tests(DELTA, "-m", DAY, "--connect")


@pytest.mark.faults
def test_delta_at_night(delta, seed):
    """Each feature of Delta has a table of its own, and drivers are killed."""
    delta.run_tests(DELTA, "-m", NIGHT, "--seed", str(seed), "-s")


def test_iceberg(iceberg):
    """The tests of Iceberg pass with Iceberg's JAR."""
    iceberg.run_tests(ICEBERG, "-m", DAY)


@pytest.mark.faults
def test_iceberg_at_night(iceberg, seed):
    """Iceberg tables hold each row once after kills, compaction and expiry."""
    iceberg.run_tests(ICEBERG, "-m", NIGHT, "--seed", str(seed), "-s")
