"""The errors of consistent processing.

::

    Exception
     |-- BatchFailed             some messages of a batch were not handled
     |-- ChangedOutputs          a redelivered message gives other outputs than the first time
     |-- InvalidStore            a file or database holds no store of this version
     |-- TooLate                 a redelivered message whose entry is forgotten
     `-- ValueError
          `-- MissingTime        a handler asks for the time of a message that has none
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgid._validate import UNIX_EPOCH, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BatchFailed", "ChangedOutputs", "InvalidStore", "MissingTime", "TooLate"]


class TooLate(Exception):
    """A message was handled before, and the state before it and its outputs are forgotten.

    Attributes:
        message: the message; nothing was done with it.
        stored_at: the time at which its entry was stored, microseconds since 1970.
    """

    __module__ = "msgid.processing"

    def __init__(self, message: Any, stored_at: int) -> None:
        super().__init__(message, stored_at)  # both in args: it pickles
        self.message = message
        self.stored_at = stored_at

    def __str__(self) -> str:
        when = (UNIX_EPOCH + timedelta(microseconds=self.stored_at)).isoformat()
        return f"message {quote(self.message.id)} is too late: it was handled at {when}, and that is forgotten"


class ChangedOutputs(Exception):
    """A redelivered message gives other outputs than the first time: the handler or the message has changed.

    Nothing is published, because the outputs would have the IDs of the first ones and another content.

    Attributes:
        message: the message.
        stored: the fingerprint of the first outputs.
        found: the fingerprint of the outputs now.
    """

    __module__ = "msgid.processing"

    def __init__(self, message: Any, stored: bytes, found: bytes) -> None:
        super().__init__(message, stored, found)
        self.message = message
        self.stored = stored
        self.found = found

    def __str__(self) -> str:
        return (
            f"message {quote(self.message.id)} gives other outputs than the first time:"
            f" the handler or the message has changed (fingerprint {self.found.hex()}, stored {self.stored.hex()})"
        )


class MissingTime(ValueError):
    """A handler asks for the time of a message that has none.

    Attributes:
        id: the message's ID, which has no time in it.
    """

    __module__ = "msgid.processing"

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f"message {quote(self.id)} has no time: its ID holds none, and its timestamp is None"


class InvalidStore(Exception):
    """A file or database holds something else than a store of this version."""

    __module__ = "msgid.processing"


class BatchFailed(Exception):
    """Some messages of a batch were not handled; all others were handled and published.

    Attributes:
        outcomes: what became of each message of the batch, in order; ``outcome.error`` is None for a handled message.
    """

    __module__ = "msgid.processing"

    def __init__(self, outcomes: Sequence[Any]) -> None:
        super().__init__(outcomes)
        self.outcomes = outcomes

    def __str__(self) -> str:
        errors = [outcome.error for outcome in self.outcomes if outcome.error is not None]
        first = f"{type(errors[0]).__name__}: {errors[0]}"
        return f"{len(errors)} of {len(self.outcomes)} messages were not handled; the first: {first}"
