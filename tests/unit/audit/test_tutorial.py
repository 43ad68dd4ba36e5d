"""The tutorial of the audit runs, and gives the output that it shows."""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parents[3]
TUTORIAL = REPOSITORY / "docs" / "pages" / "tutorial" / "audit.md"


@pytest.mark.skipif(not TUTORIAL.exists(), reason="the tests run outside the repository")
def test_tutorial_of_the_audit_shows_what_it_does(tmp_path, monkeypatch):
    """Every block without Spark runs in order; the truth of the simulation is the report."""
    monkeypatch.chdir(REPOSITORY)
    text = re.sub(r"<!-- spark -->.*?<!-- end -->", "", TUTORIAL.read_text(), flags=re.S)
    text = text.replace("spark-audit", str(tmp_path))
    example = doctest.DocTestParser().get_doctest(text, {}, "audit.md", str(TUTORIAL), 0)
    assert len(example.examples) > 10
    assert doctest.DocTestRunner().run(example).failed == 0
