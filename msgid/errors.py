"""The library's errors, and how input is quoted in one.

    ValueError
     |-- InvalidMessageId        a text or bytes that is no message id
     `-- InvalidMessage          bytes or JSON that are no message, a command or response, or a name
          `-- TruncatedMessage   bytes that end before the message does

Everything else that is wrong with an argument is Python's own TypeError (of the wrong type) or ValueError (out of
range), with what was given and what is allowed.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "MESSAGE",
    "NOT_AN_ID",
    "NOT_HEX",
    "NOT_V0",
    "NOT_V1",
    "QUOTED_LENGTH",
    "UNKNOWN_VERSION",
    "WRONG_BYTE_LENGTH",
    "WRONG_LENGTH",
    "InvalidMessage",
    "InvalidMessageId",
    "TruncatedMessage",
    "quote",
]

# The words of the errors, with their blanks: Python and Spark fill in the same.
MESSAGE: Final = "invalid message id {shown}: {reason}"
WRONG_LENGTH: Final = "{length} characters; an id has 32, 34, 56 or 58 hex digits"
WRONG_BYTE_LENGTH: Final = "{length} bytes; an id has 16, 17, 28 or 29"
NOT_HEX: Final = "not hex digits alone"
UNKNOWN_VERSION: Final = "unknown version {version}"
NOT_V1: Final = "not version 1, which starts with 01 and has 34 hex digits"
NOT_AN_ID: Final = "no message id"
NOT_V0: Final = "not version 0, but version 1"

QUOTED_LENGTH: Final = 64
"""How much of a bad input an error shows."""


def quote(value: object) -> str:
    """Give a short, one-line picture of any value for an error message; never raises.

    >>> quote("01AB"), quote(None), quote("9" * 10_000)[-20:]
    ("'01AB'", 'None', "9'... (10000 in all)")
    """
    if isinstance(value, str | bytes | bytearray):
        # ascii() keeps look-alikes (full-width digits, zero-width space) visible.
        shown = ascii(value[:QUOTED_LENGTH])
        return shown if len(value) <= QUOTED_LENGTH else f"{shown}... ({len(value)} in all)"
    try:
        shown = ascii(value)
    except Exception:
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= QUOTED_LENGTH else f"{shown[:QUOTED_LENGTH]}..."


class InvalidMessageId(ValueError):
    """A text or bytes is no message id.

    Attributes:
        shown: what was given, shortened and quoted.
        reason: what is wrong with it.

    >>> import msgid
    >>> try:
    ...     msgid.parse("xyz")
    ... except msgid.InvalidMessageId as error:
    ...     print(error)
    invalid message id 'xyz': 3 characters; an id has 32, 34, 56 or 58 hex digits
    """

    __module__ = "msgid"

    def __init__(self, shown: str, reason: str) -> None:
        super().__init__(shown, reason)  # both in args: it pickles, so it travels between processes
        self.shown = shown
        self.reason = reason

    def __str__(self) -> str:
        return MESSAGE.format(shown=self.shown, reason=self.reason)


class InvalidMessage(ValueError):
    r"""What was given is no message.

    Attributes:
        reason: what is wrong, with what was given.
        offset: the byte at which it is, counted from the start of what was given; None where there are no bytes.

    >>> from msgid import iggy
    >>> try:
    ...     iggy.decode(bytes(8) + b"\x07" + bytes(40))
    ... except InvalidMessage as error:
    ...     print(error)
    invalid message: state 7, not 1, 10, 20 or 30, at byte 8
    """

    __module__ = "msgid"

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason, offset)  # both in args: it pickles
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"invalid message: {self.reason}" + ("" if self.offset is None else f", at byte {self.offset}")


class TruncatedMessage(InvalidMessage):
    """The bytes end before the message does; with more of them it may be one.

    >>> from msgid import iggy
    >>> try:
    ...     iggy.decode(bytes(20))
    ... except TruncatedMessage as error:
    ...     print(error)
    invalid message: a message needs 41 bytes, and 20 are left, at byte 0
    """

    __module__ = "msgid"
