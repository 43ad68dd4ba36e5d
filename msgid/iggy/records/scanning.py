"""The scanner that runs: the compiled one or, where that was not compiled, its reference in Python."""

from __future__ import annotations

from msgid.iggy.records import reference
from msgid.iggy.records.checksums import native
from msgid.iggy.records.rows import Scan

_run = reference.scan if native is None else native.scan


def scan(
    data: bytes | memoryview,
    layout: int,
    position: int = 0,
    *,
    known: int = -1,
    within: int = 0,
    limit: int = 1 << 62,
    most: int = 1 << 62,
    strict: int = -1,
) -> Scan:
    """Find the messages of bytes; `reference.scan` describes the arguments."""
    return Scan(*_run(data, layout, position, known, within, limit, most, strict))
