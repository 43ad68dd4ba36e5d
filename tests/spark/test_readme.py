"""The Spark examples of the README return the results that they show."""

import doctest
from pathlib import Path

import pytest

import spark_ext

pytestmark = pytest.mark.spark

README = Path(__file__).parent.parent.parent / "README.md"


def run(name, spark, monkeypatch, folder):
    """Run the example between the markers of a name, in an empty folder."""
    monkeypatch.chdir(folder)
    text = README.read_text()
    text = text[text.index(f"<!-- {name} -->") :]
    text = text[: text.index("<!-- end -->")]
    # Java, unlike Python, stays in the folder in which it started.
    text = text.replace('"spark-orders"', repr(f"{folder}/orders")).replace('load("', f'load("{folder}/')
    example = doctest.DocTestParser().get_doctest(text, {"spark": spark, "ids": spark_ext}, "README.md", str(README), 0)
    assert len(example.examples) > 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example).failed == 0


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_orders_read_again_after_a_failure_are_the_same(spark, tmp_path, monkeypatch):
    """A job fails after half of its rows; the next run reads other partitions, and every row gets the same ID."""
    run("orders", spark, monkeypatch, tmp_path)


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_messages_of_a_segment_become_a_table(spark, tmp_path, monkeypatch):
    """A malformed message is a row of the table too."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        run("messages", spark, monkeypatch, tmp_path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
