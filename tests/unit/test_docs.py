"""The documentation: its examples run, and its reference and diagrams are those that the scripts write."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest
from helpers import markdown
from helpers.servers import running_postgres

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the tests run outside the repository")


def script(name):
    """Import a script of the folder ``docs``."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", markdown.pages(needs_spark=False), ids=markdown.name_of)
def test_examples_of_a_page_without_spark_give_the_shown_results(page, monkeypatch, tmp_path):
    """The blocks of a page run in order, in an empty folder."""
    needed = {
        "schemas": "jsonschema_rs",
        "danube": "google.protobuf",
        "consume": "confluent_kafka",
        "operate": "opentelemetry.metrics",
    }
    for name, module in needed.items():
        if name in page.name:
            pytest.importorskip(module)
    if any(block.language == "console" and block.example for block in markdown.blocks(page)):
        pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    markdown.run(page, {})


def test_guide_to_applications_gives_what_it_shows():
    """Each example runs with the libraries that it names."""
    for name in ("numpy", "pyarrow", "pandas", "polars", "pydantic"):
        pytest.importorskip(name)
    markdown.run(markdown.PAGES / "guides" / "applications.md", {})


def test_guide_to_databases_gives_what_it_shows(tmp_path):
    """Each section runs by itself; the connection is one to a PostgreSQL server."""
    psycopg, *_ = (pytest.importorskip(name) for name in ("psycopg", "sqlalchemy", "django"))
    _, *sections = (markdown.PAGES / "guides" / "databases.md").read_text(encoding="utf-8").split("\n## ")
    page = tmp_path / "section.md"
    with running_postgres() as address, psycopg.connect(address) as connection:
        for section in sections:
            page.write_text(section, encoding="utf-8")
            markdown.run(page, {"connection": connection})


@pytest.mark.parametrize("page", markdown.pages(), ids=markdown.name_of)
def test_code_blocks_of_a_page_run_or_say_why_not(page):
    """A block is a session of Python or of a shell, or follows a comment with the reason why it does not run."""
    for block in markdown.blocks(page):
        assert block.example or block.mark in markdown.ELSEWHERE or block.language in markdown.SHOWN, block.code
    if "reference" not in page.parts:
        assert not re.search(r"^\n {4}\S", markdown.outside_of_blocks(page), re.MULTILINE), "an indented block"


def test_reference_has_every_public_name():
    """The script writes the pages from ``__all__``; run ``python docs/reference.py`` after a change."""
    pytest.importorskip("pyspark")
    reference, written = script("reference"), script("reference").pages()
    found = {page.relative_to(reference.PAGES).as_posix(): page for page in reference.PAGES.rglob("*.md")}
    assert sorted(found) == sorted([*written, *reference.BY_HAND])
    stale = [name for name in written if found[name].read_text(encoding="utf-8") != written[name]]
    assert not stale, "run `python docs/reference.py`"


@pytest.mark.details
def test_every_public_name_is_described_in_the_reference():
    """Each name, constants too, has a docstring in the source, which the site shows."""
    griffe = pytest.importorskip("griffe")
    pytest.importorskip("pyspark")
    reference = script("reference")
    loader = griffe.GriffeLoader(search_paths=[ROOT])
    for package in ("msgid", "spark_ext"):
        loader.load(package)
    loader.resolve_aliases()
    named = [f"{module}.{name}" for module in reference.MODULES for name in reference.names(module)]
    assert [name for name in named if not loader.modules_collection[name].has_docstring] == []


def test_example_of_a_docstring_is_a_code_block_of_the_site():
    """Without a fence, Markdown takes the prompts for quotations, and lists for links."""
    pytest.importorskip("griffe")
    fenced = script("doctests").fenced("Return a number.\n\n>>> f(1)\n[0]\n\nSee `g`.")
    assert fenced == "Return a number.\n\n```pycon\n>>> f(1)\n[0]\n```\n\nSee `g`."


def test_indented_block_of_a_session_ends_with_an_empty_line_on_the_site():
    """A prompt before Python 3.13 needs the line before it takes the next statement."""
    pytest.importorskip("mkdocs")
    pasted = script("hooks").on_page_markdown(">>> def f():\n...     return 1\n>>> f()\n1\n", None, None, None)
    assert pasted == ">>> def f():\n...     return 1\n...\n>>> f()\n1\n"


@pytest.mark.parametrize(
    ("link", "broken"),
    [("b.html", []), ("b.html#part", []), ("#top", []), ("https://example.org/x", []), ("c.html", ["a.html: c.html"]),
     ("b.html#other", ["a.html: b.html#other"]), ("#no", ["a.html: #no"])],
)  # fmt: skip
def test_broken_link_of_the_site_is_found(tmp_path, link, broken):
    """A link to a missing page or a missing part of a page is a fault; a link to elsewhere is not followed."""
    (tmp_path / "a.html").write_text(f'<h1 id="top">A</h1><a href="{link}">B</a>', encoding="utf-8")
    (tmp_path / "b.html").write_text('<h1 id="part">B</h1>', encoding="utf-8")
    assert script("check_site").broken_links(tmp_path) == broken


def test_diagrams_are_those_of_the_script():
    """Run ``python docs/diagrams.py`` after a change."""
    diagrams = script("diagrams")
    for name, draw in diagrams.DIAGRAMS.items():
        assert (diagrams.IMAGES / name).read_text(encoding="utf-8") == draw()


def test_pages_are_in_the_navigation():
    """No page is left out of the site's menu; the hook adds the pages of the modules."""
    pytest.importorskip("pyspark")
    added = set(re.findall(r"[\w./-]+\.md", str(script("reference").navigation())))
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed | added == {str(page.relative_to(markdown.PAGES)) for page in markdown.pages()}


@pytest.mark.parametrize(("language", "code"), [("pycon", ">>> 1 + 1\n3"), ("console", "$ echo 2\n3")])
def test_a_wrong_example_is_noticed(tmp_path, language, code):
    page = tmp_path / "page.md"
    page.write_text(f"```{language}\n{code}\n\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="example"):
        markdown.run(page, {}, runner=doctest.DocTestRunner(verbose=False))
