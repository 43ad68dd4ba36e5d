"""The pages of the documentation, and their code blocks, run as a reader runs them."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PAGES = Path(__file__).parents[2] / "docs" / "pages"
SHOWN = ("text", "toml")
"""The languages of blocks that are not code."""
ELSEWHERE = ("not run", "cluster")
"""The marks of blocks that do not run with their page; ``tests/systems`` runs those of a cluster."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (not run|file|cluster): (.+) -->\s*\Z")
_NEEDS = re.compile(r"<!-- needs (\w+) -->")
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.FAIL_FAST  # what follows may wait for ever


class Block(NamedTuple):
    """A code block of a page, and the mark in the comment before it."""

    language: str
    code: str
    mark: str = ""
    value: str = ""

    @property
    def example(self):
        """The block as an interactive session; empty if it does not run."""
        if self.mark == "file":
            return f">>> _ = open({self.value!r}, 'w').write({self.code!r})\n"
        if self.mark in ELSEWHERE or self.language not in ("console", "pycon"):
            return ""
        return self.code if self.language == "pycon" else re.sub(r"^\$ (.*)$", _shell_call, self.code, flags=re.M)


def pages(needs_spark=None):
    """Return all pages, those with examples on Spark, or those whose examples need neither Spark nor a database."""
    found = sorted(PAGES.rglob("*.md"))
    if needs_spark is None:
        return found
    needs = {page: _NEEDS.search(page.read_text(encoding="utf-8")) for page in found}
    return [page for page, need in needs.items() if (need[1] if need else None) == ("Spark" if needs_spark else None)]


def pages_that_need(name):
    """Return the pages whose examples need a system, such as Delta's JAR."""
    return [page for page in pages() if _NEEDS.findall(page.read_text(encoding="utf-8")) == [name]]


def name_of(page):
    """Return a page's name for the list of tests."""
    return str(page.relative_to(PAGES))


def blocks(page):
    """Return the code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        mark = _MARK.search(text, 0, match.start())
        found.append(Block(match[1], match[2], *(mark.groups() if mark else ())))
    return found


def outside_of_blocks(page):
    """Return the text of a page without its code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def shell(command):
    """Run a command as a reader does, in this interpreter's environment, and print its output."""
    # Options of the tests that run a page are not those of a reader's own tests.
    own = ("PYTHONSAFEPATH", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=False)
    print(done.stdout, end="")
    if done.returncode:
        print(f"exit status {done.returncode}: {done.stderr}")


def run(page, names, runner=None):
    """Run the blocks of a page in order, in one namespace and in the current folder."""
    run_text("\n".join(block.example for block in blocks(page)), page, names, runner)


def run_text(code, page, names, runner=None):
    """Run interactive examples that stand on a page."""
    example = doctest.DocTestParser().get_doctest(code, {"shell": shell, **names}, str(page), str(page), 0)
    runner = runner or doctest.DocTestRunner(optionflags=_FLAGS)
    assert runner.run(example).failed == 0, f"an example of {page} gives another result"


def class_of(page, name, **names):
    """Return a class that a page defines."""
    code = "".join(block.example for block in blocks(PAGES / page))
    found = doctest.DocTestParser().get_examples(code)
    (source,) = (example.source for example in found if example.source.startswith(f"class {name}("))
    exec(source, names)
    return names[name]


def _shell_call(match):
    return f">>> shell({match[1]!r})"
