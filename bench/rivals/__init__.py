"""The rivals, one module each.

``DISTRIBUTION`` names what is installed (None: the standard library), ``SETUP`` what is run before, and ``CALLS`` the
statement that is timed, for each thing that a rival can do:

- ``text``, ``value``: make one id;
- ``parse``: read the text ``t`` of one of its own ids; ``check``: say whether it is one;
- ``batch bytes``, ``batch text``: make ``n`` ids at once, back to back or in a list.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def installed() -> list[ModuleType]:
    """All rivals that can be imported here, msgid first."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        rival = importlib.import_module(f"{__name__}.{info.name}")
        try:
            exec(rival.SETUP, {})
        except ImportError as missing:
            print(f"left out: {rival.DISTRIBUTION} ({missing})")
        else:
            found.append(rival)
    return sorted(found, key=lambda rival: rival.DISTRIBUTION != "msgid")
