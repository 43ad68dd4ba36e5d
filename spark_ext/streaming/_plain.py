"""Plain Python values as bytes, for state."""

from __future__ import annotations

import io
import pickle
from typing import Any


class Plain(pickle.Unpickler):
    """Reads only numbers, text, bytes, lists, tuples and dicts, so that stored data cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the state has a {module}.{name}, which this library does not write")


def dump(value: Any) -> bytes:
    """Write plain Python values as bytes."""
    return pickle.dumps(value, 5)


def load(raw: bytes) -> Any:
    """Read what `dump` wrote."""
    return Plain(io.BytesIO(raw)).load()
