"""The examples of the guide to Iceberg have the results on the page, with Iceberg's JAR."""

import pytest
from helpers import markdown

pytestmark = [
    pytest.mark.systems,
    pytest.mark.spark,
    pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository"),
]


@pytest.mark.parametrize("page", markdown.pages_that_need("Iceberg"), ids=markdown.name_of)
def test_examples_of_a_page_give_what_they_show(spark, page, monkeypatch, tmp_path):
    """All blocks run in order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(tmp_path / "lake")}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.lake{key}", value)
    markdown.run(page, {"spark": spark})
