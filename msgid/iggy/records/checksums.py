"""The checksums of Iggy's messages: CRC-32 of zlib, and XXH3 of 64 bits with seed 0."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Final

from msgid.iggy.records.rows import NO_SUM, ROW, SUM_RIGHT, SUM_WRONG, Stop
from msgid.iggy.wire import LAYOUTS
from msgid.shared.validate import to_install

if TYPE_CHECKING:
    from types import ModuleType

crc32 = zlib.crc32

_VERSION: Final = 4
"""The version of the compiled scanner that has the arguments of `reference.py`."""
_NUMBERS: Final = (
    _VERSION, *(facts.code for facts in LAYOUTS.values()), *Stop, SUM_WRONG, SUM_RIGHT, NO_SUM, ROW.size,
)  # fmt: skip
"""The numbers that the compiled scanner repeats."""


def _load() -> ModuleType | None:
    if os.environ.get("MSGID_PURE", "") not in ("", "0"):
        return None
    try:
        from msgid.iggy.records import _scan
    except ImportError:
        return None
    return _scan if getattr(_scan, "NUMBERS", None) == _NUMBERS else None


native: Final = _load()
"""The compiled scanner, unless it was not compiled or ``MSGID_PURE=1`` asks for the reference."""
BACKEND: Final = "python" if native is None else "c"


def xxh3(data: bytes | bytearray | memoryview) -> int:
    """Return the XXH3 checksum, of 64 bits and with seed 0.

    Raises:
        ImportError: if neither the compiled scanner nor the package ``xxhash`` is there.

    >>> xxh3(b"hello")
    10760762337991515389
    """
    if native is not None:
        return int(native.xxh3(data))
    return reference_xxh3(data)


def reference_xxh3(data: bytes | bytearray | memoryview) -> int:
    """Return what `xxh3` returns, computed by the package ``xxhash``."""
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError:
        raise ImportError(f"cannot check XXH3 checksums without xxhash: {to_install('iggy')}") from None
    return xxh3_64_intdigest(data)
