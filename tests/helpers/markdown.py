"""The pages of the documentation, and their code blocks."""

import doctest
import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "pages"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_NEEDS = re.compile(r"<!-- needs (\w+) -->")
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def pages(needs_spark=None):
    """Return all pages, those with examples on Spark, or those whose examples need neither Spark nor a database."""
    found = sorted(PAGES.rglob("*.md"))
    if needs_spark is None:
        return found
    needs = {page: _NEEDS.search(page.read_text(encoding="utf-8")) for page in found}
    return [page for page, need in needs.items() if (need[1] if need else None) == ("Spark" if needs_spark else None)]


def name_of(page):
    """Return a page's name for the list of tests."""
    return str(page.relative_to(PAGES))


def python_blocks(page):
    """Return (the text before, the code) of each block of Python."""
    text = page.read_text(encoding="utf-8")
    return [(text[: match.start()], match[1]) for match in _BLOCK.finditer(text)]


def run(page, names, runner=None):
    """Run the interactive sessions of a page in one namespace."""
    code = "\n".join(code for _, code in python_blocks(page) if code.lstrip().startswith(">>>"))
    example = doctest.DocTestParser().get_doctest(code, dict(names), str(page), str(page), 0)
    runner = runner or doctest.DocTestRunner(optionflags=_FLAGS)
    assert runner.run(example).failed == 0, f"an example of {page} gives another result"
