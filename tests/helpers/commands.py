"""Commands that tests run: `msgid` in this process, and programs in processes of their own."""

import os
import subprocess
import sys

import pytest


def invoke(arguments, **options):
    """Run a command and return its result; skip the test if the packages of the command line are missing."""
    testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    from msgid.cli import msgid

    return testing.CliRunner().invoke(msgid, arguments, **options)


def python(program, *arguments, **environment):
    """Run a program of Python, with more variables in its environment, and return the process that has ended."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=100)
