"""Fixtures of the tests of retention."""

import pytest

from msgid.retention import OsFiles


@pytest.fixture(scope="module", autouse=True)
def without_a_look_at_processes(request):
    """Save the look at all processes of the machine, which takes most of the time of a short clean-up."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.endswith("test_in_use"):
            patch.setattr(OsFiles, "holders", lambda self, paths: [])
        yield
