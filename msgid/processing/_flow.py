"""The rules for messages, without side effects: what a message is, and the sequence of actions for a batch.

`decide` is the rule for one message. Spark's `process` calls it for each message of a bucket. `Flow.batch` calls it for
each message of a batch: a generator of actions. A processor runs each action and sends the result back. The processor
for plain functions and the processor for coroutines share this sequence.
"""

from __future__ import annotations

import inspect
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from msgid._message import Message
from msgid._moments import micros_since_1970
from msgid._validate import quote
from msgid.processing._json import dumps, loads
from msgid.processing.context import FINGERPRINT_LENGTH, Output, body_fingerprint, canonical_id
from msgid.processing.errors import ChangedBody, ChangedOutputs, TooLate
from msgid.processing.store import Append, Entry, Reading, check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

TEXT_LIMIT: Final = 1000
"""The maximum number of bytes of a key and of an ID: PostgreSQL's index holds both in one row of 2700 bytes."""

Kind = Literal["new", "duplicate", "too late", "changed", "conflict", "failed", "malformed"]


class Outcome(NamedTuple):
    """The result of handling a message."""

    kind: Kind
    """``new`` and ``duplicate`` messages are handled. For other kinds, `error` is the reason."""
    state: Any = None
    """The state that the message made, at this delivery or at the first one."""
    outputs: Sequence[Output] = ()
    error: BaseException | None = None
    """`TooLate`, `ChangedOutputs`, `ChangedBody`, the handler's error, or the error of a malformed ID, key or time."""


class DeadLetter(NamedTuple):
    """A message that was not handled, for the dead-letter output."""

    message: Message
    kind: Kind
    error: str
    """The type and text of the error."""


class Read(NamedTuple):
    """The action that reads the store for each (key, ID). Its result is a list of `Reading`."""

    wanted: Sequence[tuple[str, str]]


class Run(NamedTuple):
    """The action that runs the handler. Its result is `Ran`, or the handler's error."""

    state: bytes | None
    message: Message


class AppendAll(NamedTuple):
    """The action that stores entries. Its result is a list of bool."""

    appends: Sequence[Append]


class Publish(NamedTuple):
    """The action that publishes outputs. Its result is ignored."""

    outputs: Sequence[Output]


class Send(NamedTuple):
    """The action that sends a message to the dead-letter output. Its result is ignored."""

    letter: DeadLetter


Action = Read | Run | AppendAll | Publish | Send


class Ran(NamedTuple):
    """The result of a run of the handler."""

    state: Any
    raw: bytes
    outputs: list[Output]
    fingerprint: bytes


class AnyRan(Protocol):
    """The result of a run of the handler, for `decide`."""

    @property
    def fingerprint(self) -> bytes:
        """The fingerprint of the outputs."""


R = TypeVar("R", bound=AnyRan)


class Earlier(NamedTuple):
    """How a redelivered message was handled the first time."""

    state: bytes | None
    """The state before it."""
    fingerprint: bytes
    outputs: Any = None
    """The outputs as they were stored; None if only their fingerprint was."""


class Decision(NamedTuple, Generic[R]):
    """The outcome of a message, and the run of the handler that decided it."""

    kind: Kind
    ran: R | None = None
    """The run; None if no run was needed, or if it failed."""
    error: BaseException | None = None


def decide(
    message: Message, state: bytes | None, earlier: Earlier | None, forgotten: int | None
) -> Generator[Run, R | BaseException, Decision[R]]:
    """Yield the run of the handler that a message needs; return what the message is.

    Args:
        message: The message.
        state: The state of its key, for a new message.
        earlier: How it was handled before.
        forgotten: When it was handled before, in microseconds since 1970, if that entry is deleted.
    """
    if earlier is None:
        if forgotten is not None:
            return Decision("too late", error=TooLate(message, forgotten))
        ran = yield Run(state, message)
        return Decision("failed", error=ran) if isinstance(ran, BaseException) else Decision("new", ran)
    if earlier.outputs is not None:
        return Decision("duplicate")
    ran = yield Run(earlier.state, message)
    if isinstance(ran, BaseException):
        return Decision("failed", error=ran)
    if ran.fingerprint != earlier.fingerprint:
        return Decision("changed", error=ChangedOutputs(message, earlier.fingerprint, ran.fingerprint))
    return Decision("duplicate", ran)


def attempt(run: Callable[[], R], attempts: int, failure: type[BaseException] = Exception) -> R | BaseException:
    """Run a handler until it succeeds; return the error of the last attempt.

    An exception of another base, such as the `SystemExit` of a signal handler, ends the processor and not only the
    handler. On Spark such an exception would stop the query at the same message after each restart, so that
    `process` passes `BaseException`.

    Args:
        run: Runs the handler once.
        attempts: Maximum number of runs.
        failure: The base class of the errors that fail the message alone.
    """
    for number in range(1, attempts + 1):
        try:
            return run()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except failure as error:
            if number == attempts:
                return error
    raise AssertionError("not reached: attempts is at least 1")


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

    __slots__ = ("entries", "made", "places", "reading", "state")

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.state = reading.state
        self.entries: list[Entry] = []
        self.made: dict[str, Reading] = {}
        self.places: list[int] = []


