"""Ask jsonschema-rs whether one JSON Schema allows every value of another, in a process of its own.

Some recursive schemas overflow the stack of jsonschema-rs, which ends the process, and some combinations take for ever.
Neither must reach the caller. ``python -m msgid.schemas._containment`` is that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final, Literal, NamedTuple

SECONDS: Final = 20.0
"""The time after which a comparison ends as ``not decided``."""


class Containment(NamedTuple):
    """Whether one schema allows every value of another, and the reason unless it does."""

    answer: Literal["yes", "no", "unknown"]
    reason: str = ""


def contains(reader: Any, writer: Any) -> Containment:
    """Return whether the reader's schema allows every value of the writer's; errors of the library are the reason.

    >>> contains({"type": "string"}, {"type": ["string", "null"]})
    Containment(answer='no', reason='values that were allowed are not: {"type": "null"}')
    """
    from jsonschema_rs import canonicalize

    try:
        allowed, written = canonicalize(reader), canonicalize(writer)
        answer = str(allowed.covers(written))
    except Exception as error:  # the library raises errors of many types
        return Containment("unknown", f"jsonschema-rs cannot compare the schemas: {str(error) or type(error).__name__}")
    if answer == "yes":
        return Containment("yes")
    try:
        left: Any = written.subtract(allowed).to_json_schema()
        left.pop("$schema", None)
        shown = json.dumps(left)
    except Exception:  # the difference is a help for the reader, and no part of the answer
        shown = "unknown"
    if answer == "no":
        return Containment("no", f"values that were allowed are not: {shown}")
    return Containment("unknown", f"jsonschema-rs cannot decide whether values that were allowed are not: {shown}")


def contains_safely(reader: Any, writer: Any, *, seconds: float = SECONDS) -> Containment:
    """Return the result of `contains` in another process; its crash or its timeout is ``unknown``."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps([reader, writer]),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            env=environment,
            check=True,
        )
        return Containment(*json.loads(ran.stdout))
    except subprocess.TimeoutExpired:
        return Containment("unknown", f"jsonschema-rs did not decide within {seconds:g} seconds")
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return Containment("unknown", f"jsonschema-rs did not compare the schemas: {error}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(contains(*json.load(sys.stdin))))
