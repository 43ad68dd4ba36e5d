"""Atheris: the compiled scanner against its reference, and XXH3 against the package xxhash."""

from __future__ import annotations

import sys

import atheris
import numpy as np
import xxhash
from both import compiled, reference

FAR = 1 << 62
native = compiled["msgid.iggy.records.checksums"].native
scan = reference["msgid.iggy.records.reference"].scan
layouts = len(compiled["msgid.iggy"].LAYOUTS)


def test_one_input(data: bytes) -> None:
    """Compare one scan; an input has the form of `scan.c`."""
    if len(data) < 3:
        return
    layout, options, data = data[0] % layouts, data[1], data[2:]
    length, middle = len(data), data[(len(data) - 2) // 2]
    position = data[0] % (length + 1) if options & 1 else 0
    arguments = (
        layout,
        position,
        length + 100_000 if options & 4 else length if options & 2 else -1,
        position + 16 * middle if options & 8 else 0,
        300 if options & 32 else FAR,
        3 if options & 64 else FAR,
        middle % (length + 1) if options & 16 else -1,
    )
    exact = np.frombuffer(data, np.uint8).copy()  # a read behind it is seen, as behind no `bytes`
    fast, slow = native.scan(exact, *arguments), tuple(scan(data, *arguments))
    assert fast == slow, (
        f"scan{arguments}: rows are equal: {fast[0] == slow[0]}, compiled {fast[1:]}, Python {slow[1:]}"
    )
    assert native.xxh3(exact) == xxhash.xxh3_64_intdigest(data), "XXH3 differs"


atheris.Setup(sys.argv, test_one_input)
atheris.Fuzz()
