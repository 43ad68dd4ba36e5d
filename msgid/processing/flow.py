"""The rules for messages, without side effects: what a message is, and the sequence of actions for a batch.

`decide_known` and `judge` are the rule for one message, before and after its handler runs. Spark's `process` and
`Flow` call them for each message. `Flow` handles a batch by a generator of actions: a processor runs each action and
sends the result back. The processor for plain functions and the processor for coroutines share this sequence.
"""

from __future__ import annotations

import inspect
import random
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from msgid.processing.context import FINGERPRINT_LENGTH, Output, WrittenOutput, body_fingerprint, read_outputs
from msgid.processing.errors import ChangedBody, ChangedOutputs, TooLate, TooManyFailures
from msgid.processing.store import Append, Entry, Reading
from msgid.processing.strict_json import dumps, loads
from msgid.shared.handler_message import Message
from msgid.shared.validate import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

Kind = Literal["new", "duplicate", "too late", "changed", "conflict", "failed", "not tried"]


class Outcome(NamedTuple):
    """The result of handling a message."""

    kind: Kind
    """``new`` and ``duplicate`` messages are handled. For other kinds, `error` is the reason.

    A message is ``not tried`` if an earlier message of its key failed in the same call.
    """
    state: Any = None
    """The state that the message made, at this delivery or at the first one."""
    outputs: Sequence[Output] = ()
    error: BaseException | None = None
    """`TooLate`, `ChangedOutputs`, `ChangedBody`, or the handler's error at its last attempt.

    A message that was not tried has the error of the message that failed before it.
    """
    attempts: int = 0
    """The number of runs of the handler at this delivery."""


class DeadLetter(NamedTuple):
    """A message that was not handled, for the dead-letter output."""

    message: Message
    kind: Kind
    error: str
    """The type and text of the error."""
    attempts: int = 0
    """The number of runs of the handler."""


class Read(NamedTuple):
    """The action that reads the store for each (key, ID). Its result is a list of `Reading`."""

    wanted: Sequence[tuple[str, str]]


class RunHandler(NamedTuple):
    """The action that runs the handler. Its result is `Ran`, or the handler's error."""

    state: bytes | None
    message: Message


class AppendAll(NamedTuple):
    """The action that stores entries. Its result is a list of bool."""

    appends: Sequence[Append]
    writer: int | None


class Publish(NamedTuple):
    """The action that publishes outputs. Its result is ignored."""

    outputs: Sequence[Output]


class Settle(NamedTuple):
    """The action that reports an outcome, and sends a failed message to the dead letters. Its result is ignored."""

    message: Message
    outcome: Outcome
    seconds: float


class Wait(NamedTuple):
    """The action that waits before the next attempt. Its result is ignored."""

    seconds: float


Action = Read | RunHandler | Wait | AppendAll | Publish | Settle


class Retries(NamedTuple):
    """When a handler is run again; see `msgid.processing.Processor` for the fields."""

    attempts: int
    backoff: float | Callable[[int], float] = 0
    give_up: tuple[type[BaseException], ...] = ()

    def delay(self, number: int, error: BaseException) -> float | None:
        """Return the seconds to wait after an attempt, counted from 1; None if its error is final.

        >>> Retries(3, lambda number: 10 * number).delay(2, ValueError()), Retries(2).delay(2, ValueError())
        (20, None)
        """
        if number >= self.attempts or isinstance(error, self.give_up):
            return None
        return self.backoff(number) if callable(self.backoff) else self.backoff


class Ran(NamedTuple):
    """The result of a run of the handler."""

    state: Any
    raw: bytes
    written: list[WrittenOutput]
    fingerprint: bytes


R = TypeVar("R")


class Earlier(NamedTuple):
    """How a redelivered message was handled the first time."""

    state: bytes | None
    """The state before it."""
    fingerprint: bytes
    outputs: Any = None
    """The outputs as they were stored; None if only their fingerprint was."""


class Decision(NamedTuple):
    """The kind of a message, and the reason if it is not handled."""

    kind: Kind
    error: BaseException | None = None


_NEW, _DUPLICATE = Decision("new"), Decision("duplicate")


def decide_known(message: Message, earlier: Earlier | None, forgotten: int | None) -> Decision | None:
    """Return what a message is, or None if its handler must run first.

    Args:
        message: The message.
        earlier: How it was handled before.
        forgotten: When it was handled before, in microseconds since 1970, if that entry is deleted.
    """
    if earlier is None:
        return None if forgotten is None else Decision("too late", TooLate(message, forgotten))
    return None if earlier.outputs is None else _DUPLICATE


