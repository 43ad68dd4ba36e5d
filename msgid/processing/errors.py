"""The errors of idempotent processing.

::

    Exception
     |-- BatchFailed             some messages of a batch were not handled
     |-- ChangedBody             a message has the ID of another one, whose body differs
     |-- ChangedOutputs          a redelivered message has other outputs than the first time
     |-- InvalidStore            a file or database does not contain a store of this version
     |-- TooLate                 the entry of a redelivered message has been deleted
     |-- TooManyFailures         so many messages failed in a row that the processor stops
     `-- ValueError
          `-- MissingTime        a handler asks for the time of a message without a time
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgid.shared.moments import UNIX_EPOCH
from msgid.shared.validate import quote

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

    The outputs are not published, because they would have the IDs of the first outputs but other content. Usually the
    handler calls ``uuid4()`` or ``now()``, or uses the order of a set.

    Attributes:
        message: The message.
        stored: The fingerprint of the first outputs.
        found: The fingerprint of the new outputs.
        outputs: The new outputs. Compare them with those that were published under the same IDs.
    """

    __module__ = "msgid.processing"

    def __init__(self, message: Any, stored: bytes, new: bytes, outputs: Sequence[Any] = ()) -> None:
        super().__init__(message, stored, new, outputs)
        self.message = message
        self.stored = stored
        self.new = new
        self.outputs = outputs

    def __str__(self) -> str:
        first = "none" if not self.outputs else f"{self.outputs[0].id} with {quote(self.outputs[0].body)}"
        return (
            f"message {quote(self.message.id)} gives other outputs than the first time; the first is now {first}. The"
            " handler or the message has changed, or the handler uses uuid4(), now() or the order of a set: use"
            " context.new_id(), context.now and context.random, and sorted()"
        )


class TooManyFailures(Exception):
    """Raised if ``stop_after`` messages in a row failed: the handler or a service is probably at fault.

    Nothing of the batch is published, and none of its messages is a dead letter: it must be delivered again.
    The error of the last message is the ``__cause__``.

    Attributes:
        count: The number of messages.
        message: The last one.
    """

    __module__ = "msgid.processing"

    def __init__(self, count: int, message: Any) -> None:
        super().__init__(count, message)
        self.count = count
        self.message = message

    def __str__(self) -> str:
        return f"{self.count} messages failed in a row, the last one is {quote(self.message.id)}: deliver it again"


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
            The kind of a message after a failed one of its key is ``not tried``. Deliver both again, in their order.
    """

    __module__ = "msgid.processing"

    def __init__(self, outcomes: Sequence[Any]) -> None:
        super().__init__(outcomes)
        self.outcomes = outcomes

    def __str__(self) -> str:
        errors = [outcome.error for outcome in self.outcomes if outcome.error is not None]
        first = f"{type(errors[0]).__name__}: {errors[0]}"
        return f"{len(errors)} of {len(self.outcomes)} messages were not handled; the first: {first}"
