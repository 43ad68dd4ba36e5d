"""Columns have the same values under any settings, so their tests run under other ones than Spark's."""

import pytest


@pytest.fixture(autouse=True)
def under_other_settings(other_settings):
    """Run each test under other settings; at night under Spark's own."""
