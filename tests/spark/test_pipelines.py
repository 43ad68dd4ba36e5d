"""The functions in Spark Declarative Pipelines, run by Spark's own command."""

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
    """The command lands rows with position IDs, and labels repeated ones."""
    (page,) = markdown.pages_that_need("pipelines")
    try:
        markdown.run(page, {})
    except BaseException:
        if Path("run.log").exists():
            print(Path("run.log").read_text()[-4000:])
        raise
