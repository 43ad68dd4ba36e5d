"""The MERGE of the guide to sinks on tables of Delta."""

import pytest
from lakehouse.delta.tables import plain_table
from lakehouse.merge import check_merge

pytestmark = [pytest.mark.systems, pytest.mark.spark]


@pytest.mark.parametrize("type", ["STRING", "BINARY"])
def test_merge_of_the_page_has_each_message_once(spark, type):
    check_merge(spark, plain_table(spark, f"id {type}, amount INT"), type == "BINARY")
