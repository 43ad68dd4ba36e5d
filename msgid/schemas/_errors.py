"""The errors of schemas."""

from __future__ import annotations


class InvalidSchema(ValueError):
    """Raised if a text is not a valid schema of its kind, or a file is not a schema registry."""

    __module__ = "msgid.schemas"


class IncompatibleSchema(ValueError):
    """Raised if a schema is not compatible with the previous version, or if the library cannot decide this."""

    __module__ = "msgid.schemas"
