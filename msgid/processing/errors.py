"""The errors of idempotent processing.

::

    Exception
     |-- BatchFailed             some messages of a batch were not handled
     |-- ChangedBody             a message has the ID of another one, whose body differs
     |-- ChangedOutputs          a redelivered message has other outputs than the first time
     |-- InvalidStore            a file or database does not contain a store of this version
     |-- TooLate                 the entry of a redelivered message has been deleted
     `-- ValueError
          `-- MissingTime        a handler asks for the time of a message without a time
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgid._moments import UNIX_EPOCH
from msgid._validate import quote

if TYPE_CHECKING:
    from collections.abc import Sequence


class TooLate(Exception):
    """Raised if a message was handled before, but the state before it and its outputs have been deleted.

    Attributes:
        message: The message, which was not handled.
        stored_at: The time when its entry was stored, in microseconds since 1970.
    """

    __module__ = "msgid.processing"

    def __init__(self, message: Any, stored_at: int) -> None:
        super().__init__(message, stored_at)  # both in args, so that the error can be pickled
        self.message = message
        self.stored_at = stored_at

    def __str__(self) -> str:
        when = (UNIX_EPOCH + timedelta(microseconds=self.stored_at)).isoformat()
        return f"message {quote(self.message.id)} is too late: it was handled at {when}, and that is forgotten"


class ChangedBody(Exception):
    """Raised if a message has the ID of a handled message and another body: two messages have one ID.

    The message is not handled. Some producers repeat IDs, such as RocketMQ's up to 5.3.3 for the messages of a batch.

    Attributes:
        message: The message.
    """

    __module__ = "msgid.processing"

    def __init__(self, message: Any) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"message {quote(self.message.id)} has the ID of a handled message and another body: not handled"


class ChangedOutputs(Exception):
    """Raised if a redelivered message has other outputs than the first time: the handler or the message has changed.

    The outputs are not published, because they would have the IDs of the first outputs but other content.

    Attributes:
        message: The message.
        stored: The fingerprint of the first outputs.
        found: The fingerprint of the new outputs.
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
    """Raised if a handler asks for the time of a message without a time.

    Attributes:
        id: The ID of the message, which does not contain a time.
    """

    __module__ = "msgid.processing"

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f"message {quote(self.id)} does not have a time: neither its ID nor its timestamp contains one"


class InvalidStore(Exception):
    """Raised if a file or database does not contain a store of this version."""

    __module__ = "msgid.processing"


class BatchFailed(Exception):
    """Raised if some messages of a batch were not handled; the others were handled and published.

    Attributes:
        outcomes: The outcome of each message of the batch, in order; ``outcome.error`` is None for a handled message.
    """

    __module__ = "msgid.processing"

    def __init__(self, outcomes: Sequence[Any]) -> None:
        super().__init__(outcomes)
        self.outcomes = outcomes

    def __str__(self) -> str:
        errors = [outcome.error for outcome in self.outcomes if outcome.error is not None]
        first = f"{type(errors[0]).__name__}: {errors[0]}"
        return f"{len(errors)} of {len(self.outcomes)} messages were not handled; the first: {first}"
