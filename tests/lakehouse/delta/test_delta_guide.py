"""The examples of the guide to Delta print the shown output, with Delta's JAR."""

import pytest
from helpers import markdown

pytestmark = [
    pytest.mark.systems,
    pytest.mark.spark,
    pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository"),
]


@pytest.mark.parametrize("page", markdown.pages_that_need("Delta"), ids=markdown.name_of)
def test_examples_of_a_page_give_what_they_show(spark, page, connect, monkeypatch, tmp_path):
    """All blocks run in order, in an empty folder."""
    if connect:
        pytest.skip("over Spark Connect, a stream needs app_id")
    monkeypatch.chdir(tmp_path)
    markdown.run(page, {"spark": spark})
