"""Carriers of IDs in tables of Delta's JAR: the same identity, or a refusal with a cure."""

from itertools import count

import pytest
from helpers import carriers
from helpers.spark_carriers import SECTION_OF_TABLES, TYPES, carried, cell, in_memory, stored

pytestmark = [pytest.mark.systems, pytest.mark.spark, pytest.mark.variants]


def test_each_carrier_in_tables_of_delta_is_as_the_page_says(spark, request, tmp_path):
    """`--update-golden` of the test in `tests/systems` writes the page."""
    number = count()
    entry = stored("delta", lambda: {"path": str(tmp_path / f"t{next(number)}")})
    known = {}
    with carried(spark, tmp_path / "chars") as rows_of:
        cells = {name: {"Delta": cell(entry, name, rows_of, known, in_memory)} for name in TYPES}
    carriers.check(SECTION_OF_TABLES, cells, request)
