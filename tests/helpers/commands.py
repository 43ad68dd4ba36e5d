"""The command line `msgid` in the process of the tests."""

import pytest


def invoke(arguments, **options):
    """Run a command and return its result; skip the test if the packages of the command line are missing."""
    testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    from msgid.cli import msgid

    return testing.CliRunner().invoke(msgid, arguments, **options)
