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

_LAYOUT: Final = (
    layout.EPOCH_UNIX,
    layout.VERSION_1,
    layout.ID_LENGTH,
    layout.PREFIX_LENGTH,
    *layout.V0_LENGTHS,
)


def _load() -> ModuleType | None:
    if os.environ.get("MSGID_PURE", "") not in ("", "0"):
        return None
    try:
        from msgid import _speedups
    except ImportError:
        return None
    # One compiled from another version of the source would lay ids out otherwise.
    return _speedups if _speedups.LAYOUT == _LAYOUT else None


native: Final = _load()
BACKEND: Final = "python" if native is None else "c"
