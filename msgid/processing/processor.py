"""The processor: a message to its handler, on the right state, and its outputs out, whatever happens in between."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgid.errors import quote
from msgid.parsing import parse
from msgid.processing.context import Handler, Message, Output, run
from msgid.processing.store import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from msgid.processing.store import Store

__all__ = ["Outcome", "Processor", "Step", "TooLate", "dumps", "loads"]

Step = Literal["read", "handled", "stored", "conflict", "published"]


class TooLate(Exception):
    """A message is so old that it cannot be told whether it was handled: that would be forgotten.

    Attributes:
        message: the message; nothing was done with it.
        forgotten_before: the moment before which it is not known, microseconds since 1970.
    """

    def __init__(self, message: Message, forgotten_before: int) -> None:
        super().__init__(message, forgotten_before)
        self.message = message
        self.forgotten_before = forgotten_before

    def __str__(self) -> str:
        return (
            f"message {quote(self.message.id)} of {self.message.at} microseconds; "
            f"what came before {self.forgotten_before} is forgotten"
        )


class Outcome(NamedTuple):
    """What came of a message."""

    kind: Literal["new", "duplicate"]
    state: Any
    """The one that the message made, now or the first time."""
    outputs: list[Output]


def dumps(state: Any) -> bytes:
    """Write a state as JSON."""
    return json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode()


def loads(raw: bytes) -> Any:
    """Read a state from JSON."""
    return json.loads(raw)


class Processor:
    """Handles messages so that handling one again changes nothing.

    Args:
        store: of the states.
        handler: a pure function of (state, message, context) that gives the new state.
        publish: sends a message's outputs, all of them; called again with the same ones where the message comes again.
        dumps: a state to bytes; default: JSON.
        loads: and back.

    See `msgid.processing` for an example.
    """

    def __init__(
        self,
        store: Store,
        handler: Handler,
        publish: Callable[[Sequence[Output]], None],
        *,
        dumps: Callable[[Any], bytes] = dumps,
        loads: Callable[[bytes], Any] = loads,
    ) -> None:
        self._store = store
        self._handler = handler
        self._publish = publish
        self._dumps = dumps
        self._loads = loads

    def handle(self, message: Message) -> Outcome:
        """Handle a message: once, however often it comes and whoever else handles it at the same time.

        Raises:
            InvalidMessageId: its id is none.
            TooLate: it cannot be told any more whether it was handled.
            Exception: whatever the handler, the store or the publisher raises; then it is to be handled again.
        """
        steps = self.steps(message)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                outcome: Outcome = done.value
                return outcome

    def steps(self, message: Message) -> Generator[Step, None, Outcome]:
        """Do what `handle` does, a step at a time: whoever stops between two of them stops as a crash would.

        Yields:
            what has been done.

        Returns:
            the outcome.
        """
        parse(message.id)
        while True:
            reading = self._store.read(message.key, message.id)
            yield "read"
            if reading.handled is None and message.at < reading.forgotten_before:
                raise TooLate(message, reading.forgotten_before)
            before = None if reading.state is None else self._loads(reading.state)
            state, outputs = run(self._handler, before, message)
            if reading.handled is not None:
                yield "handled"
                break
            entry = Entry(message.id, message.at, self._dumps(state))
            yield "handled"
            if self._store.append(message.key, reading.version, entry):
                yield "stored"
                break
            yield "conflict"  # another one was faster: on its state, or to find that it was this very message
        if outputs:
            self._publish(outputs)
        yield "published"
        return Outcome("new" if reading.handled is None else "duplicate", state, outputs)
