"""The compiled core, if it is there and wanted: chosen once, when the package is imported.

``MSGID_PURE=1`` asks for the pure-Python reference. Where the core was not compiled, the reference runs and nobody is
told; `msgid.backend` says which it is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgid import layout

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BACKEND", "native"]

_NUMBERS: Final = (
    "EPOCH_UNIX",
    "VERSION_0",
    "VERSION_1",
    "ID_LENGTH",
    "ID_DIGITS",
    "PREFIX_LENGTH",
    "IPV4_LENGTH",
    "IPV6_LENGTH",
    "TAIL_LENGTH",
    "UINT32_SPAN",
)
_PLACES: Final = ("node", "pid", "seconds", "sequence")


def _layout() -> dict[str, int]:
    """Return every number of the layout that the C repeats, by its name there."""
    numbers = {name: getattr(layout, name) for name in _NUMBERS}
    for name in _PLACES:
        field = layout.FIELDS[name]
        numbers |= {f"{name.upper()}_START": field.start, f"{name.upper()}_WIDTH": field.width}
    return numbers


def _load() -> ModuleType | None:
    if os.environ.get("MSGID_PURE", "") not in ("", "0"):
        return None
    try:
        from msgid.ids._native import _speedups
    except ImportError:
        return None
    # A core that was compiled from another version of the source writes other bytes.
    return _speedups if _layout() == _speedups.LAYOUT else None


native: Final = _load()
BACKEND: Final = "python" if native is None else "c"
