"""The tutorial and the guide of the audit run, and give the output that they show."""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).parents[3]
TUTORIAL = REPOSITORY / "docs" / "pages" / "tutorial" / "audit.md"
GUIDE = REPOSITORY / "docs" / "pages" / "guides" / "audit.md"

pytestmark = pytest.mark.skipif(not TUTORIAL.exists(), reason="the tests run outside the repository")


def test_tutorial_of_the_audit_shows_what_it_does(tmp_path, monkeypatch):
    """Every block without Spark runs in order; the truth of the simulation is the report."""
    monkeypatch.chdir(REPOSITORY)
    text = re.sub(r"<!-- spark -->.*?<!-- end -->", "", TUTORIAL.read_text(), flags=re.S)
    text = text.replace("spark-audit", str(tmp_path))
    example = doctest.DocTestParser().get_doctest(text, {}, "audit.md", str(TUTORIAL), 0)
    assert len(example.examples) > 10
    assert doctest.DocTestRunner().run(example).failed == 0


def test_guide_of_the_audit_shows_what_it_does():
    """Every example in Python gives its output."""
    example = doctest.DocTestParser().get_doctest(GUIDE.read_text(), {}, "audit.md", str(GUIDE), 0)
    assert len(example.examples) > 6
    assert doctest.DocTestRunner().run(example).failed == 0
