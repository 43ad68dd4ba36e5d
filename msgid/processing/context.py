"""What a handler is given: the message, and a context in which nothing differs from one run to the next."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgid.derived import derive_id
from msgid.identifier import MessageId
from msgid.moments import UNIX_EPOCH, unix_micros
from msgid.parsing import parse

__all__ = ["Context", "Handler", "Message", "Output", "run"]


class Message(NamedTuple):
    """A message to be handled."""

    id: str
    """A message id of any version, as text."""
    key: str
    """The business key whose state it changes."""
    body: Any
    timestamp: int | None = None
    """Microseconds since 1970. None: that of its id, where it is of version 1; else 0."""

    @property
    def at(self) -> int:
        """The message's own time, microseconds since 1970."""
        if self.timestamp is not None:
            return self.timestamp
        id = parse(self.id)
        return unix_micros(id.time) if isinstance(id, MessageId) else 0


class Output(NamedTuple):
    """What a handler has published."""

    id: str
    """Derived from the input's id: the same however often that is handled."""
    number: int
    """Which of the input's outputs, from 0."""
    input_id: str
    body: Any
    topic: str | None = None


class Context:
    """What would differ from one run of a handler to the next, made to be the same.

    >>> context = Context(Message("0156F7E71C361B21BC024CCDBE00000000", "key", None))
    >>> context.new_id(), context.now.year, context.random.randrange(1000)
    (MessageId('017F9387107361E8DA024CCDBE11E42A0C'), 2022, 855)
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._ids = 0
        self._random: random.Random | None = None
        self.outputs: list[Output] = []
        """What was published so far."""

    def new_id(self) -> MessageId:
        """Give a new id: the first, second, ... that is derived from the message's id."""
        self._ids += 1
        return derive_id(self._message.id, f"new {self._ids}")

    @property
    def random(self) -> random.Random:
        """A generator of random numbers, seeded by the message's id in the same way on every machine."""
        if self._random is None:
            seed = hashlib.sha256(b"random " + bytes(parse(self._message.id))).digest()
            self._random = random.Random(int.from_bytes(seed, "big"))  # not for secrets: for repeating
        return self._random

    @property
    def now(self) -> datetime:
        """The message's own time, in UTC."""
        return UNIX_EPOCH + timedelta(microseconds=self._message.at)

    def publish(self, body: Any, topic: str | None = None) -> str:
        """Publish a message once the state is stored.

        Args:
            body: what it says.
            topic: where to; the publisher's to read.

        Returns:
            its id.
        """
        number = len(self.outputs)
        id = str(derive_id(self._message.id, f"output {number}"))
        self.outputs.append(Output(id, number, self._message.id, body, topic))
        return id


Handler = Callable[[Any, Message, Context], Any]
"""A pure function of (state, message, context) that gives the new state; the state before the first message is None."""


def run(handler: Handler, state: Any, message: Message) -> tuple[Any, list[Output]]:
    """Run a handler: give the new state and what was published."""
    context = Context(message)
    return handler(state, message, context), context.outputs
