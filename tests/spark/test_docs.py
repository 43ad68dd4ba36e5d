"""The examples of the documentation that need Spark return the results that they show."""

from contextlib import nullcontext
from runpy import run_path

import pytest
from helpers import markdown
from helpers.edges import session_zone
from helpers.servers import running_postgres
from pyspark.errors import AnalysisException

import spark_ext
from spark_ext.tables import table_formats

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not markdown.PAGES.exists(), reason="outside the repository")]


LONG = {"tutorial/spark.md", "tutorial/three-formats.md"}
"""The pages whose examples take longer than all others together; the guides show the same functions."""
DATABASE = '"host=db dbname=shop"'
"""The connection string on a page; a test passes that of its own server instead."""
PAGES = [
    pytest.param(page, id=name, marks=pytest.mark.variants if name in LONG else pytest.mark.details)
    for page in markdown.pages(needs_spark=True)
    for name in [markdown.name_of(page)]
]


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page_give_what_they_show(spark, page, monkeypatch, tmp_path):
    """All blocks of a page run in order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    # A page registers a format.
    monkeypatch.setattr(table_formats._FORMATS, "loaded", dict(table_formats._FORMATS.loaded))
    code = "\n".join(block.example for block in markdown.blocks(page))
    with session_zone(spark, "UTC"), running_postgres() if DATABASE in code else nullcontext() as address:
        markdown.run_text(code.replace(DATABASE, repr(address)), page, {"spark": spark})


@pytest.mark.details
def test_spark_refuses_sql_functions_where_the_reference_says(spark):
    """Each statement of the table fails with the listed condition, and the one beside it works."""
    spark_ext.register(spark)
    spark.createDataFrame([("01",)], ["id"]).createOrReplaceTempView("orders")
    for refused, condition, instead in run_path(str(markdown.PAGES.parent / "reference.py"))["REFUSED"]:
        with pytest.raises(AnalysisException, match=condition.replace(".", "[.]")):
            spark.sql(refused)
        spark.sql(instead).collect()
