"""The choice of the compiled core or the pure-Python reference, made once at import.

``MSGID_PURE=1`` selects the reference. If the core was not compiled, the reference runs without a warning.
`msgid.backend` is the name of the selected backend; ``python -m msgid --version`` prints the reason.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgid import layout
from msgid.ids._sequence import MAX_BEHIND

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

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
_FIELDS: Final = ("node", "pid", "seconds", "sequence")


def _layout() -> dict[str, int]:
    """Return every number that the C code repeats, by its name in C."""
    numbers = {name: getattr(layout, name) for name in _NUMBERS} | {"MAX_BEHIND": MAX_BEHIND}
    for name in _FIELDS:
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
        # The file exists, so the user expects the speed of the compiled core.
        reason = f"the compiled core cannot be loaded: {error}"
        warnings.warn(f"msgid runs in pure Python: {reason}", RuntimeWarning, stacklevel=2)
        return None, reason
    # A core compiled from another version of the source can encode other bytes.
    if _layout() != _speedups.LAYOUT:
        return None, "the compiled core was built from other source code"
    return _speedups, ""


_loaded = _load()
native: Final = _loaded[0]
REASON: Final = _loaded[1]
"""The reason why the reference runs; empty with the compiled core."""
BACKEND: Final = "python" if native is None else "c"
"""The core that runs: ``c`` for the compiled core, ``python`` for the pure-Python reference."""


def version_line(version: str) -> str:
    """Return one line with the version, the selected backend, and the reason for pure Python."""
    return f"msgid {version}, compiled core" if native is not None else f"msgid {version}, pure Python: {REASON}"


def twin(reference: F) -> F:
    """Return the compiled version of a function; the function itself without the compiled core."""
    if native is None:
        return reference
    compiled: F = getattr(native, reference.__name__)
    compiled.__module__ = reference.__module__  # the module from which users import it
    return compiled
