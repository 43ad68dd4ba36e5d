"""Extension of Griffe: an example in a docstring of ``msgid`` becomes a code block, as its sections are Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?![ \t]*$).*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """Return a docstring whose interactive examples are blocks of Markdown."""
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)


class Doctests(griffe.Extension):
    """Writes a fence around each example of a docstring in Google style."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring is not None and obj.path.partition(".")[0] == "msgid":
            obj.docstring.value = fenced(obj.docstring.value)
