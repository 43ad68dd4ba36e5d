"""The messages of one key in a micro-batch: their entries in the state, and the rows of the result.

`msgid.processing.flow` has the rule: whether a message is new, duplicate, too late, failed or changed. After a failed
message, the later ones of its key in the micro-batch are not tried, so that none overtakes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgid.processing.context import Context, fingerprint
from msgid.processing.flow import Ran, decide_known, error_text, judge
from msgid.processing.strict_json import dumps, loads, own_copy
from msgid.shared.handler_message import Message
from msgid.shared.known_tables import NEW
from spark_ext.streaming._processing.history import Bucket, packed
from spark_ext.streaming._processing.packing import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgid.processing.context import AsyncHandler, Handler, WrittenOutput
    from spark_ext.streaming._processing.packing import Arrival

MALFORMED: Final = "malformed"
_FAILED: Final = "failed"
_NOT_TRIED: Final = "not tried"

OutputRow = tuple[str | None, int | None, str | None, str | None, str | None, str, str, str | None]
"""ID, number, input ID, key, topic, body, kind and reason, as the columns of the result."""


class Settings(NamedTuple):
    """How a query handles messages."""

    names: tuple[str, ...]
    """The columns of a message's body."""
    retention_ms: int
    remember_ms: int
    attempts: int
    keep_outputs: bool


_ROW_BYTES: Final = 300
"""About the memory of a row of the result without its body."""


class Runner:
    """Runs a handler, which may be a coroutine function."""

    def __init__(self, handler: Handler | AsyncHandler) -> None:
        self._handler = handler
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, state: Any, message: Message) -> tuple[Any, list[WrittenOutput]]:
        """Run the handler once on its own copies of a state and a message; return the new state, and the outputs."""
        context = Context(message)
        after = self._handler(state, message, context)
        if hasattr(after, "__await__"):  # `inspect.isawaitable` takes several times as long
            self._loop = self._loop or asyncio.new_event_loop()
            after = self._loop.run_until_complete(after)
        return after, context.end()

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
        slice_bytes: The size of the new entries, and of the rows of the result, that are kept at a time.
    """

    def __init__(self, runner: Runner, settings: Settings, bucket: Bucket, slice_bytes: int) -> None:
        self._runner = runner
        self._settings = settings
        self._bucket = bucket
        self._slice_bytes = slice_bytes
        self._rows: list[OutputRow] = []
        self._size = 0
        self._stopped: dict[str, str] = {}
        """The keys with a failed message, and why the later ones are not tried."""

    def handle(self, messages: Sequence[Arrival]) -> Iterator[list[OutputRow]]:
        """Handle messages in their order; yield the rows of the result, about a slice at a time."""
        first = 0
        while first < len(messages):
            most = max(self._slice_bytes // max(self._bucket.message_bytes, 1), 1)
            first += self._handle_some(messages[first : first + most])
            if self._rows and (first == len(messages) or self._size >= self._slice_bytes):
                yield self._rows
                self._rows, self._size = [], 0

    def _handle_some(self, messages: Sequence[Arrival]) -> int:
        """Handle messages until the new entries and the rows of the result fill a slice; return their number."""
        hashes = self._bucket.read([arrival[:2] for arrival in messages])
        for index, hash in enumerate(hashes):
            self._handle_one(messages[index], hash)
            if self._bucket.size + self._size >= self._slice_bytes:
                break
        self._bucket.store()
        return index + 1

    def _handle_one(self, arrival: Arrival, hash: bytes) -> None:
        """Add the rows of a message to the result, and its entry to the state if it is new."""
        key, id, time, values = arrival
        if key in self._stopped:
            self._set_aside(arrival, _NOT_TRIED, self._stopped[key])
            return
        # The columns were checked at once.
        message = tuple.__new__(Message, (id, key, None, None if time == NO_TIME else time))
        state = self._bucket.state(key)
        earlier, forgotten = self._bucket.earlier(hash)
        ran: Ran | BaseException | None = None
        decided = decide_known(message, earlier, forgotten)
        if decided is None:
            before = state if earlier is None else earlier.state
            for _ in range(self._settings.attempts):
                ran = self._once(before, message, values)
                if isinstance(ran, Ran):
                    break
            assert ran is not None  # there is at least one attempt
            decided = judge(message, earlier, ran)
        kind, error = decided
        if error is not None:
            text = error_text(error)
            self._set_aside(arrival, kind, text)
            if kind == _FAILED:  # the other kinds were handled before, in their order
                self._stopped[key] = f"message {id} of this key failed before: {text}"
        elif not isinstance(ran, Ran):
            assert earlier is not None
            self._publish(arrival, earlier.outputs, kind)
        else:
            self._publish(arrival, ran.written, kind)
            if kind == NEW:
                outputs = ran.written if self._settings.keep_outputs else None
                self._bucket.add(key, hash, packed(state, ran.fingerprint, outputs), ran.raw)

    def _once(self, state: bytes | None, message: Message, values: tuple[Any, ...]) -> Ran | BaseException:
        """Run the handler on its own copies of state and message; return its error if it fails.

        `SystemExit`, say, is an error here: it would stop the query at the same message after each restart.
        """
        try:
            own = message.with_body(own_copy(dict(zip(self._settings.names, values, strict=True))))
            after, written = self._runner.run(None if state is None else loads(state), own)
            return Ran(after, dumps(after), written, fingerprint(written))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            return error

    def _publish(self, arrival: Arrival, outputs: Sequence[WrittenOutput], kind: str) -> None:
        for number, (id, topic, body) in enumerate(outputs):
            self._rows.append((id, number, arrival.id, arrival.key, topic, body, kind, None))
            self._size += len(body) + _ROW_BYTES

    def _set_aside(self, arrival: Arrival, kind: str, reason: str) -> None:
        body = arrival.body(self._settings.names)
        self._rows.append((None, None, arrival.id, arrival.key, None, body, kind, reason))
        self._size += len(body) + _ROW_BYTES
