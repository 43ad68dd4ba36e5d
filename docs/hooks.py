"""Hooks of MkDocs: the site has the charts of ``bench/``, sessions that can be pasted, and a list of its pages."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation, StructureItem
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
        path = f"images/bench/{chart.relative_to(BENCH).as_posix()}"
        files.append(File.generated(config, path, abs_src_path=str(chart)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with the site's images of charts, and with an empty line after each indented block of a session.

    Prompts before Python 3.13 need that line.
    """
    return _END_OF_INDENTED.sub(r"\1\n...\n", markdown.replace("](../../bench/", "](images/bench/"))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page without the mark of click 8.3 for an option that does not have a default."""
    return html.replace("<code>Sentinel.UNSET</code>", "")


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the navigation for ``llms.txt``."""
    config.extra["navigation"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write ``llms.txt``: the pages by section, each with its first sentence, for readers that are programs."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for section in config.extra["navigation"].items:
        lines += ["", f"## {section.title}", "", *_listed(section)]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _listed(item: StructureItem) -> list[str]:
    """Return a line for each page of a section."""
    if item.is_section:
        return [line for child in item.children or () for line in _listed(child)]
    sentence = first_sentence(item.markdown or "")
    return [f"- [{item.title}]({item.url})" + (f": {sentence}" if sentence else "")]


def first_sentence(markdown: str) -> str:
    """Return the first sentence of a page's text, or an empty text if the page begins with something else."""
    for block in re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL).split("\n\n"):
        text = " ".join(block.split())
        if text and not text.startswith(("#", "!", "<")) and "pip install" not in text:
            if not text[0].isalnum() and text[0] != "`":
                return ""
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)  # a link is relative to its page
            return re.split(r"(?<=[.:])\s(?=[A-Z`])", plain, maxsplit=1)[0]
    return ""
