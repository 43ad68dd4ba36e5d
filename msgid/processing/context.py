"""Messages, handlers, and the context, whose values are the same in every run for a message.

`run` runs a handler once and needs no store; use it if you keep the states elsewhere.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.ids.derived import derive_from_bytes, derived_text
from msgid.processing.errors import MissingTime
from msgid.processing.strict_json import canonical, own_copy, read
from msgid.shared.handler_message import Known, Message, read_id
from msgid.shared.moments import UNIX_EPOCH
from msgid.shared.validate import is_utf8, quote

if TYPE_CHECKING:
    from msgid.ids.message_id import MessageId

FINGERPRINT_LENGTH: Final = 16


class Output(NamedTuple):
    """A message that a handler has published."""

    id: str
    """The ID, derived from the input's ID; it is the same however often the input is handled."""
    number: int
    """The number of the output among the input's outputs, from 0."""
    input_id: str
    """The canonical form of the input's ID."""
    body: Any
    topic: str | None = None


WrittenOutput = tuple[str, "str | None", str]
"""The ID of an output, its topic, and its body as canonical JSON."""


class Context:
    """New IDs, random numbers and the time for a handler; they are the same each time a message is handled.

    IDs and random numbers depend only on the value of the message's ID, so another spelling of the ID gives the same
    ones. The time is that of the message, which a producer that sends it again must not change.

    >>> context = Context(Message("0156F7E71C361B21BC024CCDBE00000000", "key", None))
    >>> context.new_id(), context.now.year, context.random.randrange(1000)
    (MessageId('017F9387107361E8DA024CCDBE11E42A0C'), 2022, 855)
    """

    __slots__ = ("_has_ended", "_id", "_ids", "_message", "_random", "_written")

    def __init__(self, message: Message) -> None:
        self._message = message
        self._id: Known | None = None
        self._ids = 0
        self._random: random.Random | None = None
        self._has_ended = False
        self._written: list[WrittenOutput] = []

    @property
    def outputs(self) -> list[Output]:
        """Copies of the outputs published so far."""
        return read_outputs(self._message.id, self._written)

    def new_id(self) -> MessageId:
        """Return a new ID that is derived from the message's ID.

        The IDs are ``derive_id(message.id, "new 1")`` and so on. The message's ID can also be a UUID or other text.
        """
        self._ids += 1
        known = self._own_id()
        return derive_from_bytes(known.raw, f"new {self._ids}", known.seconds or 0)

    @property
    def random(self) -> random.Random:
        """A `random.Random` whose seed is the message's ID, so the numbers are the same on every machine.

        Python promises that ``random()`` returns the same numbers in every version. Other methods, such as
        ``randrange``, may change with Python: a redelivered message can then be `ChangedOutputs`.
        """
        if self._random is None:
            seed = hashlib.sha256(b"random " + self._own_id().raw).digest()
            self._random = random.Random(int.from_bytes(seed, "big"))
        return self._random

    @property
    def now(self) -> datetime:
        """The time of the message, in UTC.

        Raises:
            MissingTime: if the message does not have a timestamp, and its ID is not of version 1.
        """
        at = self._message.at
        if at is None:
            raise MissingTime(self._message.id)
        return UNIX_EPOCH + timedelta(microseconds=at)

    def publish(self, body: Any, topic: str | None = None) -> str:
        """Publish a message after the state is stored.

        Args:
            body: Content, of types that JSON can represent or that `dumps` can encode. It is encoded at once, with the
                names of an object in sorted order, and outputs are decoded from that.
            topic: Destination, which the publisher interprets.

        Returns:
            The ID of the new message: ``derive_id(message.id, "output 0")`` for the first one. If the message's ID is
            other text, it is derived in the same way from the bytes of the text in UTF-8.

        Raises:
            TypeError: if JSON cannot represent the body, or if the topic is not text.
            ValueError: if the body has an integer of thousands of digits, or if UTF-8 cannot encode the topic.
            RuntimeError: if the handler has returned, because nothing would be published.
        """
        if self._has_ended:
            raise RuntimeError(f"publish was called after the handler of {quote(self._message.id)} had returned")
        if topic is not None and not is_utf8(topic):
            error = ValueError if isinstance(topic, str) else TypeError
            raise error(f"topic must be text that UTF-8 can encode, or None, got {quote(topic)}")
        known = self._own_id()
        id = derived_text(known.raw, b"output %d" % len(self._written), known.seconds or 0)
        self._written.append((id, topic, canonical(body)))
        return id

    def end(self) -> list[WrittenOutput]:
        """Return the outputs of a handler that has returned."""
        self._has_ended = True
        return self._written

    def _own_id(self) -> Known:
        if self._id is None:
            self._id = read_id(self._message.id)
        return self._id


Handler = Callable[[Any, Message, Context], Any]
"""A pure function of (state, message, context) that returns the new state. The first state of a key is None."""
AsyncHandler = Callable[[Any, Message, Context], Awaitable[Any]]
"""A coroutine function with the arguments and result of a `Handler`."""


def run(handler: Handler, state: Any, message: Message) -> tuple[Any, list[Output]]:
    """Run a handler once, on its own deep copies of the state and the message.

    Returns:
        The new state and the outputs. The caller's state and message do not change.

    Raises:
        Exception: any error of the handler.

    >>> def count(state, message, context):
    ...     context.publish({"seen": len(state)})
    ...     state.append(message.body)
    ...     return state
    >>> state = ["a"]
    >>> after, outputs = run(count, state, Message("orders-0-42", "key", "b"))
    >>> state, after, outputs[0].body
    (['a'], ['a', 'b'], {'seen': 1})
    """
    own = message.with_body(own_copy(message.body))
    context = Context(own)
    return handler(own_copy(state), own, context), read_outputs(own.id, context.end())


def read_outputs(input_id: str, written: Sequence[WrittenOutput]) -> list[Output]:
    """Return the outputs of a message; each call decodes their bodies."""
    return [Output(id, number, input_id, read(body), topic) for number, (id, topic, body) in enumerate(written)]


def fingerprint(outputs: Sequence[WrittenOutput]) -> bytes:
    """Return a hash of 16 bytes over outputs; equal outputs have equal hashes.

    It is the BLAKE2b hash of canonical JSON: the list of ``[id, topic, body]`` of each output. The order of names in a
    body does not matter.

    >>> fingerprint([]).hex()
    '7ebb3c7c2a87b1a2f8a7ed729ecb040d'
    """
    parts = [f'["{id}",{"null" if topic is None else canonical(topic)},{body}]' for id, topic, body in outputs]
    return hashlib.blake2b(f"[{','.join(parts)}]".encode(), digest_size=FINGERPRINT_LENGTH).digest()


def body_fingerprint(body: Any) -> bytes:
    """Return a hash of 8 bytes over a message's body; nothing for a body that JSON cannot represent.

    >>> body_fingerprint({"pieces": 1, "of": "x"}) == body_fingerprint({"of": "x", "pieces": 1})
    True
    """
    try:
        return hashlib.blake2b(canonical(body).encode(), digest_size=_BODY_LENGTH).digest()
    except (TypeError, ValueError, RecursionError):
        return b""


_BODY_LENGTH: Final = 8
