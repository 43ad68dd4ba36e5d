"""The compiled core, chosen once, when the package is imported.

``MSGID_PURE=1`` asks for the pure-Python reference. Where the core was not compiled, the reference runs without a
warning. `msgid.backend` names what runs, and ``python -m msgid --version`` gives the reason.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgid import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["BACKEND", "REASON", "native", "twin", "version_line"]

F = TypeVar("F", bound="Callable[..., Any]")

_NAME: Final = f"{__name__}._speedups"
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


def _load() -> tuple[ModuleType | None, str]:
    """Return the compiled core, or None and the reason why the reference runs instead."""
    if os.environ.get("MSGID_PURE", "") not in ("", "0"):
        return None, "MSGID_PURE asks for the reference"
    try:
        import msgid.ids._native._speedups as _speedups  # noqa: PLR0402, only this form names the missing module in its error
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == _NAME:
            return None, "the compiled core was not built for this interpreter"
        # The file is there, so somebody expects its speed.
        reason = f"the compiled core cannot be loaded: {error}"
        warnings.warn(f"msgid runs in pure Python: {reason}", RuntimeWarning, stacklevel=2)
        return None, reason
    # A core that was compiled from another version of the source writes other bytes.
    if _layout() != _speedups.LAYOUT:
        return None, "the compiled core was built from other source code"
    return _speedups, ""


_loaded = _load()
native: Final = _loaded[0]
REASON: Final = _loaded[1]
"""Why the reference runs; empty where the compiled core does."""
BACKEND: Final = "python" if native is None else "c"


def version_line(version: str) -> str:
    """Return one line with the version and the backend that runs, and the reason if that is not the compiled core."""
    return f"msgid {version}, compiled core" if native is not None else f"msgid {version}, pure Python: {REASON}"


def twin(reference: F) -> F:
    """Return the compiled twin of a function, or the function itself if the compiled core is missing."""
    if native is None:
        return reference
    compiled: F = getattr(native, reference.__name__)
    compiled.__module__ = reference.__module__  # where users import it from
    return compiled
