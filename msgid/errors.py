"""The library's error, and how input is quoted in one.

    ValueError
     `-- InvalidMessageId    a text or bytes that is no message id

Everything else that is wrong with an argument is Python's own TypeError (of the wrong type) or ValueError (out of
range), with what was given and what is allowed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["InvalidMessageId", "quote"]

_SHOWN: Final = 64


def quote(value: object) -> str:
    """Give a short, one-line picture of any value for an error message; never raises.

    >>> quote("01AB"), quote(None), quote("9" * 10_000)[-22:]
    ("'01AB'", 'None', "99'... (10000 in all)")
    """
    if isinstance(value, str | bytes | bytearray):
        # ascii() keeps look-alikes (full-width digits, zero-width space) visible.
        shown = ascii(value[:_SHOWN])
        return shown if len(value) <= _SHOWN else f"{shown}... ({len(value)} in all)"
    try:
        shown = ascii(value)
    except Exception:
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


class InvalidMessageId(ValueError):
    """A text or bytes is no message id.

    Attributes:
        shown: what was given, shortened and quoted.
        reason: what is wrong with it.

    >>> raise InvalidMessageId("'xyz'", "3 characters; an id has 34 hex digits")
    Traceback (most recent call last):
    msgid.InvalidMessageId: invalid message id 'xyz': 3 characters; an id has 34 hex digits
    """

    __module__ = "msgid"

    def __init__(self, shown: str, reason: str) -> None:
        super().__init__(shown, reason)  # both in args: it pickles, so it travels between processes
        self.shown = shown
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid message id {self.shown}: {self.reason}"
