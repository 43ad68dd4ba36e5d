"""Tests that need a version of Spark."""

import pytest


def since(*version):
    """Return the mark of tests that are skipped on older versions of Spark."""
    from spark_ext import _compat

    return pytest.mark.skipif(_compat.version() < version, reason=f"needs Spark {version[0]}.{version[1]}")