def judge(message: Message, earlier: Earlier | None, ran: Ran | BaseException) -> Decision:
    """Return what a message is after its handler has run on the state before it.

    Args:
        message: The message.
        earlier: How it was handled before.
        ran: The run, or the error of the last attempt.
    """
    if isinstance(ran, BaseException):
        return Decision("failed", ran)
    if earlier is None:
        return _NEW
    if ran.fingerprint == earlier.fingerprint:
        return _DUPLICATE
    outputs = read_outputs(message.id, ran.written)
    return Decision("changed", ChangedOutputs(message, earlier.fingerprint, ran.fingerprint, outputs))


def finished(what: str, result: R) -> R:
    """Return the result of a function, or raise TypeError if its work is not done: a coroutine or a generator.

    >>> finished("publish", (print(output) for output in ["lost"]))
    Traceback (most recent call last):
    TypeError: publish must do its work before it returns, got a generator
    """
    waits = inspect.isawaitable(result)
    if waits or isinstance(result, GeneratorType | AsyncGeneratorType):
        if inspect.iscoroutine(result):
            result.close()  # Python would warn that it was never awaited
        hint = "; AsyncProcessor awaits it" if waits else ""
        raise TypeError(f"{what} must do its work before it returns, got a {type(result).__name__}{hint}")
    return result


def error_text(error: BaseException) -> str:
    """Return the type and the text of an error, as text that UTF-8 can encode.

    >>> error_text(ValueError("bad")), error_text(ValueError())
    ('ValueError: bad', 'ValueError')
    """
    try:
        text = str(error)
    except Exception:  # a handler's own class of errors can raise here
        text = "its text cannot be made"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name).encode("utf-8", "replace").decode()


class _Chain:
    """The messages of one key in a batch; each is handled against the state that the previous one made."""

    __slots__ = ("entries", "indexes", "publishes", "reading", "readings", "state", "stored_at")

    def __init__(self, reading: Reading, stored_at: int) -> None:
        self.reading = reading
        self.stored_at = stored_at
        self.publishes = False
        self.state = reading.state
        self.entries: list[Entry] = []
        self.readings: dict[str, Reading] = {}
        self.indexes: list[int] = []


def next_action(steps: Generator[Action, Any, list[Outcome]], result: Any = None) -> Action | list[Outcome]:
    """Return the action after the one with a result, or the outcomes of the batch at its end."""
    try:
        return steps.send(result)
    except StopIteration as done:
        outcomes: list[Outcome] = done.value
        return outcomes


