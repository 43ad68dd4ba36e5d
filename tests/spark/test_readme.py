"""The Spark examples of the README return the results that they show."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

README = Path(__file__).parent.parent.parent / "README.md"


def run(name, spark, monkeypatch, replaced):
    """Run the example between the markers of a name, in the repository's folder."""
    monkeypatch.chdir(README.parent)
    text = README.read_text()
    text = text[text.index(f"<!-- {name} -->") :]
    text = text[: text.index("<!-- end -->")]
    for old, new in replaced.items():
        text = text.replace(old, new)
    example = doctest.DocTestParser().get_doctest(text, {"spark": spark}, "README.md", str(README), 0)
    assert len(example.examples) > 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example).failed == 0


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_orders_read_again_after_a_failure_are_the_same(spark, tmp_path, monkeypatch):
    """A job fails after half of its rows; the next run reads other partitions, and every row gets the same ID."""
    run("orders", spark, monkeypatch, {"spark-orders": str(tmp_path / "orders")})


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_messages_of_a_segment_become_a_table(spark, monkeypatch):
    """A malformed message is a row of the table too."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        run("messages", spark, monkeypatch, {})
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
