"""Hooks of MkDocs: the charts of ``bench/`` are part of the site, and its sessions can be pasted at any prompt."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
BENCH = Path(__file__).parents[1] / "bench"
_END_OF_INDENTED = re.compile(r"^(\.\.\. {5}.*)\n(?=>>> )", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of each module to the navigation, behind the first page of the reference."""
    (section,) = [item["Reference"] for item in config.nav or () if "Reference" in item]
    section[1:1] = run_path(str(DOCS / "reference.py"))["navigation"]()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the charts that the benchmarks have drawn."""
    for chart in sorted(BENCH.rglob("*.svg")):
        place = f"images/bench/{chart.relative_to(BENCH).as_posix()}"
        files.append(File.generated(config, place, abs_src_path=str(chart)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with the site's images of charts, and with an empty line after each indented block of a session.

    Prompts before Python 3.13 need that line.
    """
    return _END_OF_INDENTED.sub(r"\1\n...\n", markdown.replace("](../../bench/", "](images/bench/"))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page without the mark of click 8.3 for an option that does not have a default."""
    return html.replace("<code>Sentinel.UNSET</code>", "")
