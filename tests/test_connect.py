"""The Spark tests, once more, through Spark Connect: a process is classic or Connect, so this one starts another."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.spark
def test_the_spark_tests_pass_through_connect():
    """What holds in classic Spark holds through Connect: the same tests, but those that look into the JVM.

    Nor those that take long, most of which start processes of their own, the same here as there.
    """
    tests = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", str(tests / "spark"), "--connect", "-q", "-m", "not slow"]
    result = subprocess.run(command, cwd=tests.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout[-10_000:]
    assert " passed" in result.stdout
