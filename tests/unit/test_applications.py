"""The guide to other libraries runs, and shows what a notebook draws."""

from pathlib import Path

import pytest
from helpers import markdown

import msgid

GUIDE = Path(__file__).parents[2] / "docs" / "pages" / "guides" / "applications.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="the tests run outside the repository")


def test_guide_to_applications_gives_what_it_shows():
    """Each example runs with the libraries that it names; the drawing is that of the example above it."""
    for name in ("numpy", "pyarrow", "pandas", "polars", "pydantic"):
        pytest.importorskip(name)
    markdown.run(GUIDE, {})
    *_, drawn = GUIDE.read_text(encoding="utf-8").rstrip().splitlines()
    assert drawn == msgid.parse("0156F7E71C361B21BC024CCDBE00000007")._repr_html_()
