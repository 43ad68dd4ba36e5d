"""The guide to databases: the examples of each section run and print the shown results."""

import doctest
import itertools
import re
from pathlib import Path

import pytest
from helpers.examples import run_example
from helpers.servers import running_postgres

GUIDES = Path(__file__).parents[2] / "docs" / "pages" / "guides"


def sections():
    """Yield the file, the line, the title and the text of each section that has examples."""
    for guide in sorted(GUIDES.glob("databases.md")):
        text = guide.read_text(encoding="utf-8")
        starts = [0, *(found.start() for found in re.finditer(r"^## ", text, re.MULTILINE)), len(text)]
        for start, stop in itertools.pairwise(starts):
            if ">>>" in text[start:stop]:
                title = text[start:stop].partition("\n")[0].lstrip("# ")
                yield pytest.param(
                    guide, text.count("\n", 0, start), title, text[start:stop], id=f"{guide.stem}: {title}"
                )


@pytest.mark.skipif(not GUIDES.exists(), reason="the tests run outside the repository")
@pytest.mark.parametrize(("guide", "line", "title", "text"), list(sections()))
def test_examples_in_a_guide_give_what_they_show(guide, line, title, text):
    """Each section runs as a reader types it, with a PostgreSQL connection if it needs one."""
    plain = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    example = doctest.DocTestParser().get_doctest(plain, {}, title, str(guide), line)
    if "connection.execute(" not in plain or "create_engine" in plain:
        run_example(example, doctest.NORMALIZE_WHITESPACE)
        return
    psycopg = pytest.importorskip("psycopg")
    with running_postgres() as address, psycopg.connect(address) as connection:
        example.globs["connection"] = connection
        run_example(example, doctest.NORMALIZE_WHITESPACE)
