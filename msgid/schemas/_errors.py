"""The errors of schemas."""

from __future__ import annotations

__all__ = ["IncompatibleSchema", "InvalidSchema"]


class InvalidSchema(ValueError):
    """A text is not a schema of its kind, or a file is not a schema registry."""

    __module__ = "msgid.schemas"


class IncompatibleSchema(ValueError):
    """A schema is not compatible with the version before it, or the library cannot decide whether it is."""

    __module__ = "msgid.schemas"
