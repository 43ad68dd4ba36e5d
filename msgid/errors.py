"""The library's errors.

    ValueError
     |-- InvalidMessageId        a text or bytes that is no message id
     `-- InvalidMessage          bytes or JSON that are no message, a command or response, or a name
          `-- TruncatedMessage   bytes that end before the message does

Everything else that is wrong with an argument is Python's own TypeError (of the wrong type) or ValueError (out of
range), with what was given and what is allowed.
"""

from __future__ import annotations

__all__ = ["InvalidMessage", "InvalidMessageId", "TruncatedMessage"]


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
        return f"invalid message id {self.shown}: {self.reason}"


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
