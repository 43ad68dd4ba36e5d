"""The Spark examples of the README return the results that they show."""

import doctest
from pathlib import Path

import pytest
from pyspark.sql import functions as F

import spark_ext as ids

pytestmark = pytest.mark.spark

README = Path(__file__).parent.parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_spark_examples_give_the_shown_results(spark):
    """A retry with another number of tasks gives each row the same ID, and SQL gives it, too."""
    text = README.read_text()
    text = text[text.index("<!-- spark -->") :]
    text = text[: text.index("<!-- end -->")]
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    assert len(example.examples) > 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example).failed == 0


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_table_of_row_ids_is_what_spark_gives(spark):
    """Spark's row IDs follow from the number of tasks, and the IDs of positions do not."""

    def rows(tasks):
        orders = spark.range(0, 3, 1, tasks).selectExpr("'orders/0' log", "4286 + id offset", "1795219200 + id at")
        id = ids.position_id("log", "offset", "at")
        return orders.select("offset", F.monotonically_increasing_id().alias("row_id"), id.alias("id")).collect()

    for one, two in zip(rows(1), rows(2), strict=True):
        assert one.id == two.id
        assert f"| {one.offset} | {one.row_id} | {two.row_id} | {one.id} |" in README.read_text()
