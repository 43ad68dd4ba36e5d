"""Both backends of `msgid` in one process: the compiled core and the pure-Python reference."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["backend"]

_modules: dict[str, dict[str, ModuleType]] = {}
"""The modules of each backend that was left, by name."""


def _take_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "msgid" or name.startswith("msgid.")]
    return {name: sys.modules.pop(name) for name in names}


def _with_names(msgid: ModuleType) -> ModuleType:
    """Return the package with all its names: one that is first used in the block of another backend would be of it."""
    for name in msgid.__all__:
        getattr(msgid, name)
    return msgid


@contextmanager
def backend(name: str) -> Iterator[ModuleType]:
    """Make ``import msgid`` return a backend, ``"c"`` or ``"python"``, in the block and in processes started there.

    The package is imported a second time, separate from the modules of the process. A value of one backend and the
    same value of the other belong to different classes.
    """
    is_outside = _with_names(importlib.import_module("msgid")).backend == name
    outside = _take_out()
    sys.modules.update(outside if is_outside else _modules.get(name, {}))
    try:
        with mock.patch.dict(os.environ, MSGID_PURE="1" if name == "python" else ""):
            msgid = importlib.import_module("msgid")
            assert msgid.backend == name
            yield _with_names(msgid)
    finally:
        _modules[name] = _take_out()
        sys.modules.update(outside)
