"""The library's errors.

    ValueError
     |-- InvalidMessageId        text or bytes that are not a valid message ID
     `-- InvalidMessage          a malformed message, command, response or name
          `-- TruncatedMessage   bytes that end before the message is complete

Every other invalid argument raises Python's own TypeError (wrong type) or ValueError (out of range). The error text
quotes the argument and names the allowed values.
"""

from __future__ import annotations


class InvalidMessageId(ValueError):
    """Raised if text or bytes are not a valid message ID.

    Attributes:
        shown: The invalid input, quoted and shortened.
        reason: The reason why the input is invalid.

    >>> import msgid
    >>> try:
    ...     msgid.parse("xyz")
    ... except msgid.InvalidMessageId as error:
    ...     print(error)
    invalid message id 'xyz': must have 32, 34, 56 or 58 hex digits, got 3 characters
    """

    __module__ = "msgid"

    def __init__(self, shown: str, reason: str) -> None:
        super().__init__(shown, reason)  # both in args, so that the error can be pickled between processes
        self.shown = shown
        self.reason = reason

    def __str__(self) -> str:
        return f"invalid message id {self.shown}: {self.reason}"


class InvalidMessage(ValueError):
    r"""Raised if bytes or JSON are malformed: a message, a command, a response or a name.

    Attributes:
        reason: The reason why the input is invalid, with the invalid value.
        offset: Position of the invalid byte, counted from 0 at the start of the input; None if the input is not bytes.

    >>> from msgid import iggy
    >>> try:
    ...     iggy.decode(bytes(8) + b"\x07" + bytes(40), "m45")
    ... except InvalidMessage as error:
    ...     print(error)
    invalid message: state must be 1, 10, 20 or 30, got 7, at byte 8
    """

    __module__ = "msgid"

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason, offset)  # both in args, so that the error can be pickled
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"invalid message: {self.reason}" + ("" if self.offset is None else f", at byte {self.offset}")


class TruncatedMessage(InvalidMessage):
    """Raised if the bytes end before the message is complete; with more bytes the message may be valid.

    >>> from msgid import iggy
    >>> try:
    ...     iggy.decode(bytes(20), "m45")
    ... except TruncatedMessage as error:
    ...     print(error)
    invalid message: half a message of 20 bytes, which needs 45, at byte 0
    """

    __module__ = "msgid"
