"""The tests of this folder need PySpark with the JAR file of Delta or Iceberg: `tests/systems` starts them.

The fixture `spark` is that of all tests; the settings of the JAR files come from `spark-defaults.conf`.
"""

import os

import pytest
from systems.conftest import seed  # noqa: F401, the fixture of the tests that start this process


@pytest.fixture(scope="session", autouse=True)
def lakehouse():
    """Skip the tests in another environment."""
    if "LAKEHOUSE" not in os.environ:
        pytest.skip("tests/systems/test_lakehouse.py runs this test with a JAR file")
