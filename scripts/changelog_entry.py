"""Print the changelog's entry of a version, which is the text of its release: python scripts/changelog_entry.py 0.2.0.

It exits with one line if the changelog lacks the version, or if the package has another version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def entry(version: str, changelog: str) -> str:
    """Return the text of a version, without its heading.

    Raises:
        ValueError: if the changelog does not have the version, or its entry is empty.
    """
    heading = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M)
    text = re.split(r"^(?:## |\[\S+\]: )", changelog[heading.end() :], maxsplit=1, flags=re.M)[0] if heading else ""
    if not text.strip():
        raise ValueError(f"CHANGELOG.md must have an entry with a date for {version}")
    return text.strip()


def main(version: str) -> None:
    """Print the entry of the version that the package has, too."""
    from msgid import __version__

    if version != __version__:
        sys.exit(f"the tag must be the version of the package, {__version__}, got {version}")
    try:
        print(entry(version, CHANGELOG.read_text(encoding="utf-8")))
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1].removeprefix("v"))
