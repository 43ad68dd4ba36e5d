"""Delta and Iceberg with their JAR files: the tests in `tests/lakehouse` run in one process per format."""

from pathlib import Path

import pytest
from systems.lakehouse import Lakehouse

pytestmark = pytest.mark.systems

TESTS = Path(__file__).parents[1] / "lakehouse"


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory):
    """Return an environment of PySpark 4.1 with both JAR files."""
    return Lakehouse(tmp_path_factory.mktemp("lakehouse"))


def marks(request):
    """Return the selection of the marks of the outer run, and its seed."""
    seed = request.config.getoption("--seed")
    return ["-m", request.config.getoption("markexpr"), *([] if seed is None else ["--seed", str(seed)])]


def test_delta(lakehouse, request):
    """The tests of Delta pass with Delta's JAR."""
    lakehouse.run_tests(str(TESTS / "delta"), *marks(request))


def test_iceberg(lakehouse, request):
    """The tests of Iceberg pass with Iceberg's JAR."""
    lakehouse.run_tests(str(TESTS / "iceberg"), *marks(request))


@pytest.mark.faults
def test_iceberg_faults(lakehouse, request):
    """Iceberg tables hold each row once after kills, compaction and expiry."""
    lakehouse.run_tests(str(TESTS / "iceberg"), *marks(request))
