"""The processor, which runs the handler on the right state, stores the new state, and publishes the outputs."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgid.processing.context import Context, Output, fingerprint
from msgid.processing.errors import BatchFailed
from msgid.processing.flow import (
    AppendAll,
    DeadLetter,
    Flow,
    Outcome,
    Publish,
    Ran,
    Read,
    Retries,
    RunHandler,
    Settle,
    Wait,
    error_text,
    finished,
    next_action,
)
from msgid.processing.strict_json import dumps, loads, own_copy
from msgid.shared.handler_message import Message, check_text
from msgid.shared.moments import micros_in, moment, unit_hint
from msgid.shared.validate import integer, is_integer, is_number, quote, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime, timedelta

    from msgid.processing.flow import Action
    from msgid.processing.store import Store, Version

_log: Final = logging.getLogger("msgid.processing")
_LOGGED: Final = 1_000
"""The most characters of an error in a log record."""
_NUMBERS: Final = {0: "no arguments", 1: "one argument", 3: "three arguments"}
_OTHER_CLOCKS: Final = (time.monotonic_ns, time.perf_counter_ns, time.process_time_ns, time.thread_time_ns)
"""Clocks of integers that do not count from 1970."""
BATCH: Final = 1000
"""The number of messages that `handle_many` stores in one transaction."""
_METHODS: Final = ("read", "append", "history", "forget", "forget_key")


class BaseProcessor(Flow):
    """The common part of processors of plain functions and of coroutines."""

    _awaits = False

    def __init__(
        self,
        store: Store,
        handler: Callable[..., Any],
        publish: Callable[[Sequence[Output]], Any],
        *,
        name: str | None = None,
        attempts: int = 3,
        backoff: float | Callable[[int], float] = 0,
        give_up: tuple[type[Exception], ...] = (),
        stop_after: int | None = None,
        dead_letter: Callable[[DeadLetter], Any] | None = None,
        observe: Callable[[Message, Outcome, float], object] | None = None,
        keep_outputs: bool = False,
        dumps: Callable[[Any], bytes] = dumps,
        loads: Callable[[bytes], Any] = loads,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__()
        check_store(store, handler)
        functions = {"handler": handler, "publish": publish, "dumps": dumps, "loads": loads, "clock": clock}
        functions |= {what: f for what, f in {"dead_letter": dead_letter, "observe": observe}.items() if f is not None}
        for what, function in functions.items():
            if not self._awaits and any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
                raise TypeError(f"{what} must be a plain function; AsyncProcessor takes coroutine functions")
            if not callable(function):
                hint = f"; pass its method {what}=letters.append" if isinstance(function, list) else ""
                raise TypeError(f"{what} must be a function, got {quote(function)}{hint}")
        check_parameters("handler", handler, "state, message, context")
        check_parameters("publish", publish, "outputs")
        check_parameters("dead_letter", dead_letter, "letter")
        check_parameters("observe", observe, "message, outcome, seconds")
        check_parameters("clock", clock)
        if not isinstance(keep_outputs, bool):
            raise TypeError(f"keep_outputs must be True or False, got {quote(keep_outputs)}")
        now = clock()
        is_other = clock in _OTHER_CLOCKS or not is_integer(now)
        if hint := ": time.time_ns?" if is_other else unit_hint(now, 1_000_000_000):
            raise TypeError(f"clock must return integers of nanoseconds since 1970, got {quote(now)}{hint}")
        self._store = store
        self._handler = handler
        self._publish = publish
        self.name = handler_name(handler) if name is None else name
        """The handler's name, under which its states are stored."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be text of at least one character, got {quote(self.name)}")
        check_text("name", self.name)
        if not callable(backoff) and not (is_number(backoff) and backoff >= 0):
            raise TypeError(f"backoff must be a number of seconds or a function, got {quote(backoff)}")
        if not isinstance(give_up, tuple) or not all(isinstance(e, type) and issubclass(e, Exception) for e in give_up):
            raise TypeError(f"give_up must be a tuple of subclasses of Exception, got {quote(give_up)}")
        if stop_after is not None:
            integer("stop_after", stop_after, 1, 1_000_000)
        self._dead_letter = dead_letter
        self._observe = observe
        self._dumps = dumps
        self._loads = loads
        self._clock = clock
        self._retries = Retries(integer("attempts", attempts, 1, 1_000_000), backoff, give_up)
        self._keep_outputs = keep_outputs
        self._stop_after = stop_after

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, name={self.name!r})"

    def history(self, key: str) -> list[Version]:
        """Return the states of a key that this handler made, oldest first."""
        return self._store.history(key, handler=self.name)

    def forget(
        self,
        before: int | datetime | None = None,
        *,
        older_than: timedelta | str | None = None,
        keys: bool = False,
    ) -> int:
        """Delete the entries of this handler that were stored before a time; see `msgid.processing.store`.

        The last batch of each processor that has outputs stays until the next one, because nothing in the store shows
        that its outputs are published.

        Args:
            before: The time, as an aware datetime or in microseconds since 1970.
            older_than: The age of the time by the processor's clock, as a timedelta or as text such as ``"90 days"``;
                pass it instead of ``before``.
            keys: Whether the state of a key goes with its last entry. The key is as new then.

        Returns:
            The number of deleted entries.
        """
        if (before is None) == (older_than is None):
            raise TypeError("pass either before or older_than")
        if older_than is not None:
            before = self._clock() // 1000 - micros_in("older_than", older_than)
        assert before is not None
        return self._store.forget(moment("before", before), handler=self.name, keys=keys)

    def forget_key(self, key: str) -> int:
        """Delete the state and the entries of a key, which is as new then; return the number of entries.

        A message that is delivered again is handled again. No worker may handle messages of the key at that time.
        """
        return self._store.forget_key(key, handler=self.name)

    def _finished(self, outcome: Outcome) -> Outcome:
        """Return the outcome of one message; without a dead-letter output, raise its error."""
        if outcome.error is not None and self._dead_letter is None:
            raise outcome.error
        return outcome

    def _all_finished(self, outcomes: list[Outcome]) -> list[Outcome]:
        if self._dead_letter is None and any(outcome.error is not None for outcome in outcomes):
            raise BatchFailed(outcomes)
        return outcomes

    def _letter(self, message: Message, outcome: Outcome) -> DeadLetter | None:
        """Log a message that failed, and return its dead letter; None if it did not fail, or raises its error."""
        if outcome.error is None or self._dead_letter is None:
            return None
        letter = DeadLetter(message, outcome.kind, error_text(outcome.error), outcome.attempts)
        id, key = quote(message.id), quote(message.key)
        what = "%s: message %s of key %s is %s (attempts: %d): %s"
        _log.warning(what, self.name, id, key, letter.kind, letter.attempts, shown(letter.error, _LOGGED))
        return letter

    def _observed(self, message: Message, outcome: Outcome, seconds: float) -> None:
        """Call ``observe``; its errors are logged, because metrics must not stop messages."""
        try:
            if self._observe is not None:
                self._observe(message, outcome, seconds)
        except Exception:
            _log.exception("%s: observe raised an error", self.name)

    def _before(self, action: RunHandler) -> tuple[Any, Message, Context]:
        """Return the handler's own copies of state and message, and the context, for one attempt."""
        message = action.message
        own = message.with_body(own_copy(message.body))
        return None if action.state is None else self._loads(action.state), own, Context(own)

    def _ran(self, state: Any, context: Context) -> Ran:
        raw: Any = self._dumps(state)
        if not isinstance(raw, bytes | bytearray | memoryview):
            raise TypeError(f"dumps must return bytes, got {quote(raw)}")
        written = context.end()
        return Ran(state, bytes(raw), written, fingerprint(written))


