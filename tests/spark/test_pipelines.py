"""The functions in Spark Declarative Pipelines, run by Spark's own command."""

import ast
import re
from pathlib import Path

import pytest
from helpers import markdown
from helpers.versions import since

pytest.importorskip("yaml", reason="needs the packages of spark-pipelines")

pytestmark = [pytest.mark.spark, pytest.mark.programs, since(4, 3)]


@pytest.fixture
def project(monkeypatch, tmp_path):
    """An empty folder, in which the command starts a server on a free port."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_TESTING", "1")  # Spark's own tests have it: the port is free
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return tmp_path


def test_examples_of_the_guide_give_what_they_show(project):
    """The command runs twice: it lands rows with position IDs, labels repeated ones, and remembers them."""
    (page,) = markdown.pages_that_need("pipelines")
    try:
        markdown.run(page, {})
    except BaseException:
        if Path("run.log").exists():
            print(Path("run.log").read_text()[-4000:])
        raise


CALLS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F
import spark_ext

spark = SparkSession.active()


def rows():
    return spark.readStream.schema("id string, at timestamp, n long, value binary").parquet("FOLDER")


columns = dict(
    derive_id=lambda: spark_ext.derive_id("id", F.lit("x"), "n"),
    position_id=lambda: spark_ext.position_id("id", "n", "at"),
    assign_id=lambda: spark_ext.assign_id("run", 1648047038),
    generate_id=lambda: spark_ext.generate_id(),
    id_to_binary=lambda: spark_ext.id_to_binary("id"),
    id_to_uuid=lambda: spark_ext.id_to_uuid("id"),
    id_from_uuid=lambda: spark_ext.id_from_uuid("id"),
    id_from_binary=lambda: spark_ext.id_from_binary("value"),
    id_from_iggy_id=lambda: spark_ext.id_from_iggy_id("id"),
    id_origin=lambda: spark_ext.id_origin("id"),
    id_time=lambda: spark_ext.id_time("id"),
    is_valid_id=lambda: spark_ext.is_valid_id("id"),
    parse_id=lambda: spark_ext.parse_id("id"),
    time_key=lambda: spark_ext.time_key("at"),
    try_parse_id=lambda: spark_ext.try_parse_id("id"),
    id_kind=lambda: spark_ext.id_kind("id"),
    parse_v0=lambda: spark_ext.parse_v0("id"),
    try_parse_v0=lambda: spark_ext.try_parse_v0("id"),
    translate_v0=lambda: spark_ext.translate_v0("id"),
    try_translate_v0=lambda: spark_ext.try_translate_v0("id"),
    v0_time=lambda: spark_ext.v0_time("id", "at", F.lit("UTC")),
    is_expired=lambda: spark_ext.is_expired("at", 3600, F.lit(1648047038)),
)
flows = {name: lambda make=make: rows().select(make().alias("c")) for name, make in columns.items()}
flows["deduplicate"] = lambda: spark_ext.deduplicate(rows(), timestamp="at", within="1 day")
flows["process"] = lambda: spark_ext.process(rows(), "n", lambda state, message, context: state)
flows["messages"] = lambda: spark_ext.messages(rows(), "kafka")
flows["assign_ids"] = lambda: spark_ext.assign_ids(rows())
for name, flow in flows.items():
    try:
        dp.table(name=f"table_{name}")(flow)
        seen = "registered"
    except Exception as error:
        seen = f"{type(error).__name__}: {error}"
    print("SEEN", name, ascii(seen), flush=True)
"""
SPECIFICATION = """name: calls
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""
REFUSED = (
    "ValueError: cannot read the columns of df in a query function of a pipeline: call the function of spark_ext at "
)


def test_column_functions_work_in_query_functions_and_others_are_refused_in_one_line(project, capsys):
    """A query function cannot analyze its rows; Spark's own error does not say what to do."""
    (project / "transformations").mkdir()
    (project / "in").mkdir()
    (project / "spark-pipeline.yml").write_text(SPECIFICATION.format(folder=project))
    (project / "transformations" / "calls.py").write_text(CALLS.replace("FOLDER", f"{project}/in"))
    markdown.shell("spark-pipelines dry-run 2>&1")
    printed = capsys.readouterr().out
    seen = {name: ast.literal_eval(text) for name, text in re.findall(r"^SEEN (\w+) (.*)$", printed, re.MULTILINE)}
    assert seen, printed[-4000:]
    refused = {name: seen.pop(name) for name in ("deduplicate", "process", "messages", "assign_ids")}
    assert len(seen) == 22
    assert {name: text for name, text in seen.items() if text != "registered"} == {}
    assert [text.startswith(REFUSED) and "\n" not in text for text in refused.values()] == [True] * 4
