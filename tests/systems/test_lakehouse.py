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
    return ["-m", request.config.getoption("markexpr"), "--seed", str(request.config.getoption("--seed"))]


def test_delta(lakehouse, request):
    """The tests of Delta pass with Delta's JAR."""
    lakehouse.run_tests(str(TESTS / "delta"), *marks(request))