class Processor(BaseProcessor):
    """Handles messages so that reprocessing a message changes nothing.

    Args:
        store: Store of the states.
        handler: Pure function of (state, message, context) that returns the new state. Each attempt has its own copies.
            None is a state too: a handler without ``return`` resets the state of the key.
        publish: Function that sends outputs, in order. It is called again with equal outputs if a message is
            redelivered.
        name: Name of the handler, under which its states are stored. Handlers with different names do not share
            states. Default: the module and the qualified name of the function. Pass a name if the function may be
            renamed or moved later, or if its module also runs as a script.
        attempts: Maximum number of attempts if the handler raises an error. They are counted per delivery and do not
            survive a restart. An exception that is not an `Exception`, such as `SystemExit` or `KeyboardInterrupt`, is
            not an error of the handler. It ends `handle` at once, and the message must be delivered again.
        backoff: Seconds between two attempts, or a function that returns them for the number of failed attempts.
        give_up: Errors after which the handler is not run again, such as ``(ValueError,)``. Name the error of a soft
            time limit here, if it is an `Exception`.
        stop_after: Number of messages in a row that fail, for any reason, at which the processor raises
            `TooManyFailures`. So a wrong deployment makes fewer dead letters than that; None never stops.
        dead_letter: Function that receives a `DeadLetter` for each message that cannot be handled: the handler raises
            at the last attempt, the message is too late, its outputs have changed, or its ID was handled with another
            body. The store does not change for such a message, and it is logged to ``msgid.processing`` as a warning.
            The later messages of its key are handled, so a message that is handled again later has lost its place in
            the order. Without ``dead_letter`` the error is raised, and the order of each key is kept.
        observe: Function that receives each message, its `Outcome`, and the seconds that its attempts took with the
            waits between them. It is called after the outputs are published, for metrics. Its errors are logged.
        keep_outputs: Whether outputs are stored. A redelivered message then gets its stored outputs and the handler
            does not run, so a new version of the handler never publishes other content under the same ID. This holds
            for outputs that an earlier processor stored, too. Without stored outputs the handler runs again, and
            `ChangedOutputs` reports a difference.
        dumps: Function that encodes a state as bytes. Default: `msgid.processing.dumps`, which is JSON.
        loads: Function that decodes a state.
        clock: Function that returns the time in nanoseconds since 1970, by which entries are stored and deleted.

    See `msgid.processing` for an example.
    """

    def handle(self, message: Message) -> Outcome:
        """Handle a message once, even if it is redelivered or other workers handle it at the same time.

        Returns:
            The outcome. With a ``dead_letter``, `Outcome.error` is the reason why a message was not handled.

        Raises:
            TooLate: if the message was handled before and its entry has been deleted.
            ChangedOutputs: if a redelivered message has other outputs than the first time.
            ChangedBody: if a message with the same ID and another body was handled before.
            TooManyFailures: if ``stop_after`` messages in a row have failed.
            Exception: any error of the store, of the publisher, or of the handler at its last attempt. The message
                must be delivered again.
        """
        return self._finished(self._driven([message], {})[0])

    def handle_many(self, messages: Iterable[Message], *, batch: int = BATCH) -> list[Outcome]:
        """Handle messages in order, with one transaction per batch; the outcomes equal those of single calls.

        Each batch is stored, and then published in one call. Without ``dead_letter``, a key stops at its first failure,
        as with `handle`: its later messages in this call are ``not tried``, and other keys go on. Deliver the failed
        message and those that were not tried again, in their order. With ``dead_letter``, all messages are handled.

        Args:
            messages: Messages, in order.
            batch: Number of messages per transaction.

        Returns:
            The outcome of each message.

        Raises:
            BatchFailed: if messages were not handled and ``dead_letter`` is None. It contains all outcomes.
            TooManyFailures: if ``stop_after`` messages in a row have failed. Nothing of their batch is published.
            Exception: any error of the store or the publisher. All messages must be delivered again.
        """
        outcomes: list[Outcome] = []
        stopped: dict[str, BaseException] = {}
        for chunk in batches_of(messages, batch):
            outcomes += self._driven(chunk, stopped)
        return self._all_finished(outcomes)

    def _driven(self, messages: Sequence[Message], stopped: dict[str, BaseException]) -> list[Outcome]:
        steps = self._batch(messages, stopped)
        action = next_action(steps)
        while not isinstance(action, list):
            action = next_action(steps, self._do(action))
        return action

    def _do(self, action: Action) -> Any:
        match action:
            case RunHandler():
                # An exception of another base, such as the SystemExit of a signal handler, ends the processor.
                try:
                    state, message, context = self._before(action)
                    return self._ran(finished("handler", self._handler(state, message, context)), context)
                except Exception as error:
                    return error
            case Wait(seconds):
                return time.sleep(seconds)
            case Read(wanted):
                return self._store.read(self.name, wanted)
            case AppendAll(appends, writer):
                return self._store.append(self.name, appends, writer)
            case Publish(outputs):
                return finished("publish", self._publish(outputs))
            case Settle(message, outcome, seconds):
                letter = self._letter(message, outcome)
                if letter is not None and self._dead_letter is not None:
                    finished("dead_letter", self._dead_letter(letter))
                return self._observed(message, outcome, seconds)


