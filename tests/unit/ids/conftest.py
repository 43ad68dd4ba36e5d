"""The tests of IDs run on both backends: a test with the fixture ``msgid`` runs once with each."""

import pytest
from helpers import backends

import msgid as installed


@pytest.fixture(params=["c", "python"], scope="module")
def msgid(request):
    """Return the package with the compiled core, then with the pure-Python reference."""
    if request.param == "c" and installed.backend != "c":
        pytest.skip("the compiled core is missing or not wanted")
    with backends.backend(request.param) as package:
        return package


@pytest.fixture(autouse=True)
def _same_backend_everywhere(request):
    """Make imports in a test, the strategies and started processes use the backend of the test."""
    if "msgid" not in request.fixturenames:
        yield
        return
    with backends.backend(request.getfixturevalue("msgid").backend):
        yield
