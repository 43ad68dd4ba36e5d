"""Tests that need a version of Spark."""

from importlib import import_module

import pytest


def since(*version):
    """Return the mark of tests that are skipped on older versions of Spark."""
    from spark_ext import _compat

    return pytest.mark.skipif(_compat.version() < version, reason=f"needs Spark {version[0]}.{version[1]}")


def module_since(name, *version):
    """Return a module; on older versions of Spark, which cannot import it, skip the module of the tests."""
    from spark_ext import _compat

    if _compat.version() < version:
        pytest.skip(f"needs Spark {version[0]}.{version[1]}", allow_module_level=True)
    return import_module(name)