def batches_of(messages: Iterable[Message], batch: int) -> Iterator[list[Message]]:
    """Yield messages in lists of at most ``batch``; raise TypeError for a single message."""
    integer("batch", batch, 1, 1_000_000)
    if isinstance(messages, Message | str | bytes | Mapping) or not hasattr(messages, "__iter__"):
        raise TypeError(f"messages must be a list of messages, got {quote(messages)}")
    rest = iter(messages)
    while chunk := list(islice(rest, batch)):
        yield chunk


def check_store(store: object, handler: object = None) -> None:
    """Raise TypeError if an object is not a store."""
    missing = [name for name in _METHODS if not hasattr(store, name)]
    if isinstance(store, type) or missing:
        hint = ": call it" if isinstance(store, type) else f": {missing[0]} is missing"
        hint = ": store and handler are swapped" if hasattr(handler, "forget_key") else hint
        raise TypeError(f"store must be a store, such as MemoryStore(), got {quote(store)}{hint}")


def handler_name(handler: Any) -> str:
    """Return the default name of a handler: its module and qualified name.

    Raises:
        ValueError: if two handlers can easily have the same name: a lambda, a partial, a method of an object, or a
            function that uses variables of its enclosing function.

    >>> handler_name(handler_name)
    'msgid.processing.processor.handler_name'
    """
    name = getattr(handler, "__qualname__", "")
    local = "<locals>" in name and getattr(handler, "__closure__", None)
    bound = inspect.ismethod(handler) and not inspect.isclass(handler.__self__)
    if not name or "<lambda>" in name or local or bound:
        raise ValueError(f"name must be given for a handler without a name of its own, got {quote(handler)}")
    module = getattr(handler, "__module__", None)
    return f"{module}.{name}" if module else name


def check_parameters(what: str, function: Any, names: str = "") -> None:
    """Raise TypeError if a function cannot be called with as many arguments as ``names`` lists; None passes."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # None, or a function in C that does not say
        return
    arguments = names.split(", ") if names else []
    try:
        signature.bind(*arguments)
    except TypeError:
        number = _NUMBERS[len(arguments)]
        raise TypeError(
            f"{what} must take {number}{f' ({names})' if names else ''}, got {quote(function)} with {signature}"
        ) from None