class Flow:
    """Handles batches without side effects; a processor, which does the actions, sets the attributes."""

    _loads: Callable[[bytes], Any]
    _clock: Callable[[], int]
    _retries: Retries
    _keep_outputs: bool
    _stop_after: int | None
    _dead_letter: Any
    _observe: Any

    def __init__(self) -> None:
        self._failed = 0
        """The number of messages that failed in a row."""
        self._writers: list[int] = []
        """Numbers that are free, because the outputs of their last batch are published."""

    def _batch(
        self, messages: Sequence[Message], stopped: dict[str, BaseException]
    ) -> Generator[Action, Any, list[Outcome]]:
        """Yield the actions for a batch; return the outcome of each message.

        Without a dead-letter output, a key stops at its first failure: its later messages are not tried, so that no
        message overtakes the one that failed.

        Args:
            messages: The batch.
            stopped: The first error of each key that has stopped in an earlier batch of the call; this batch adds its.
        """
        for message in messages:
            if not isinstance(message, Message):
                raise TypeError(f"message must be a Message, got {quote(message)}: Message(id, key, body)")
        outcomes: dict[int, tuple[Outcome, float]] = {}
        writers: list[int] = []
        stops = {key: (-1, error) for key, error in stopped.items()}
        left: Sequence[int] = range(len(messages))
        while left:
            left = yield from self._round(messages, left, outcomes, writers, stops)
        stopped.update((key, error) for key, (_, error) in stops.items())
        done = [outcomes[index][0] for index in range(len(messages))]
        outputs = [output for outcome in done for output in outcome.outputs]
        if outputs:
            yield Publish(outputs)
        self._writers.extend(writers)
        for index, outcome in enumerate(done):
            if self._observe is not None or (self._dead_letter is not None and outcome.error is not None):
                yield Settle(messages[index], *outcomes[index])
        return done

    def _round(
        self,
        messages: Sequence[Message],
        indexes: Sequence[int],
        outcomes: dict[int, tuple[Outcome, float]],
        writers: list[int],
        stops: dict[str, tuple[int, BaseException]],
    ) -> Generator[Action, Any, list[int]]:
        """Handle messages against the stored states; return the indices of those whose key another worker changed.

        ``stops`` has the index and the error at which a key has stopped.
        """
        readings: list[Reading] = yield Read([(messages[index].key, messages[index].id) for index in indexes])
        chains: dict[str, _Chain] = {}
        stored_at = self._clock() // 1000
        for index, reading in zip(indexes, readings, strict=True):
            message = messages[index]
            if stops and message.key in stops and index > stops[message.key][0]:
                outcomes[index] = Outcome("not tried", error=stops[message.key][1]), 0
                if message.key in chains:
                    chains[message.key].indexes.append(index)
                continue
            chain: _Chain | None = None
            known: Reading | None = reading
            if reading.handled is None and reading.forgotten is None:
                chain = chains.get(message.key)
                if chain is None:
                    chain = chains[message.key] = _Chain(reading, stored_at)
                chain.indexes.append(index)
                known = chain.readings.get(message.id)
            began = self._clock()
            outcome = yield from self._one(message, known, chain)
            outcomes[index] = outcome, (self._clock() - began) / 1e9
            self._failed = 0 if outcome.error is None else self._failed + 1
            if outcome.error is not None and self._dead_letter is None:
                stops[message.key] = index, outcome.error
            if self._stop_after and self._failed >= self._stop_after:
                raise TooManyFailures(self._failed, message) from outcome.error
        grown = {key: chain for key, chain in chains.items() if chain.entries}
        if not grown:
            return []
        writer = None
        if any(chain.publishes for chain in grown.values()):
            try:
                writer = self._writers.pop()
            except IndexError:
                writer = random.SystemRandom().getrandbits(62)
            writers.append(writer)
        appends = [Append(key, one.reading.version, one.reading.state, one.entries) for key, one in grown.items()]
        won: list[bool] = yield AppendAll(appends, writer)
        lost = {key: chain for (key, chain), stored in zip(grown.items(), won, strict=True) if not stored}
        for key, chain in lost.items():
            if key in stops and stops[key][0] in chain.indexes:
                del stops[key]  # on the other worker's state, the message may succeed
        return sorted(index for chain in lost.values() for index in chain.indexes)

    def _one(self, message: Message, known: Reading | None, chain: _Chain | None) -> Generator[Action, Any, Outcome]:
        """Handle a message that is known from a reading, or the next message of a chain.

        Stored outputs are published again even if the processor no longer stores outputs.
        """
        earlier, forgotten = None, None if known is None else known.forgotten
        if known is not None and known.handled is not None:
            stored = known.fingerprint or b""
            earlier = Earlier(known.state, stored[:FINGERPRINT_LENGTH], known.outputs)
            first_body, body = stored[FINGERPRINT_LENGTH:], body_fingerprint(message.body)
            if first_body and body and first_body != body:
                return Outcome("conflict", error=ChangedBody(message))
        if (decided := decide_known(message, earlier, forgotten)) is not None:
            if decided.error is not None:
                return Outcome(decided.kind, error=decided.error)
            assert earlier is not None
            raw, written = loads(earlier.outputs)
            return Outcome(decided.kind, self._loads(raw), read_outputs(message.id, written))
        before = earlier.state if earlier is not None else None if chain is None else chain.state
        ran, attempts = yield from self._attempts(RunHandler(before, message))
        kind, error = judge(message, earlier, ran)
        if error is not None:
            return Outcome(kind, error=error, attempts=attempts)
        if kind == "new":
            assert chain is not None
            self._add(message, chain, ran)
        state = self._loads(ran.raw) if self._keep_outputs else ran.state
        return Outcome(kind, state, read_outputs(message.id, ran.written), None, attempts)

    def _attempts(self, run: RunHandler) -> Generator[Action, Any, tuple[Any, int]]:
        """Run the handler until it returns or its error is final; return the last result, and the number of runs."""
        number = 0
        while True:
            number += 1
            ran = yield run
            delay = self._retries.delay(number, ran) if isinstance(ran, BaseException) else None
            if delay is None:
                return ran, number
            if delay:
                yield Wait(delay)

    def _add(self, message: Message, chain: _Chain, ran: Ran) -> None:
        """Add the entry of a new message to its chain."""
        outputs = dumps([ran.raw, ran.written]) if self._keep_outputs else None
        version = chain.reading.version + len(chain.entries) + 1
        fingerprint = ran.fingerprint + body_fingerprint(message.body)
        chain.readings[message.id] = Reading(version, chain.state, version, fingerprint, outputs)
        chain.entries.append(Entry(message.id, ran.raw, fingerprint, chain.stored_at, message.at, outputs))
        chain.state = ran.raw
        chain.publishes |= bool(ran.written)
