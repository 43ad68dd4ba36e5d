"""The documentation: its examples run, and its reference and diagrams are those that the scripts write."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest
from helpers import markdown

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the tests run outside the repository")


def script(name):
    """Import a script of the folder ``docs``."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", markdown.pages(needs_spark=False), ids=markdown.name_of)
def test_examples_of_a_page_without_spark_give_what_they_show(page, monkeypatch, tmp_path):
    """The blocks of a page run in order, in an empty folder."""
    if "iggy" in page.name:
        pytest.importorskip("xxhash")
    if any(block.language == "console" and block.example for block in markdown.blocks(page)):
        pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    markdown.run(page, {})


@pytest.mark.parametrize("page", markdown.pages(), ids=markdown.name_of)
def test_code_blocks_of_a_page_run_or_say_why_not(page):
    """A block is a session of Python or of a shell, or follows a comment with the reason why it does not run."""
    for block in markdown.blocks(page):
        assert block.example or block.mark == "not run" or block.language in markdown.SHOWN, block.code
    if page.parent.name != "reference":
        assert not re.search(r"^\n {4}\S", markdown.outside_of_blocks(page), re.MULTILINE), "an indented block"


def test_reference_has_every_public_name():
    """The script writes the pages from ``__all__``; run ``python docs/reference.py`` after a change."""
    pytest.importorskip("pyspark")
    for name, text in script("reference").pages().items():
        assert (ROOT / "docs" / "pages" / "reference" / name).read_text(encoding="utf-8") == text


def test_diagrams_are_those_of_the_script():
    """Run ``python docs/diagrams.py`` after a change."""
    diagrams = script("diagrams")
    for name, draw in diagrams.DIAGRAMS.items():
        assert (diagrams.IMAGES / name).read_text(encoding="utf-8") == draw()


def test_pages_are_in_the_navigation():
    """No page is left out of the site's menu."""
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {str(page.relative_to(markdown.PAGES)) for page in markdown.pages()}


@pytest.mark.parametrize(("language", "code"), [("pycon", ">>> 1 + 1\n3"), ("console", "$ echo 2\n3")])
def test_a_wrong_example_is_noticed(tmp_path, language, code):
    """The test of the examples detects a wrong example."""
    page = tmp_path / "page.md"
    page.write_text(f"```{language}\n{code}\n\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="example"):
        markdown.run(page, {}, runner=doctest.DocTestRunner(verbose=False))
