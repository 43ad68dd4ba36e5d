"""Both cores in one process: ``compiled`` and ``reference`` hold the modules of `msgid` by name."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

MODULES = ("msgid", "msgid.iggy", "msgid.ids._batch_bytes", "msgid.ids._native", "msgid.iggy.records.checksums")
MODULES += ("msgid.iggy.records.reference",)


def _load(pure: str) -> dict[str, Any]:
    os.environ["MSGID_PURE"] = pure
    for name in [name for name in sys.modules if name.partition(".")[0] == "msgid"]:
        del sys.modules[name]
    loaded = {name: importlib.import_module(name) for name in MODULES}
    for public in loaded["msgid"].__all__:  # before the modules of the other core take their names
        getattr(loaded["msgid"], public)
    assert loaded["msgid"].backend == ("python" if pure else "c"), loaded["msgid.ids._native"].REASON
    return loaded


reference = _load("1")
compiled = _load("")
