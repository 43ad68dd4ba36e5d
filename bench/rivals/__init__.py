"""The rivals, one module each.

``DISTRIBUTION`` is the name of the package (None: the standard library), ``SETUP`` the code before, and ``CALLS`` the
statement that is timed, for each operation of a rival:

- ``text``, ``value``: make one ID;
- ``parse``: read the text ``t`` of an ID of the rival; ``check``: check whether a text is such an ID;
- ``batch bytes``, ``batch text``: make ``n`` IDs at once, in one buffer or in a list.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def installed() -> list[ModuleType]:
    """Return all rivals that can be imported, msgid first."""
    modules = []
    for info in pkgutil.iter_modules(__path__):
        rival = importlib.import_module(f"{__name__}.{info.name}")
        try:
            exec(rival.SETUP, {})
        except ImportError as missing:
            print(f"left out: {rival.DISTRIBUTION} ({missing})")
        else:
            modules.append(rival)
    return sorted(modules, key=lambda rival: rival.DISTRIBUTION != "msgid")