class Flow:
    """Handles batches; see `msgid.processing.Processor` for the arguments."""

    def __init__(
        self, loads: Callable[[bytes], Any], clock: Callable[[], int], *, keep_outputs: bool, dead: bool
    ) -> None:
        self._loads = loads
        self._clock = clock
        self._keep_outputs = keep_outputs
        self._dead = dead

    def batch(self, messages: Sequence[Message]) -> Generator[Action, Any, list[Outcome]]:
        """Yield the actions for a batch; return the outcome of each message."""
        for message in messages:
            if not isinstance(message, Message):
                raise TypeError(f"message must be a Message, got {quote(message)}: Message(id, key, body)")
        outcomes: list[Outcome | None] = [None] * len(messages)
        named: list[Message] = list(messages)
        left = []
        for place, message in enumerate(messages):
            try:
                named[place] = _checked(message)
                left.append(place)
            except (TypeError, ValueError) as error:
                outcomes[place] = Outcome("malformed", error=error)
        while left:
            left = yield from self._round(named, left, outcomes)
        done = [outcome for outcome in outcomes if outcome is not None]
        outputs = [output for outcome in done for output in outcome.outputs]
        if outputs:
            yield Publish(outputs)
        if self._dead:
            for message, outcome in zip(messages, done, strict=True):
                if outcome.error is not None:
                    yield Send(DeadLetter(message, outcome.kind, error_text(outcome.error)))
        return done

    def _round(
        self, messages: Sequence[Message], places: Sequence[int], outcomes: list[Outcome | None]
    ) -> Generator[Action, Any, list[int]]:
        """Handle messages against the stored states; return the indices of those whose key another worker changed."""
        readings: list[Reading] = yield Read([(messages[place].key, messages[place].id) for place in places])
        chains: dict[str, _Chain] = {}
        for place, reading in zip(places, readings, strict=True):
            message = messages[place]
            if reading.handled is not None or reading.forgotten is not None:
                outcomes[place] = yield from self._one(message, reading, None)
                continue
            chain = chains.get(message.key)
            if chain is None:
                chain = chains[message.key] = _Chain(reading)
            chain.places.append(place)
            outcomes[place] = yield from self._one(message, chain.made.get(message.id), chain)
        grown = {key: chain for key, chain in chains.items() if chain.entries}
        if not grown:
            return []
        won: list[bool] = yield AppendAll(
            [Append(key, chain.reading.version, chain.reading.state, chain.entries) for key, chain in grown.items()]
        )
        lost = [chain for chain, stored in zip(grown.values(), won, strict=True) if not stored]
        return sorted(place for chain in lost for place in chain.places)

    def _one(self, message: Message, known: Reading | None, chain: _Chain | None) -> Generator[Action, Any, Outcome]:
        """Handle a message that is known from a reading, or the next message of a chain.

        Stored outputs are published again even if the processor no longer stores outputs.
        """
        earlier, forgotten = None, None
        if known is not None and known.handled is not None:
            told = known.fingerprint or b""
            earlier = Earlier(known.state, told[:FINGERPRINT_LENGTH], known.outputs)
            first_body, body = told[FINGERPRINT_LENGTH:], body_fingerprint(message.body)
            if first_body and body and first_body != body:
                return Outcome("conflict", error=ChangedBody(message))
        elif known is not None:
            forgotten = known.forgotten
        made: Decision[Ran] = yield from decide(message, None if chain is None else chain.state, earlier, forgotten)
        kind, ran, error = made
        if error is not None:
            return Outcome(kind, error=error)
        if ran is None:
            assert known is not None
            assert known.outputs is not None
            raw, stored = _read_outputs(message.id, known.outputs)
            return Outcome(kind, self._loads(raw), stored)
        if kind == "new":
            assert chain is not None
            self._add(message, chain, ran)
        return Outcome(kind, self._loads(ran.raw) if self._keep_outputs else ran.state, ran.outputs)

    def _add(self, message: Message, chain: _Chain, ran: Ran) -> None:
        """Add the entry of a new message to its chain."""
        outputs = _write_outputs(ran) if self._keep_outputs else None
        stored_at = self._clock() // 1000
        version = chain.reading.version + len(chain.entries) + 1
        fingerprint = ran.fingerprint + body_fingerprint(message.body)
        chain.made[message.id] = Reading(version, chain.state, version, fingerprint, outputs)
        chain.entries.append(Entry(message.id, ran.raw, fingerprint, stored_at, message.at, outputs))
        chain.state = ran.raw


def _checked(message: Message) -> Message:
    """Return a message with the canonical form of its ID, or raise TypeError or ValueError."""
    id = canonical_id(message.id)
    if message.timestamp is not None:
        micros_since_1970("timestamp", message.timestamp)
    check_key(message.key)
    for name, text in (("key", message.key), ("id", id)):
        if len(text) > TEXT_LIMIT or not text.isascii() or "\0" in text:
            check_text(name, text)
    is_same = isinstance(message.id, str) and id == message.id
    return message if is_same else Message(id, message.key, message.body, message.timestamp)


def check_text(name: str, text: str) -> None:
    """Raise ValueError if a text cannot be stored as a key."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can encode, got {quote(text)}") from None
    if length > TEXT_LIMIT:
        raise ValueError(f"{name} must be text of at most {TEXT_LIMIT} bytes, got {length}: {quote(text)}")
    if "\0" in text:
        raise ValueError(f"{name} must be text without a NUL character, got {quote(text)}")


def _write_outputs(ran: Ran) -> bytes:
    return dumps([ran.raw, [[output.id, output.number, output.topic, output.body] for output in ran.outputs]])


def _read_outputs(input_id: str, stored: bytes) -> tuple[bytes, list[Output]]:
    raw, outputs = loads(stored)
    return raw, [Output(id, number, input_id, body, topic) for id, number, topic, body in outputs]
