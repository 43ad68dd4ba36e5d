"""The messages of one key in a micro-batch: their entries in the state, and the rows of the result.

`msgid.processing._flow.decide` is the rule: whether a message is new, duplicate, too late, failed or changed.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid._known_tables import NEW
from msgid._message import Message
from msgid.processing._flow import Earlier, Retries, Run, decide, error_text
from msgid.processing._json import dumps, loads, text
from msgid.processing.context import Context, fingerprint
from spark_ext.streaming._processing.history import Entry
from spark_ext.streaming._processing.packing import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from msgid.processing._flow import Decision, Wait
    from msgid.processing.context import AsyncHandler, Handler, Output
    from spark_ext.streaming._processing.history import Bucket
    from spark_ext.streaming._processing.packing import Arrival

MALFORMED: Final = "malformed"

Rows = list[tuple[str, str | None, str]]
"""Outputs as ID, topic and JSON."""
OutputRow = tuple[str | None, int | None, str | None, str | None, str | None, str, str, str | None]
"""ID, number, input ID, key, topic, body, kind and reason, as the columns of the result."""


class _Ran(NamedTuple):
    """The result of a run of the handler; has what `msgid.processing._flow.Ran` has."""

    state: Any
    raw: bytes
    outputs: list[Output]
    fingerprint: bytes
    rows: Rows


class Settings(NamedTuple):
    """How a query handles messages."""

    columns: tuple[str, ...]
    """The user's columns."""
    body: tuple[int, ...]
    """The places of those columns that are the message's body."""
    retention_ms: int
    remember_ms: int
    attempts: int
    keep_outputs: bool

    @property
    def names(self) -> list[str]:
        """The columns of the message's body."""
        return [self.columns[place] for place in self.body]


_ROW_BYTES: Final = 300
"""About the memory of a row of the result without its body."""


class Runner:
    """Runs a handler, which may be a coroutine function."""

    def __init__(self, handler: Handler | AsyncHandler) -> None:
        self._handler = handler
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, state: Any, message: Message) -> tuple[Any, list[Output]]:
        """Run the handler once on its own copies of a state and a message."""
        context = Context(message)
        after = self._handler(state, message, context)
        if inspect.isawaitable(after):
            self._loop = self._loop or asyncio.new_event_loop()
            after = self._loop.run_until_complete(after)
        return after, context.outputs

    def close(self) -> None:
        """Close the event loop."""
        if self._loop is not None:
            self._loop.close()


class Handling:
    """Handles the messages of a bucket in one micro-batch.

    Args:
        runner: Runs the handler.
        settings: How it is run.
        bucket: The states of the bucket's keys.
        nested: The places in a body of values that a handler could change.
        slice_bytes: The size of the new entries, and of the rows of the result, that are kept at a time.
    """

    def __init__(
        self, runner: Runner, settings: Settings, bucket: Bucket, nested: Sequence[int], slice_bytes: int
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._names = settings.names
        self._bucket = bucket
        self._nested = [self._names[place] for place in nested]
        self._slice_bytes = slice_bytes
        self._rows: list[OutputRow] = []
        self._size = 0

    def handle(self, messages: Sequence[Arrival]) -> int:
        """Handle messages in their order; return how many were handled.

        The others wait if the new entries, or the rows of the result, fill a slice. `take` makes room.
        """
        bucket = self._bucket
        hashes = bucket.read([(arrival.key, arrival.id) for arrival in messages])
        handled = 0
        for arrival, hash in zip(messages, hashes, strict=True):
            entry, stored = bucket.earlier(hash)
            before = bucket.state(arrival.key)
            made = self._decided(arrival, before, entry, None if stored is None else stored * 1000)
            if made is not None:
                bucket.add(arrival.key, hash, self._entry(before, made), made.raw)
            handled += 1
            if bucket.size + self._size >= self._slice_bytes:
                break
        bucket.store()
        return handled

    @property
    def is_full(self) -> bool:
        """Whether the rows of the result fill a slice."""
        return self._size >= self._slice_bytes

    def take(self) -> list[OutputRow]:
        """Return the rows of the result that were not returned before."""
        taken, self._rows, self._size = self._rows, [], 0
        return taken

    def _decided(
        self, arrival: Arrival, state: bytes | None, entry: Entry | None, forgotten: int | None
    ) -> _Ran | None:
        """Add the rows of a message to the result; return its run if it is new."""
        fields = arrival.id, arrival.key, None, None if arrival.time == NO_TIME else arrival.time
        message = tuple.__new__(Message, fields)  # the columns were checked at once
        earlier, kept = None, None
        if entry is not None:
            kept = None if isinstance(entry.answer, bytes) else entry.answer
            earlier = Earlier(entry.before, entry.answer if isinstance(entry.answer, bytes) else b"", kept)
        retries = Retries(self._settings.attempts)
        rule: Generator[Run | Wait, Any, Decision] = decide(message, state, earlier, forgotten, retries)
        try:
            run = next(rule)
            while isinstance(run, Run):
                run = rule.send(self._once(run.state, message, arrival.values))
            raise AssertionError("not reached: the attempts follow each other without a wait")
        except StopIteration as done:
            kind, ran, error, _ = done.value
        if error is not None:
            self._set_aside(arrival, kind, error_text(error))
            return None
        self._publish(arrival, kept or () if ran is None else ran.rows, kind)
        return ran if kind == NEW else None

    def _entry(self, before: bytes | None, ran: _Ran) -> Entry:
        """Return the entry of a message that was handled for the first time."""
        return Entry(None, ran.rows) if self._settings.keep_outputs else Entry(before, ran.fingerprint)

    def _once(self, state: bytes | None, message: Message, values: tuple[Any, ...]) -> _Ran | BaseException:
        """Run the handler on its own copies of state and message; return its error if it fails.

        `SystemExit`, say, is an error here: it would stop the query at the same message after each restart.
        """
        try:
            body = dict(zip(self._names, values, strict=True))
            for name in self._nested:
                body[name] = copy.deepcopy(body[name])
            after, outputs = self._runner.run(None if state is None else loads(state), message.with_body(body))
            rows = [(output.id, output.topic, text(output.body)) for output in outputs]
            return _Ran(after, dumps(after), outputs, fingerprint(outputs), rows)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            return error

    def _publish(self, arrival: Arrival, outputs: Sequence[tuple[str, str | None, str]], kind: str) -> None:
        for number, (id, topic, body) in enumerate(outputs):
            self._rows.append((id, number, arrival.id, arrival.key, topic, body, kind, None))
            self._size += len(body) + _ROW_BYTES

    def _set_aside(self, arrival: Arrival, kind: str, reason: str) -> None:
        body = arrival.body(self._names)
        self._rows.append((None, None, arrival.id, arrival.key, None, body, kind, reason))
        self._size += len(body) + _ROW_BYTES
