"""The tests of IDs run on both backends: a test that takes the fixture ``msgid`` runs once with each."""

import pytest
from helpers import backends

import msgid as installed


@pytest.fixture(params=["c", "python"], scope="module")
def msgid(request):
    """The package with the compiled core, then with the pure-Python reference."""
    if request.param == "c" and installed.backend != "c":
        pytest.skip("the compiled core is missing or not wanted")
    with backends.backend(request.param) as package:
        return package


@pytest.fixture(autouse=True)
def _same_backend_everywhere(request):
    """Imports within a test, the strategies and the processes that it starts use the test's backend."""
    if "msgid" not in request.fixturenames:
        yield
        return
    with backends.backend(request.getfixturevalue("msgid").backend):
        yield
