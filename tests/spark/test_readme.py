"""The walk-throughs of the README and the tutorial on Spark run and give what they show."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

README = Path(__file__).parent.parent.parent / "README.md"
TUTORIAL = README.parent / "docs" / "tutorial" / "three-formats.md"


def run(name, spark, monkeypatch, replaced, document=README):
    """Run what stands between the markers of a name, in the repository's folder."""
    monkeypatch.chdir(README.parent)
    text = document.read_text()
    text = text[text.index(f"<!-- {name} -->") :]
    text = text[: text.index("<!-- end -->")]
    for old, new in replaced.items():
        text = text.replace(old, new)
    example = doctest.DocTestParser().get_doctest(text, {"spark": spark}, document.name, str(document), 0)
    assert len(example.examples) > 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example).failed == 0


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_orders_read_again_after_a_failure_are_the_same(spark, tmp_path, monkeypatch):
    """The first job fails half way; the orders are read again, in other pieces, and every row has the id it had."""
    run("orders", spark, monkeypatch, {"spark-orders": str(tmp_path / "orders")})


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_messages_of_a_segment_become_a_table(spark, monkeypatch):
    """What is broken is a row of it too."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        run("messages", spark, monkeypatch, {})
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.skipif(not TUTORIAL.exists(), reason="the tests run outside the repository")
def test_tutorial_of_three_formats_has_equal_ids(spark, rocksdb, monkeypatch):
    """The same messages in Iggy, Kafka and RocketMQ form have the same IDs and outputs, on Spark and in Python."""
    run("example", spark, monkeypatch, {}, TUTORIAL)
