"""The examples of the documentation that need Spark return the results that they show."""

import pytest
from helpers import markdown

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository")]


@pytest.mark.parametrize("page", markdown.pages(needs_spark=True), ids=markdown.name_of)
def test_examples_of_a_page_give_what_they_show(spark, page, monkeypatch, tmp_path):
    """All blocks of a page run in order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        markdown.run(page, {"spark": spark})
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
