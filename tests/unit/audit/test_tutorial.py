"""The tutorial and the guide of the audit run, and give the output that they show."""

import re
from pathlib import Path

import pytest
from helpers import markdown

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parents[3]
TUTORIAL = REPOSITORY / "docs" / "pages" / "tutorial" / "audit.md"
GUIDES = REPOSITORY / "docs" / "pages" / "guides"

pytestmark = pytest.mark.skipif(not TUTORIAL.exists(), reason="the tests run outside the repository")


def test_tutorial_of_the_audit_shows_what_it_does(tmp_path, monkeypatch):
    """Every block without Spark runs in order, in an empty folder; the truth of the simulation is the report."""
    pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "audit.md"
    page.write_text(re.sub(r"<!-- spark -->.*?<!-- end -->", "", TUTORIAL.read_text(), flags=re.S))
    assert sum(">>>" in block.example for block in markdown.blocks(page)) > 7
    markdown.run(page, {})


@pytest.mark.parametrize("guide", ["audit", "compare", "doctor"])
def test_guide_of_the_audit_shows_what_it_does(guide, tmp_path, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    markdown.run(GUIDES / f"{guide}.md", {})
