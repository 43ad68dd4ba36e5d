"""Delta and Iceberg with their JAR files: the tests in `tests/lakehouse` run in one process per format."""

from pathlib import Path

import pytest
from systems.lakehouse import Lakehouse

pytestmark = pytest.mark.systems

TESTS = Path(__file__).parents[1] / "lakehouse"
DELTA, ICEBERG = str(TESTS / "delta"), str(TESTS / "iceberg")
DAY, NIGHT = "systems and not (faults or variants)", "systems and (faults or variants)"


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory, request):
    """Return an environment of PySpark 4.1 with both JAR files."""
    options = ["--update-golden"] if request.config.getoption("--update-golden") else []
    return Lakehouse(tmp_path_factory.mktemp("lakehouse"), *options)


def test_delta(lakehouse):
    """The tests of Delta pass with Delta's JAR."""
    lakehouse.run_tests(DELTA, "-m", DAY)


@pytest.mark.faults
def test_delta_through_connect(lakehouse):
    """They pass through Spark Connect, too."""
    lakehouse.run_tests(DELTA, "-m", DAY, "--connect")


@pytest.mark.faults
def test_delta_at_night(lakehouse, seed):
    """Each feature of Delta has a table of its own, and drivers are killed."""
    lakehouse.run_tests(DELTA, "-m", NIGHT, "--seed", str(seed), "-s")


def test_iceberg(lakehouse):
    """The tests of Iceberg pass with Iceberg's JAR."""
    lakehouse.run_tests(ICEBERG, "-m", DAY)


@pytest.mark.faults
def test_iceberg_at_night(lakehouse, seed):
    """Iceberg tables hold each row once after kills, compaction and expiry."""
    lakehouse.run_tests(ICEBERG, "-m", NIGHT, "--seed", str(seed), "-s")
